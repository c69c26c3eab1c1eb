"""From points and time stamps to a density that changes over time (the paper's section 4)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ncbayes import inputs
from ncbayes.base import FloatArray, InputError, Noise, Prior, Schedule, shown
from ncbayes.contrast import Engine, uses_noise
from ncbayes.diagnostics import FitWarning
from ncbayes.events import Events, events
from ncbayes.fields import Field
from ncbayes.fitting import MINUTES, fitted
from ncbayes.models import RadialBasis
from ncbayes.models.radial import BASIS, Kernel
from ncbayes.noise import Adaptive, Auto, KernelDensity, Mixture, Restricted, Uniform
from ncbayes.posterior import Posterior
from ncbayes.priors import RandomWalk
from ncbayes.progress import Progress, tell
from ncbayes.spaces import Box, Region
from ncbayes.threads import single_threaded

# The paper's alpha of adaptive noise in its section 4.
ALPHA = 0.2
# The share of noise points anywhere in the domain. Without them nothing would tell the density far
# from all points, and mass would leak there.
ANYWHERE = 0.1
# A time with fewer points than this has no noise of its own, but the common one.
FEWEST_FOR_NOISE = 10
# Words for noise that are made here, and those that ``fit`` knows.
WORDS = ("common", "per_time", "adaptive", "auto", "matched")
# Engines that do without noise.
NOISELESS = ("exact", "exchange", "hyvarinen", "pseudolikelihood")


def fit_density_over_time(
    points: Any,
    times: Any,
    *,
    domain: Any = None,
    every: str | float | None = None,
    coordinates: str | None = None,
    outside: str = "error",
    day_first: bool | None = None,
    tz: str | None = None,
    basis: int = BASIS,
    bandwidth: float | None = None,
    kernel: Kernel = "exponential",
    noise: Noise | Mapping[str, Noise] | Schedule | Adaptive | Auto | str = "common",
    noise_ratio: float | None = None,
    prior: Prior | Mapping[str, Prior] | None = None,
    engine: str | Engine = "auto",
    draws: int | None = None,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    seed: inputs.Seed = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = None,
    verify: bool = True,
    minutes: float = MINUTES,
) -> Posterior:
    """Fit a density of points that changes over time: a radial basis with a random walk.

    ``log p_t(x) = sum_l theta_tl phi(|x - center_l| / bandwidth) - log Z_t`` at every time t, and
    theta_t a random walk. ``ncbayes.densities`` reads densities off the posterior.

    Parameters
    ----------
    points
        One row for each point: an array or a data frame of coordinates.
    times
        One time stamp for each point, in any order: dates, numbers, or labels (in order of
        appearance, or of the categories of a pandas Categorical). Rows of pandas objects are
        matched by their index, which must hold the same labels; others by position.
    domain
        Where points can be: a ``Box``; a polygon (shapely, GeoJSON, the path of a GeoJSON file,
        corners, a ``Region``), outside of which the density is zero; None: a box a tenth
        wider than the data on each side.
    every
        How times are put together: "day", "week", "month", "quarter" or "year" for dates, a width
        for numbers. None: the shortest of these with 20 points a period, at most 60 periods and
        not more empty than filled; every number by itself. A period without points is carried by
        its neighbours.
    coordinates
        "degrees": points and domain are longitude and latitude, which are projected to km around
        the middle of the domain, or of the points without one, and densities are per square
        kilometer; "plane": they are taken as they are. None: degrees if the frame's columns say so
        by name, or if the domain is GeoJSON with values within 180 and 90; otherwise plane.
    outside
        "error" or "drop": what to do with points outside the domain.
    day_first
        Whether 3/12/2022 is in December. None: if another date can't begin with the month; dates
        that all can be read both ways are refused.
    tz
        A time zone such as "America/New_York", in which days and months begin: dates that name
        their zone or offset are converted to it, others are in it already. None: the clock as it
        is written.
    basis, bandwidth, kernel
        The number of basis functions, and see ``models.RadialBasis.match``.
    noise
        "common": kernels at all points, for all times (the paper's N1); "per_time": kernels at
        the points of each time (N2); "adaptive": from common noise part of the way toward the
        fitted model (aN, alpha = 0.2); each with a tenth of its points anywhere in the domain; or
        what ``fit`` takes.
    noise_ratio
        Noise points for each data point; None: 5, or what ``noise="auto"`` chooses.
    prior
        Of theta; None: ``RandomWalk()`` at the times. The paper's is
        ``RandomWalk(rate=1.0, initial="walk")``.
    engine, draws, tune, chains, cores, seed, checkpoint, progress, verify, minutes
        As in ``fit``; two lines that say what coordinates and times were taken for are printed
        with the progress.
    """
    _check_engine(engine)
    found = events(
        "fit_density_over_time", points, times, domain=domain, every=every,
        coordinates=coordinates, outside=outside, day_first=day_first, tz=tz,
    )  # fmt: skip
    tell(found.notes, inputs.checked_progress(progress))
    for line in found.warnings:
        warnings.warn(line, FitWarning, stacklevel=2)
    return fit_events(
        found, basis=basis, bandwidth=bandwidth, kernel=kernel, noise=noise,
        noise_ratio=noise_ratio, prior=prior, engine=engine, draws=draws, tune=tune, chains=chains,
        cores=cores, seed=seed, checkpoint=checkpoint, progress=progress,
        verify=verify, minutes=minutes, calls=3,
    )  # fmt: skip


def fit_events(
    found: Events,
    *,
    basis: int = BASIS,
    bandwidth: float | None = None,
    kernel: Kernel = "exponential",
    noise: Any = "common",
    noise_ratio: float | None = None,
    prior: Any = None,
    engine: Any = "auto",
    draws: int | None = None,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    seed: inputs.Seed = None,
    checkpoint: Any = None,
    progress: Progress = None,
    verify: bool = True,
    minutes: float = MINUTES,
    calls: int = 2,
) -> Posterior:
    """Fit points that were read before, by the options of ``fit_density_over_time``."""
    options = (engine, draws, tune, chains, cores, seed, checkpoint, progress, verify, minutes)
    _check_engine(engine)
    groups, space = found.groups, found.space
    pooled = np.concatenate(list(groups.values()))
    model = RadialBasis.match(pooled, space, basis, bandwidth, kernel)
    field = Field(
        model, found.axes, found.times, found.projection, found.dropped, found.style, found.far
    )
    if prior is None:
        places = None if found.places is None else tuple(found.places.tolist())
        prior = RandomWalk(times=places)
    made = _noise(noise, groups, pooled, space)
    with single_threaded():
        return fitted(model, groups, made, prior, noise_ratio, options, field, calls)


def _is_word(noise: object, word: str) -> bool:
    return isinstance(noise, str) and noise == word


def _check_engine(engine: Any) -> None:
    """Refuse engines that do without noise; others are checked by ``fit``."""
    if any(_is_word(engine, word) for word in NOISELESS) or not uses_noise(engine):
        raise InputError(
            'engine must be "auto", "gibbs" or one such as ncbayes.engines.Gibbs(): densities over '
            f"time are fitted by contrast with noise, which {shown(engine)} does not use"
        )


def _noise(
    noise: Any, groups: Mapping[str, FloatArray], pooled: FloatArray, space: Box | Region
) -> Any:
    """Noise for ``fit``, by word."""
    if not isinstance(noise, str):
        return noise
    if noise not in WORDS:
        raise InputError(
            f"noise must be one of {', '.join(map(repr, WORDS))}, or what ncbayes.fit takes, got "
            f"{shown(noise)}"
        )
    if noise in ("auto", "matched"):
        return noise
    common = _kernels(pooled, space)
    if noise == "common":
        return common
    if noise == "adaptive":
        return Adaptive(noise=common, alpha=ALPHA)
    return {
        label: _kernels(own, space) if _is_spread(own) else common for label, own in groups.items()
    }


def _is_spread(points: FloatArray) -> bool:
    return len(points) >= FEWEST_FOR_NOISE and bool(np.all(np.ptp(points, axis=0) > 0))


def _kernels(points: FloatArray, space: Box | Region) -> Noise:
    if isinstance(space, Box):
        kernels: Any = KernelDensity.match(points, space)
    else:
        kernels = Restricted.to(KernelDensity.match(points), space)
    return Mixture((kernels, Uniform(space)), (1 - ANYWHERE, ANYWHERE))
