"""Entropic optimal transport as a regularizer."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from robustmd.adversary import arguments
from robustmd.adversary.precision import precise_dtype
from robustmd.adversary.regularizers import Regularizer
from robustmd.adversary.simplex import finite_log

_BORDER = 1e-6  # ε: D is evaluated at (1−ε)p + ε/K, for α* diverges where p touches the border


class EntropicOT(Regularizer):
    """The entropic transport cost: Cuturi (NeurIPS 2013), Proposition 1 of Qian et al. (AAAI-19).

        D(p‖q) = min_{P1 = p, Pᵀ1 = q} ⟨P, M⟩ + (1/ν) Σ P log P
               = max_{α,β} −α·p − β·q − (1/ν) Σ P,     P_ij = exp(−1 − ν(M_ij + α_i + β_j))

    and ∇_p D = −α* (the paper drops the sign, and its second constraint must read Pᵀ1 = q). Any
    prior; no bound on the regret is proved. For general M and q the entropy makes D smallest
    elsewhere than at p = q.

    P is found by Sinkhorn's iteration in the log domain, each time from the potentials that the
    last `ascent_direction` left in a buffer. Share no instance between adversaries. A sweep takes
    O(K²) with a cost of one's own and O(K) with M = 1 − I, for which no matrix is made.

    | symbol | argument | range                                                                    |
    |--------|----------|--------------------------------------------------------------------------|
    | M      | cost     | K×K, ≥ 0; default 1 − I                                                  |
    | ν      | nu       | > 0; D's strong convexity is of order 1/ν: large ν makes p follow slowly |
    |        | sweeps   | ≥ 1 an update; 10 do at ν = 1, ν ≥ 5 may need hundreds                   |

    Attributes:
        marginal_error: ‖Pᵀ1 − q‖₁ that the last `ascent_direction` left, a scalar on the device.
    """

    scaled_cost: Tensor | None
    potential: Tensor
    marginal_error: Tensor

    def __init__(
        self, cost: Sequence[Sequence[float]] | None = None, nu: float = 1.0, sweeps: int = 10
    ) -> None:
        super().__init__()
        self.nu = arguments.positive("nu", nu)
        self.sweeps = arguments.count("sweeps", sweeps)
        self._rows = None if cost is None else arguments.cost_matrix("cost", cost)
        self.num_domains = 0  # until prepared

    def prepare(self, num_domains: int, device: torch.device | None = None) -> None:
        if num_domains == self.num_domains:
            return
        if self.num_domains:
            raise ValueError(
                f"this EntropicOT has {self.num_domains} domains, not {num_domains}: make another."
            )
        rows = self._rows
        if rows is not None and len(rows) != num_domains:
            raise ValueError(
                f"cost is {len(rows)}×{len(rows)}; it must be {num_domains}×{num_domains}."
            )
        device = device or torch.get_default_device()
        zeros = torch.zeros(num_domains, dtype=precise_dtype(device), device=device)
        scaled = None if rows is None else zeros.new_tensor(rows) * self.nu
        self.num_domains = num_domains
        self.register_buffer("scaled_cost", scaled, persistent=False)  # νM; None: M = 1 − I
        self.register_buffer("potential", zeros)
        self.register_buffer("marginal_error", torch.zeros_like(zeros[0]))

    def value(self, p: Tensor, q: Tensor) -> Tensor:
        """D((1−ε)p + ε/K ‖ q) by the dual; an error of δ in the marginals costs O(δ²)."""
        interior, potential, _ = self._solve(p, q)
        return torch.dot(interior, potential) / self.nu

    def ascent_direction(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> Tensor:
        """h = f + (λ/2)(1 − ε) α*, α* centred. Leaves its potentials for the next call."""
        return self.evaluate(losses, p, q, lam)[1]

    def evaluate(self, losses: Tensor, p: Tensor, q: Tensor, lam: float) -> tuple[Tensor, Tensor]:
        interior, potential, error = self._solve(p, q)
        self.potential.copy_(potential)
        self.marginal_error.copy_(error)
        payoff = torch.dot(p, losses).sub_(torch.dot(interior, potential), alpha=lam / 2 / self.nu)
        centred = potential - potential.mean()  # −ν α*
        return payoff, torch.sub(losses, centred, alpha=lam / 2 * (1 - _BORDER) / self.nu)

    def best_response(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """p_i = Σ_j q_j softmax_i((2ν/λ) f_i − ν M_ij)."""
        # Above the largest loss: what is added to all moves nothing, and a tiny λ would round it.
        tilt, columns = self._tilted(losses - losses.amax(), lam)
        return torch.exp(tilt + self._log_rows(finite_log(q) - columns))

    def best_value(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """(λ/2ν) Σ_j q_j (log Σ_i exp((2ν/λ) f_i − ν M_ij) − log q_j)."""
        _, columns = self._tilted(losses, lam)
        return (torch.dot(q, columns) - torch.xlogy(q, q).sum()) * (lam / 2 / self.nu)

    def _tilted(self, losses: Tensor, lam: float) -> tuple[Tensor, Tensor]:
        """(2ν/λ) f_i, and for every j log Σ_i exp((2ν/λ) f_i − ν M_ij)."""
        self.prepare(losses.shape[-1], losses.device)
        tilt = losses * (2 * self.nu / lam)
        return tilt, self._log_columns(tilt)

    def _solve(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sinkhorn: ((1−ε)p + ε/K, u with α* = −u/ν up to a constant, ‖Pᵀ1 − q‖₁).

        log P = u_i + v_j − νM_ij; v (u) is chosen so that its columns (rows) sum to q (p). u is
        shifted so that D = u·p/ν, the dual's value.
        """
        self.prepare(p.shape[-1], p.device)
        interior = p * (1 - _BORDER) + _BORDER / self.num_domains
        log_p, log_q = interior.log(), finite_log(q)
        u = self.potential.to(p.dtype)
        for _ in range(self.sweeps):
            v = log_q - self._log_columns(u)
            u = log_p - self._log_rows(v)
        error = (torch.exp(v + self._log_columns(u)) - q).abs().sum()
        return interior, u + torch.dot(v, q), error

    def _log_columns(self, u: Tensor) -> Tensor:
        """log Σ_i exp(u_i − νM_ij) for every j, [K]."""
        if self.scaled_cost is None:
            return self._log_unit(u)
        return torch.logsumexp(u.unsqueeze(1) - self.scaled_cost.to(u.dtype), dim=0)

    def _log_rows(self, v: Tensor) -> Tensor:
        """log Σ_j exp(v_j − νM_ij) for every i, [K]."""
        if self.scaled_cost is None:
            return self._log_unit(v)
        return torch.logsumexp(v - self.scaled_cost.to(v.dtype), dim=1)

    def _log_unit(self, u: Tensor) -> Tensor:
        """Either of them for M = 1 − I: e^{−ν} Σ_i exp(u_i) + (1 − e^{−ν}) exp(u_j)."""
        everywhere = torch.logsumexp(u, dim=0) - self.nu
        return torch.logaddexp(u + math.log(-math.expm1(-self.nu)), everywhere)
