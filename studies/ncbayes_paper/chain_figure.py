"""The detected edges of a chain of 12 angles: Figure 3 (section 5.3).

The first replication of Tables 2 and 3 with five noise points for each data point.
"""

from __future__ import annotations

from typing import Any

import ncbayes as ncb
from ncbayes_paper import torus_tables
from ncbayes_paper.posteriors import convergence, kept
from ncbayes_paper.study import Figure, Settings

SWEEPS = (1000, 2000)
METHOD, REPLICATION = "nu=5", 1


def drawn(settings: Settings) -> tuple[Any, str]:
    """The figure and its caption."""
    simulated = torus_tables.simulated_data("chain", REPLICATION)
    sweeps = settings.sweeps or SWEEPS
    about = (simulated.data, torus_tables.methods(simulated.model.space)[METHOD], REPLICATION)
    posterior = kept(
        settings.folder, "chain", sweeps, about,
        lambda: torus_tables.fitted(simulated, METHOD, REPLICATION, *sweeps),
    )  # fmt: skip
    table = ncb.graphs.edges(posterior, threshold=torus_tables.THRESHOLD)
    found = {
        (one, other)
        for one, other, selected in zip(
            table["node1"], table["node2"], table["selected"], strict=True
        )
        if selected
    }
    right = len(found & set(simulated.edges))
    figure = ncb.plots.network(
        posterior, threshold=torus_tables.THRESHOLD, true_edges=simulated.edges
    )
    caption = (
        "Edges of a chain of 12 angles (x1 to x2, x2 to x3 and so on) that NC-Bayes detects from "
        f"200 rows: those with a posterior median above {torus_tables.THRESHOLD} in size. Widths "
        "are proportional to the sum of the sizes of the four posterior medians. Of the "
        f"{len(simulated.edges)} true edges {right} are found; false ones: {len(found) - right}. "
        f"{convergence(posterior)}"
    )
    return figure, caption


ITEMS = {"figure3": Figure("figure3", "Detected edges of a chain of 12 angles", drawn)}
