"""The probability simplex Δ = {p ∈ R^K : p ≥ 0, Σ p_k = 1}."""

import torch
from torch import Tensor

from robustmd.adversary.precision import precise_dtype

_LOG_ZERO = -1e30


def project_simplex(v: Tensor) -> Tensor:
    r"""The Euclidean projection onto the simplex, exact.

        Π_Δ(v) = argmin_{p∈Δ} ‖p − v‖² = max(v − τ, 0),    τ = max_j (Σ_{i≤j} u_i − 1)/j

    with u the entries of v in descending order. Duchi et al. (ICML 2008) find τ at the last j with
    u_j > (Σ_{i≤j} u_i − 1)/j. That quotient rises exactly while the next entry exceeds it and
    falls ever after, so that its maximum is the same τ and needs neither a search nor a gather.

    Args:
        v: [..., K], K ≥ 1, projected along the last dimension. Any device and dtype; any finite
            size; −inf is an entry that must get 0.

    Returns:
        [..., K] of v's dtype (float64 for integers), computed in float64 where the device has it.
    """
    x = v.to(precise_dtype(v.device))
    x = x - x.amax(dim=-1, keepdim=True)  # changes nothing, and keeps huge entries exact
    u = x.sort(dim=-1, descending=True).values
    j = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    tau = u.cumsum(dim=-1).sub_(1).div_(j).amax(dim=-1, keepdim=True)
    p = (x - tau).clamp_(min=0)
    return p if p.dtype == v.dtype or not v.is_floating_point() else p.to(v.dtype)


def uniform(num_domains: int, *, device: torch.device | str | None = None) -> Tensor:
    """The uniform distribution over K domains, in the most precise dtype of the device."""
    empty = torch.empty(num_domains, device=device)
    return torch.full_like(empty, 1.0 / num_domains, dtype=precise_dtype(empty.device))


def effective_number(p: Tensor) -> Tensor:
    """The effective number of domains exp(H(p)), H(p) = −Σ p_k log p_k: from 1 (one domain) to K.

    Args:
        p: [..., K] distributions.

    Returns:
        [...], on p's device.
    """
    return torch.special.entr(p).sum(dim=-1).exp()


def finite_log(q: Tensor) -> Tensor:
    """log q, with −1e30 for log 0: finite, so that 0·log 0 is 0 and a difference is no NaN.

    Adding anything below 1e13 to −1e30 changes nothing, and exp(−1e30) is 0.
    """
    return q.log().clamp(min=_LOG_ZERO)
