"""How wide is the posterior of theta when there are many data, and what would more noise buy?

The paper's section 3. With ``s(x) = (statistics(x), 1)``, nu the noise ratio and
``rho(x) = p(x) / (p(x) + nu q(x))`` the probability that a pooled point at x is data:

    I = E_p[(1 - rho) s s']                curvature of the contrastive loss at the truth
    mu = E_p[(1 - rho) s]                  its last column
    J = I - (1 + nu) / nu mu mu'           n times the variance of the loss's gradient
    I^-1                                   n times the posterior covariance of (theta, c)
    I^-1 J I^-1                            n times the sampling covariance of the estimator

The last two differ only in the variance of c, by (1 + nu) / nu. Their common block of theta is V,
which falls to the inverse Fisher information ``Var_p(statistics)^-1`` as nu grows. All of it is
per data point: divide by n.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from ncbayes.base import Design, FloatArray, InputError, Model, Noise, NoiseSet, in_group, shown
from ncbayes.contrast import label_probability, model_name, statistic_names
from ncbayes.posterior import Posterior, Run
from ncbayes.quadrature import blocks, given_points, quadrature
from ncbayes.spaces import is_numeric

if TYPE_CHECKING:
    import pandas as pd

# A statistic that varies by less than this share of its size is a constant in double precision.
CONSTANT = 1e-12
# What subtracting numbers of size 1 leaves of zero.
ROUNDING = 1e-14
# The variance that the other statistics leave unexplained, as a share of a statistic's own.
COLLINEAR = 1e-12
# Where a suggested noise ratio is looked for.
LEAST_RATIO, MOST_RATIO = 1e-2, 1e4


@dataclass(frozen=True, eq=False)
class Asymptotics:
    """The matrices of the theory, for coef = (theta, c) and one data point.

    What is stored belongs to ``statistics - center``, so that data far from zero lose no digits:
    ``centered_curvature`` is that of ``(theta, c + theta . center)``. theta does not notice.
    """

    names: tuple[str, ...]
    noise_ratio: float
    center: FloatArray = field(repr=False)
    centered_curvature: FloatArray = field(repr=False)
    fisher: FloatArray = field(repr=False)

    @property
    def curvature(self) -> FloatArray:
        """``I = E_p[(1 - rho) s s']``, (p + 1, p + 1)."""
        back = np.eye(len(self.names) + 1)
        back[:-1, -1] = self.center
        return np.asarray(back @ self.centered_curvature @ back.T)

    @property
    def mean(self) -> FloatArray:
        """``mu = E_p[(1 - rho) s]``, (p + 1,)."""
        return self.curvature[:, -1]

    @property
    def variability(self) -> FloatArray:
        """``J = I - (1 + nu) / nu mu mu'``, (p + 1, p + 1)."""
        return self._variability(self.curvature)

    @property
    def inverse_curvature(self) -> FloatArray:
        """``I^-1``: n times the posterior covariance of (theta, c), (p + 1, p + 1)."""
        return self._uncentered(self._inverse())

    @property
    def sandwich(self) -> FloatArray:
        """``I^-1 J I^-1``: n times the sampling covariance of the estimator, (p + 1, p + 1)."""
        inverse = self._inverse()
        return self._uncentered(inverse @ self._variability(self.centered_curvature) @ inverse)

    @property
    def covariance(self) -> FloatArray:
        """V, the block of theta in both: n times the covariance of theta, (p, p)."""
        return self._inverse()[:-1, :-1]

    @property
    def limit(self) -> FloatArray:
        """V with infinite noise: the inverse Fisher information, (p, p)."""
        return self._inverse_of(self.fisher, np.diag(self.fisher), "wherever the model has mass")

    @property
    def relative_width(self) -> FloatArray:
        """How many times wider theta's intervals are than with infinite noise, (p,)."""
        return np.sqrt(np.diag(self.covariance) / np.diag(self.limit))

    def standard_errors(self, n: int) -> FloatArray:
        """``sqrt(diag V / n)``: theta's posterior standard deviations with n data points, (p,)."""
        if not _is_positive(n):
            raise InputError(f"n must be a positive number of data points, got {shown(n)}")
        return np.sqrt(np.diag(self.covariance) / n)

    def _variability(self, curvature: FloatArray) -> FloatArray:
        mean = curvature[:, -1]
        return curvature - (1 + self.noise_ratio) / self.noise_ratio * np.outer(mean, mean)

    def _uncentered(self, covariance: FloatArray) -> FloatArray:
        move = np.eye(len(self.names) + 1)
        move[-1, :-1] = -self.center
        return np.asarray(move @ covariance @ move.T)

    def _inverse(self) -> FloatArray:
        """Of the centred curvature: c is eliminated first, so that the rest is theta's own."""
        total = self.centered_curvature[-1, -1]
        if not total > 0:
            raise InputError(
                "model and noise do not overlap: no point that one is likely to produce could come "
                "from the other, so nothing can be learned; choose noise closer to the data"
            )
        slope = self.centered_curvature[:-1, -1] / total
        rest = self.centered_curvature[:-1, :-1] - total * np.outer(slope, slope)
        inverse = np.empty_like(self.centered_curvature)
        square = np.diag(self.centered_curvature)[:-1]
        inverse[:-1, :-1] = self._inverse_of(rest, square, "where model and noise overlap")
        inverse[-1, :-1] = inverse[:-1, -1] = -inverse[:-1, :-1] @ slope
        inverse[-1, -1] = 1 / total - slope @ inverse[:-1, -1]
        return inverse

    def _inverse_of(self, matrix: FloatArray, square: FloatArray, where: str) -> FloatArray:
        """The inverse by Cholesky, in units in which all statistics vary alike.

        ``square`` is what a variance on the diagonal was subtracted from: it sets the rounding.
        """
        variance = np.diag(matrix)
        least = np.maximum((CONSTANT * self.center) ** 2, ROUNDING * square)
        constant = np.flatnonzero(~(variance > least))
        if len(constant):
            raise InputError(
                f"the statistic {self.names[constant[0]]!r} is constant {where}, so its parameter "
                "is not determined; leave it out of the model"
            )
        scale = np.sqrt(variance)
        factor, failed = dpotrf(matrix / scale / scale[:, None], lower=1, clean=1)
        pivots = np.diag(factor)[: failed - 1 if failed else None] ** 2
        loose = [*np.flatnonzero(pivots < COLLINEAR), *([failed - 1] if failed else [])]
        if loose:
            raise InputError(
                f"the statistic {self.names[loose[0]]!r} is a linear combination of the ones "
                f"before it {where}, so its parameter is not determined; leave it out of the model"
            )
        lower, _ = dpotri(factor, lower=1)
        return np.asarray((np.tril(lower) + np.tril(lower, -1).T) / scale / scale[:, None])


def expected(
    model: Model,
    theta: FloatArray,
    noise: Noise,
    noise_ratio: float,
    points: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> Asymptotics:
    """The theory where the truth is known: data from the model at ``theta``.

    Expectations under the model are ``E_p f = sum weights * f(points)`` with weights of sum 1;
    ``weights=None`` weighs all points alike, as for draws from the model. With points of your own
    the model needs ``log_partition``. Without points: all of them for up to 20 zeros and ones,
    grids for up to 3 angles, 2 columns of a box, and 2 real columns if the model can ``sample``.
    """
    theta, ratio = _checked_theta(model, theta), _checked_ratio(noise_ratio)
    if points is None and weights is not None:
        raise InputError("weights belong to points: pass points too, or neither")
    if points is None:
        points, weights, log_p = quadrature(model, theta)
    else:
        points, weights, log_p = given_points(model, theta, points, weights)
    heavy = weights > 0
    points, weights, log_p = points[heavy], weights[heavy], log_p[heavy]
    names = statistic_names(model)
    _check_count(len(points), len(names))
    rest = label_probability(_log_q(noise, points) + math.log(ratio) - log_p)
    center = np.sum([weights[rows] @ part for rows, part in blocks(model, points)], axis=0)
    grams = [np.zeros((len(names) + 1, len(names) + 1)) for _ in range(2)]
    for rows, part in blocks(model, points):
        design = np.column_stack([part - center, np.ones(len(part))])
        for gram, weight in zip(grams, (weights * rest, weights), strict=True):
            scaled = design * np.sqrt(weight[rows])[:, None]
            gram += scaled.T @ scaled
    return Asymptotics(tuple(names), ratio, center, grams[0], _variance(grams[1]))


def observed(
    posterior: Posterior, noise_ratio: float | None = None, group: str | None = None
) -> Asymptotics:
    """The theory as the fit sees it, at the posterior mean; needs no known truth.

    Pooled points have the density n p + m q, so ``E_p f = sum rho f / sum rho`` over them, and
    that holds for the rho of any other ``noise_ratio`` inside f: the same noise distribution,
    another number of points. With several noise sets the average over sets.
    """
    run = _run(posterior)
    labels = run.problem.labels
    if group is None and len(labels) == 1:
        group = labels[0]
    if group not in labels:
        raise InputError(f"group must be one of {shown(list(labels))}, got {shown(group)}")
    return _observed(_pools(run, labels.index(group)), noise_ratio)


def efficiency(posterior: Posterior, noise_ratio: float | None = None) -> pd.DataFrame:
    """What the noise costs, one row a parameter, at the fit's noise ratio or another.

    ``relative_width``: how many times wider its interval is than with infinite noise, with
    ``efficiency`` the inverse square of it; ``standard_error`` and, with infinite noise,
    ``limit_standard_error``. The prior has no part in any of them.
    """
    import pandas as pd

    run, parts = _run(posterior), {}
    labels = run.problem.labels
    for g, (label, data) in enumerate(zip(labels, run.problem.data, strict=True)):
        with in_group(label, len(labels)):
            found = _observed(_pools(run, g), noise_ratio)
            width, limit = found.relative_width, np.sqrt(np.diag(found.limit) / len(data))
        parts[label] = pd.DataFrame(
            {
                "relative_width": width,
                "efficiency": width**-2.0,
                "standard_error": width * limit,
                "limit_standard_error": limit,
            },
            index=pd.Index(found.names, name="statistic"),
        )
    return next(iter(parts.values())) if len(parts) == 1 else pd.concat(parts, names=["group"])


def suggest_noise_ratio(posterior: Posterior, loss: float = 0.05) -> float:
    """The smallest noise ratio at which no interval is more than ``loss`` wider than need be.

    Need be is infinite noise; the noise distribution is that of the fit. Two digits, rounded up.
    """
    if not _is_positive(loss) or loss >= 1:
        raise InputError(
            f"loss must be between 0 and 1, such as 0.05 for intervals 5 % wider than with "
            f"infinite noise, got {shown(loss)}"
        )
    run, ratios = _run(posterior), []
    for g, label in enumerate(run.problem.labels):
        with in_group(label, len(run.problem.labels)):
            widths = partial(_widest, _pools(run, g))
            ratios.append(_smallest_ratio(widths, loss))
    return max(ratios)


def _widest(pools: list[_Pool], ratio: float) -> float:
    return float(_observed(pools, ratio).relative_width.max())


def _smallest_ratio(width: Callable[[float], float], loss: float) -> float:
    """Of those with ``width(ratio) <= 1 + loss``; ``width`` falls with the noise ratio."""
    from scipy.optimize import brentq

    def excess(log_ratio: float) -> float:
        # On this scale the curve is nearly a line, and a few steps are enough.
        return math.log(max(width(math.exp(log_ratio)) - 1, 1e-12) / loss)

    most = width(MOST_RATIO)
    if most > 1 + loss:
        raise InputError(
            f"even {MOST_RATIO:g} noise points for each data point leave an interval "
            f"{100 * (most - 1):.2g} % wider than with infinite noise, more than {100 * loss:g} %; "
            "better noise, not more noise, is needed: choose noise closer to the data"
        )
    if width(LEAST_RATIO) <= 1 + loss:
        return LEAST_RATIO
    root = math.exp(brentq(excess, math.log(LEAST_RATIO), math.log(MOST_RATIO), xtol=1e-3))
    unit = 10.0 ** (math.floor(math.log10(root)) - 1)
    digits = math.ceil(root / unit)
    while width(digits * unit) > 1 + loss:  # the root may be a little low
        digits += 1
    return float(f"{digits * unit:.2g}")


@dataclass(frozen=True, eq=False)
class _Pool:
    """The pooled points of one group and one noise set, at the posterior mean given that set."""

    names: tuple[str, ...]
    noise_ratio: float
    center: FloatArray
    design: Design
    log_odds: FloatArray
    chance: FloatArray
    """Of being data, as weights of sum 1: those of expectations under p."""
    fisher: FloatArray


def _run(posterior: Posterior) -> Run:
    if not isinstance(posterior, Posterior):
        raise InputError(f"posterior must be what fit returned, got {shown(posterior)}")
    if posterior.run is None:
        raise InputError(
            "a posterior that was loaded from a file has no model, since a file holds no code; "
            "call fit again, with its checkpoint=folder if there is one"
        )
    if posterior.run.problem.losses:
        raise InputError(
            "this is the theory of contrasts with noise, and this fit used none; "
            'fit with engine="auto"'
        )
    return posterior.run


def _pools(run: Run, group: int) -> list[_Pool]:
    problem, names = run.problem, tuple(statistic_names(run.problem.model))
    sets = np.concatenate([each.draws["stats/noise_set"][: each.kept] for each in run.chains])
    coef = np.concatenate([each.draws["coef"][: each.kept, group] for each in run.chains])
    center = np.zeros(len(names)) if problem.center is None else problem.center
    ratio = problem.source.sizes[group] / len(problem.data[group])
    pools = []
    for k in np.unique(sets):
        contrast = problem.contrast(group, _noise_set(run, int(k), group))
        _check_count(len(contrast.offset), len(names))
        log_odds = contrast.log_odds(coef[sets == k].mean(axis=0))
        chance = label_probability(log_odds)
        chance = chance / chance.sum()
        fisher = _variance(contrast.design.gram(chance))
        pools.append(_Pool(names, ratio, center, contrast.design, log_odds, chance, fisher))
    return pools


def _noise_set(run: Run, index: int, group: int) -> NoiseSet:
    """A group's ``index``-th noise set; where every sweep had its own, that of the last sweep."""
    last = run.chains[0].state.noise
    return last.sets[group] if last.index < 0 else run.problem.source.fixed_set(index, group)


def _observed(pools: list[_Pool], noise_ratio: float | None) -> Asymptotics:
    ratio = pools[0].noise_ratio if noise_ratio is None else _checked_ratio(noise_ratio)
    curvatures = []
    for pool in pools:
        rest = label_probability(math.log(ratio / pool.noise_ratio) - pool.log_odds)
        curvatures.append(pool.design.gram(pool.chance * rest))
    curvature = np.mean(curvatures, axis=0)
    fisher = np.mean([pool.fisher for pool in pools], axis=0)
    return Asymptotics(pools[0].names, ratio, pools[0].center, curvature, fisher)


def _variance(gram: FloatArray) -> FloatArray:
    """Of the statistics, from ``E s s'``."""
    return np.asarray(gram[:-1, :-1] - np.outer(gram[:-1, -1], gram[:-1, -1]))


def _log_q(noise: Noise, points: FloatArray) -> FloatArray:
    if isinstance(noise, type) or not isinstance(noise, Noise):
        raise InputError(
            "noise must have sample(size, rng) and log_density(x), such as "
            f"ncbayes.noise.Uniform(space), got {shown(noise)}"
        )
    values = np.asarray(noise.log_density(points), dtype=float)
    if values.shape != (len(points),):
        raise InputError(
            f"{model_name(noise)}.log_density must return one number a point, shape "
            f"({len(points)},), got shape {values.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"the noise {model_name(noise)} has log density {values[bad[0]]} at "
            f"{points[bad[0]].tolist()}, where the model has mass; choose a wider one"
        )
    return values


def _is_positive(value: object) -> bool:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return number and 0 < float(value) < math.inf  # type: ignore[arg-type]


def _checked_ratio(noise_ratio: object) -> float:
    if not _is_positive(noise_ratio):
        raise InputError(
            "noise_ratio must be a positive number (noise points for each data point), got "
            f"{shown(noise_ratio)}"
        )
    return float(noise_ratio)  # type: ignore[arg-type]


def _checked_theta(model: Model, theta: object) -> FloatArray:
    names = statistic_names(model)
    values = np.asarray(theta, dtype=float) if is_numeric(theta) else np.array(math.nan)
    if values.shape != (len(names),) or not np.isfinite(values).all():
        raise InputError(
            f"theta must hold {len(names)} finite numbers, one for each statistic of "
            f"{model_name(model)}, got {shown(theta)}"
        )
    return values


def _check_count(points: int, statistics: int) -> None:
    if points < statistics + 1:
        raise InputError(
            f"{points} points can't tell how {statistics} statistics vary together; there must be "
            "more points than statistics: more data, more noise or a smaller model"
        )
