"""Have the chains mixed? Numbers, and what small pictures of the chains need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes import diagnostics
from ncbayes.diagnostics import FEWEST_EFFECTIVE, WORST_R_HAT
from ncbayes.webreport.packing import plain

if TYPE_CHECKING:
    import xarray as xr

# R-hat and effective draws take milliseconds a quantity; of more than this many quantities those
# are measured whose chains look worst.
MOST_MEASURED = 1000
# Rows of the table, pictures below it, points of a trace, bars of a histogram of ranks.
ROWS, PICTURES, TRACE, BARS = 20, 6, 150, 16


@dataclass(frozen=True, eq=False)
class Quantity:
    """A scalar of the posterior, its draws (chain, draw), effective draws and R-hat."""

    name: str
    values: NDArray[Any]
    bulk: float
    tail: float
    r_hat: float

    @property
    def effective(self) -> float:
        """``diagnostics.effective_draws``."""
        return diagnostics.effective_draws(self.bulk, self.tail)


def quantities(data: xr.Dataset) -> Iterator[tuple[str, NDArray[Any]]]:
    """``diagnostics.quantities`` of these draws."""
    import xarray as xr

    return diagnostics.quantities(xr.DataTree.from_dict({"posterior": data}))


def measured(tree: xr.DataTree) -> tuple[list[Quantity], int]:
    """The quantities with effective draws and R-hat, and how many there are in all."""
    every = list(quantities(tree["posterior"].to_dataset()))
    sets = diagnostics.noise_sets(tree)
    chosen = every
    if len(every) > MOST_MEASURED:
        chosen = [every[k] for k in _suspects([values for _, values in every])]
    found = [
        Quantity(name, values, *diagnostics.convergence(values, sets)) for name, values in chosen
    ]
    return found, len(every)


def _suspects(draws: list[NDArray[Any]]) -> list[int]:
    """Half of them those whose half chains differ most, half those whose draws hang together."""
    apart = np.array([_apart(values) for values in draws])
    together = np.array([_together(values) for values in draws])
    count = MOST_MEASURED // 2
    first = np.argsort(-apart, kind="stable")[:count]
    return sorted({*first.tolist(), *np.argsort(-together, kind="stable")[:count].tolist()})


def _apart(values: NDArray[Any]) -> float:
    """The variance of the means of half chains by the mean of their variances."""
    half = max(1, values.shape[1] // 2)
    halves = np.concatenate([values[:, :half], values[:, half : 2 * half]])
    within = halves.var(axis=1).mean()
    return float(halves.mean(axis=1).var() / within) if within > 0 else 0.0


def _together(values: NDArray[Any]) -> float:
    """The correlation of one draw with the next."""
    centred = values - values.mean()
    square = np.mean(centred**2)
    return float(np.mean(centred[:, 1:] * centred[:, :-1]) / square) if square > 0 else 0.0


def pictured(tree: xr.DataTree, found: list[Quantity], total: int) -> dict[str, Any]:
    """What the page shows of the chains: a table of the worst, traces and ranks."""
    sets = diagnostics.noise_sets(tree)
    order = sorted(found, key=lambda each: -np.nan_to_num(each.r_hat))
    fewest = sorted(found, key=lambda each: each.effective)
    rows = _merged(order, fewest, ROWS)
    return {
        "measured": len(found),
        "total": total,
        "limits": {"r_hat": WORST_R_HAT, "effective": FEWEST_EFFECTIVE},
        "chains": [str(label) for label in tree["posterior"]["chain"].to_numpy()],
        "rows": [_row(each, sets) for each in rows],
        "pictures": [_picture(each) for each in _merged(order, fewest, PICTURES)],
    }


def _merged(first: list[Quantity], second: list[Quantity], count: int) -> list[Quantity]:
    """In turn from both, each once."""
    pairs = [each for pair in zip(first, second, strict=True) for each in pair]
    return list({each.name: each for each in pairs}.values())[:count]


def _row(each: Quantity, sets: NDArray[Any]) -> dict[str, Any]:
    error = np.nan
    if each.bulk > 0:
        error = diagnostics.monte_carlo_error(each.values, sets, each.bulk)
    return {
        "name": each.name,
        "mean": plain(each.values.mean()),
        "mcse": plain(error),
        "bulk": plain(each.bulk),
        "tail": plain(each.tail),
        "r_hat": plain(each.r_hat),
    }


def _picture(each: Quantity) -> dict[str, Any]:
    chains, draws = each.values.shape
    kept = np.unique(np.linspace(0, draws - 1, min(draws, TRACE)).round().astype(int))
    ranks = each.values.argsort(axis=None, kind="stable").argsort(kind="stable")
    bars = min(BARS, draws)
    which = (ranks * bars // (chains * draws)).reshape(chains, draws)
    return {
        "name": each.name,
        "r_hat": plain(each.r_hat, 4),
        "effective": plain(each.effective, 4),
        "at": kept.tolist(),
        "traces": [[plain(value, 4) for value in own[kept]] for own in each.values],
        "ranks": [np.bincount(own, minlength=bars).tolist() for own in which],
    }
