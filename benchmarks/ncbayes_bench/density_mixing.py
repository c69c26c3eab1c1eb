"""Effective draws of densities over time: ours, the paper's sampler, and NumPyro's NUTS.

    python -m ncbayes_bench.density_mixing [--draws 3000] [--nuts-draws 1000] [--without-nuts]

Scenario 2 of the paper, T = 10, L = 30, n = m = 100, its prior, common noise: the
same data and noise for all, one chain and one thread each, in one run. Ours and NUTS sample the
same posterior, the paper's sampler that with N(0, 1000) for c itself (docs/measurements.md). The
smallest effective sample size of the normalized log density at 20 places and all times, of every
beta_t = -log Z_t, and of log lambda; for the same number of sweeps, and a second.

``kept`` counts kept draws alone; ``all`` also tuning (for NUTS with its compilation) and compiling
the loop that draws. Means are compared in Monte Carlo standard errors. NumPyro is the extra
``bench``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

import ncbayes as ncb
from ncbayes_bench.nuts import drawn_from

PLACES = 20
SAMPLERS = {
    "ours": ncb.engines.Joint(),
    "Polya-Gamma, all groups at once": ncb.engines.Gibbs(),
    "the paper's": ncb.engines.Gibbs(method="one_at_a_time"),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """Draws (draw, quantity) of log densities, betas and log lambda, with their seconds."""

    density: np.ndarray
    beta: np.ndarray
    log_variance: np.ndarray
    kept: float
    tuning: float = np.nan
    compilation: float = 0.0

    @property
    def worst(self) -> np.ndarray:
        """The smallest effective sample size of each kind."""
        kinds = (self.density, self.beta, self.log_variance)
        return np.array([min(effective(column) for column in each.T) for each in kinds])


def effective(values: np.ndarray) -> float:
    """The effective sample size of one chain."""
    return float(array_stats.ess(values[None], chain_axis=0, draw_axis=1))


class Problem:
    """The data, the options of the fit, and where the density is looked at."""

    def __init__(self, seed: int, times: int = 10, n: int = 100) -> None:
        self.simulated = ncb.datasets.growing_ring(times, n, seed=seed)
        points = self.simulated.points
        low, high = points.min(axis=0), points.max(axis=0)
        wide = 0.1 * (high - low)
        self.space = ncb.spaces.Box(low - wide, high + wide)
        self.model = ncb.models.RadialBasis.match(points, self.space)
        rng = np.random.default_rng(seed)
        self.places = self.model.statistics(self.space.uniform(PLACES, rng))
        axes = [np.linspace(*ends, 81) for ends in np.transpose(self.space.bounds)]
        middles = [(axis[1:] + axis[:-1]) / 2 for axis in axes]
        grid = np.stack(np.meshgrid(*middles), axis=-1).reshape(-1, 2)
        self.grid = self.model.statistics(grid)

    def fit(self, engine: Any, tune: int, draws: int) -> ncb.Posterior:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ncb.FitWarning)
            return ncb.fit_density_over_time(
                self.simulated.points, self.simulated.times, domain=self.space, noise_ratio=1,
                prior=ncb.priors.RandomWalk(rate=1.0, initial="walk"),
                engine=engine, tune=tune, draws=draws, chains=1,
                cores=1, seed=1, progress=False,
            )  # fmt: skip

    def log_densities(self, theta: np.ndarray) -> np.ndarray:
        """Of theta (draw, time, L): normalized, (draw, time x place)."""
        found = np.empty((len(theta), theta.shape[1] * PLACES))
        for row, each in zip(found, theta, strict=True):
            exponents = each @ self.grid.T
            top = exponents.max(axis=1, keepdims=True)
            log_z = top + np.log(np.mean(np.exp(exponents - top), axis=1, keepdims=True))
            row[:] = (each @ self.places.T - log_z - self.space.log_volume).ravel()
        return found


def ours(
    problem: Problem,
    engine: Any,
    tune: int,
    draws: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Measured, ncb.Posterior]:
    """One of our samplers; its kept sweeps have their share of the whole by the wall clock."""
    problem.fit(engine, 1, 4)  # what is compiled comes from a cache from then on
    wall, began = time.perf_counter(), clock()
    posterior = problem.fit(engine, tune, draws)
    seconds, wall = clock() - began, time.perf_counter() - wall
    kept = seconds * float(posterior.data["sample_stats"]["sweep_seconds"].sum()) / wall
    density = problem.log_densities(posterior.theta.to_numpy()[0])
    variance = posterior.data["posterior"]["theta.variance"].to_numpy()[0]
    beta = -posterior.log_z.to_numpy()[0]
    return Measured(density, beta, np.log(variance), kept, seconds - kept), posterior


def stacked(posterior: ncb.Posterior, problem: Problem) -> tuple[np.ndarray, ...]:
    """Statistics, offsets, labels and times of all points of a fit."""
    noise = posterior.data["noise"].to_dataset()
    data = posterior.data["observed_data"].to_dataset()
    points = np.concatenate([data["points"], noise["points"]])
    at_data = noise["log_density_at_data"].to_numpy()[0]
    offset = -np.concatenate([at_data, noise["log_density"].to_numpy()])
    labels = posterior.theta["group"].to_numpy().tolist()
    groups = np.concatenate([data["group"], noise["row_group"]])
    times = np.array([labels.index(group) for group in groups])
    is_data = np.arange(len(points)) < len(data["points"])
    for t in range(len(labels)):
        own = times == t
        offset[own] += np.log(np.sum(own & is_data) / np.sum(own & ~is_data))
    return problem.model.statistics(points), offset, is_data, times


def theirs(
    problem: Problem,
    posterior: ncb.Posterior,
    tune: int,
    draws: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Measured:
    """NUTS on the same posterior, steps of the walk in units of their scale (non-centred)."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    statistics, offset, is_data, times = stacked(posterior, problem)
    # As in our fits, N(0, 1000) is the prior of c + theta . center, and centred columns mix better.
    center = statistics[is_data].mean(axis=0)
    groups, basis = posterior.theta.shape[2:]

    def model() -> None:
        variance = numpyro.sample("variance", dist.InverseGamma(1.0, 1.0))
        with numpyro.plate("time", groups, dim=-2), numpyro.plate("basis", basis):
            steps = numpyro.sample("steps", dist.Normal(0.0, 1.0))
        with numpyro.plate("group", groups):
            level = numpyro.sample("level", dist.Normal(0.0, 1000.0**0.5))
        theta = numpyro.deterministic(
            "theta", jax.numpy.sqrt(variance) * jax.numpy.cumsum(steps, axis=0)
        )
        numpyro.deterministic("beta", level - theta @ center)
        log_odds = jax.numpy.sum((statistics - center) * theta[times], axis=1)
        log_odds = log_odds + level[times] + offset
        numpyro.sample("labels", dist.Bernoulli(logits=log_odds), obs=is_data.astype(float))

    mcmc = MCMC(NUTS(model), num_warmup=tune, num_samples=draws, progress_bar=False)
    began = clock()
    mcmc.warmup(jax.random.PRNGKey(1))
    jax.block_until_ready(mcmc.post_warmup_state)
    tuning = clock() - began
    found, _, seconds, compiling = drawn_from(
        mcmc.sampler, mcmc.post_warmup_state, (), draws, clock
    )
    density = problem.log_densities(found["theta"])
    log_variance = np.log(found["variance"])[:, None]
    return Measured(density, found["beta"], log_variance, seconds, tuning, compiling)


def difference(one: Measured, other: Measured) -> float:
    """The largest difference of means, in Monte Carlo standard errors."""
    largest = 0.0
    for name in ("density", "beta", "log_variance"):
        for a, b in zip(getattr(one, name).T, getattr(other, name).T, strict=True):
            error = np.sqrt(a.var() / effective(a) + b.var() / effective(b))
            largest = max(largest, abs(a.mean() - b.mean()) / error)
    return largest


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=3000)
    parser.add_argument("--nuts-draws", type=int, default=1000)
    parser.add_argument("--without-nuts", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    problem, found, posterior = Problem(options.seed), {}, None
    for name, engine in SAMPLERS.items():
        found[name], posterior = ours(problem, engine, options.tune, options.draws)
    if not options.without_nuts:
        half = options.nuts_draws
        found["NUTS"] = theirs(problem, posterior, half, half)
    print(f"{options.tune} + {options.draws} sweeps; NUTS {options.nuts_draws} of each\n")
    print("| sampler | density, worst | beta, worst | lambda | kept, s | tuning, s | compiling, s |"
          " density a second, kept | all |")  # fmt: skip
    print("|---" * 9 + "|")
    for name, each in found.items():
        density, beta, variance = each.worst
        total, worst = each.kept + each.tuning + each.compilation, min(density, beta)
        print(f"| {name} | {density:.4g} | {beta:.4g} | {variance:.4g} | {each.kept:.3g} | "
              f"{each.tuning:.3g} | {each.compilation:.3g} | {worst / each.kept:.4g} | "
              f"{worst / total:.4g} |")  # fmt: skip
    best, paper = found["ours"], found["the paper's"]
    ratio = best.worst[:2] / paper.worst[:2]
    print(f"\nours against the paper's sampler, same sweeps: {ratio[0]:.0f} (density), "
          f"{ratio[1]:.0f} (beta)")  # fmt: skip
    if "NUTS" in found:
        nuts = found["NUTS"]
        rates = [min(each.worst[:2]) / each.kept for each in (best, nuts)]
        print(f"ours against NUTS, worst effective draws a second of kept draws: "
              f"{rates[0] / rates[1]:.1f}; largest difference of means "
              f"{difference(best, nuts):.1f} standard errors")  # fmt: skip


if __name__ == "__main__":
    main()
