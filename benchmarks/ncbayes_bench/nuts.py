"""Effective draws a second on a torus graph under a horseshoe: ours and NumPyro's NUTS.

    python -m ncbayes_bench.nuts [--ratio 1 5] [--clock wall] [--single]

A chain of 12 angles, n = 200, uniform noise, the default prior; the same posterior for both, one
chain and one thread each, in one run. Ours 1000 + 3000 sweeps, NUTS 500 + 500 draws, theta in units
of its scale. ``all`` counts tuning, and for NUTS its compilation, without which it does not start;
our compiled loops come from a cache, and what filling it takes is told apart. ``draws`` counts
kept draws alone: for NUTS 500 more from where it stood, by a program compiled before; for ours the
share of the fit that its kept sweeps took. The last line tells whether both have sampled the same
posterior: the largest difference of means in Monte Carlo standard errors.

``--clock processor`` counts seconds of the processor, for a machine that is busy. ``--single``
lets NUTS use 32 bits, NumPyro's default; ours always uses 64. NumPyro is the extra ``bench``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_bench import nuts_horseshoe as nuts
from ncbayes_bench.pooled import Pooled, pooled

CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.perf_counter,
    "processor": time.process_time,
}
FORM = "conditional"


@dataclass(frozen=True, eq=False)
class Measured:
    """Draws (chain, draw, parameter) and the seconds they took."""

    draws: np.ndarray
    seconds: float

    @property
    def rates(self) -> np.ndarray:
        """Effective draws a second: of theta the worst and the median one, of log Z, of tau."""
        found = nuts.effective(self.draws) / self.seconds
        return np.array([found[:-2].min(), np.median(found[:-2]), *found[-2:]])


def fitted(simulated: Any, ratio: float, tune: int, draws: int, form: str = FORM) -> ncb.Posterior:
    """Our fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(
            simulated.model,
            simulated.data,
            noise=ncb.noise.Uniform(simulated.model.space),
            noise_ratio=ratio,
            prior=ncb.priors.Horseshoe(slab_form=form),
            tune=tune,
            draws=draws,
            chains=1,
            cores=1,
            seed=1,
            progress=False,
        )


def ours(
    simulated: Any,
    ratio: float,
    tune: int,
    draws: int,
    clock: Callable[[], float],
    form: str = FORM,
) -> tuple[ncb.Posterior, Measured, Measured]:
    """The posterior, with all of its time and with that of the kept sweeps."""
    wall, began = time.perf_counter(), clock()
    posterior = fitted(simulated, ratio, tune, draws, form)
    seconds, wall = clock() - began, time.perf_counter() - wall
    kept = float(posterior.data["sample_stats"]["sweep_seconds"].sum()) / wall
    found = nuts.our_draws(posterior)
    return posterior, Measured(found, seconds), Measured(found, kept * seconds)


def theirs(
    contrast: Pooled,
    tune: int,
    draws: int,
    clock: Callable[[], float],
    target_accept: float = 0.8,
    double: bool = True,
) -> tuple[Measured, Measured, int]:
    """NUTS with tuning and compilation, then draws only, and the divergences of both."""
    began = clock()
    mcmc = nuts.sampler(contrast, FORM, tune, draws, 1, target_accept, double)
    nuts.run(mcmc, contrast, FORM, seed=1)
    everything = Measured(nuts.their_draws(mcmc), clock() - began)
    more, bad = drawn_again(mcmc, contrast, draws, clock)
    return everything, more, bad + nuts.divergences(mcmc)


def drawn_again(
    mcmc: Any, contrast: Pooled, draws: int, clock: Callable[[], float]
) -> tuple[Measured, int]:
    """More draws from where NUTS stands, compiled before the clock starts."""
    values, bad, seconds, _ = drawn_from(
        mcmc.sampler, mcmc.last_state, (contrast, FORM, 1.0), draws, clock
    )
    scalars = np.stack([-values["c"], np.log(values["tau"])], axis=-1)
    merged = np.concatenate([values["theta"], scalars], axis=-1)
    return Measured(merged[None], seconds), bad


def drawn_from(
    kernel: Any, state: Any, arguments: tuple[Any, ...], draws: int, clock: Callable[[], float]
) -> tuple[dict[str, np.ndarray], int, float, float]:
    """Draws of a tuned NUTS by name, its divergences, their seconds, and those of compiling."""
    import jax

    def step(state: Any, _: None) -> tuple[Any, Any]:
        state = kernel.sample(state, arguments, {})
        return state, (state.z, state.diverging)

    program = jax.jit(lambda state: jax.lax.scan(step, state, None, length=draws)[1])
    began = clock()
    compiled = program.lower(state).compile()
    ready = clock()
    found, bad = jax.block_until_ready(compiled(state))
    seconds = clock() - ready
    found = jax.vmap(kernel.postprocess_fn(arguments, {}))(found)
    values = {name: np.asarray(each, float) for name, each in found.items()}
    return values, int(np.sum(bad)), seconds, ready - began


def table(pairs: list[tuple[Measured, Measured]]) -> str:
    """Effective draws a second, ours and NUTS's with their ratio; pairs with and without tuning."""
    names = ("theta, worst", "theta, median", "log Z", "tau")
    lines = ["| effective draws a second | all: ours | NUTS | ratio | draws: ours | NUTS | ratio |"]
    lines.append("|---" * 7 + "|")
    rates = [(one.rates, other.rates) for one, other in pairs]
    for k, name in enumerate(names):
        cells = [f"{a[k]:.3g} | {b[k]:.3g} | {a[k] / b[k]:.1f}" for a, b in rates]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    seconds = [f"{a.seconds:.1f} | {b.seconds:.1f} | " for a, b in pairs]
    return "\n".join([*lines, f"| seconds | {' | '.join(seconds)} |"])


def compare(simulated: Any, ratio: float, options: argparse.Namespace) -> None:
    """Print one noise ratio."""
    clock = CLOCKS[options.clock]
    posterior, our_all, our_kept = ours(simulated, ratio, 1000, options.draws, clock)
    contrast = pooled(posterior, simulated.model)
    count, double = options.nuts_draws, not options.single
    nuts_all, nuts_kept, bad = theirs(contrast, count, count, clock, options.accept, double)
    print(f"\nnu = {ratio:g}: {contrast.statistics.shape[0]} points, "
          f"{contrast.statistics.shape[1]} parameters, {options.clock} seconds\n")  # fmt: skip
    print(table([(our_all, nuts_all), (our_kept, nuts_kept)]))
    both = np.concatenate([nuts_all.draws, nuts_kept.draws], axis=1)
    z = nuts.z_scores(our_all.draws, both)
    print(f"\ndifference of means in standard errors: largest {np.abs(z[:-2]).max():.1f} of "
          f"{len(z) - 2} theta, log Z {z[-2]:+.1f}, log tau {z[-1]:+.1f}; divergences of NUTS: "
          f"{bad} of {both.shape[1]}", flush=True)  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratio", nargs="+", type=float, default=[1.0, 5.0])
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--single", action="store_true", help="32 bits for NUTS")
    parser.add_argument("--accept", type=float, default=0.8, help="target acceptance of NUTS")
    parser.add_argument("--nodes", type=int, default=12)
    parser.add_argument("--draws", type=int, default=3000, help="ours, after 1000 of tuning")
    parser.add_argument("--nuts-draws", type=int, default=500, help="after as many of tuning")
    options = parser.parse_args()
    simulated = ncb.datasets.torus_chain(200, nodes=options.nodes, seed=1)
    began = time.perf_counter()
    fitted(ncb.datasets.torus_chain(20, nodes=3, seed=1), 1.0, 2, 2)
    print(f"first fit, of 4 sweeps of 3 angles: {time.perf_counter() - began:.1f} s (compilation "
          "of our loops, or reading them from the cache)")  # fmt: skip
    for ratio in options.ratio:
        compare(simulated, ratio, options)


if __name__ == "__main__":
    main()
