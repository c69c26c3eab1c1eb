"""Pictures of densities over space and time."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

from ncbayes import densities
from ncbayes.base import FloatArray, InputError, shown
from ncbayes.fields import Ground
from ncbayes.plots.panels import (
    EMPTY,
    columns_of,
    draw_outline,
    draw_panels,
    draw_points,
    nearest,
    panels,
    used,
)
from ncbayes.plots.style import BLUE, short
from ncbayes.posterior import Posterior
from ncbayes.readout import Density, check_draws, ground, labels_of, points_of
from ncbayes.sites import user_coordinates
from ncbayes.spaces import is_numeric
from ncbayes.stamps import chosen

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More panels than this can't be read side by side.
MOST_PANELS = 12
# Below this share of the highest mean, the ratio of sd and mean says nothing.
TINY = 0.01
# An increase is certain with this probability, a decrease with one minus this.
SURE = 0.95
# Dark enough to be seen on white, and light enough to see the colours behind.
HATCH = "0.45"


def density_maps(
    posterior: Density,
    times: Sequence[Any] | None = None,
    points: bool = True,
    *,
    size: int = 100,
    draws: int = 500,
) -> Figure:
    """Maps of the posterior mean density, or of kernels, a panel a time, on one scale of colours.

    ``times``: at most 12; None: all of them, or 12 evenly chosen. ``points``: the data on top.
    """
    field, labels = _asked("plots.density_maps", posterior, times, 2)
    data = densities.density(posterior, times=labels, size=size, draws=draws)
    figure, axes = panels(field, len(labels))
    draw_panels(axes, data["mean"], field, "viridis", _words(_kind(data), data))
    observed = _observed(posterior, field)
    for axis, label in zip(axes, data["label"].to_numpy(), strict=True):
        own = observed.get(str(label), np.zeros((0, 2)))
        axis.set_title(f"{short(label)} (n = {len(own)})", fontsize="medium")
        if points:
            draw_points(axis, own)
    return figure


def uncertainty_maps(
    posterior: Posterior,
    times: Sequence[Any] | None = None,
    relative: bool = False,
    *,
    size: int = 100,
    draws: int = 500,
) -> Figure:
    """Maps of the posterior standard deviation of the density, with one scale of colours.

    ``relative``: divided by the mean, where that exceeds 1 % of its highest value.
    """
    check_draws("plots.uncertainty_maps", posterior, "use plots.density_maps")
    field, labels = _asked("plots.uncertainty_maps", posterior, times, 2)
    data = densities.density(posterior, times=labels, size=size, draws=draws)
    figure, axes = panels(field, len(labels))
    values, words = data["sd"], _words("posterior sd of the density", data)
    if relative:
        enough = data["mean"] > TINY * data["mean"].max()
        values, words = data["sd"] / data["mean"], "posterior sd / mean of the density"
        values = values.where(enough | data["mean"].isnull(), -1.0)
        handle = Patch(facecolor=EMPTY, edgecolor="0.4",
                       label=f"mean below {100 * TINY:g} % of its highest value")  # fmt: skip
        figure.legend(handles=[handle], loc="outside upper right", frameon=False, fontsize="small")
    draw_panels(axes, values, field, "cividis", words)
    for axis, label in zip(axes, data["label"].to_numpy(), strict=True):
        axis.set_title(short(label), fontsize="medium")
    return figure


def change_map(
    posterior: Posterior, start: Any, end: Any, *, size: int = 100, draws: int = 1000
) -> Figure:
    """A map of the density at ``end`` minus that at ``start``.

    Hatched where the posterior probability of an increase is between 5 % and 95 %.
    """
    check_draws("plots.change_map", posterior, "use densities.change")
    field, _ = _asked("plots.change_map", posterior, None, 2)
    data = densities.change(posterior, start, end, size=size, draws=draws)
    figure, (axis,) = panels(field, 1)
    mean = data["mean"].expand_dims("time")
    reach = float(np.abs(mean).max())
    words = _words("change of the density", data)
    # Purple for less and orange for more, which the colour-blind tell apart.
    draw_panels([axis], mean, field, "PuOr_r", words, (-reach, reach))
    _draw_hatching(axis, data["probability"], field)
    axis.set_title(f"{short(data.attrs['start'])} to {short(data.attrs['end'])}", fontsize="medium")
    label = f"probability of an increase between {100 - 100 * SURE:.0f} % and {100 * SURE:.0f} %"
    handle = Patch(facecolor="white", edgecolor=HATCH, hatch="///", label=label)
    figure.legend(handles=[handle], loc="outside upper center", frameon=False, fontsize="small")
    return figure


def density_bands(
    posterior: Density,
    times: Sequence[Any] | None = None,
    points: bool = True,
    *,
    interval: str = "quantile",
    level: float = 0.9,
    size: int = 200,
    draws: int = 1000,
) -> Figure:
    """Densities of one dimension, a panel a time: the mean and a band, with the data as ticks.

    Kernels have no band.
    """
    field, labels = _asked("plots.density_bands", posterior, times, 1)
    data = densities.density(
        posterior, times=labels, interval=interval, level=level, size=size, draws=draws
    )
    columns = columns_of(len(labels))
    rows = math.ceil(len(labels) / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(max(2.6 * columns, 4.5), 2.2 * rows + 0.8), sharex=True,
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    axes = used(grid, len(labels))
    observed, x = _observed(posterior, field), data[data["mean"].dims[-1]].to_numpy()
    for k, axis in enumerate(axes):
        here, label = data.isel(time=k), str(data["label"].to_numpy()[k])
        handles = _draw_curve(axis, x, here)
        own = observed.get(label, np.zeros((0, 1)))
        axis.set_title(f"{short(label)} (n = {len(own)})", fontsize="medium")
        axis.margins(x=0)
        if points:
            axis.plot(own[:, 0], np.full(len(own), 0.02), "|", color="0.2", markersize=6,
                      markeredgewidth=0.6, alpha=0.6,
                      transform=axis.get_xaxis_transform())  # fmt: skip
    figure.supxlabel(short(field.axes[0]), fontsize="medium")
    figure.supylabel(_words("density", data), fontsize="medium")
    names = ["posterior mean", f"{100 * level:g} % interval ({interval}), point by point"]
    if len(handles) == 1:
        names = [f"{_kind(data)} (no interval)"]
    figure.legend(handles, names, loc="outside upper center", frameon=False,
                  fontsize="small", ncols=2 if columns > 1 else 1)  # fmt: skip
    return figure


def animation(
    posterior: Density,
    path: str | os.PathLike[str],
    points: bool = True,
    *,
    seconds: float = 0.8,
    size: int = 80,
    draws: int = 500,
) -> None:
    """Write the maps of all times one after the other, as ``.gif`` or as a page ``.html``.

    ``seconds``: how long each time is shown. The page needs no other files.
    """
    from matplotlib.animation import FuncAnimation, PillowWriter

    field = _checked_field("plots.animation", posterior, 2)
    file = _checked_file(path)
    if not (is_numeric(seconds) and np.ndim(seconds) == 0 and 0 < seconds < math.inf):
        raise InputError(f"seconds must be a positive number, got {shown(seconds)}")
    data = densities.density(posterior, size=size, draws=draws)
    figure, (axis,) = panels(field, 1)
    limits = (0.0, float(data["mean"].max()))
    (image,) = draw_panels(
        [axis], data["mean"][:1], field, "viridis", _words(_kind(data), data), limits
    )
    observed = _observed(posterior, field)
    labels = [str(label) for label in data["label"].to_numpy()]
    drawn = draw_points(axis, max([np.zeros((0, 2)), *observed.values()], key=len))

    def show(frame: int) -> list[Any]:
        own = observed.get(labels[frame], np.zeros((0, 2)))
        image.set_data(nearest(data["mean"][frame].to_numpy()))
        drawn.set_offsets(own if points else np.zeros((0, 2)))
        axis.set_title(f"{short(labels[frame])} (n = {len(own)})", fontsize="medium")
        return [image, drawn]

    rate: Any = 1 / seconds  # fractions are fine, whatever the annotations say
    film = FuncAnimation(figure, show, frames=len(labels), interval=1000 * float(seconds))
    if file.suffix == ".gif":
        film.save(file, writer=PillowWriter(fps=rate), dpi=110)
    else:
        # Pages are as large as they have to be: about 0.1 MB a time.
        with mpl.rc_context({"animation.embed_limit": 500}):
            file.write_text(film.to_jshtml(fps=rate), encoding="utf-8")
    plt.close(figure)


def _checked_field(asker: str, posterior: Density, dimension: int) -> Ground:
    field = ground(asker, posterior)
    count, others = len(field.axes), {1: "plots.density_bands", 2: "plots.density_maps"}
    if count != dimension:
        remedy = f"use {others[count]}" if count in others else "use ncbayes.densities.density"
        words = "dimension" if dimension == 1 else "dimensions"
        raise InputError(
            f"{asker} shows densities of {dimension} {words}, this one has {count}; {remedy}"
        )
    return field


def _asked(
    asker: str, posterior: Density, times: Sequence[Any] | None, dimension: int
) -> tuple[Ground, list[str]]:
    """The field, and the labels of the times to show: positions might be taken for times."""
    field = _checked_field(asker, posterior, dimension)
    labels = labels_of(posterior)
    if times is None:
        count = min(len(labels), MOST_PANELS)
        groups = np.linspace(0, len(labels) - 1, count).round().astype(int).tolist()
    else:
        groups = chosen(times, field.times, labels, field.style)
    if len(groups) > MOST_PANELS:
        raise InputError(f"{asker} shows at most {MOST_PANELS} times, got {len(groups)}")
    return field, [labels[group] for group in groups]


def _checked_file(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the name of a file, got {shown(path)}")
    file = Path(path)
    if file.suffix not in (".gif", ".html"):
        raise InputError(f"path must end in .gif or .html, got {shown(str(file))}")
    if not file.parent.is_dir():
        raise InputError(f"can't write to {str(file)!r}: there is no such folder")
    return file


def _kind(data: xr.Dataset) -> str:
    """What the maps are called: a posterior's are densities, kernels' say what they are."""
    return "density" if "sd" in data else str(data["mean"].attrs["long_name"])


def _words(what: str, data: xr.Dataset) -> str:
    return f"{what} {data.attrs['units'].replace('square kilometer', 'km²')}"


def _draw_hatching(axis: Axes, probability: xr.DataArray, field: Ground) -> None:
    x, y = (probability[name].to_numpy() for name in probability.dims[::-1])
    hatched = axis.contourf(
        x, y, nearest(probability.to_numpy()), levels=[1 - SURE, SURE], colors="none",
        hatches=["//"],
    )  # fmt: skip
    hatched.set(edgecolor=HATCH, linewidth=0)
    draw_outline(axis, field, hatched)


def _draw_curve(axis: Axes, x: FloatArray, here: xr.Dataset) -> list[Any]:
    """The mean as a line and the interval, where there is one, as a band."""
    drawn: list[Any] = axis.plot(x, here["mean"], color=BLUE)
    if "low" in here:
        band = axis.fill_between(x, here["low"], here["high"], color=BLUE, alpha=0.25, linewidth=0)
        drawn.append(band)
    return drawn


def _observed(posterior: Density, field: Ground) -> dict[str, FloatArray]:
    """The data by label in the user's coordinates, where the posterior holds them."""
    return {label: user_coordinates(field, own) for label, own in points_of(posterior).items()}
