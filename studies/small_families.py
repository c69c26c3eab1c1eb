"""Do the engines agree with the exact posterior on models small enough to have one?

    python studies/small_families.py [--families ising_5 ...] [--sets 20] [--exchanges 600]

For each family, against `engine="exact"` with the same prior: NC-Bayes with noise chosen by "auto"
and noise_ratio 20, on one noise set and on the average of many; the exchange algorithm with the
model's own sampler; and where there are conditionals, the pseudolikelihood. One noise set moves the
mean of a parameter by about 1 / sqrt(20) = 0.22 posterior sds, so that agreement to 0.15 sds can
only be asked of the average.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import ncbayes as ncb

NOISE_RATIO = 20
PRIOR = ncb.priors.Normal(2.0)
# Name: model, true theta, rows. A family that knows log_partition and has sample can join here.
FAMILIES: dict[str, tuple[Any, list[float], int]] = {
    "ising_5": (
        ncb.models.Ising(5),
        [-0.4, 0.2, -0.3, 0.1, 0.3, 0.8, 0, 0, -0.7, 0.6, 0, 0, 0.9, 0, -0.5],
        300,
    ),
    "torus_2": (ncb.models.TorusGraph(2), [0.6, -0.3, 0.0, 0.5, 0.8, 0.2, -0.4, 0.0], 200),
    "gaussian_2": (ncb.models.Gaussian(2), [0.5, -0.2, 1.0, 1.5, 0.4], 200),
    "truncated_2": (ncb.models.TruncatedGaussian(2), [0.5, 0.2, 1.0, 1.5, 0.4], 200),
    "counts_2": (ncb.models.ConwayMaxwell(2, most=15), [0.8, 0.5, 1.2, 0.8, 0.05], 200),
    "ergm_5": (ncb.models.ERGM(5, ["edges", "triangles"]), [-0.6, 0.4], 200),
}


def posteriors(
    name: str, sets: int, exchanges: int, cores: int, seed: int
) -> dict[str, ncb.Posterior]:
    """The fits of one family, the exact one first."""
    model, truth, rows = FAMILIES[name]
    data = model.sample(np.array(truth), rows, np.random.default_rng([2, seed]))
    given: dict[str, Any] = {"prior": PRIOR, "seed": seed, "cores": cores, "progress": False}
    found = {"exact": ncb.fit(model, data, engine="exact", draws=4000, **given)}
    one = ncb.fit(model, data, noise_ratio=NOISE_RATIO, draws=2000, **given)
    found["NC-Bayes, one noise set"] = one
    pooled = ncb.noise.Pooled(one.noises, sets=sets, settle=10)
    found[f"NC-Bayes, {sets} noise sets"] = ncb.fit(
        model, data, noise=pooled, noise_ratio=NOISE_RATIO, draws=100 * sets, tune=100, **given
    )
    if exchanges:
        exchange = ncb.engines.Exchange(proposals=8)
        found["exchange"] = ncb.fit(model, data, engine=exchange, draws=exchanges, tune=60, **given)
    if hasattr(model, "change_statistics"):
        found["pseudolikelihood"] = ncb.fit(
            model, data, engine="pseudolikelihood", draws=2000, **given
        )
    return found


def study(names: list[str], sets: int, exchanges: int, cores: int, seed: int) -> None:
    """Print the table, family by family."""
    print("| family | posterior | difference of means in exact sds: largest (median) | in Monte "
          "Carlo errors: largest | sd / exact sd | seconds | worst ESS a second |\n"
          "|---|---|---|---|---|---|---|")  # fmt: skip
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ncb.FitWarning)
            found = ncb.compare(posteriors(name, sets, exchanges, cores, seed))
        rows = found.table.loc[found.table["parameter"] != "log_z"]
        for each, view in found.overview.iterrows():
            own = rows[rows["posterior"] == each]
            size = own["difference_sds"].abs()
            print(
                f"| {name} | {each} | {size.max():.3f} ({size.median():.3f}) | "
                f"{own['difference_errors'].abs().max():.1f} | {own['sd_ratio'].min():.3f} to "
                f"{own['sd_ratio'].max():.3f} | {view['seconds']:.1f} | "
                f"{view['worst_ess_a_second']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument(
        "--exchanges", type=int, default=600, help="kept sweeps of exchange; 0: none"
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    given = (arguments.sets, arguments.exchanges, arguments.cores, arguments.seed)
    study(arguments.families, *given)
