"""The cost of densities over time against points, times and basis functions.

    python benchmarks/density_size.py [--plot] [--large]

Milliseconds of a sweep, noise ratio 1, one thread: from 10 times, 10,000 points and L = 30, one of
them varied at a time, with the power of each that the cost grows by. ``--plot`` draws them into
docs/images/density_cost.png. ``--large``: a whole fit of 100,000 points over 50 times with L = 100,
two chains of 200 + 300 sweeps, with its minutes and the most memory that all processes held.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import ncbayes as ncb
from ncbayes_bench.torus_size import with_peak

BASE = {"points": 10_000, "times": 10, "basis": 30}
VARIED = {
    "points": (2_500, 10_000, 40_000, 100_000),
    "times": (3, 10, 30, 50),
    "basis": (15, 30, 60, 100),
}
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "density_cost.png"
SWEEPS = 25


def simulated(points: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    """A ring that grows, with as many points at every time."""
    found = ncb.datasets.growing_ring(times, points // times, seed=1)
    return found.points, found.times


def fit(points: int, times: int, basis: int, **options: int) -> ncb.Posterior:
    """A fit against as much noise as data."""
    settings = {"tune": 5, "draws": SWEEPS, "chains": 1, "cores": 1, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit_density_over_time(
            *simulated(points, times), basis=basis, noise_ratio=1, seed=1, progress=False,
            **settings,
        )  # fmt: skip


def milliseconds(**size: int) -> float:
    """Of a sweep: the median of the kept ones."""
    seconds = fit(**size).data["sample_stats"]["sweep_seconds"].to_numpy()
    return 1e3 * float(np.median(seconds))


def plot(found: dict[str, list[float]]) -> None:
    """Milliseconds against each size, on logarithmic axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
    for axis, (name, values) in zip(axes, found.items(), strict=True):
        axis.loglog(VARIED[name], values, "o-", color="#0072B2")
        axis.set_xlabel({"basis": "basis functions"}.get(name, name))
        axis.set_xticks(
            VARIED[name], [f"{x / 1000:g}k" if x >= 1000 else f"{x}" for x in VARIED[name]]
        )
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("milliseconds a sweep")
    figure.savefig(IMAGE, dpi=110)


def large() -> None:
    """The whole fit."""
    sweeps = []

    def whole() -> None:
        posterior = fit(100_000, 50, 100, tune=200, draws=300, chains=2, cores=2)
        sweeps.append(1e3 * float(np.median(posterior.data["sample_stats"]["sweep_seconds"])))

    seconds, before, most = with_peak(whole)
    print(f"100,000 points, 50 times, L = 100, two chains of 200 + 300 sweeps: {seconds / 60:.1f} "
          f"min, {most / 1e6:.0f} MB at most ({before / 1e6:.0f} before), {sweeps[0]:.0f} ms a "
          "sweep")  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", action="store_true")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    if options.large:
        large()
        return
    found = {}
    print("| varied | points | times | L | ms a sweep |\n|---|---|---|---|---|")
    for name, values in VARIED.items():
        found[name] = []
        for value in values:
            size = {**BASE, name: value}
            found[name].append(milliseconds(**size))
            print(f"| {name} | {size['points']} | {size['times']} | {size['basis']} | "
                  f"{found[name][-1]:.3g} |", flush=True)  # fmt: skip
    for name, values in found.items():
        power = np.polyfit(np.log(VARIED[name]), np.log(values), 1)[0]
        print(f"\n{name}: to the power {power:.2f}")
    if options.plot:
        plot(found)


if __name__ == "__main__":
    main()
