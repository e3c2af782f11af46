"""Entropic optimal transport as a regularizer."""

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
    last `ascent_direction` left in a buffer. Share no instance between adversaries.

    | symbol | argument | range                                                                    |
    |--------|----------|--------------------------------------------------------------------------|
    | M      | cost     | K×K, ≥ 0; default 1 − I                                                  |
    | ν      | nu       | > 0; D's strong convexity is of order 1/ν: large ν makes p follow slowly |
    |        | sweeps   | ≥ 1 an update; 10 do at ν = 1, ν ≥ 5 may need hundreds                   |

    Attributes:
        marginal_error: ‖Pᵀ1 − q‖₁ that the last `ascent_direction` left, a scalar on the device.
    """

    cost: Tensor
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
        rows = self._rows or [
            [float(i != j) for j in range(num_domains)] for i in range(num_domains)
        ]
        if len(rows) != num_domains:
            raise ValueError(
                f"cost is {len(rows)}×{len(rows)}; it must be {num_domains}×{num_domains}."
            )
        cost = torch.tensor(rows, dtype=precise_dtype(device or torch.get_default_device()))
        self.num_domains = num_domains
        self.register_buffer("cost", cost.to(device), persistent=False)
        self.register_buffer("potential", torch.zeros_like(self.cost[0]))
        self.register_buffer("marginal_error", torch.zeros_like(self.cost[0, 0]))

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
        return torch.softmax(self._tilted(losses, lam), dim=0) @ q

    def best_value(self, losses: Tensor, q: Tensor, lam: float) -> Tensor:
        """(λ/2ν) Σ_j q_j (log Σ_i exp((2ν/λ) f_i − ν M_ij) − log q_j)."""
        columns = torch.logsumexp(self._tilted(losses, lam), dim=0)
        return (torch.dot(q, columns) - torch.xlogy(q, q).sum()) * (lam / 2 / self.nu)

    def _tilted(self, losses: Tensor, lam: float) -> Tensor:
        """(2ν/λ) f_i − ν M_ij."""
        self.prepare(losses.shape[-1], losses.device)
        return torch.sub(losses.unsqueeze(1) * (2 / lam), self.cost.to(losses.dtype)) * self.nu

    def _solve(self, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sinkhorn: ((1−ε)p + ε/K, u with α* = −u/ν up to a constant, ‖Pᵀ1 − q‖₁).

        log P = u_i + v_j − νM_ij is kept whole: scaling its columns (rows) to sum to q (p) is a
        log-softmax. u is scaled so that D = u·p/ν, the dual's value.
        """
        self.prepare(p.shape[-1], p.device)
        interior = p * (1 - _BORDER) + _BORDER / self.num_domains
        log_p = interior.log().unsqueeze(1)
        log_q = finite_log(q)
        scaled_cost = self.cost.to(p.dtype) * self.nu
        log_plan = self.potential.to(p.dtype).unsqueeze(1) - scaled_cost
        for _ in range(self.sweeps):
            log_plan = torch.log_softmax(log_plan, dim=0) + log_q
            log_plan = torch.log_softmax(log_plan, dim=1) + log_p
        error = (log_plan.exp().sum(dim=0) - q).abs().sum()
        # u_i + v_j = log P_ij + νM_ij; weighting by q gives u_i + v·q, so that p·u is u·p + v·q.
        return interior, (log_plan + scaled_cost) @ q, error
