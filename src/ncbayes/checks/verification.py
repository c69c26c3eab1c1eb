"""The look that a fit takes at itself: rows are simulated from it and set beside the data.

Three questions, group by group, none of which the likelihood of a contrast can answer:

- is there mass where there are neither data nor noise? The log ratio of model and noise,
  ``h(x) = log p(x) - log q(x)``, of simulated rows beyond that of every row and noise point;
- are rows like those of the data? The distance of simulated rows to the nearest row;
- does the model describe the data? ``comparisons`` of the ``row_statistics`` of its space.

Whether the contrast's normalizer is log Z is told by ``normalizers``. Nothing here depends on how
fast a machine is: the same fit gets the same answers everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist
from scipy.special import logsumexp

from ncbayes.autodiff import double_precision, jax_module
from ncbayes.base import BoolArray, FloatArray, NoiseSet
from ncbayes.checks import comparisons, populations
from ncbayes.checks.comparisons import Compared, Own, Resampled
from ncbayes.checks.look import Look
from ncbayes.checks.row_statistics import looks
from ncbayes.checks.stein import has_scores, stein_look
from ncbayes.normalizers import Normalizer, kernels
from ncbayes.spaces import (
    Graphs,
    GraphSets,
    coordinate_names,
    default_names,
    is_continuous,
    is_periodic,
)

# Simulated rows: so many for each row of the data, within these limits; the lower one is shared by
# the groups, of which each has some.
TIMES_ROWS, FEWEST, MOST = 4, 2000, 6000
FEWEST_EACH = 500
# Graphs take longest to simulate: fewer of them.
FEWEST_GRAPHS = 1000
# Rows of the data that are looked at.
MAX_ROWS = 5000
# Statistics of a model that are taken out of what is compared; with more, their posterior spread
# is counted in instead, by so many draws.
MAX_TAKEN_OUT, DRAWS = 1500, 64
# Draws at which mass elsewhere is looked for, and effective rows below which a draw is left out.
STRAY_DRAWS, FEWEST_EFFECTIVE = 16, 20.0
# The share of rows within whose distance to their nearest neighbour others count as near.
NEAR = 0.99
# The share of pairs of graphs within whose distance others count as near, and graphs in pairs.
PAIRS, MOST_PAIRED = 0.9, 1000
# Rows started at the data: so many for each row, within these limits; and those kept for pictures.
LEAST_FROM_ROWS, FROM_ROWS, KEPT = 200, 1000, 500
# Bars of a picture of the data and of simulated rows.
BARS = 24


@dataclass(frozen=True, eq=False)
class Picture:
    """Shares of data and of simulated rows between edges, of what differs most in a look."""

    name: str
    edges: FloatArray
    data: FloatArray
    simulated: FloatArray

    @classmethod
    def of(cls, name: str, data: FloatArray, simulated: FloatArray) -> Picture:
        """Bars between the 0.2 % and 99.8 % points; a bar a value where values are few."""
        both = np.concatenate([data, simulated])
        kinds = np.unique(both)
        if 1 < len(kinds) <= BARS:
            middles = (kinds[1:] + kinds[:-1]) / 2
            ends = kinds[0] - (middles[0] - kinds[0]), kinds[-1] + (kinds[-1] - middles[-1])
            edges = np.concatenate([ends[:1], middles, ends[1:]])
        else:
            low, high = np.quantile(both, [0.002, 0.998]) if len(both) else (0.0, 1.0)
            edges = np.linspace(low, high if high > low else low + 1, BARS + 1)
        shares = [
            np.histogram(np.clip(each, edges[0], edges[-1]), edges)[0] / max(len(each), 1)
            for each in (data, simulated)
        ]
        return cls(name, edges, *shares)

    @classmethod
    def cells(cls, observed: FloatArray, expected: FloatArray) -> Picture:
        """Counts by cell as shares, the fullest first."""
        order = np.argsort(-expected, kind="stable")[:BARS]
        total = max(observed.sum(), 1.0)
        shares = observed[order] / total, expected[order] / total
        return cls("places, by expected points", np.arange(len(order) + 1.0), *shares)


@dataclass(frozen=True, eq=False)
class Seen:
    """What one group's fit saw of itself."""

    strays: float
    """Share of simulated rows with a higher ratio to noise than any row or noise point, at the
    posterior mean; NaN without noise."""
    strays_at_draws: float
    """The same in the mean over draws. Where the posterior is wide it is larger also for models
    that are right: a model other than the truth always has higher ratios than the data."""
    near: float
    """Share of rows simulated from the base that are as near to a row as rows are."""
    near_from_rows: float
    """The same of rows simulated from the data."""
    worth: float
    """Independent rows that those simulated are worth."""
    moments: float
    """The largest difference of a mean of the model's own statistics, in standard errors."""
    worst_moment: str
    rows: int
    compared: tuple[tuple[Look, Compared], ...] = ()
    pictures: tuple[Picture, ...] = ()
    simulated: FloatArray = field(default_factory=lambda: np.zeros((0, 1)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is looked at: a model, rows, draws of its parameters, and where they came from.

    ``typical`` is the theta that stands for the posterior, ``draws`` (draw, p) some of it,
    ``known`` log Z with particles at ``typical``, ``noise`` the noise with its points, and
    ``groups`` how many groups there are to look at.
    """

    model: Any
    rows: FloatArray
    typical: FloatArray
    draws: FloatArray
    known: Normalizer | None = None
    noise: tuple[Any, NoiseSet] | None = None
    groups: int = 1


def seen(fit: Fitted, rng: np.random.Generator) -> Seen:
    """What a fit of one group looks like from outside."""
    rows = _spread(fit.rows, MAX_ROWS)
    fewest = FEWEST_GRAPHS if _is_by_statistics(fit.model) else FEWEST
    size = int(np.clip(TIMES_ROWS * len(rows), max(FEWEST_EACH, fewest // fit.groups), MOST))
    taken_out = len(fit.typical) <= MAX_TAKEN_OUT
    if taken_out:
        size = max(size, comparisons.ROWS_A_STATISTIC * len(fit.typical))
    simulated, worth = populations.from_base(fit.model, fit.typical, fit.known, size, rng)
    started = int(np.clip(TIMES_ROWS * len(rows), LEAST_FROM_ROWS, FROM_ROWS))
    from_rows = populations.from_rows(fit.model, fit.typical, rows, started, rng)
    own, moments, worst = _own(fit, rows, simulated, taken_out)
    sets = Resampled.drawn(len(rows), len(rows) + len(simulated), rng)
    found = []
    names = coordinate_names(fit.model) or default_names(rows.shape[1])
    chosen = looks(fit.model.space, simulated, names)
    if has_scores(fit.model):
        chosen.append(stein_look(fit.model, fit.typical, simulated, names))
    for look in chosen:
        values = look.values(rows), look.values(simulated)
        found.append((look, comparisons.compared(own, *values, sets, worth)))
    pictures = []
    for look, each in found:
        name, of = look.shown(each.worst)
        pictures.append(Picture.of(name, of(rows), of(simulated)))
    near = Nearness.of(fit.model, rows)
    strays, strays_at_draws = _strays(fit, simulated)
    return Seen(
        strays=strays,
        strays_at_draws=strays_at_draws,
        near=near.share(simulated[:FROM_ROWS]),
        near_from_rows=near.share(from_rows),
        worth=worth,
        moments=moments,
        worst_moment=worst,
        rows=len(rows),
        compared=tuple(found),
        pictures=tuple(pictures),
        simulated=_spread(simulated, KEPT),
    )


def _spread(points: FloatArray, most: int) -> FloatArray:
    if len(points) <= most:
        return points
    return points[np.arange(most) * len(points) // most]


def _own(
    fit: Fitted, rows: FloatArray, simulated: FloatArray, taken_out: bool
) -> tuple[Own, float, str]:
    """The model's statistics to be taken out, and how far their own means are off, at worst."""
    draws = _spread(fit.draws, DRAWS)
    if not taken_out:
        change = kernels(fit.model, draws, simulated) - kernels(
            fit.model, draws.mean(axis=0)[None], simulated
        )
        return Own.spread(change.T), np.nan, ""
    data, model = (_slopes(fit.model, fit.typical, x) for x in (rows, simulated))
    # Of both together: a statistic that no simulated row has, and one of the data, is no wonder.
    variance = np.vstack([data, model]).var(axis=0)
    # The posterior spread of the model's means: Cov(s) (theta - mean theta).
    moved = (draws - draws.mean(axis=0)) @ np.atleast_2d(np.cov(model, rowvar=False))
    error = np.sqrt(variance * (1 / len(rows) + 1 / len(simulated)) + moved.var(axis=0))
    gap = np.abs(data.mean(axis=0) - model.mean(axis=0))
    off = np.where(variance > 0, gap / np.where(error > 0, error, 1.0), 0.0)
    worst = int(np.argmax(off))
    names = [name for block in fit.model.groups.values() for name in block]
    return Own.of(data, model), float(off[worst]), str(names[worst])


def _slopes(model: Any, theta: FloatArray, x: FloatArray) -> FloatArray:
    """Derivatives of log p up to a constant by the parameters, (row, p)."""
    if not hasattr(model, "curve"):
        return np.asarray(model.statistics(x), dtype=float)
    jax = jax_module("Energy")
    with double_precision():
        return np.asarray(jax.jit(jax.jacfwd(model.flat_log_density))(theta, x), dtype=float)


def _strays(fit: Fitted, simulated: FloatArray) -> tuple[float, float]:
    """Share of the model's mass at ratios to noise beyond those of all rows and noise points.

    At the typical theta, where the simulated rows are from, and in the mean over draws, by weights.
    """
    if fit.noise is None:
        return np.nan, np.nan
    noise, points = fit.noise
    params = np.vstack([fit.typical, _spread(fit.draws, STRAY_DRAWS)])
    at = kernels(fit.model, params, simulated)
    with np.errstate(divide="ignore"):
        ratio = at - np.asarray(noise.log_density(simulated))
    at_rows = _ratios(fit, params, fit.rows, points.log_density_at_data)
    at_noise = _ratios(fit, params, points.points, points.log_density)
    limit = np.maximum(at_rows.max(axis=1), at_noise.max(axis=1, initial=-np.inf))
    beyond = ratio > limit[:, None]
    weights = at[1:] - at[0]
    weights = weights - logsumexp(weights, axis=1, keepdims=True)
    known = np.exp(-logsumexp(2 * weights, axis=1)) >= FEWEST_EFFECTIVE
    shares = (np.exp(weights) * beyond[1:]).sum(axis=1)
    return float(beyond[0].mean()), float(shares[known].mean()) if known.any() else np.nan


def _ratios(fit: Fitted, draws: FloatArray, x: FloatArray, log_noise: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        found = kernels(fit.model, draws, x) - log_noise
    return np.where(np.isnan(found), -np.inf, found)


@dataclass(frozen=True, eq=False)
class Nearness:
    """How near points are to rows, against how near rows are to each other.

    Graphs are compared by the model's statistics, and against how far most pairs of graphs are
    apart: a model of ties in general does not know which ties there are, and need not.
    """

    embedding: Callable[[FloatArray], FloatArray]
    tree: cKDTree
    limit: float

    @classmethod
    def of(cls, model: Any, rows: FloatArray) -> Nearness:
        embedding = _embedding(model, rows)
        embedded = embedding(rows)
        tree = cKDTree(embedded)
        if len(rows) < 2:
            return cls(embedding, tree, 0.0)
        if _is_by_statistics(model):
            limit = np.quantile(pdist(embedded[:MOST_PAIRED]), PAIRS)
        else:
            limit = np.quantile(tree.query(embedded, k=2)[0][:, 1], NEAR)
        return cls(embedding, tree, float(limit))

    def share(self, x: FloatArray) -> float:
        """Share of points that are near."""
        return float(self.are(x).mean())

    def are(self, x: FloatArray) -> BoolArray:
        """Which points are near."""
        return np.asarray(self.tree.query(self.embedding(x))[0] <= self.limit * (1 + 1e-9))


def _is_by_statistics(model: Any) -> bool:
    return isinstance(model.space, Graphs | GraphSets) and hasattr(model, "statistics")


def _embedding(model: Any, rows: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Where distances between points mean something."""
    if is_periodic(model.space):
        return lambda x: np.hstack([np.cos(x), np.sin(x)])

    def raw(x: FloatArray) -> FloatArray:
        return np.asarray(model.statistics(x) if _is_by_statistics(model) else x, dtype=float)

    if not _is_by_statistics(model) and not is_continuous(model.space):
        return raw
    middle, scale = raw(rows).mean(axis=0), raw(rows).std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return lambda x: (raw(x) - middle) / scale
