"""Gun assaults in Washington DC, month by month: Figure 2 (section 4.3).

From the CSV file of the city's portal ("Crime Incidents in 2022") and, if given, an outline of the
city; without a file from a simulated city, which the figure then says. Prior, noise and basis are
the paper's, as in Figures 1 and S1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve

import ncbayes as ncb
from ncbayes_paper import density_figures
from ncbayes_paper.posteriors import convergence
from ncbayes_paper.study import Figure, Settings

# The paper's months: January, May, September and December.
SHOWN = (0, 4, 8, 11)
SEED = 1
STAND_IN = "simulated stand-in, not Washington"


def loaded(data: str | Path | None, outline: str | Path | None) -> ncb.datasets.Incidents:
    """The incidents of the file, within the outline, or those of the simulated city."""
    if data is None:
        return ncb.datasets.incidents(seed=SEED)
    found = ncb.datasets.load_crime(data)
    area = None if outline is None else json.loads(Path(outline).read_text(encoding="utf-8"))
    return ncb.datasets.Incidents(found.points, found.times, found.kinds, found.dropped, area)


def maps(
    posterior: ncb.Posterior,
    incidents: ncb.datasets.Incidents,
    size: int = 120,
    apart: bool = False,
):
    """The months SHOWN: the posterior mean above, kernels below, and one scale of colours.

    The points are on the maps or, with ``apart``, in a row of their own at the top.
    """
    density = ncb.densities.density(posterior, size=size, draws=1000)["mean"]
    density = density.isel(time=[k for k in SHOWN if k < density.sizes["time"]])
    y, x = (density[name].to_numpy() for name in density.dims[1:])
    labels = [str(label) for label in density["label"].to_numpy()]
    month = incidents.times.dt.to_period("M").astype(str).to_numpy()
    kde = ncb.baselines.kde_over_time(
        incidents.points, incidents.times, domain=incidents.outline, every="month"
    )
    rival = ncb.densities.density(kde, times=labels, size=size)["mean"]
    top = float(max(density.max(), rival.max()))
    rows = [("NC-Bayes", density.to_numpy()), ("KDE month by month", rival.to_numpy())]
    if apart:
        rows.insert(0, ("observed", [None] * len(labels)))
    turned = 1 / np.cos(np.radians(y.mean()))
    tall = turned * np.ptp(y) / np.ptp(x)
    figure, axes = plt.subplots(
        len(rows), len(labels), figsize=(2.2 * len(labels) + 1, 2.1 * len(rows) * tall + 0.4),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for row, (words, values) in enumerate(rows):
        axes[row, 0].set_ylabel(words, fontsize="large")
        for axis, label, here in zip(axes[row], labels, values, strict=True):
            own = incidents.points[month == label].to_numpy()
            if here is not None:
                image = axis.pcolormesh(
                    x, y, np.nan_to_num(here), cmap="viridis", vmin=0, vmax=top, rasterized=True
                )
                _draw_outline(axis, incidents.outline, image)
            else:
                _draw_outline(axis, incidents.outline)
            if here is None:
                axis.scatter(*own.T, s=7, color="black", linewidth=0, alpha=0.7)
            elif not apart:
                axis.scatter(
                    *own.T, s=4, color="white", edgecolor="black", linewidth=0.3, alpha=0.8
                )
            axis.set(aspect=turned, xticks=[], yticks=[])
            axis.spines[:].set_visible(incidents.outline is None)
            if row == 0:
                axis.set_title(f"{pd.Period(label).strftime('%b %Y')} (n = {len(own)})")
    figure.colorbar(image, ax=axes, label="density per km²", aspect=30, pad=0.02)
    return figure


def drawn(settings: Settings) -> tuple[Any, str]:
    """The figure and its caption."""
    file = settings.files.get(".csv")
    incidents = loaded(file, settings.outline)
    posterior = density_figures.fitted(
        settings, "incidents", incidents.points, incidents.times, domain=incidents.outline,
        every="month",
    )  # fmt: skip
    figure = maps(posterior, incidents, density_figures.SIZE, apart=True)
    counts = incidents.times.dt.to_period("M").value_counts()
    where = "in Washington DC"
    area = "zero outside the city's outline" if incidents.outline else "in a box around them"
    if file is None:
        figure.suptitle(STAND_IN)
        where = f"of a made-up city ({STAND_IN})"
    caption = (
        f"Gun assaults {where}, {len(incidents.points)} in all, {counts.min()} to {counts.max()} "
        f"a month. From top to bottom: the points, the posterior mean density of NC-Bayes and "
        f"kernel density estimates month by month, per km² and {area}. {convergence(posterior)} "
        "The paper has 2000 + 3000."
    )
    return figure, caption


def _draw_outline(axis: Any, outline: Any, *inside: Any) -> None:
    """The border of the area, if one is known, at which the others are cut off."""
    if outline is None:
        return
    rings = ncb.spaces.Region.of(outline).rings
    curve = Curve.make_compound_path(*[Curve(np.vstack([ring, ring[:1]])) for ring in rings])
    axis.add_patch(PathPatch(curve, facecolor="none", edgecolor="0.2", linewidth=0.8))
    for each in inside:
        each.set_clip_path(curve, axis.transData)


ITEMS = {
    "figure2": Figure("figure2", "Gun assaults in Washington DC: points, NC-Bayes, kernels", drawn)
}
