"""Panels of maps: their sizes, images on one scale of colours, outlines and points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from ncbayes.base import FloatArray
from ncbayes.fields import Ground
from ncbayes.plots.style import short
from ncbayes.sites import user_coordinates
from ncbayes.spaces import Region

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Maps longer than wide by more than this are stretched to fill their panel.
LONGEST = 4.0
# Around a region, as a share of its sides.
ROOM = 0.02
# Where there is nothing to show.
EMPTY = "0.85"


def columns_of(count: int) -> int:
    """In how many columns so many panels stand."""
    return {1: 1, 2: 2, 4: 2}.get(count, 3 if count <= 6 else 4)


def _aspect(field: Ground) -> tuple[float, float]:
    """What a unit upward is drawn as by one to the right, and the height of a map by its width."""
    low, high = _bounds(field)
    turned = 1.0
    if field.projection is not None:
        turned = 1 / math.cos(math.radians((low[1] + high[1]) / 2))
    return turned, turned * float((high[1] - low[1]) / (high[0] - low[0]))


def _bounds(field: Ground) -> FloatArray:
    space: Any = field.space
    return user_coordinates(field, np.array(space.bounds))


def panels(field: Ground, count: int) -> tuple[Figure, list[Axes]]:
    """A figure of so many maps, of the shape of the field's space, with the names of its axes."""
    columns = columns_of(count)
    rows = math.ceil(count / columns)
    _, tall = _aspect(field)
    tall = min(max(tall, 1 / LONGEST), LONGEST)
    width = {1: 4.6, 2: 3.6, 3: 2.9, 4: 2.4}[columns]
    width = min(width, width / math.sqrt(tall))
    figure, grid = plt.subplots(
        rows, columns, figsize=(width * columns + 1.9, (width * tall + 0.3) * rows + 0.8),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    axes = used(grid, count)
    for name, axis_name in zip(field.axes, ("x", "y"), strict=True):
        put = figure.supxlabel if axis_name == "x" else figure.supylabel
        put(short(name), fontsize="medium")
    return figure, axes


def used(grid: Any, count: int) -> list[Axes]:
    """The first panels; the others are taken out, and those above them get numbers below."""
    axes = list(grid.ravel())
    for axis in axes[count:]:
        axis.remove()
    for axis in axes[max(0, count - grid.shape[1]) : count]:
        axis.xaxis.set_tick_params(labelbottom=True)
    return axes[:count]


def draw_panels(
    axes: Sequence[Axes],
    values: xr.DataArray,
    field: Ground,
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
            nearest(here), cmap=cmap, vmin=least, vmax=most, origin="lower",
            extent=(low[0], high[0], low[1], high[1]), aspect="auto" if stretched else turned,
        )  # fmt: skip
        images.append(image)
        draw_outline(axis, field, image)
        many = (4 if len(axes) <= 6 else 3, 5 if tall > 0.5 else 3)
        for each, bins in zip((axis.xaxis, axis.yaxis), many, strict=True):
            # Without the highest number, which would touch that of the next panel.
            each.set_major_locator(MaxNLocator(bins, prune="upper"))
            each.set_major_formatter(ScalarFormatter(useOffset=False))
        axis.tick_params(labelsize="small")
    bar = axes[0].figure.colorbar(images[0], ax=list(axes), label=words, aspect=30, pad=0.02)
    bar.ax.tick_params(labelsize="small")
    return images


def nearest(values: FloatArray) -> FloatArray:
    """The table with the nearest number where there is none, to be cut at the outline."""
    from scipy.ndimage import distance_transform_edt

    lost = np.isnan(values)
    if not lost.any() or lost.all():
        return values
    rows, columns = distance_transform_edt(lost, return_distances=False, return_indices=True)
    return np.asarray(values[rows, columns])


def draw_outline(axis: Axes, field: Ground, *inside: Any) -> None:
    """The border of a region, at which the others are cut off."""
    if not isinstance(field.space, Region):
        return
    curve = _curve([user_coordinates(field, ring) for ring in field.space.rings])
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


def draw_points(axis: Axes, points: FloatArray) -> Any:
    """Data on top of a map, smaller where there are many."""
    many = len(points) > 400
    return axis.scatter(
        points[:, 0], points[:, 1], s=4 if many else 9, facecolor="white", edgecolor="black",
        linewidths=0.25 if many else 0.5, alpha=0.6 if many else 0.85, zorder=3,
    )  # fmt: skip
