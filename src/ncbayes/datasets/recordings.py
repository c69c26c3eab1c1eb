"""Phase angles of several channels from MATLAB files, old (up to v7) and new (v7.3, HDF5)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.datasets.arguments import check_flag
from ncbayes.spaces import ANGLE_SLACK, TWO_PI, wrapped


@dataclass(frozen=True, eq=False)
class PhaseAngles:
    """Angles ``data`` (trial, channel) in [0, 2 pi), ``nodes``, one name for each channel, and

    ``regions``, which maps a node to the name that its channel has in the file.
    """

    data: FloatArray
    nodes: tuple[str, ...]
    regions: Mapping[str, str]


def load_phase_angles(
    path: str | os.PathLike[str],
    *,
    angles: str = "anglebeta",
    names: str | None = "subregions",
    degrees: bool = False,
) -> PhaseAngles:
    """Phase angles from a MATLAB file with two variables, as in the paper's section 5.4.

    ``angles`` is the variable with the angles, channels x trials, in radians unless
    ``degrees=True``. ``names`` is the variable with a name for each channel, as a cell array of
    text or a char matrix; None: the channels are ``channel.1``, ``channel.2`` ... Names are
    numbered, so that they differ: the first two channels in CA3 become ``CA3.1`` and ``CA3.2``.
    A matrix of trials x channels is recognized by the number of names, unless it is square.
    """
    check_flag("degrees", degrees)
    if not isinstance(path, str | os.PathLike) or not Path(path).is_file():
        raise InputError(f"there is no file {path}; pass the path of a MATLAB file")
    file = Path(path)
    variables = _variables(file)
    table = _table(file, angles, _variable(file, variables, angles, "angles"))
    if names is None:
        labels = ("channel",) * len(table)
    else:
        labels = _labels(file, names, _variable(file, variables, names, "names"))
    nodes = _numbered(labels)
    rows = _trials(file, angles, table, len(nodes), names)
    checked = _checked_angles(file, angles, rows, nodes, bool(degrees))
    return PhaseAngles(checked, nodes, dict(zip(nodes, labels, strict=True)))


def _variables(file: Path) -> dict[str, Any]:
    """What the file holds: arrays of numbers, or of text and cells as objects."""
    import h5py
    from scipy.io import loadmat

    try:
        if h5py.is_hdf5(file):
            with h5py.File(file) as content:
                return {k: _from_hdf5(content, content[k]) for k in content if k[0] != "#"}
        held = loadmat(file, appendmat=False)
    # A file that is something else, or cut short, makes the readers fail in a dozen ways.
    except Exception as wrong:
        raise InputError(
            f"{file.name} cannot be read as a MATLAB file ({wrong}); if it is one, copy it or save "
            "it in MATLAB again"
        ) from wrong
    return {name: value for name, value in held.items() if not name.startswith("__")}


def _from_hdf5(file: Any, item: Any) -> Any:
    """A variable of a v7.3 file, its axes in MATLAB's order; text as strings, cells as objects."""
    import h5py

    if not isinstance(item, h5py.Dataset):
        return item.name
    values = np.asarray(item[()]).T
    if h5py.check_ref_dtype(item.dtype) is not None:
        cells = np.empty(values.size, dtype=object)
        cells[:] = [_from_hdf5(file, file[each]) for each in values.ravel(order="F")]
        return cells
    if item.attrs.get("MATLAB_class") == b"char":
        return np.array(["".join(map(chr, row)) for row in np.atleast_2d(values)])
    return values


def _variable(file: Path, variables: Mapping[str, Any], name: str, option: str) -> Any:
    if name in variables:
        return variables[name]
    held = [
        f"{each} ({' x '.join(map(str, np.shape(value)))})" for each, value in variables.items()
    ]
    raise InputError(
        f"{file.name} holds no variable {shown(name)}; it holds "
        f"{', '.join(held) or 'none'}: pass {option}=... with the name of one"
    )


def _table(file: Path, name: str, value: Any) -> NDArray[Any]:
    """The angles as they stand in the file, if they are a matrix of numbers."""
    table = np.asarray(value)
    if table.ndim != 2 or table.dtype.kind not in "biufc" or table.size == 0:
        raise InputError(
            f"{name} in {file.name} must be a matrix of numbers, channels x trials, got "
            f"an array of {table.dtype} of shape {table.shape}"
        )
    return table


def _labels(file: Path, name: str, value: Any) -> tuple[str, ...]:
    found = [text.strip() for text in _texts(value)]
    if not found or not all(found):
        raise InputError(
            f"{name} in {file.name} must hold a name for each channel, as a cell array of "
            f"text or a char matrix (in MATLAB {name} = cellstr({name})), got {shown(value)}"
        )
    return tuple(found)


def _texts(value: Any) -> Iterator[str]:
    """The texts in an array of strings, or in a cell array, however deep; "" for what is none."""
    array = np.asarray(value)
    if array.dtype.kind not in "UO" or array.size == 0:
        yield ""
        return
    for each in array.ravel(order="F"):
        if isinstance(each, str):
            yield each
        else:
            yield from _texts(each)


def _numbered(labels: Sequence[str]) -> tuple[str, ...]:
    """Each label with its number among the labels that are the same."""
    seen: Counter[str] = Counter()
    nodes = []
    for label in labels:
        seen[label] += 1
        nodes.append(f"{label}.{seen[label]}")
    return tuple(nodes)


def _trials(
    file: Path, name: str, table: NDArray[Any], channels: int, names: str | None
) -> NDArray[Any]:
    """The angles as trials x channels."""
    if table.shape[0] == channels:
        return table.T
    if table.shape[1] == channels:
        return table
    raise InputError(
        f"{name} in {file.name} must have {channels} rows, one for each name in {names}, "
        f"and a column for each trial, got shape {table.shape}"
    )


def _checked_angles(
    file: Path, name: str, rows: NDArray[Any], nodes: Sequence[str], degrees: bool
) -> FloatArray:
    where = f"{name} in {file.name}"
    if rows.dtype.kind == "c":
        raise InputError(
            f"{where} must hold angles, got complex numbers: save angle({name}) instead"
        )
    values = rows.astype(np.float64)
    lost = np.argwhere(~np.isfinite(values))
    if len(lost):
        trial, channel = lost[0]
        raise InputError(
            f"{where} must hold finite angles, got {values[trial, channel]} at {nodes[channel]}, "
            f"trial {trial + 1} (counted from 1), and {len(lost)} such values in all: remove "
            "these trials or channels and save the file again"
        )
    low, high = values.min(), values.max()
    small = max(-low, high) <= TWO_PI + ANGLE_SLACK
    if degrees and small:
        raise InputError(
            f"{where} holds values from {low:.6g} to {high:.6g}, which look like radians: leave "
            "out degrees=True"
        )
    if not degrees and not small:
        raise InputError(
            f"{where} must hold angles in radians, between -2 pi and 2 pi, got values from "
            f"{low:.6g} to {high:.6g}: pass degrees=True if they are degrees, save "
            f"mod({name}, 2 * pi) if they are unwrapped phases"
        )
    radians = np.deg2rad(np.mod(values, 360.0)) if degrees else values
    return np.ascontiguousarray(wrapped(radians))
