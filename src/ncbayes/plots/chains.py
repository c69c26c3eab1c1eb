"""Pictures of chains."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from ncbayes.diagnostics import quantities
from ncbayes.plots.style import check_most, check_posterior, cycle
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def trace(posterior: Posterior, most: int = 8) -> Figure:
    """The first ``most`` quantities: draws over time on the left, their distribution on the right.

    One colour a chain. Chains that have mixed look alike on both sides.
    """
    check_posterior("plots.trace", posterior)
    check_most(most)
    chosen = list(islice(quantities(posterior.data), most))
    figure, axes = plt.subplots(
        len(chosen),
        2,
        figsize=(9, 1.7 * len(chosen) + 0.5),
        squeeze=False,
        layout="constrained",
        width_ratios=(2, 1),
    )
    for (left, right), (name, values) in zip(axes, chosen, strict=True):
        bins = np.histogram_bin_edges(values, 40).tolist()
        for chain, (draws, colour) in enumerate(zip(values, cycle(len(values)), strict=True)):
            left.plot(draws, color=colour, linewidth=0.5, label=f"chain {chain}")
            right.hist(draws, bins, density=True, histtype="step", color=colour)
        left.set_ylabel(name)
        left.margins(x=0)
        right.set_yticks([])
        right.set_xlabel(name)
    axes[-1, 0].set_xlabel("draw")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)
    return figure
