"""Makes the picture of docs/compare.md: python docs/make_comparison_picture.py [folder]."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np

import ncbayes as ncb
from ncbayes import plots

TRUTH = np.array([-0.5, 0.2, -0.3, 0.1, 0.8, 0.0, 0.0, 1.0, 0.0, -0.9])


def compared() -> object:
    """Five engines on 300 rows of four nodes, as docs/compare.md has them."""
    model = ncb.models.Ising(4)
    votes = model.sample(TRUTH, 300, np.random.default_rng(1))
    settings = {"prior": ncb.priors.Normal(2.0), "seed": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posteriors = {
            "exact": ncb.fit(model, votes, engine="exact", **settings),
            "NC-Bayes, ratio 20": ncb.fit(model, votes, noise_ratio=20, **settings),
            "NC-Bayes, ratio 1": ncb.fit(model, votes, noise_ratio=1, **settings),
            "exchange": ncb.fit(
                model, votes, engine=ncb.engines.Exchange(sweeps=20, proposals=10), **settings
            ),
            "pseudolikelihood": ncb.fit(model, votes, engine="pseudolikelihood", **settings),
        }
    return ncb.compare(posteriors)


if __name__ == "__main__":
    mpl.use("Agg")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    found = compared()
    print(found)
    plots.comparison(found).savefig(folder / "comparison.png", dpi=110)
