"""Simulated incidents in a made-up city, for examples that run anywhere."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import BoolArray, FloatArray
from ncbayes.datasets.arguments import Seed, check_count, generator
from ncbayes.datasets.crime import ASSAULT, GUN, METHOD, OFFENSE, PLACE, Incidents

# In the Atlantic, so that nobody takes it for a real one. A degree of latitude is 111.2 km.
CENTER = (-30.0, 45.0)
KM_A_DEGREE = (111.2 * math.cos(math.radians(CENTER[1])), 111.2)

# Kilometres east and north of the center, counterclockwise; a bay in the south-east.
OUTLINE = (
    (-8.41, -2.13),
    (-6.27, -6.58),
    (-2.93, -8.36),
    (0.38, -7.72),
    (1.67, -3.91),
    (3.42, -3.17),
    (5.11, -5.63),
    (7.94, -4.29),
    (9.13, 0.47),
    (7.36, 3.82),
    (7.71, 6.44),
    (3.19, 8.73),
    (-1.28, 7.61),
    (-4.57, 8.12),
    (-7.03, 4.96),
    (-7.52, 1.31),
)

# Three decimals of a degree are 111 m to the north and 79 m to the east.
DECIMALS = 3
FEWEST, MOST = 60, 90
FIRST_MONTH = np.datetime64("2023-01", "M")


def incidents(months: int = 12, *, seed: Seed = None) -> Incidents:
    """Simulated incidents in a made-up city of about 18 km, 60 to 90 a month, with its ``outline``.

    With s going from 0 in the first month to 1 in the last, an incident is in hot spot A with
    probability 0.3 (normal, sd 0.9 km, where it is), B with 0.3 (sd 0.8 km, from the west to the
    north), C with 0.05 + 0.25 s (sd 0.7 + 0.6 s km, in the east), and else anywhere in the city;
    what falls outside the city is drawn again. Coordinates are rounded to three decimals, about
    100 m, as those of anonymized incidents are, so that some occur twice. Dates start in 2023.

    >>> found = incidents(months=2, seed=1)
    >>> found.points.columns.tolist(), found.times.dt.month.unique().tolist()
    (['LONGITUDE', 'LATITUDE'], [1, 2])
    """
    import pandas as pd

    check_count("months", months, 1)
    rng = generator("seed", seed)
    counts = rng.integers(FEWEST, MOST + 1, months)
    points = [
        _month(month / max(months - 1, 1), count, rng)
        for month, count in enumerate(counts.tolist())
    ]
    times = [_dates(FIRST_MONTH + month, count, rng) for month, count in enumerate(counts.tolist())]
    total = int(counts.sum())
    kinds = pd.DataFrame({METHOD: [GUN] * total, OFFENSE: [ASSAULT] * total}, dtype="string")
    return Incidents(
        points=pd.DataFrame(np.concatenate(points), columns=list(PLACE)),
        times=pd.Series(np.concatenate(times), name="times").dt.as_unit("us"),
        kinds=kinds,
        dropped={"missing coordinates": 0, "missing dates": 0},
        outline={"type": "Polygon", "coordinates": [_ring().tolist()]},
    )


def _month(s: float, count: int, rng: np.random.Generator) -> FloatArray:
    """Rounded longitudes and latitudes of a month's incidents, at the share s of the time."""
    centers = np.array([(3.1, 4.2), (-5.0 + 4.5 * s, -2.5 + 7.0 * s), (6.2, -0.9)])
    sds = np.array([0.9, 0.8, 0.7 + 0.6 * s])
    growing = 0.05 + 0.25 * s
    part = rng.choice(4, size=count, p=[0.3, 0.3, growing, 0.4 - growing])
    points, outside = np.empty((count, 2)), np.ones(count, dtype=bool)
    while outside.any():
        spot = part[outside]
        km = rng.uniform(np.min(OUTLINE, axis=0), np.max(OUTLINE, axis=0), (len(spot), 2))
        hot = spot < len(centers)
        z = rng.standard_normal((int(hot.sum()), 2))
        km[hot] = centers[spot[hot]] + sds[spot[hot], None] * z
        points[outside] = np.round(km / KM_A_DEGREE + CENTER, DECIMALS)
        # Rounding may carry a point over the border, so that it comes first.
        outside[outside] = ~inside(points[outside], _ring())
    return points


def _dates(month: np.datetime64, count: int, rng: np.random.Generator) -> NDArray[np.datetime64]:
    """Times in a month, to the second, in order."""
    start, end = (each.astype("datetime64[s]") for each in (month, month + 1))
    seconds = rng.integers(0, (end - start).astype(np.int64), count)
    return np.asarray(start + np.sort(seconds).astype("timedelta64[s]"))


def _ring() -> FloatArray:
    """The outline in degrees; as in GeoJSON, the last vertex is the first."""
    return np.round(np.array([*OUTLINE, OUTLINE[0]]) / KM_A_DEGREE + CENTER, 5)


def inside(points: FloatArray, ring: FloatArray) -> BoolArray:
    """Which points are inside: a ray to the east leaves the closed ring an odd number of times."""
    x, y = points[:, :1], points[:, 1:]
    (x0, y0), (x1, y1) = ring[:-1].T, ring[1:].T
    spans = (y0 > y) != (y1 > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = x0 + (y - y0) * (x1 - x0) / (y1 - y0)
    return np.asarray((spans & (x < crossing)).sum(axis=1) % 2 == 1)
