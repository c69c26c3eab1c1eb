"""Simulated densities over time: Figures 1 and S1 (section 4.2).

The true density, the posterior mean of NC-Bayes and kernel density estimates time by time, of one
data set. Prior, noise and basis as in the paper: its random walk, adaptive noise with alpha = 0.2,
as many noise points as data, 30 basis functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import ncbayes as ncb
from ncbayes_paper.posteriors import convergence, kept
from ncbayes_paper.study import Figure, Settings

# The paper has 2000 + 3000. All times are drawn jointly here, so that fewer are worth more.
SWEEPS = (500, 1500)
CHAINS = 2
SEED = 1
SHOWN = (1, 4, 7, 10)
# The paper's options of ``fit_density_over_time``.
OPTIONS = {
    "basis": 30,
    "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk"),
    "noise": "adaptive",
    "noise_ratio": 1.0,
}
SIZE = 120
# The density of a ring has no bound at the origin; colours end where this share of it lies.
SHARE = 0.999


def fitted(settings: Settings, name: str, points: Any, times: Any, **options: Any) -> ncb.Posterior:
    """The posterior under the paper's prior and noise, kept."""
    sweeps = settings.sweeps or SWEEPS
    given = {**OPTIONS, **options, "chains": CHAINS, "seed": SEED}
    tune, draws = sweeps

    def fit() -> ncb.Posterior:
        return ncb.fit_density_over_time(
            points, times, tune=tune, draws=draws, cores=settings.cores, progress=False, **given
        )

    return kept(settings.folder, name, sweeps, (points, times, given), fit)


def drawn(name: str, simulate: Callable[..., Any], settings: Settings) -> tuple[Any, str]:
    """The figure of a scenario and its caption."""
    simulated = simulate(seed=SEED)
    posterior = fitted(settings, name, simulated.points, simulated.times)
    kde = ncb.baselines.kde_over_time(simulated.points, simulated.times)
    densities = [
        ncb.densities.density(each, times=SHOWN, size=SIZE)["mean"] for each in (posterior, kde)
    ]
    y, x = (densities[0][axis].to_numpy() for axis in densities[0].dims[1:])
    at = np.column_stack([each.ravel() for each in np.meshgrid(x, y)])
    truth = np.array([simulated.density(t, at).reshape(len(y), len(x)) for t in SHOWN])
    estimates = [each.to_numpy() for each in densities]
    errors = [_error(simulated, each) for each in (posterior, kde)]
    caption = (
        "From top to bottom: the true density, the posterior mean of NC-Bayes and kernel density "
        f"estimates time by time, of one data set (10 times, 100 points each), at t = "
        f"{', '.join(map(str, SHOWN))}. Absolute error, the mean over all ten times: "
        f"NC-Bayes {errors[0]:.3f}, kernels {errors[1]:.3f}. {convergence(posterior)} The paper "
        "has 2000 + 3000. All times are drawn jointly here: in the growing ring the quantity that "
        "mixes worst has about a thousand times as many effective draws as with the paper's "
        "sampler."
    )
    figure, bounded = maps(x, y, truth, *estimates)
    if not bounded:
        caption += " The true density has no bound at the origin: colours end below its peak."
    return figure, caption


def maps(x: Any, y: Any, truth: Any, mean: Any, kernels: Any) -> tuple[Any, bool]:
    """Three rows of maps on one scale of colours, and whether all values lie on it."""
    top = max(float(np.quantile(truth, SHARE)), float(mean.max()), float(kernels.max()))
    bounded = float(truth.max()) <= 1.05 * top
    if bounded:
        top = max(top, float(truth.max()))
    rows = (("true density", truth), ("NC-Bayes", mean), ("KDE time by time", kernels))
    tall = np.ptp(y) / np.ptp(x)
    figure, axes = plt.subplots(
        len(rows), len(SHOWN), figsize=(9, 1.85 * len(rows) * tall + 0.5), sharex=True,
        sharey=True, layout="constrained",
    )  # fmt: skip
    for row, (words, values) in enumerate(rows):
        axes[row, 0].set_ylabel(words, fontsize="large")
        for axis, t, here in zip(axes[row], SHOWN, values, strict=True):
            image = axis.pcolormesh(x, y, here, cmap="viridis", vmin=0, vmax=top, rasterized=True)
            axis.set_aspect("equal")
            axis.tick_params(labelsize="small")
            if row == 0:
                axis.set_title(f"t = {t}")
    figure.colorbar(
        image, ax=axes, label="density", aspect=30, pad=0.02, extend="neither" if bounded else "max"
    )
    return figure, bounded


def _error(simulated: Any, estimate: Any) -> float:
    """The paper's absolute error at its 500 points of the data's rectangle, over all times."""
    at = ncb.metrics.evaluation_points(simulated.points, seed=SEED)
    volume = float(np.exp(ncb.metrics.rectangle(simulated.points).log_volume))
    truth = np.array([simulated.density(t, at) for t in np.unique(simulated.times)])
    mean = ncb.densities.density(estimate, at)["mean"].to_numpy()
    return float(ncb.metrics.absolute_error(mean, truth, volume))


ITEMS = {
    each.name: each
    for each in (
        Figure(
            "figure1",
            "A growing ring (scenario 2): truth, NC-Bayes and kernels",
            partial(drawn, "growing-ring", ncb.datasets.growing_ring),
        ),
        Figure(
            "figureS1",
            "A moving mixture (scenario 1): truth, NC-Bayes and kernels",
            partial(drawn, "moving-mixture", ncb.datasets.moving_mixture),
        ),
    )
}
