"""Checks of the arguments a person gives: each raises a ValueError of one line. No torch here."""

import math
from collections.abc import Sequence


def number(name: str, value: float, fits: bool = True, words: str = "a finite number") -> float:
    """The value as a float, if it is finite and fits what the words say."""
    if isinstance(value, bool) or not math.isfinite(value) or not fits:
        raise ValueError(f"{name} is {value!r}; it must be {words}.")
    return float(value)


def positive(name: str, value: float) -> float:
    return number(name, value, value > 0, "a finite number above 0")


def nonnegative(name: str, value: float) -> float:
    return number(name, value, value >= 0, "a finite number, 0 or above")


def share(name: str, value: float) -> float:
    return number(name, value, 0 < value <= 1, "a number above 0 and at most 1")


def count(name: str, value: int) -> int:
    """The value, if it is a whole number of at least 1."""
    number(name, value, isinstance(value, int) and value >= 1, "a whole number, 1 or above")
    return value


def updates_to_come(total_steps: int | None, because: str) -> int:
    """T ≥ 1, for what needs it."""
    if total_steps is None:
        raise ValueError(f"{because}, which needs the number of updates: give total_steps.")
    return count("total_steps", total_steps)


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    """The value, if it is one of the allowed words."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def one_per_domain(
    name: str, values: Sequence[float], num_domains: int, what: str = "numbers"
) -> list[float]:
    """K finite numbers."""
    numbers = [float(value) for value in values]
    if len(numbers) != num_domains:
        raise ValueError(
            f"{name} has {len(numbers)} {what}; it needs one per domain: {num_domains}."
        )
    return [number(name, value) for value in numbers]


def distribution(name: str, values: Sequence[float] | None, num_domains: int) -> list[float]:
    """K weights, not negative, that sum to 1 (within 1e-6; then made exact); None: uniform."""
    if values is None:
        return [1.0 / num_domains] * num_domains
    weights = [float(value) for value in values]
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise ValueError(f"{name} is {weights}; its weights must be finite and not negative.")
    one_per_domain(name, weights, num_domains, "weights")
    total = math.fsum(weights)
    if abs(total - 1) > 1e-6:
        raise ValueError(f"{name} is {weights}, which sums to {total:g}; it must sum to 1.")
    return [weight / total for weight in weights]


def cost_matrix(name: str, rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """The rows of a square matrix whose entries are finite and not negative."""
    matrix = [[float(value) for value in row] for row in rows]
    if not matrix or any(len(row) != len(matrix) for row in matrix):
        raise ValueError(f"{name} has rows of lengths {[len(r) for r in matrix]}; it must be K×K.")
    if not all(math.isfinite(value) and value >= 0 for row in matrix for value in row):
        raise ValueError(f"{name} is {matrix}; its entries must be finite and not negative.")
    return matrix
