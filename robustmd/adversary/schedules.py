"""Step sizes and regret bounds that the paper proves, as plain functions of numbers. No torch here.

Symbols: T total_steps; K num_domains; λ lam; μ bounds ‖ĥᵗ‖₂ (‖ĥᵗ‖_∞ for KL), the ascent direction;
γ bounds ‖f̂ᵗ‖₂, the losses; σ bounds the model's gradient; L its smoothness; R bounds ‖W‖.
All must be finite and positive (c and the bounds may be 0), else ValueError.
"""

import math

from robustmd.adversary import arguments


def optimal_c(mu: float, lam: float, total_steps: int) -> float:
    """The constant of Corollary 1, which minimises `regret_bound` over c > 0.

        c* = μ² / (λ² (1 + sqrt(1 + 2μ²/(λ²T))))

    Args:
        mu: μ ≥ 0, bounds ‖ĥᵗ‖₂ for all t.
        lam: λ > 0.
        total_steps: T ≥ 1.
    """
    ratio = arguments.nonnegative("mu", mu) / arguments.positive("lam", lam)
    squared = ratio * ratio
    return squared / (1 + math.sqrt(1 + 2 * squared / arguments.count("total_steps", total_steps)))


def regret_bound(c: float, mu: float, lam: float, total_steps: int) -> float:
    """The regret of projected ascent with the step 1/(λ(t + c)) after T steps (Theorem 3, times T).

        R(c) = λc + (μ²/2λ) ln(T/c + 1) + μ²/2λ        R(0) = (μ²/2λ)(ln T + 1)

    It holds for every realisation: the sum telescopes to (λc/2)‖p − p₁‖² ≤ λc, and
    Σ 1/(t+c) ≤ ln(T/c + 1).

    Args:
        c: c ≥ 0.
        mu: μ ≥ 0, bounds ‖ĥᵗ‖₂ for all t.
        lam: λ > 0.
        total_steps: T ≥ 1.
    """
    c, mu = arguments.nonnegative("c", c), arguments.nonnegative("mu", mu)
    scale = mu * mu / (2 * arguments.positive("lam", lam))
    return lam * c + scale * (_harmonic(c, total_steps) + (1 if c > 0 else 0))


def kl_optimal_c(mu: float, lam: float, total_steps: int, num_domains: int) -> float:
    """The constant that minimises `kl_regret_bound` over c > 0: c*(μ/√(log K), λ/2, T).

    Args:
        mu: μ_∞ ≥ 0, bounds ‖ĥᵗ‖_∞ for all t.
        lam: λ > 0.
        total_steps: T ≥ 1.
        num_domains: K ≥ 1; 0 is returned for K = 1, where there is nothing to learn.
    """
    if arguments.count("num_domains", num_domains) == 1:
        return 0.0
    return optimal_c(mu / math.sqrt(math.log(num_domains)), lam / 2, total_steps)


def kl_regret_bound(c: float, mu: float, lam: float, total_steps: int, num_domains: int) -> float:
    """The regret of mirror ascent with the step 2/(λ(t + c)) after T steps.

        R_KL(c) = (λ/2) c log K + (μ_∞²/λ) ln(T/c + 1)        R_KL(0) = (μ_∞²/λ)(ln T + 1)

    It holds for every realisation and any prior when p₁ is uniform on the prior's support, with K
    the size of that support: the sum telescopes to (λc/2) KL(p‖p₁) ≤ (λ/2) c log K.
    """
    c, mu = arguments.nonnegative("c", c), arguments.nonnegative("mu", mu)
    start = lam / 2 * c * math.log(arguments.count("num_domains", num_domains))
    return start + mu * mu / arguments.positive("lam", lam) * _harmonic(c, total_steps)


def _harmonic(c: float, total_steps: int) -> float:
    """Bounds Σ_{t=1..T} 1/(t + c)."""
    arguments.count("total_steps", total_steps)
    return math.log(total_steps / c + 1) if c > 0 else math.log(total_steps) + 1


def lemma1_adversary_step(gamma: float, total_steps: int, num_domains: int) -> float:
    """η_p of Lemma 1 (convex): 2 sqrt(2 log K)/(γ √T)."""
    return _root_log(num_domains) * 2 / (arguments.positive("gamma", gamma) * total_steps**0.5)


def lemma1_model_step(radius: float, sigma: float, total_steps: int) -> float:
    """η_w of Lemma 1 (convex): R/(σ √T)."""
    return arguments.positive("radius", radius) / (
        arguments.positive("sigma", sigma) * arguments.count("total_steps", total_steps) ** 0.5
    )


def theorem1_adversary_step(gamma: float, total_steps: int, num_domains: int) -> float:
    """η_p of Theorem 1 (non-convex): (2 sqrt(2 log K)/γ) T^(−2/3)."""
    return _root_log(num_domains) * 2 / arguments.positive("gamma", gamma) * total_steps ** (-2 / 3)


def theorem1_model_step(
    gamma: float, sigma: float, smoothness: float, total_steps: int, num_domains: int
) -> float:
    """η_w of Theorem 1 (non-convex): sqrt(2γ sqrt(2 log K))/(σ √L) · T^(−1/3)."""
    top = math.sqrt(2 * arguments.positive("gamma", gamma) * _root_log(num_domains))
    return top / _sigma_root(sigma, smoothness) * total_steps ** (-1 / 3)


def theorem2_model_step(
    mu: float, sigma: float, smoothness: float, lam: float, total_steps: int
) -> float:
    """η_w of Theorem 2 (L2 regularised): 2μ sqrt(log T)/(σ sqrt(λ L T)), T ≥ 2."""
    top = 2 * arguments.positive("mu", mu) * math.sqrt(math.log(total_steps))
    return top / (_sigma_root(sigma, smoothness) * math.sqrt(lam * total_steps))


def theorem4_model_step(sigma: float, smoothness: float, total_steps: int) -> float:
    """η_w of Theorem 4 (best response): √2/(σ sqrt(L_F T)), with L_F of `theorem4_smoothness`."""
    return math.sqrt(2 / total_steps) / _sigma_root(sigma, smoothness)


def theorem4_smoothness(smoothness: float, jacobian_norm: float, lam: float) -> float:
    """The smoothness of F(W) = max_p p·f − (λ/2)‖p−q‖²: L_F = L + ‖J‖²/λ, J the Jacobian of f.

    Without the regularizer F is not smooth and Theorem 4, as printed, is not true.
    """
    return smoothness + jacobian_norm**2 / arguments.positive("lam", lam)


def oracle_step(rounds: int, num_domains: int) -> float:
    """η of the oracle's rounds for losses in [0, 1]: sqrt(log K/(2R)) (Chen et al., 2017)."""
    return math.sqrt(math.log(num_domains) / (2 * arguments.count("rounds", rounds)))


def _root_log(num_domains: int) -> float:
    return math.sqrt(2 * math.log(arguments.count("num_domains", num_domains)))


def _sigma_root(sigma: float, smoothness: float) -> float:
    return arguments.positive("sigma", sigma) * math.sqrt(
        arguments.positive("smoothness", smoothness)
    )
