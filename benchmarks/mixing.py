"""Effective draws a second: Polya-Gamma sweeps (the paper's Algorithm 1) and joint trajectories.

    python benchmarks/mixing.py

Both engines on the same data, noise and prior, one chain at a time, in one run. The worst
quantity of each fit counts. ``error``: how far the two engines' means of the first parameter are
apart, in posterior standard deviations; where Polya-Gamma alone does not mix, that engine
is the one that is off.
"""

from __future__ import annotations

import warnings

import numpy as np

import ncbayes as ncb

ANGLES = ncb.models.VonMises()


def cases() -> dict[str, tuple]:
    """Name: model, data, settings."""
    rng = np.random.default_rng(0)
    angles = ANGLES.sample(np.array([1.0, 0.5]), 200, rng)
    sharp = ANGLES.sample(np.array([20.0, 0.0]), 200, rng)
    numbers = rng.normal(0, 1, 300)
    table = rng.normal(0, 1, (400, 5))
    uniform, cauchy = ncb.noise.Uniform(ANGLES.space), ncb.noise.StudentT(0.0, 1.0, df=1)
    gaussian = ncb.models.Gaussian(1)
    return {
        "von Mises, matched noise, nu = 1": (ANGLES, angles, {"noise_ratio": 1}),
        "von Mises, matched noise, nu = 5": (ANGLES, angles, {"noise_ratio": 5}),
        "von Mises, matched noise, nu = 50": (ANGLES, angles, {"noise_ratio": 50}),
        "von Mises, concentration 20, uniform noise, nu = 10": (
            ANGLES,
            sharp,
            {"noise": uniform, "noise_ratio": 10},
        ),
        "Gaussian, Student t noise, nu = 10": (gaussian, numbers, {"noise_ratio": 10}),
        "Gaussian, Cauchy noise, nu = 10": (
            gaussian,
            numbers,
            {"noise": cauchy, "noise_ratio": 10},
        ),
        "Gaussian in 5 dimensions, Student t noise, nu = 5": (
            ncb.models.Gaussian(5),
            table,
            {"noise_ratio": 5},
        ),
    }


def measured(model, data, settings, engine: str) -> tuple[float, float, float, float]:
    """Worst effective draws, milliseconds a sweep, and mean and sd of the first parameter."""
    posterior = ncb.fit(
        model,
        data,
        engine=engine,
        draws=2000,
        tune=500,
        chains=2,
        cores=1,
        seed=1,
        progress=False,
        **{"noise": "matched", **settings},
    )
    table = posterior.summary()
    seconds = posterior.data["sample_stats"]["sweep_seconds"].to_numpy()
    watched = "-x1^2/2" if "-x1^2/2" in table.index else table.index[0]
    row = table.loc[watched]
    return table["ess_bulk"].min(), 1e3 * float(np.median(seconds)), row["mean"], row["sd"]


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", ncb.FitWarning)
    print("| problem | effective of 4000: PG | joint | ms a sweep: PG | joint | "
          "effective draws a second, ratio | error |\n" + "|---" * 7 + "|")  # fmt: skip
    for name, case in cases().items():
        (slow, slow_ms, slow_mean, _), (fast, fast_ms, mean, sd) = (
            measured(*case, engine=engine) for engine in ("gibbs", "joint")
        )
        ratio = (fast / fast_ms) / (slow / slow_ms)
        print(f"| {name} | {slow:.0f} | {fast:.0f} | {slow_ms:.2f} | {fast_ms:.2f} | {ratio:.1f} | "
              f"{abs(mean - slow_mean) / sd:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
