"""Effective draws a processor second: joint trajectories, Polya-Gamma sweeps, NumPyro's NUTS.

    python -m ncbayes_bench.kernels [--targets ...] [--votes house_votes_1984_complete.csv]
                                    [--draws 5000] [--nuts 500] [--no-gibbs]

Sparse graphs under a regularized grouped horseshoe, the same posterior for all samplers: one chain,
one thread, seconds of the processor, in one run. NUTS is NumPyro's, non-centred: coefficients in
units of their scales, log scales in the same tree. "kept" counts kept draws alone (for NUTS
more of them, from where it stood, by a program compiled before), "whole" counts warm-up too, and
for NUTS its compilation. Our compiled loops come from a cache. "squares": of squared deviations
from the mean, since trajectories near half a turn flatter means.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ncbayes as ncb
from ncbayes.base import NoiseSet
from ncbayes.contrast import Target, contrast, kernel_of
from ncbayes.priors.blocks import NORMALIZER_PRIOR, Blocks, Part
from ncbayes_bench.nuts import drawn_from
from ncbayes_bench.nuts_horseshoe import NORMALIZER_SCALE, ONE_THREAD
from ncbayes_bench.page import table

SEED, FIELD_SCALE = 1, 5.0


@dataclass(frozen=True, eq=False)
class Posed:
    """A target, and what NumPyro needs to know of it: the run of each column, -1 for none."""

    words: str
    target: Target
    runs: np.ndarray
    slab: float
    center: np.ndarray


def posed(words: str, model: Any, data: np.ndarray, noise: NoiseSet, slab: float) -> Posed:
    """The posterior of a graph: a horseshoe on its edges, on its margins too if they are runs."""
    size = sum(len(names) for names in model.groups.values())
    angles = hasattr(model, "clusters")
    start = 0 if angles else len(model.nodes)
    prior = ncb.priors.Horseshoe(slab=slab).bound(model, start, size)
    parts = [Part("fields", ncb.priors.Normal(FIELD_SCALE), 0, start)] if start else []
    parts += [
        Part("edges", prior, start, size),
        Part("normalizer", NORMALIZER_PRIOR, size, size + 1),
    ]
    center = np.zeros(size) if angles else model.statistics(data).mean(axis=0)
    each = contrast(model, data, noise, None if angles else center)
    runs = (
        np.asarray(model.clusters)
        if angles
        else np.append(np.full(start, -1), np.arange(size - start))
    )
    return Posed(words, Target((each,), Blocks(tuple(parts))), runs, slab, center)


def model_noise(
    model: Any, theta: np.ndarray, data: np.ndarray, ratio: int, rng: np.random.Generator
) -> NoiseSet:
    """Points of the model at theta, by sweeps from copies of the rows.

    Its normalizer is left at zero: a constant in log q moves c alone.
    """
    points = np.tile(data, (ratio, 1))
    for _ in range(200):
        points = model.sweep(theta, points, rng)
    return NoiseSet(points, model.statistics(points) @ theta, model.statistics(data) @ theta)


def angles(nodes: int, ratio: int, close: bool) -> Posed:
    """A chain of 12 angles (n = 200) or a random graph of 30 (n = 1000), against noise."""
    rng = np.random.default_rng(SEED)
    simulated = (
        ncb.datasets.torus_chain(200, nodes=nodes, seed=SEED)
        if nodes == 12
        else ncb.datasets.torus_random(1000, nodes=nodes, seed=SEED)
    )
    model, data = simulated.model, np.asarray(simulated.data)
    if close:
        noise = model_noise(model, np.ravel(simulated.theta), data, ratio, rng)
    else:
        uniform = ncb.noise.Uniform(model.space)
        points = uniform.sample(ratio * len(data), rng)
        noise = NoiseSet(points, uniform.log_density(points), uniform.log_density(data))
    kind = "the model" if close else "uniform"
    return posed(f"{nodes} angles, {kind}, ratio {ratio}", model, data, noise, 1.0)


def ising() -> Posed:
    """22 binary columns, n = 267, against noise from the model, ratio 10."""
    rng, size = np.random.default_rng(SEED), 22
    model = ncb.models.Ising(size)
    theta = np.zeros(size + size * (size - 1) // 2)
    theta[:size] = -1
    theta[size + rng.choice(len(theta) - size, 26, replace=False)] = rng.uniform(0.5, 1.5, 26)
    data = np.asarray(model.sample(theta, 267, rng), dtype=float)
    noise = model_noise(model, theta, data, 10, rng)
    return posed("22 binary columns, the model, ratio 10", model, data, noise, 2.5)


def votes(path: Path) -> Posed:
    """House votes, against the model at the mean of a pseudolikelihood fit, ratio 10."""
    import pandas as pd

    frame = pd.read_csv(path).drop(columns="party")
    model, data = ncb.models.Ising(list(frame.columns)), frame.to_numpy(dtype=float)
    prior = {"edge": ncb.priors.Horseshoe(slab=2.5)}
    found = ncb.fit(model, data, engine="pseudolikelihood", prior=prior, seed=SEED, chains=2,
                    cores=1, progress=False)  # fmt: skip
    theta = found.theta.to_numpy().mean(axis=(0, 1, 2))
    noise = model_noise(model, theta, data, 10, np.random.default_rng(SEED))
    return posed("House votes, the model, ratio 10", model, data, noise, 2.5)


TARGETS: dict[str, Callable[[], Posed]] = {
    "angles12-1": lambda: angles(12, 1, False),
    "angles12-5": lambda: angles(12, 5, False),
    "angles12-10": lambda: angles(12, 10, True),
    "ising22": ising,
    "angles30-2": lambda: angles(30, 2, True),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """theta, log Z and log tau (draw, parameter), and seconds: of these draws, and of all."""

    draws: np.ndarray
    kept: float
    whole: float
    whole_draws: np.ndarray | None = None

    def rates(self, whole: bool = False) -> np.ndarray:
        """A second: worst and median theta, log Z, tau, and the worst square of theta."""
        given = self.whole_draws if whole and self.whole_draws is not None else self.draws
        found = effective(given)
        squares = effective((given - given.mean(axis=0)) ** 2)[:-2].min()
        values = [found[:-2].min(), np.median(found[:-2]), *found[-2:], squares]
        return np.array(values) / (self.whole if whole else self.kept)


def effective(draws: np.ndarray) -> np.ndarray:
    """Effective draws of each column, by ArviZ."""
    from arviz_stats.base import array_stats

    return np.asarray(array_stats.ess(draws[None], chain_axis=0, draw_axis=1))


def ours(problem: Posed, engine: Any, tune: int, draws: int) -> Measured:
    """A chain of an engine of ours."""
    with threadpool_limits(1):
        kernel_of(engine.adapting(5) if hasattr(engine, "adapting") else engine, problem.target)
        rng, began = np.random.default_rng(SEED), time.process_time()
        made = engine.adapting(tune) if hasattr(engine, "adapting") else engine
        kernel = kernel_of(made, problem.target)
        draw = kernel.start(rng)
        if tune:
            draw = kernel.sweeps(draw, rng, tune).last
        middle = time.process_time()
        block = kernel.sweeps(draw, rng, draws)
        ended = time.process_time()
    coef = block.coef[:, 0]
    log_z = coef[:, :-1] @ problem.center - coef[:, -1]
    found = np.column_stack([coef[:, :-1], log_z, np.log(block.scales["edges.tau"])])
    return Measured(found, ended - middle, ended - began)


def density(problem: Posed) -> None:
    """The NumPyro model, coefficients in units of their scales."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    (each,), runs = problem.target.contrasts, problem.runs
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    local = numpyro.sample("local", dist.HalfCauchy(1.0).expand([int(runs.max()) + 1]))
    unit = numpyro.sample("unit", dist.Normal(0.0, 1.0).expand([len(runs)]))
    scale = (local * tau)[np.maximum(runs, 0)]
    shrunk = problem.slab * scale / jnp.sqrt(problem.slab**2 + scale**2)
    theta = numpyro.deterministic("theta", jnp.where(runs < 0, FIELD_SCALE, shrunk) * unit)
    c = numpyro.sample("c", dist.Normal(0.0, NORMALIZER_SCALE))
    log_odds = each.design.dense()[:, :-1] @ theta + c + each.offset
    numpyro.sample("labels", dist.Bernoulli(logits=log_odds), obs=each.is_data.astype(int))


def theirs(problem: Posed, draws: int) -> Measured:
    """NumPyro's NUTS."""
    import jax
    import numpyro

    numpyro.enable_x64()
    began = time.process_time()
    mcmc = numpyro.infer.MCMC(
        numpyro.infer.NUTS(density), num_warmup=draws, num_samples=draws, progress_bar=False
    )
    mcmc.run(jax.random.PRNGKey(SEED), problem)
    first = jax.block_until_ready(mcmc.get_samples())
    whole = time.process_time() - began
    values, _, seconds, _ = drawn_from(
        mcmc.sampler, mcmc.last_state, (problem,), draws, time.process_time
    )
    return Measured(_merged(values, problem), seconds, whole, _merged(first, problem))


def _merged(values: Any, problem: Posed) -> np.ndarray:
    theta, c = (np.asarray(values[name], float) for name in ("theta", "c"))
    log_z = theta @ problem.center - c
    return np.column_stack([theta, log_z, np.log(np.asarray(values["tau"], float))])


def main() -> None:
    """Run and print a table of the targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--votes", type=Path)
    parser.add_argument("--draws", type=int, default=5000)
    parser.add_argument("--nuts", type=int, default=500)
    parser.add_argument("--no-gibbs", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
    problems = [TARGETS[name] for name in given.targets]
    if given.votes:
        problems.append(lambda: votes(given.votes))
    rows = []
    for make in problems:
        problem = make()
        ours(problem, ncb.engines.Joint(), 20, 5)
        found = {"joint": ours(problem, ncb.engines.Joint(), 1000, given.draws)}
        if not given.no_gibbs:
            found["Polya-Gamma, by runs"] = ours(problem, ncb.engines.Gibbs(), 500, 2000)
        if given.nuts:
            found["NumPyro NUTS"] = theirs(problem, given.nuts)
        for name, each in found.items():
            for whole in (False, True):
                rates = each.rates(whole)
                ratio = found["joint"].rates(whole) / rates
                cells = [f"{rate:.3g}" for rate in rates]
                marks = "" if name == "joint" else " ".join(f"{value:.1f}" for value in ratio)
                rows.append([problem.words, name, "whole" if whole else "kept", *cells, marks])
                print(rows[-1], flush=True)
    heads = ["posterior", "sampler", "counted", "theta, worst", "median", "log Z", "tau", "squares"]
    print(table([*heads, "joint's, as a multiple"], rows))


if __name__ == "__main__":
    main()
