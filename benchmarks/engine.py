"""What importing, a sweep and a checkpoint cost, as ratios in one run.

    python benchmarks/engine.py

- import: seconds that ``import ncbayes`` adds to ``import numpy, scipy``;
- sweep: a joint trajectory by its floor: two products with the design, in single precision, for
  each of its steps, and nothing else;
- checkpoint: the share of a run's time that saving takes at the default cadence.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import ncbayes as ncb
from ncbayes.base import Draw, NoiseState
from ncbayes.chains import SAVE_SECONDS
from ncbayes.checkpoints import ChainFolder, ChainState
from ncbayes.contrast import Target, contrast
from ncbayes.problem import noise_set


def median_seconds(function, repeats: int) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def import_seconds(code: str) -> float:
    """The median time of a new interpreter that runs this code."""
    return median_seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 9)


class Harmonics:
    """A family on the circle with as many statistics as one likes."""

    space = ncb.spaces.Torus(1)

    def __init__(self, count: int) -> None:
        self.orders = np.arange(1, count // 2 + 1)
        self.groups = {"all": tuple(f"{f} {k}x" for k in self.orders for f in ("cos", "sin"))}

    def statistics(self, x: np.ndarray) -> np.ndarray:
        angles = x * self.orders
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(x), -1)

    def log_base(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(len(x))


def target(rows: int, statistics: int, rng: np.random.Generator) -> Target:
    """A contrast of rows / 2 data with as much noise, and a normal prior."""
    model, noise = Harmonics(statistics), ncb.noise.Uniform(Harmonics.space)
    data = ncb.models.VonMises().sample(np.array([1.0, 0.5]), rows // 2, rng)
    each = contrast(model, data, noise_set(noise, data, rows - rows // 2, rng))
    return Target((each,), ncb.priors.Normal(1.0))


def sweep_row(rows: int, statistics: int) -> str:
    """Seconds of a sweep and of the products in it, and their ratio."""
    rng = np.random.default_rng(0)
    kernel = ncb.engines.Joint().adapting(200).kernel(target(rows, statistics, rng))
    draw = kernel.sweeps(kernel.start(rng), rng, 200).last
    began = time.perf_counter()
    block = kernel.sweeps(draw, rng, 300)
    sweep = (time.perf_counter() - began) / 300
    design = np.ones((statistics + 1, rows), np.float32)
    coef, residual = np.ones(statistics + 1, np.float32), np.ones(rows, np.float32)
    products = median_seconds(lambda: (coef @ design, design @ residual), 300)
    steps = float(block.stats["n_steps"].mean())
    floor = steps * products
    return (
        f"| {rows} | {statistics} | {steps:.1f} | {1e3 * floor:.3f} | {1e3 * sweep:.3f} | "
        f"{sweep / floor:.1f} |"
    )


def checkpoint_row(coefficients: int, draws: int) -> str:
    """Seconds of saving ``draws`` draws and the state, and their share of the cadence."""
    rng = np.random.default_rng(0)
    state = ChainState(
        draws,
        draws,
        Draw(rng.standard_normal((1, coefficients)), {}),
        NoiseState((), 0),
        rng.bit_generator.state,
    )
    kept = {"coef": rng.standard_normal((draws, 1, coefficients))}
    with tempfile.TemporaryDirectory() as folder:
        chain = ChainFolder(Path(folder))
        seconds = median_seconds(lambda: chain.save(state, kept, (0,)), 15)
    share = seconds / SAVE_SECONDS
    return f"| {coefficients} | {draws} | {1e3 * seconds:.1f} | {share:.3%} |"


def main() -> None:
    """Print the three tables."""
    base = import_seconds("import numpy, scipy")
    ours = import_seconds("import ncbayes")
    print(f"import: numpy and scipy {base:.2f} s, ncbayes {ours:.2f} s, "
          f"added {ours - base:.2f} s\n")  # fmt: skip
    print("| pooled points | statistics | steps | products, ms | sweep, ms | ratio |")
    print("|---" * 6 + "|")
    with threadpool_limits(1):
        for rows, statistics in [(400, 2), (1200, 2), (10_000, 2), (2000, 30), (4000, 100)]:
            print(sweep_row(rows, statistics), flush=True)
    print("\n| coefficients | draws since the last save | save, ms | share of the cadence |")
    print("|---|---|---|---|")
    for coefficients, draws in [(3, 60_000), (300, 10_000), (1801, 1000)]:
        print(checkpoint_row(coefficients, draws), flush=True)


if __name__ == "__main__":
    main()
