"""Fits against several noise sets: how much the noise draw matters, and draws freed from it.

The posterior given one noise set has its mean off by the set's accident, and is wider than the
exact one by what an accident may do. Of the exact precision it keeps the share ``kept`` (noise from
the model itself at ratio nu: nu / (nu + 1)). The average of S posteriors given sets of their own
counts the accident twice, in their spread and in their widths. Where posteriors are normal, draws
moved to the common mean and narrowed around it, from 1 / kept to 1 + (1 / kept - 1) / S of the
exact variance, are those of one posterior given S times the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncbayes import diagnostics
from ncbayes.base import FloatArray, InputError
from ncbayes.reports import noise_report

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def spread(tree: xr.DataTree) -> pd.DataFrame:
    """Between and within noise sets, one row a quantity."""
    import pandas as pd

    sets = _sets(tree, "the spread between noise sets")
    rows = {}
    for name, values in diagnostics.quantities(tree):
        parts = [values[:, sets == label] for label in np.unique(sets)]
        between = float(np.std([part.mean() for part in parts], ddof=1))
        within = float(np.sqrt(np.mean([part.var() for part in parts])))
        ratio = between / within if within > 0 else np.nan
        rows[name] = {"between_sd": between, "within_sd": within, "ratio": ratio}
    return pd.DataFrame.from_dict(rows, orient="index")


def recentred(tree: xr.DataTree) -> xr.DataTree:
    """The tree with theta and log_z as if there had been one set of all noise points."""
    sets = _sets(tree, "recentring noise sets")
    if "recentred" in tree.attrs:
        raise InputError("these draws are recentred already; call recentred() once, on the fit's")
    if "theta" not in tree["posterior"]:
        raise InputError(
            "recentring is for theta, and an Energy has parameters of its own; take more noise "
            "instead, by noise_ratio"
        )
    kept = noise_report(tree, None).table["information_kept"].groupby("group", sort=False).mean()
    labels = [str(label) for label in tree["posterior"]["group"].to_numpy()]
    shares = np.array([kept.get(label, 1.0) for label in labels])
    made = tree.copy()
    stored = tree["posterior"].to_dataset()
    for name in ("theta", "log_z"):
        if name in stored:
            values = stored[name].to_numpy()
            wide = shares.reshape((-1,) + (1,) * (values.ndim - 3))
            stored[name] = (stored[name].dims, moved(values, sets, wide), stored[name].attrs)
    made["posterior"] = stored
    made.attrs = {**tree.attrs, "recentred": 1}
    return made


def moved(values: FloatArray, sets: NDArray[np.int_], kept: FloatArray | float) -> FloatArray:
    """(chain, draw, ...) values moved to the mean of the sets' means, and narrowed around it."""
    labels = np.unique(sets)
    means = [values[:, sets == label].mean(axis=(0, 1)) for label in labels]
    centre = np.mean(means, axis=0)
    narrower = np.sqrt(kept + (1 - kept) / len(labels))
    made = np.array(values)
    for label, mean in zip(labels, means, strict=True):
        made[:, sets == label] = centre + narrower * (values[:, sets == label] - mean)
    return made


def _sets(tree: xr.DataTree, what: str) -> NDArray[np.int_]:
    sets = diagnostics.noise_sets(tree)
    if len(np.unique(sets)) < 2:
        raise InputError(
            f"{what} needs a fit with several of them; use fit(..., noise=ncbayes.noise.Pooled())"
        )
    return sets
