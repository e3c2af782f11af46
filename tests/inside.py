"""Whether what a figure draws lies inside its axes."""

import numpy as np

SLACK = 1.0  # pixels


def assert_inside(name, figure):
    """Every vertex of every line, marker, bar and band, by the transform it is drawn with."""
    figure.draw_without_rendering()  # settles limits and places
    checked = 0
    for place, axis in enumerate(figure.axes):
        box = axis.bbox
        for artist, points in drawn_points(axis):
            low, high = points.min(axis=0), points.max(axis=0)
            where = f"{name}, axes {place}: {artist} from {low} to {high}, axes {box.extents}"
            assert (low >= (box.x0 - SLACK, box.y0 - SLACK)).all(), where
            assert (high <= (box.x1 + SLACK, box.y1 + SLACK)).all(), where
            checked += 1
    assert checked, f"{name}: nothing is drawn in it"


def drawn_points(axis):
    """(artist, its vertices in pixels) of an axes."""
    for artist in (*axis.lines, *axis.patches, *axis.images):
        if artist in axis.images:
            left, right, bottom, top = artist.get_extent()
            points = axis.transData.transform([(left, bottom), (right, top)])
        else:
            points = artist.get_transform().transform(artist.get_path().vertices)
        yield from _finite(artist, points)
    for artist in axis.collections:
        for path in artist.get_paths():
            yield from _finite(artist, artist.get_transform().transform(path.vertices))


def _finite(artist, points):
    points = np.asarray(points)[np.isfinite(points).all(axis=1)]
    if len(points) and artist.get_visible():
        yield artist, points
