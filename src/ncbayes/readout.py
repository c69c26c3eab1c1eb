"""Draws of densities at sites, and what is made of them: moments, intervals, probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.fields import Field, stored_field
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


def fitted_field(asker: str, posterior: object) -> Field:
    """The field of a posterior, which is checked; ``asker`` is the function that wants it."""
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"{asker} needs the posterior that ncbayes.fit_density_over_time, ncbayes.fit or "
            f"ncbayes.load returns, got {shown(posterior)}"
        )
    return stored_field(posterior.data, asker)


def fitted(asker: str, posterior: Posterior, draws: Any) -> Fitted:
    """At most ``draws`` draws of a posterior, evenly chosen from all chains."""
    field = fitted_field(asker, posterior)
    most = checked_count("draws", draws, 2)
    theta = posterior.theta.to_numpy()
    labels = tuple(str(label) for label in posterior.theta["group"].to_numpy())
    chosen = thinned(theta.reshape(-1, *theta.shape[2:]), most)
    if len(chosen) < 2:
        raise InputError(f"{asker} needs a posterior of at least 2 draws, got 1: fit with more")
    return Fitted(field, chosen, time_coordinate(field.times, labels), labels)


def thinned(values: FloatArray, most: int) -> FloatArray:
    """At most so many of the rows, evenly chosen."""
    count = min(most, len(values))
    return np.asarray(values[((np.arange(count) + 0.5) * len(values) / count).astype(int)])


def pieces(
    found: Fitted, points: FloatArray, times: slice = slice(None)
) -> Iterator[tuple[slice, FloatArray]]:
    """Densities of all draws at some of the points at a time, (sample, time, point)."""
    theta, log_z = found.theta[:, times], found.log_z[:, times]
    rows, shape = theta.reshape(-1, theta.shape[-1]), theta.shape[:2]
    count = max(1, CHUNK // len(rows))
    for start in range(0, len(points), count):
        part = slice(start, start + count)
        values = rows @ found.field.model.statistics(points[part]).T
        values -= log_z.reshape(-1, 1)
        np.exp(values, out=values)
        yield part, values.reshape(*shape, -1)


def reduced(found: Fitted, where: Sites, reduce: Reduce) -> xr.Dataset:
    """What ``reduce`` makes of draws (sample, time, point), by name, laid out like the sites."""
    import xarray as xr

    rows, inside = np.flatnonzero(where.inside), where.points[where.inside]
    arrays: dict[str, FloatArray] = {}
    if not len(rows):  # names and number of times, from what is nowhere
        some = reduce(np.zeros((2, len(found.labels), 1)))
        arrays = {n: np.full((len(v), len(where.points)), where.beyond) for n, v in some.items()}
    for part, values in pieces(found, inside):
        for name, result in reduce(values).items():
            if name not in arrays:
                arrays[name] = np.full((len(result), len(where.points)), where.beyond)
            arrays[name][:, rows[part]] = result
    dims = ("time", *where.dims)
    data = {name: (dims, each.reshape(-1, *where.shape)) for name, each in arrays.items()}
    return xr.Dataset(data, where.coords)


def described(
    data: xr.Dataset, found: Fitted, interval: str, level: float, what: str, **facts: Any
) -> xr.Dataset:
    """The summary with units, long names, and which interval it holds."""
    unit = units(found.field)
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
