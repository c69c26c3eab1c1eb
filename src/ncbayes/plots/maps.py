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
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Curve
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from ncbayes import densities
from ncbayes.base import FloatArray, InputError, shown
from ncbayes.fields import Field
from ncbayes.plots.style import BLUE, check_posterior, short
from ncbayes.posterior import Posterior
from ncbayes.readout import fitted_field
from ncbayes.sites import user_coordinates
from ncbayes.spaces import Region, is_numeric
from ncbayes.stamps import chosen

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# More panels than this can't be read side by side.
MOST_PANELS = 12
# Below this share of the highest mean, the ratio of sd and mean says nothing.
TINY = 0.01
# An increase is certain with this probability, a decrease with one minus this.
SURE = 0.95
# Maps longer than wide by more than this are stretched to fill their panel.
LONGEST = 4.0
# Around a region, as a share of its sides.
ROOM = 0.02
# Where there is nothing to show.
EMPTY = "0.85"
# Dark enough to be seen on white, and light enough to see the colours behind.
HATCH = "0.45"


def density_maps(
    posterior: Posterior,
    times: Sequence[Any] | None = None,
    points: bool = True,
    *,
    size: int = 100,
    draws: int = 500,
) -> Figure:
    """Maps of the posterior mean density, a panel a time, with one scale of colours for all.

    ``times``: at most 12; None: all of them, or 12 evenly chosen. ``points``: the data on top.
    """
    field, labels = _asked("plots.density_maps", posterior, times, 2)
    data = densities.density(posterior, times=labels, size=size, draws=draws)
    figure, axes = _panels(field, len(labels))
    _draw_panels(axes, data["mean"], field, "viridis", _words("density", data))
    observed = _observed(posterior, field)
    for axis, label in zip(axes, data["label"].to_numpy(), strict=True):
        own = observed.get(str(label), np.zeros((0, 2)))
        axis.set_title(f"{short(label)} (n = {len(own)})", fontsize="medium")
        if points:
            _draw_points(axis, own)
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
    field, labels = _asked("plots.uncertainty_maps", posterior, times, 2)
    data = densities.density(posterior, times=labels, size=size, draws=draws)
    figure, axes = _panels(field, len(labels))
    values, words = data["sd"], _words("posterior sd of the density", data)
    if relative:
        enough = data["mean"] > TINY * data["mean"].max()
        values, words = data["sd"] / data["mean"], "posterior sd / mean of the density"
        values = values.where(enough | data["mean"].isnull(), -1.0)
        handle = Patch(facecolor=EMPTY, edgecolor="0.4",
                       label=f"mean below {100 * TINY:g} % of its highest value")  # fmt: skip
        figure.legend(handles=[handle], loc="outside upper right", frameon=False, fontsize="small")
    _draw_panels(axes, values, field, "cividis", words)
    for axis, label in zip(axes, data["label"].to_numpy(), strict=True):
        axis.set_title(short(label), fontsize="medium")
    return figure


def change_map(
    posterior: Posterior, start: Any, end: Any, *, size: int = 100, draws: int = 1000
) -> Figure:
    """A map of the density at ``end`` minus that at ``start``.

    Hatched where the posterior probability of an increase is between 5 % and 95 %.
    """
    field, _ = _asked("plots.change_map", posterior, None, 2)
    data = densities.change(posterior, start, end, size=size, draws=draws)
    figure, (axis,) = _panels(field, 1)
    mean = data["mean"].expand_dims("time")
    reach = float(np.abs(mean).max())
    words = _words("change of the density", data)
    # Purple for less and orange for more, which the colour-blind tell apart.
    _draw_panels([axis], mean, field, "PuOr_r", words, (-reach, reach))
    _draw_hatching(axis, data["probability"], field)
    axis.set_title(f"{short(data.attrs['start'])} to {short(data.attrs['end'])}", fontsize="medium")
    label = f"probability of an increase between {100 - 100 * SURE:.0f} % and {100 * SURE:.0f} %"
    handle = Patch(facecolor="white", edgecolor=HATCH, hatch="///", label=label)
    figure.legend(handles=[handle], loc="outside upper center", frameon=False, fontsize="small")
    return figure


def density_bands(
    posterior: Posterior,
    times: Sequence[Any] | None = None,
    points: bool = True,
    *,
    interval: str = "quantile",
    level: float = 0.9,
    size: int = 200,
    draws: int = 1000,
) -> Figure:
    """Densities of one dimension, a panel a time: the mean and a band, with the data as ticks."""
    field, labels = _asked("plots.density_bands", posterior, times, 1)
    data = densities.density(
        posterior, times=labels, interval=interval, level=level, size=size, draws=draws
    )
    columns = _columns(len(labels))
    rows = math.ceil(len(labels) / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(max(2.6 * columns, 4.5), 2.2 * rows + 0.8), sharex=True,
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    axes = _used(grid, len(labels))
    observed, x = _observed(posterior, field), data[data["mean"].dims[-1]].to_numpy()
    for k, axis in enumerate(axes):
        here, label = data.isel(time=k), str(data["label"].to_numpy()[k])
        band = axis.fill_between(x, here["low"], here["high"], color=BLUE, alpha=0.25, linewidth=0)
        (line,) = axis.plot(x, here["mean"], color=BLUE)
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
    figure.legend([line, band], names, loc="outside upper center", frameon=False,
                  fontsize="small", ncols=2 if columns > 1 else 1)  # fmt: skip
    return figure


def animation(
    posterior: Posterior,
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
    figure, (axis,) = _panels(field, 1)
    limits = (0.0, float(data["mean"].max()))
    (image,) = _draw_panels(
        [axis], data["mean"][:1], field, "viridis", _words("density", data), limits
    )
    observed = _observed(posterior, field)
    labels = [str(label) for label in data["label"].to_numpy()]
    drawn = _draw_points(axis, max([np.zeros((0, 2)), *observed.values()], key=len))

    def show(frame: int) -> list[Any]:
        own = observed.get(labels[frame], np.zeros((0, 2)))
        image.set_data(_nearest(data["mean"][frame].to_numpy()))
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


def _checked_field(asker: str, posterior: Posterior, dimension: int) -> Field:
    check_posterior(asker, posterior)
    field = fitted_field(asker, posterior)
    count, others = len(field.axes), {1: "plots.density_bands", 2: "plots.density_maps"}
    if count != dimension:
        remedy = f"use {others[count]}" if count in others else "use ncbayes.densities.density"
        words = "dimension" if dimension == 1 else "dimensions"
        raise InputError(
            f"{asker} shows densities of {dimension} {words}, this one has {count}; {remedy}"
        )
    return field


def _asked(
    asker: str, posterior: Posterior, times: Sequence[Any] | None, dimension: int
) -> tuple[Field, list[str]]:
    """The field, and the labels of the times to show: positions might be taken for times."""
    field = _checked_field(asker, posterior, dimension)
    labels = [str(label) for label in posterior.theta["group"].to_numpy()]
    if times is None:
        count = min(len(labels), MOST_PANELS)
        groups = np.linspace(0, len(labels) - 1, count).round().astype(int).tolist()
    else:
        groups = chosen(times, field.times, labels)
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


def _words(what: str, data: xr.Dataset) -> str:
    return f"{what} {data.attrs['units'].replace('square kilometer', 'km²')}"


def _columns(count: int) -> int:
    return {1: 1, 2: 2, 4: 2}.get(count, 3 if count <= 6 else 4)


def _aspect(field: Field) -> tuple[float, float]:
    """What a unit upward is drawn as by one to the right, and the height of a map by its width."""
    low, high = _bounds(field)
    turned = 1.0
    if field.projection is not None:
        turned = 1 / math.cos(math.radians((low[1] + high[1]) / 2))
    return turned, turned * float((high[1] - low[1]) / (high[0] - low[0]))


def _bounds(field: Field) -> FloatArray:
    space: Any = field.model.space
    return user_coordinates(field, np.array(space.bounds))


def _panels(field: Field, count: int) -> tuple[Figure, list[Axes]]:
    columns = _columns(count)
    rows = math.ceil(count / columns)
    _, tall = _aspect(field)
    tall = min(max(tall, 1 / LONGEST), LONGEST)
    width = {1: 4.6, 2: 3.6, 3: 2.9, 4: 2.4}[columns]
    width = min(width, width / math.sqrt(tall))
    figure, grid = plt.subplots(
        rows, columns, figsize=(width * columns + 1.9, (width * tall + 0.3) * rows + 0.8),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    axes = _used(grid, count)
    for name, axis_name in zip(field.axes, ("x", "y"), strict=True):
        put = figure.supxlabel if axis_name == "x" else figure.supylabel
        put(short(name), fontsize="medium")
    return figure, axes


def _used(grid: Any, count: int) -> list[Axes]:
    """The first panels; the others are taken out, and those above them get numbers below."""
    axes = list(grid.ravel())
    for axis in axes[count:]:
        axis.remove()
    for axis in axes[max(0, count - grid.shape[1]) : count]:
        axis.xaxis.set_tick_params(labelbottom=True)
    return axes[:count]


def _draw_panels(
    axes: Sequence[Axes],
    values: xr.DataArray,
    field: Field,
    colours: str,
    words: str,
    limits: tuple[float, float] | None = None,
) -> list[AxesImage]:
    """An image a panel, all on one scale, and the bar that shows it."""
    low, high = _bounds(field)
    turned, tall = _aspect(field)
    stretched = not 1 / LONGEST <= tall <= LONGEST
    cmap = mpl.colormaps[colours].with_extremes(under=EMPTY)
    least, most = limits or (0.0, float(values.max()))
    images = []
    for axis, here in zip(axes, values.to_numpy(), strict=True):
        image = axis.imshow(
            _nearest(here), cmap=cmap, vmin=least, vmax=most, origin="lower",
            extent=(low[0], high[0], low[1], high[1]), aspect="auto" if stretched else turned,
        )  # fmt: skip
        images.append(image)
        _draw_outline(axis, field, image)
        many = (4 if len(axes) <= 6 else 3, 5 if tall > 0.5 else 3)
        for each, bins in zip((axis.xaxis, axis.yaxis), many, strict=True):
            # Without the highest number, which would touch that of the next panel.
            each.set_major_locator(MaxNLocator(bins, prune="upper"))
            each.set_major_formatter(ScalarFormatter(useOffset=False))
        axis.tick_params(labelsize="small")
    bar = axes[0].figure.colorbar(images[0], ax=list(axes), label=words, aspect=30, pad=0.02)
    bar.ax.tick_params(labelsize="small")
    return images


def _nearest(values: FloatArray) -> FloatArray:
    """The table with the nearest number where there is none, to be cut at the outline."""
    from scipy.ndimage import distance_transform_edt

    lost = np.isnan(values)
    if not lost.any() or lost.all():
        return values
    rows, columns = distance_transform_edt(lost, return_distances=False, return_indices=True)
    return np.asarray(values[rows, columns])


def _draw_outline(axis: Axes, field: Field, *inside: Any) -> None:
    """The border of a region, at which the others are cut off."""
    if not isinstance(field.model.space, Region):
        return
    curve = _curve([user_coordinates(field, ring) for ring in field.model.space.rings])
    axis.add_patch(PathPatch(curve, facecolor="none", edgecolor="0.2", linewidth=0.8))
    for each in inside:
        each.set_clip_path(curve, axis.transData)
    # Room for the line and for points on it; margins would not reach beyond an image.
    low, high = curve.get_extents().get_points()
    (left, bottom), (right, top) = low - ROOM * (high - low), high + ROOM * (high - low)
    axis.set(xlim=(left, right), ylim=(bottom, top))


def _curve(rings: Sequence[FloatArray]) -> Curve:
    """One path of all rings: outer ones turn left and holes right, so that holes stay empty."""
    parts = []
    for k, ring in enumerate(rings):
        around = [Curve(other) for j, other in enumerate(rings) if j != k]
        hole = sum(bool(np.mean(each.contains_points(ring)) > 0.5) for each in around) % 2 == 1
        x, y = ring.T
        left = np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) > 0
        parts.append(Curve(np.vstack([ring, ring[:1]])[:: 1 if left != hole else -1], closed=True))
    return Curve.make_compound_path(*parts)


def _draw_points(axis: Axes, points: FloatArray) -> Any:
    many = len(points) > 400
    return axis.scatter(
        points[:, 0], points[:, 1], s=4 if many else 9, facecolor="white", edgecolor="black",
        linewidths=0.25 if many else 0.5, alpha=0.6 if many else 0.85, zorder=3,
    )  # fmt: skip


def _draw_hatching(axis: Axes, probability: xr.DataArray, field: Field) -> None:
    x, y = (probability[name].to_numpy() for name in probability.dims[::-1])
    hatched = axis.contourf(
        x, y, _nearest(probability.to_numpy()), levels=[1 - SURE, SURE], colors="none",
        hatches=["//"],
    )  # fmt: skip
    hatched.set(edgecolor=HATCH, linewidth=0)
    _draw_outline(axis, field, hatched)


def _observed(posterior: Posterior, field: Field) -> dict[str, FloatArray]:
    """The data by label in the user's coordinates, where the posterior holds them."""
    if "observed_data" not in posterior.data.children:
        return {}
    stored = posterior.data["observed_data"].to_dataset()
    places = user_coordinates(field, stored["points"].to_numpy())
    groups = stored["group"].to_numpy().astype(str)
    return {str(label): places[groups == label] for label in np.unique(groups)}
