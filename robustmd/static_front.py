"""Fixed weights to compare learned ones with: numbered points of the simplex.

With K = 2 domains points 0..10 are the grid (i/10, 1 − i/10). With K > 2 the first K points are the
simplex's corners and the others are drawn uniformly from it, point i from a stream of its own, so
that a point does not change with how many others there are.
"""

from __future__ import annotations

from robustmd.errors import UserError

STEPS = 10  # of the grid for K = 2
PARTS = 100  # a drawn point's weights are whole parts of this many


def front_point(point: int, num_domains: int) -> list[float]:
    """Weights [K], K >= 2, of one point of the static front.

    K > 2, point >= K: w ~ Dirichlet(1, …, 1), which is uniform on the simplex, rounded to
    hundredths that sum to 1 (largest remainders).

    Args:
        point: >= 0; at most 10 where K = 2.
        num_domains: K.

    Raises:
        UserError: no such point.
    """
    if num_domains < 2:
        raise UserError(
            f"method.point={point}: fixed weights need two domains or more; leave it out"
        )
    if num_domains == 2:
        if point > STEPS:
            raise UserError(
                f"method.point={point}: with two domains it must be from 0 to {STEPS}, for the "
                f"weights i/{STEPS} and 1 − i/{STEPS}; for others give method.prior"
            )
        return [point / STEPS, (STEPS - point) / STEPS]
    if point < num_domains:
        return [float(k == point) for k in range(num_domains)]
    return _drawn(point, num_domains)


def _drawn(point: int, num_domains: int) -> list[float]:
    import numpy as np  # noqa: PLC0415 - checking settings needs no numpy otherwise

    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([point, num_domains])))
    share = rng.dirichlet(np.ones(num_domains)) * PARTS
    parts = np.floor(share).astype(int)
    largest = np.argsort(parts - share, kind="stable")[: PARTS - int(parts.sum())]
    parts[largest] += 1
    return [int(count) / PARTS for count in parts]
