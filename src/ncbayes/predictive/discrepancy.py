"""Kernel Stein discrepancy: does the model's score fit the data? No log Z, no choice of statistics.

With ``s_j = d_j log p`` at theta, weights ``h_j`` that vanish where the space ends (1 where it does
not), and ``a_j = h_j s_j + d_j h_j``, the kernel k gives each coordinate j the Stein kernel

    u_j(x, y) = a_j(x) a_j(y) k + a_j(x) h_j(y) d k / dy_j + a_j(y) h_j(x) d k / dx_j
                + h_j(x) h_j(y) d^2 k / dx_j dy_j

whose mean over x from the model is zero for every y. The discrepancy of n points is the mean of
``sum_j u_j`` over all pairs of them (Chwialkowski, Strathmann and Gretton 2016; Liu, Lee and Jordan
2016; with weights at ends: Xu and Reinert 2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.checks.stein import drifts, smooth_kernel
from ncbayes.contrast import model_name
from ncbayes.couplings import group_label
from ncbayes.inputs import Seed, checked_count, checked_entropy
from ncbayes.posterior import Posterior
from ncbayes.predictive.checks import (
    check_posterior,
    check_powers,
    replicated,
    rows_of,
    spread_draws,
)
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"


@dataclass(frozen=True, eq=False)
class SteinCheck:
    """How far data and model are apart, by the kernel Stein discrepancy.

    ``table`` has a row for all coordinates together and one for each: ``observed``, the discrepancy
    of the data in the mean over the draws of theta; ``replicated``, that of data sets drawn at the
    same draws (by the wild bootstrap: of data with random signs); and ``p_value``, the share
    ``(1 + #{replicated >= observed}) / (draws + 1)``. ``observed`` and ``replicated`` hold them by
    draw, (draw, row). ``method`` is "predictive" or "bootstrap"; ``rows`` how many were used.
    """

    table: pd.DataFrame
    observed: FloatArray = field(repr=False)
    replicated: FloatArray = field(repr=False)
    method: str
    rows: int

    @property
    def p_value(self) -> float:
        """Of all coordinates together."""
        return float(self.table["p_value"].iloc[0])


def stein(
    posterior: Posterior,
    model: Any,
    draws: int = 100,
    seed: Seed = None,
    group: str | None = None,
    most_rows: int = 500,
    data: Any = None,
) -> SteinCheck:
    """Test the fitted model by kernel Stein discrepancy, for models with ``score_statistics``.

    The kernel is inverse multiquadric, ``(1 + mean_j ((x_j - y_j) / scale_j)^2)^-1/2``; of angles
    ``exp(sum_j (cos(x_j - y_j) - 1) / sqrt(d))``. At each of ``draws`` posterior draws the data are
    compared with as many rows drawn from the model; without ``sample``, at the posterior mean with
    the data's own Stein kernel under random signs (wild bootstrap), which takes theta for known.
    Theta was fitted to the data, so that p-values lie closer to 1 than to 0. Of more than
    ``most_rows`` rows some are chosen at random: a discrepancy takes n^2 d operations.
    """
    check_posterior("predictive.stein", posterior)
    check_powers(posterior, model, ("score_statistics",))
    if not hasattr(model.space, "score_weight"):
        raise InputError(
            "predictive.stein needs continuous points on a Torus, Reals, an Orthant or a Box, got "
            f"{model_name(model)} on {shown(model.space)}; use predictive.check"
        )
    label = group_label(posterior.data, group)
    points = rows_of(posterior, model, data, label)
    count = checked_count("draws", draws, 1)
    most = checked_count("most_rows", most_rows, 2)
    rng = np.random.default_rng(checked_entropy(seed, None))
    if len(points) > most:
        points = points[np.sort(rng.choice(len(points), most, replace=False))]
    theta = spread_draws(posterior, label, count)
    with single_threaded():
        if hasattr(model, "sample"):
            method, pairs = "predictive", list(_predictive(model, points, theta, rng))
        else:
            mean = spread_draws(posterior, label, posterior.theta[..., 0, 0].size).mean(axis=0)
            method, pairs = "bootstrap", list(_bootstrap(model, points, mean, count, rng))
    observed, replicated = (np.array(each) for each in zip(*pairs, strict=True))
    table = _table(observed, replicated, _coordinates(model))
    return SteinCheck(table, observed, replicated, method, len(points))


def _predictive(
    model: Any, points: FloatArray, theta: FloatArray, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Discrepancies of the data and of a replication, (1 + d,) each, draw by draw."""
    # From a data set of its own, so that nothing about the kernel favours one of the others.
    scale = _scale(model, replicated(model, theta[0], len(points), rng))
    for each in theta:
        made = replicated(model, each, len(points), rng)
        ours, theirs = (
            _totals(stein_kernel(model, each, x, x, scale).mean(axis=(1, 2)))
            for x in (points, made)
        )
        yield ours, theirs


def _bootstrap(
    model: Any, points: FloatArray, theta: FloatArray, count: int, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The same with random signs in the place of replications."""
    kernel = stein_kernel(model, theta, points, points, _scale(model, points))
    observed = _totals(kernel.mean(axis=(1, 2)))
    for _ in range(count):
        signs = rng.choice([-1.0, 1.0], len(points))
        yield observed, _totals(signs @ kernel @ signs / len(points) ** 2)


def _totals(by_coordinate: FloatArray) -> FloatArray:
    """All coordinates together, then each."""
    return np.append(by_coordinate.sum(), by_coordinate)


def stein_kernel(
    model: Any, theta: FloatArray, x: FloatArray, y: FloatArray, scale: FloatArray
) -> FloatArray:
    """``u_j(x, y)`` for every coordinate and pair of rows, (d, rows of x, rows of y)."""
    (weight_x, drift_x), (weight_y, drift_y) = (drifts(model, theta, each) for each in (x, y))
    difference = x[:, None, :] - y[None, :, :]
    kernel, slope, bend = smooth_kernel(model.space)(difference, scale)
    out = np.empty((x.shape[1], len(x), len(y)))
    for j in range(x.shape[1]):
        a, b = drift_x[:, j, None], drift_y[None, :, j]
        h, g = weight_x[:, j, None], weight_y[None, :, j]
        # Of a function of x - y the derivative by y_j is that by x_j with the other sign.
        out[j] = a * b * kernel + (b * h - a * g) * slope(j) + h * g * bend(j)
    return out


def _scale(model: Any, points: FloatArray) -> FloatArray:
    """The unit of each coordinate: its standard deviation."""
    scale = points.std(axis=0)
    return np.where(scale > 0, scale, 1.0)


def _coordinates(model: Any) -> list[str]:
    names = getattr(model, "nodes", None) or [f"x{j + 1}" for j in range(model.space.dimension)]
    return [ALL, *map(str, names)]


def _table(observed: FloatArray, replicated: FloatArray, names: list[str]) -> pd.DataFrame:
    import pandas as pd

    extreme = 1 + (replicated >= observed).sum(axis=0)
    return pd.DataFrame(
        {
            "coordinate": names,
            "observed": observed.mean(axis=0),
            "replicated": replicated.mean(axis=0),
            "p_value": extreme / (len(observed) + 1),
        }
    )
