"""Checks of the arguments a person gives: each raises a ValueError of one line. No torch here."""

import math
from collections.abc import Sequence


def positive(name: str, value: float) -> float:
    """The value as a float, if it is finite and above 0."""
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} is {value!r}; it must be a finite number above 0.")
    return float(value)


def nonnegative(name: str, value: float) -> float:
    """The value as a float, if it is finite and not below 0."""
    if isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value!r}; it must be a finite number, 0 or above.")
    return float(value)


def count(name: str, value: int) -> int:
    """The value, if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, 1 or above.")
    return value


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    """The value, if it is one of the allowed words."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def distribution(name: str, values: Sequence[float] | None, num_domains: int) -> list[float]:
    """K weights, not negative, that sum to 1 (within 1e-6; then made exact); None: uniform."""
    if values is None:
        return [1.0 / num_domains] * num_domains
    weights = [float(value) for value in values]
    if len(weights) != num_domains:
        raise ValueError(
            f"{name} has {len(weights)} weights; it needs one per domain: {num_domains}."
        )
    if any(not math.isfinite(weight) or weight < 0 for weight in weights):
        raise ValueError(f"{name} is {weights}; its weights must be finite and not negative.")
    total = math.fsum(weights)
    if abs(total - 1) > 1e-6:
        raise ValueError(f"{name} is {weights}, which sums to {total:g}; it must sum to 1.")
    return [weight / total for weight in weights]


def number(name: str, value: float) -> float:
    """The value as a float, if it is finite."""
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; it must be a finite number.")
    return float(value)


def share(name: str, value: float) -> float:
    """The value as a float, if it is above 0 and at most 1."""
    if isinstance(value, bool) or not 0 < value <= 1:
        raise ValueError(f"{name} is {value!r}; it must be a number above 0 and at most 1.")
    return float(value)


def one_per_domain(name: str, values: Sequence[float], num_domains: int) -> list[float]:
    """K finite numbers."""
    numbers = [number(name, value) for value in values]
    if len(numbers) != num_domains:
        raise ValueError(
            f"{name} has {len(numbers)} numbers; it needs one per domain: {num_domains}."
        )
    return numbers


def cost_matrix(name: str, rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """The rows of a square matrix whose entries are finite and not negative."""
    matrix = [[float(value) for value in row] for row in rows]
    if not matrix or any(len(row) != len(matrix) for row in matrix):
        raise ValueError(f"{name} has rows of lengths {[len(r) for r in matrix]}; it must be K×K.")
    if any(not math.isfinite(value) or value < 0 for row in matrix for value in row):
        raise ValueError(f"{name} is {matrix}; its entries must be finite and not negative.")
    return matrix
