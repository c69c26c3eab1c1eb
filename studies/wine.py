"""Which measurements of red wine depend on each other directly? (docs/truncated_gaussian.md)

    python studies/wine.py --data winequality_red.csv [--draws 2000] [--cores 2]

The file has eleven columns of non-negative measurements and "quality" (Cortez et al. 2009, UCI
Machine Learning Repository). Columns are divided by their standard deviations. A truncated
Gaussian graph of all pairs on the positive orthant, with a horseshoe prior on the pairs. It
prints how chains and noise did, the edges that the 90 % interval rule selects, and how replicated
data compare with the data in what the model was not fitted to: their skewness.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import ncbayes as ncb

# Of columns with standard deviation 1; strong dependence has precisions of a few.
PRIOR = {"edge": ncb.priors.Horseshoe(slab=2.5)}
RULE = {"rule": "interval", "level": 0.9, "threshold": 0.1}
REPLICATIONS = 100
LOST_POINT = 100.0


def measurements(path: Path) -> pd.DataFrame:
    """The columns but quality, each divided by its standard deviation.

    Some copies of the file have numbers that lost their decimal point, such as an alcohol of 1e14;
    rows with a value beyond a hundred times its column's median are left out.
    """
    table = pd.read_csv(path).drop(columns="quality")
    fine = (table <= LOST_POINT * table.median()).all(axis=1)
    print(f"{(~fine).sum()} of {len(table)} rows left out")
    return table[fine] / table[fine].std()


def replicated(
    posterior: ncb.Posterior, model: ncb.models.TruncatedGaussian, data: np.ndarray, seed: int
) -> pd.DataFrame:
    """Observed skewness by column, and the 90 % interval of that of replicated data.

    A draw at which the model is no distribution, which no contrast can exclude, is passed over.
    """
    rng = np.random.default_rng(seed)
    theta = posterior.theta.values.reshape(-1, posterior.theta.shape[-1])
    chosen = theta[np.arange(REPLICATIONS) * len(theta) // REPLICATIONS]
    made = []
    for each in chosen:
        with suppress(ncb.InputError):
            made.append(stats.skew(model.sample(each, len(data), rng)))
    print(f"{len(made)} of {len(chosen)} draws are distributions")
    none = np.full((1, len(model.nodes)), np.nan)
    low, high = np.quantile(made or none, [0.05, 0.95], axis=0)
    return pd.DataFrame(
        {"observed": stats.skew(data), "low": low, "high": high}, index=list(model.nodes)
    )


def main(path: Path, seed: int, columns: Sequence[str] | None = None, **options: Any) -> None:
    """Fit and print; ``options`` are those of ``fit``."""
    data = measurements(path)
    data = data[list(columns)] if columns else data
    model = ncb.models.TruncatedGaussian(list(data.columns))
    posterior = ncb.fit(model, data, prior=PRIOR, seed=seed, **options)
    print(f"{posterior}, {posterior.data.attrs['wall_seconds']:.0f} seconds")
    print("\n".join([*posterior.warning_lines(), *posterior.noise_report().lines]))
    edges = ncb.graphs.edges(posterior, **RULE)
    shown = edges[edges["selected"]]
    columns_shown = ["node1", "node2", "precision", "precision_low", "precision_high"]
    print(shown[columns_shown].round(2).to_string(index=False))
    print(f"{len(shown)} of {len(edges)}; expected false: {edges.attrs['expected_fdr']:.3f}")
    print(replicated(posterior, model, data.to_numpy(float), seed).round(2).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--columns", nargs="+", help="names of the columns to fit; all if left out")
    arguments = vars(parser.parse_args())
    main(arguments.pop("data"), **arguments)
