"""Densities at sites, and what is made of their draws: moments, intervals, probabilities.

There are two sources: ``Fitted``, draws of a posterior, and ``Estimated``, kernels, which are read
as one draw that has a mean only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.baselines import KDEOverTime
from ncbayes.fields import Field, Ground, stored_field
from ncbayes.inputs import checked_count
from ncbayes.integration import Nodes, fine_nodes, log_integrals
from ncbayes.posterior import Posterior
from ncbayes.sites import Sites, units
from ncbayes.stamps import time_coordinate

if TYPE_CHECKING:
    import xarray as xr

INTERVALS = ("quantile", "hpd", "normal")
# Values of densities held at a time: 32 MB.
CHUNK = 4_000_000
NAMES = {"mean": "posterior mean", "sd": "posterior standard deviation",
         "low": "lower end", "high": "upper end"}  # fmt: skip
DENSITY, KERNELS = "density", "kernel density estimate"

Density = Posterior | KDEOverTime
Reduce = Callable[[FloatArray], Mapping[str, FloatArray]]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Draws of theta (sample, time, statistic) of a field, and the times they belong to."""

    field: Field
    theta: FloatArray
    times: NDArray[Any]
    labels: tuple[str, ...]
    given: Nodes | None = None

    @cached_property
    def nodes(self) -> Nodes:
        """Where densities are summed to normalize them."""
        return self.given or fine_nodes(self.field.model, self._rows)

    @cached_property
    def log_z(self) -> FloatArray:
        """The log normalizer of every draw, (sample, time)."""
        found = log_integrals(self.field.model, self.nodes, self._rows)
        return found.reshape(self.theta.shape[:2])

    @property
    def _rows(self) -> FloatArray:
        return self.theta.reshape(-1, self.theta.shape[-1])

    def at(self, groups: Sequence[int]) -> Fitted:
        """The same at some of the times, normalized by the same nodes."""
        chosen = [int(group) for group in groups]
        labels = tuple(self.labels[group] for group in chosen)
        return Fitted(self.field, self.theta[:, chosen], self.times[chosen], labels, self.nodes)

    @property
    def coords(self) -> dict[str, Any]:
        """Coordinates of the dimension ``time``."""
        return {"time": ("time", self.times), "label": ("time", list(self.labels))}

    def pieces(
        self, points: FloatArray, times: slice = slice(None)
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Densities of all draws at some of the points at a time, (sample, time, point)."""
        theta, log_z = self.theta[:, times], self.log_z[:, times]
        rows, shape = theta.reshape(-1, theta.shape[-1]), theta.shape[:2]
        count = max(1, CHUNK // len(rows))
        for start in range(0, len(points), count):
            part = slice(start, start + count)
            values = rows @ self.field.model.statistics(points[part]).T
            values -= log_z.reshape(-1, 1)
            np.exp(values, out=values)
            yield part, values.reshape(*shape, -1)

    def moments(self, values: FloatArray, interval: str, level: float) -> dict[str, FloatArray]:
        """Mean, sd, and the ends of the interval, over the draws."""
        return moments(values, interval, level)

    def log_mean(self, points: FloatArray, group: int) -> FloatArray:
        """The log of the mean density at the points, at one of the times."""
        found = np.empty(len(points))
        for part, values in self.pieces(points, slice(group, group + 1)):
            found[part] = np.log(values.mean(axis=(0, 1)))
        return found


@dataclass(frozen=True, eq=False)
class Estimated:
    """Kernel density estimates, and at which of their times."""

    field: KDEOverTime
    groups: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """What the times are called."""
        return tuple(self.field.labels[group] for group in self.groups)

    @property
    def times(self) -> NDArray[Any]:
        """Where the times stand."""
        whole = time_coordinate(self.field.times, self.field.labels)
        return np.asarray(whole[list(self.groups)])

    @property
    def coords(self) -> dict[str, Any]:
        """Coordinates of the dimension ``time``."""
        return {"time": ("time", self.times), "label": ("time", list(self.labels))}

    def at(self, groups: Sequence[int]) -> Estimated:
        """The same at some of the times."""
        return Estimated(self.field, tuple(self.groups[group] for group in groups))

    def pieces(self, points: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """The densities at all points, (1, time, point)."""
        if len(points):
            logs = [self.log_mean(points, group) for group in range(len(self.groups))]
            yield slice(None), np.exp([logs])

    def moments(self, values: FloatArray, interval: str, level: float) -> dict[str, FloatArray]:
        """The only draw: it has no interval."""
        return {"mean": values[0]}

    def log_mean(self, points: FloatArray, group: int) -> FloatArray:
        """The log density at the points, at one of the times."""
        return self.field.estimate.log_density(self.labels[group], points)


Source = Fitted | Estimated


def ground(asker: str, density: object) -> Ground:
    """Where and when a density is, which is checked; ``asker`` is the function that wants it."""
    if isinstance(density, KDEOverTime):
        return density
    if not isinstance(density, Posterior):
        raise InputError(
            f"{asker} needs the posterior that ncbayes.fit_density_over_time, ncbayes.fit or "
            "ncbayes.load returns, or what ncbayes.baselines.kde_over_time returns, got "
            f"{shown(density)}"
        )
    return stored_field(density.data, asker)


def source(asker: str, density: Density, draws: Any) -> Source:
    """What densities are read from: at most ``draws`` draws of a posterior, or kernels."""
    ground(asker, density)
    if not isinstance(density, KDEOverTime):
        return fitted(asker, density, draws)
    checked_count("draws", draws, 2)
    return Estimated(density, tuple(range(len(density.labels))))


def labels_of(density: Density) -> tuple[str, ...]:
    """What the times of a density are called."""
    if isinstance(density, KDEOverTime):
        return density.labels
    return tuple(str(label) for label in density.theta["group"].to_numpy())


def points_of(density: Density) -> Mapping[str, FloatArray]:
    """The data by label in the model's coordinates, where the density holds them."""
    if isinstance(density, KDEOverTime):
        return density.points
    if "observed_data" not in density.data.children:
        return {}
    stored = density.data["observed_data"].to_dataset()
    points, groups = stored["points"].to_numpy(), stored["group"].to_numpy().astype(str)
    return {str(label): points[groups == label] for label in np.unique(groups)}


def check_draws(asker: str, density: object, instead: str) -> None:
    """Refuse what has no draws; for kernels, say what to use ``instead``."""
    if isinstance(density, KDEOverTime):
        raise InputError(
            f"{asker} needs the draws of a posterior, and a kernel density estimate has none: "
            f"{instead}, or fit the points by ncbayes.fit_density_over_time"
        )
    if not isinstance(density, Posterior):
        raise InputError(
            f"{asker} needs the posterior that ncbayes.fit_density_over_time, ncbayes.fit or "
            f"ncbayes.load returns, got {shown(density)}"
        )


def fitted(asker: str, posterior: Posterior, draws: Any) -> Fitted:
    """At most ``draws`` draws of a posterior, evenly chosen from all chains."""
    field = stored_field(posterior.data, asker)
    most = checked_count("draws", draws, 2)
    theta, labels = posterior.theta.to_numpy(), labels_of(posterior)
    chosen = thinned(theta.reshape(-1, *theta.shape[2:]), most)
    if len(chosen) < 2:
        raise InputError(f"{asker} needs a posterior of at least 2 draws, got 1: fit with more")
    return Fitted(field, chosen, time_coordinate(field.times, labels), labels)


def thinned(values: FloatArray, most: int) -> FloatArray:
    """At most so many of the rows, evenly chosen."""
    count = min(most, len(values))
    return np.asarray(values[((np.arange(count) + 0.5) * len(values) / count).astype(int)])


def reduced(found: Source, where: Sites, reduce: Reduce) -> xr.Dataset:
    """What ``reduce`` makes of draws (sample, time, point), by name, laid out like the sites."""
    import xarray as xr

    rows, inside = np.flatnonzero(where.inside), where.points[where.inside]
    arrays: dict[str, FloatArray] = {}
    if not len(rows):  # names and number of times, from what is nowhere
        some = reduce(np.zeros((2, len(found.labels), 1)))
        arrays = {n: np.full((len(v), len(where.points)), where.beyond) for n, v in some.items()}
    for part, values in found.pieces(inside):
        for name, result in reduce(values).items():
            if name not in arrays:
                arrays[name] = np.full((len(result), len(where.points)), where.beyond)
            arrays[name][:, rows[part]] = result
    dims = ("time", *where.dims)
    data = {name: (dims, each.reshape(-1, *where.shape)) for name, each in arrays.items()}
    return xr.Dataset(data, where.coords)


def described(
    data: xr.Dataset, found: Source, interval: str, level: float, what: str, **facts: Any
) -> xr.Dataset:
    """The summary with units, long names, and which interval it holds."""
    unit = units(found.field)
    if isinstance(found, Estimated):
        long = KERNELS if what == DENSITY else f"{KERNELS}, {what}"
        data["mean"].attrs = {"long_name": long, "units": unit}
        return data.assign_attrs(units=unit, **facts)
    kind = f"of the {100 * level:g} % {interval} interval"
    for name, words in NAMES.items():
        long = f"{words} {kind}, {what}" if name in ("low", "high") else f"{words}, {what}"
        data[name].attrs = {"long_name": long, "units": unit}
    count = len(found.theta)
    return data.assign_attrs(
        interval=interval, level=float(level), draws=count, units=unit, **facts
    )


def check_interval(interval: object) -> None:
    """Refuse what is no kind of interval."""
    if not isinstance(interval, str) or interval not in INTERVALS:
        raise InputError(f'interval must be "quantile", "hpd" or "normal", got {shown(interval)}')


def moments(values: FloatArray, interval: str, level: float) -> dict[str, FloatArray]:
    """Mean, sd, and the ends of the interval, over the first axis."""
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
    if interval == "hpd":
        low, high = shortest(values, level)
    elif interval == "normal":
        from scipy.special import ndtri

        reach = ndtri((1 + level) / 2) * sd
        low, high = mean - reach, mean + reach
    else:
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {"mean": mean, "sd": sd, "low": low, "high": high}


def shortest(values: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """The ends of the shortest interval that holds at least ``level`` of the draws."""
    ordered = np.sort(values, axis=0)
    # The share of draws may exceed a whole number by rounding only, as in 0.9 * 10.
    inside = min(max(int(np.ceil(level * len(values) - 1e-9)), 2), len(values))
    starts, stops = ordered[: len(values) - inside + 1], ordered[inside - 1 :]
    first = (stops - starts).argmin(axis=0)[None]
    low, high = (np.take_along_axis(each, first, axis=0)[0] for each in (starts, stops))
    return low, high
