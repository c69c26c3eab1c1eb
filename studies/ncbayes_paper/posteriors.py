"""Fits that figures are drawn from: run once, kept in a file, and read from there."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_paper.torus_tables import mixing

# Above this R-hat, and below so many effective draws, a chain has not told enough (Vehtari et al.
# 2021).
WORST_R_HAT, FEWEST_EFFECTIVE = 1.01, 100


def kept(
    folder: Path,
    name: str,
    sweeps: tuple[int, int],
    about: tuple[Any, ...],
    fit: Callable[[], ncb.Posterior],
) -> ncb.Posterior:
    """``fit()``, or what it returned before: ``folder`` holds it as ``NAME-TUNE-DRAWS-DIGEST.nc``.

    The digest is that of ``about``, the data and the options of the fit.
    """
    tune, draws = sweeps
    file = folder / f"{name}-{tune}-{draws}-{digest(about)}.nc"
    if file.exists():
        return ncb.load(file)
    with warnings.catch_warnings():
        # Captions tell how the chains have mixed.
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = fit()
    if not posterior.complete:
        # Half a fit would be taken for a whole one.
        raise KeyboardInterrupt(f"interrupted during the fit {name}, which is not kept")
    folder.mkdir(parents=True, exist_ok=True)
    posterior.save(file)
    return posterior


def digest(about: tuple[Any, ...]) -> str:
    """Ten letters that differ where arrays or tables do, or where anything else looks different."""
    found = hashlib.sha256()
    for part in about:
        values = part.to_numpy() if hasattr(part, "to_numpy") else part
        if isinstance(values, np.ndarray):
            found.update(f"{values.dtype}{values.shape}".encode())
            found.update(np.ascontiguousarray(values).tobytes())
        else:
            found.update(repr(values).encode())
    return found.hexdigest()[:10]


def worst_r_hat(posterior: ncb.Posterior) -> float:
    """The largest R-hat of all quantities, of two chains or more."""
    return float(posterior.summary()["r_hat"].max())


def convergence(posterior: ncb.Posterior) -> str:
    """How long the chains are and how well they have mixed, for a caption."""
    sizes, tune = posterior.data["posterior"].sizes, int(posterior.data.attrs["tune"])
    chains, draws = sizes["chain"], sizes["draw"]
    table = posterior.summary()
    effective = np.nan_to_num(np.minimum(table["ess_bulk"], table["ess_tail"]).to_numpy())
    few = effective < FEWEST_EFFECTIVE * chains
    if chains == 1:
        # R-hat needs two chains; the summary has none.
        worst = mixing(posterior.theta.to_numpy())["r_hat"]
        return (
            f"1 chain of {tune} + {draws} sweeps: worst R-hat of theta between its halves "
            f"{worst:.3f}; of {len(table)} quantities {few.sum()} have fewer than "
            f"{FEWEST_EFFECTIVE} effective draws."
        )
    r_hat = table["r_hat"].to_numpy()
    return (
        f"{chains} chains of {tune} + {draws} sweeps: worst R-hat {np.max(r_hat):.3f}; of "
        f"{len(table)} quantities {np.sum(few | (r_hat > WORST_R_HAT))} have an R-hat above "
        f"{WORST_R_HAT} or fewer than {FEWEST_EFFECTIVE} effective draws a chain."
    )
