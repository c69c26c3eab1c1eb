"""What is compared: named functions of rows, and the bins that some of them count in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray

# Shares of simulated numbers below the ends of the bins of a margin: the outer ones see tails.
SHARES = (0.005, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 0.995)
# Bins of a count (ones in a row, shared partners, steps from node to node); what is more is one.
LARGEST_COUNT = 12


@dataclass(frozen=True)
class Look:
    """Statistics of one kind: ``values`` of points (n, d) are (n, len(labels)).

    ``says`` is what it means, in words, if they differ between data and model. ``axis`` names
    numbers whose histogram shows the difference in label k, and computes them; None: the
    statistic itself.
    """

    name: str
    labels: tuple[str, ...]
    values: Callable[[FloatArray], FloatArray]
    says: str
    axis: Callable[[int], tuple[str, Callable[[FloatArray], FloatArray]]] | None = None

    def shown(self, k: int) -> tuple[str, Callable[[FloatArray], FloatArray]]:
        """The name and function of the numbers to be pictured for label k."""
        if self.axis is not None:
            return self.axis(k)
        return self.labels[k], lambda x: self.values(x)[:, k]


@dataclass(frozen=True)
class Bins:
    """Intervals of whole numbers: those up to each end, and what is beyond the last."""

    ends: FloatArray

    @property
    def labels(self) -> tuple[str, ...]:
        lows = np.append(-np.inf, self.ends[:-1])
        named = [
            f"{high:g}" if high - low == 1 else f"up to {high:g}"
            for low, high in zip(lows, self.ends, strict=True)
        ]
        return (*named, f"above {self.ends[-1]:g}")

    def shares(self, values: FloatArray) -> FloatArray:
        """One where a value is in the bin, (*values.shape, bin)."""
        which = np.searchsorted(self.ends, values, side="left")
        return np.asarray(which[..., None] == np.arange(len(self.ends) + 1), dtype=float)


def bins_of(values: FloatArray) -> Bins:
    """One bin a value where there are few, else between quantiles of the values."""
    kinds = np.unique(values)
    if len(kinds) > LARGEST_COUNT:
        kinds = np.unique(np.quantile(values, SHARES, method="inverted_cdf"))
    elif len(kinds) > 1:
        kinds = kinds[:-1]  # what is beyond the last end is a bin
    return Bins(kinds.astype(float))
