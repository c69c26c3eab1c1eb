"""Densities on a grid as files for maps: GeoJSON and GeoTIFF."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces import is_numeric, is_whole

if TYPE_CHECKING:
    import xarray as xr

# Decimals of a degree in files: a centimeter.
DECIMALS = 7


def to_geojson(
    data: xr.Dataset | xr.DataArray,
    path: str | os.PathLike[str],
    *,
    variable: str = "mean",
    levels: Any = 8,
) -> None:
    """Write a grid in degrees as GeoJSON: filled contours, or its cells.

    ``levels``: so many equal steps from the lowest value (0 for a density) to the highest, or
    rising numbers; each band is a feature with ``time``, ``low`` and ``high``. None: every cell is
    a feature with ``time`` and the values of all variables.
    """
    grid = _grid(data, variable, "densities.to_geojson")
    if not _is_degrees(grid):
        raise InputError(
            "densities.to_geojson needs longitude and latitude, as GeoJSON holds no others, got "
            f"the axes {grid.dims[-1]!r} and {grid.dims[-2]!r}; fit with "
            'coordinates="degrees", or use to_geotiff or .to_netcdf'
        )
    if levels is None:
        features = list(_cells(data, grid))
    else:
        features = list(_bands(grid, _levels(levels, grid)))
    text = json.dumps({"type": "FeatureCollection", "features": features})
    _checked_path(path).write_text(text, encoding="utf-8")


def to_geotiff(
    data: xr.Dataset | xr.DataArray, path: str | os.PathLike[str], *, variable: str = "mean"
) -> None:
    """Write a grid as GeoTIFF, a band a time; degrees as EPSG:4326, others without a system."""
    grid = _grid(data, variable, "densities.to_geotiff")
    try:
        rasterio = importlib.import_module("rasterio")
    except ImportError as missing:
        raise InputError(
            "densities.to_geotiff needs the package rasterio, which is not installed: "
            "pip install ncbayes[maps]"
        ) from missing
    x, y = (grid[grid.dims[k]].to_numpy() for k in (-1, -2))
    side, height = x[1] - x[0], y[1] - y[0]
    corner = x[0] - side / 2, y[-1] + height / 2
    values = grid.to_numpy()[:, ::-1]
    options = {
        "driver": "GTiff", "count": len(values), "dtype": "float64", "nodata": np.nan,
        "height": len(y), "width": len(x), "compress": "deflate",
        "crs": "EPSG:4326" if _is_degrees(grid) else None,
        "transform": rasterio.Affine(side, 0, corner[0], 0, -height, corner[1]),
    }  # fmt: skip
    with rasterio.open(_checked_path(path), "w", **options) as file:
        file.write(values)
        file.update_tags(variable=str(grid.name), units=str(grid.attrs.get("units", "")))
        for band, label in enumerate(_labels(grid), start=1):
            file.set_band_description(band, label)


def _grid(data: Any, variable: str, asker: str) -> xr.DataArray:
    """The variable on its grid, (time, y, x)."""
    import xarray as xr

    if isinstance(data, xr.Dataset):
        if variable not in data:
            raise InputError(
                f"variable must be one of {', '.join(map(repr, map(str, data.data_vars)))}, got "
                f"{shown(variable)}"
            )
        data = data[variable]
    dims = [dim for dim in getattr(data, "dims", ()) if dim != "time"]
    flat = len(dims) == 2 and all(dim in data.coords and data.sizes[dim] > 1 for dim in dims)
    if not isinstance(data, xr.DataArray) or not flat or "sample" in dims:
        raise InputError(
            f"{asker} needs what a function of ncbayes.densities returns for a grid in two "
            f"dimensions, without at=, got {_kind(data)}"
        )
    return data if "time" in data.dims else data.expand_dims("time")


def _kind(data: Any) -> str:
    if hasattr(data, "dims"):
        return f"the dimensions {tuple(map(str, data.dims))}"
    return shown(data)


def _is_degrees(grid: xr.DataArray) -> bool:
    found = [grid[grid.dims[k]].attrs.get("units") for k in (-1, -2)]
    return found == ["degrees_east", "degrees_north"]


def _labels(grid: xr.DataArray) -> list[str]:
    for name in ("label", "time"):
        if name in grid.coords:
            return [str(label) for label in np.atleast_1d(grid[name].to_numpy())]
    return [str(grid.attrs.get("long_name", grid.name))]


def _levels(levels: Any, grid: xr.DataArray) -> FloatArray:
    low, high = float(grid.min()), float(grid.max())
    if is_whole(levels) and levels >= 1:
        low = min(low, 0.0) if grid.name in ("mean", "low", "sd", "high") else low
        return np.linspace(low, high, levels + 1)
    found = np.asarray(levels, dtype=float) if is_numeric(levels) else np.zeros(0)
    if found.ndim != 1 or len(found) < 2 or not (np.diff(found) > 0).all():
        raise InputError(
            "levels must be a whole number of bands, at least 2 rising numbers, or None for cells, "
            f"got {shown(levels)}"
        )
    return found


def _bands(grid: xr.DataArray, levels: FloatArray) -> Iterator[dict[str, Any]]:
    from contourpy import FillType, contour_generator

    x, y = (grid[grid.dims[k]].to_numpy() for k in (-1, -2))
    for label, values in zip(_labels(grid), grid.to_numpy(), strict=True):
        masked = np.ma.masked_invalid(values)
        lines = contour_generator(x, y, masked, fill_type=FillType.OuterOffset)
        for low, high in pairwise(levels):
            # Contours leave out their upper end, which the highest value is.
            top = np.nextafter(high, np.inf) if high == levels[-1] else high
            found: Any = lines.filled(low, top)
            polygons = [
                [_closed(part[i:j]) for i, j in pairwise(cut)]
                for part, cut in zip(*found, strict=True)
            ]
            if polygons:
                facts = {"time": label, "low": float(low), "high": float(high)}
                yield _feature("MultiPolygon", polygons, facts)


def _cells(data: Any, grid: xr.DataArray) -> Iterator[dict[str, Any]]:
    whole = data.to_dataset(name=grid.name or "value") if hasattr(data, "to_dataset") else data
    tables = {
        str(name): each.transpose(..., *grid.dims[1:]).to_numpy().reshape(grid.shape)
        for name, each in whole.data_vars.items()
    }
    x, y = (grid[grid.dims[k]].to_numpy() for k in (-1, -2))
    side, height = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    for t, label in enumerate(_labels(grid)):
        for i, j in np.argwhere(np.isfinite(grid.to_numpy()[t])):
            west, east, south, north = x[j] - side, x[j] + side, y[i] - height, y[i] + height
            corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
            facts = {name: float(table[t, i, j]) for name, table in tables.items()}
            yield _feature("Polygon", [_closed(np.array(corners))], {"time": label, **facts})


def _closed(ring: FloatArray) -> list[list[float]]:
    rounded: list[list[float]] = np.round(ring, DECIMALS).tolist()
    return rounded


def _feature(kind: str, coordinates: Any, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "Feature",
        "properties": facts,
        "geometry": {"type": kind, "coordinates": coordinates},
    }


def _checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the name of a file, got {shown(path)}")
    found = Path(path)
    if not found.parent.is_dir() or found.is_dir():
        raise InputError(
            f"can't write to {str(found)!r}: it must be a file in a folder that exists"
        )
    return found
