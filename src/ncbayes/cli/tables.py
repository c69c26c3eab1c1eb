"""Files as tables: CSV, TSV, Parquet, NPY and MAT, and which of their rows and columns count."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.cli import texts
from ncbayes.cli.specs import closest, listed
from ncbayes.resources import GIGABYTE, available_bytes
from ncbayes.spaces import ANGLE_SLACK, TWO_PI, label_columns

if TYPE_CHECKING:
    import pandas as pd

TEXT, ENDINGS = (".csv", ".tsv", ".txt"), (".csv", ".tsv", ".txt", ".parquet", ".npy", ".mat")
# Bytes of memory that reading takes for each byte of a file, at most, as measured on CSV files of
# short numbers; a Parquet file may be packed still tighter.
TIMES_AS_LARGE = 8
FULL_CIRCLE = 360.0
# What pandas calls a column without a name, also in files that it has written again.
NAMELESS = re.compile(r"Unnamed: \d+")
# What columns are called here whose file names none of them.
MADE_UP = re.compile(r"x\d+")


def read(
    path: Path,
    variable: str | None = None,
    names: str | None = None,
    labels: Collection[str] = (),
) -> pd.DataFrame:
    """The table in a file; the columns of a file without any names are x1, x2 ...

    ``variable`` is the matrix to take from a MATLAB file, ``names`` its variable with the names of
    the columns. The columns ``labels`` of a text file stay as they are written: 01 is not 1.
    """
    ending = _checked_file(path)
    if ending != ".mat" and (variable or names):
        raise InputError(
            f"only a MATLAB file has variables, and {path.name} is none; leave --variable and "
            "--names out"
        )
    if ending in TEXT:
        return _named(path, texts.read(path, labels))
    if ending == ".parquet":
        return _parquet(path)
    return _matlab(path, variable, names) if ending == ".mat" else _frame(path, numpy_array(path))


def numpy_array(path: Path) -> NDArray[Any]:
    """The numbers in an NPY file."""
    _checked_file(path)
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, OSError, EOFError) as wrong:
        raise InputError(
            f"{path.name} is not an NPY file of numbers; write it by np.save(name, array)"
        ) from wrong


def _checked_file(path: Path) -> str:
    """The ending of a file that is there, not empty, and not too large."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"{path.name!r} must be a file of one of the kinds {', '.join(ENDINGS)}; save the "
            "table as one of them"
        )
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {what}; pass the name of a file of data")
    size = path.stat().st_size
    if size == 0:
        raise InputError(f"{path.name} is empty; it must hold a table of data")
    need, there = TIMES_AS_LARGE * size, available_bytes()
    if need > there:
        raise InputError(
            f"{path.name} has {size / GIGABYTE:.4g} GB, and reading it may take "
            f"{need / GIGABYTE:.4g} GB of memory, of which {there / GIGABYTE:.4g} GB are available;"
            " use fewer rows or columns"
        )
    return ending


def _parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError as absent:
        raise InputError(
            f"{path.name} is a Parquet file, which needs pyarrow: run pip install 'ncbayes[files]'"
        ) from absent
    # pyarrow's errors are of a dozen kinds.
    except Exception as wrong:
        raise InputError(f"{path.name} cannot be read as a Parquet file; write it again") from wrong
    return _named(path, frame)


def _named(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, if it has rows, and names that differ."""
    frame = frame.set_axis([str(name).strip() for name in frame.columns], axis=1)
    texts.check_differ(path, list(frame.columns))
    if not len(frame):
        raise InputError(f"{path.name} has names of columns but no rows")
    return frame.reset_index(drop=True)


def _frame(path: Path, array: NDArray[Any]) -> pd.DataFrame:
    import pandas as pd

    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.dtype.kind not in "biuf" or table.size == 0:
        raise InputError(
            f"{path.name} must hold a matrix of real numbers, one row for each observation, got an "
            f"array of {array.dtype} of shape {array.shape}"
        )
    return pd.DataFrame(table, columns=[f"x{k + 1}" for k in range(table.shape[1])])


def _matlab(path: Path, variable: str | None, names: str | None) -> pd.DataFrame:
    """A matrix of a MATLAB file, turned so that its longer side are the rows, or by the names."""
    from ncbayes.datasets import load_phase_angles

    found = _matrices(path)
    if variable is None:
        if len(found) != 1:
            raise InputError(
                f"{path.name} holds the matrices {_sizes(found)}; say which is meant by --variable"
            )
        variable = next(iter(found))
    if variable not in found:
        raise InputError(
            f"{path.name} holds no matrix {variable!r}{closest(variable, found)}; it holds "
            f"{_sizes(found)}"
        )
    matrix = found[variable]
    if names is None:
        return _frame(path, matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T)
    large = bool(np.nanmax(np.abs(matrix)) > TWO_PI + ANGLE_SLACK)
    read = load_phase_angles(path, angles=variable, names=names, degrees=large)
    rows = matrix if matrix.shape == read.data.shape else matrix.T
    if matrix.shape[0] == matrix.shape[1]:
        rows = matrix.T  # as load_phase_angles has it: channels x trials
    return _frame(path, rows).set_axis(list(read.nodes), axis=1)


def _sizes(matrices: Mapping[str, NDArray[Any]]) -> str:
    sizes = [f"{name} ({' x '.join(map(str, each.shape))})" for name, each in matrices.items()]
    return ", ".join(sizes) or "none"


def _matrices(path: Path) -> dict[str, NDArray[Any]]:
    """The matrices of real numbers in a MATLAB file, old or of version 7.3."""
    import h5py
    from scipy.io import loadmat

    try:
        if h5py.is_hdf5(path):
            with h5py.File(path) as file:
                held = {k: np.asarray(v).T for k, v in file.items() if isinstance(v, h5py.Dataset)}
        else:
            held = loadmat(path, appendmat=False)
    # A file that is something else, or cut short, makes the readers fail in a dozen ways.
    except Exception as wrong:
        raise InputError(
            f"{path.name} cannot be read as a MATLAB file; save it in MATLAB again"
        ) from wrong
    return {
        name: value
        for name, value in held.items()
        if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "biuf"
        and value.size > 1 and not name.startswith(("__", "#"))
    }  # fmt: skip


def column(frame: pd.DataFrame, name: str, file: str) -> pd.Series:
    """A column by name."""
    if name not in frame.columns:
        there = [str(each) for each in frame.columns if not NAMELESS.fullmatch(str(each))]
        raise InputError(
            f"{file} has no column {name!r}{closest(name, there)}; it has {listed(there)}"
        )
    return frame[name]


def other_columns(frame: pd.DataFrame, taken: Collection[str], file: str) -> list[str]:
    """All columns but those that are taken, and those without a name and values."""
    found = []
    for place, name in enumerate(frame.columns):
        if name in taken:
            continue
        if NAMELESS.fullmatch(name):
            if frame[name].isna().all():
                continue
            raise InputError(
                f"column {place + 1} of {file} has no name: drop it, or choose columns by --columns"
            )
        found.append(name)
    if not found:
        raise InputError(
            f"{file} has no columns besides {', '.join(map(repr, taken))}, and the model needs at "
            "least one: name it by --columns, or leave --group or --where out"
        )
    return found


def as_labels(series: pd.Series) -> pd.Series:
    """The values of a column as text, gaps as gaps; whole numbers have no decimals."""
    there = series.dropna()
    if there.dtype.kind == "f" and (there % 1 == 0).all():
        there = there.astype(np.int64)
    return there.astype(str).str.strip().reindex(series.index)


def chosen_rows(frame: pd.DataFrame, where: Mapping[str, Any], file: str) -> pd.DataFrame:
    """The rows whose columns have these values, or one of those in a list."""
    import pandas as pd

    for name, wanted in where.items():
        there = as_labels(column(frame, name, file))
        numbers = pd.to_numeric(there, errors="coerce")
        kept = np.zeros(len(frame), dtype=bool)
        for value in wanted if isinstance(wanted, list) else [wanted]:
            text = str(value).strip()
            same = (there == text).to_numpy(bool)
            if texts.is_number(text):
                same = same | (numbers == float(text)).to_numpy(bool)
            if not same.any():
                known = sorted(there.dropna().unique())
                raise InputError(
                    f"no row of {file} has {name} = {value!r}; there is {listed(known)}"
                )
            kept |= same
        frame = frame[kept]
    return frame


def complete_rows(
    frame: pd.DataFrame, columns: Sequence[str], missing: str, file: str
) -> pd.DataFrame:
    """The rows without gaps in these columns; ``missing`` says whether others are an error."""
    gaps = np.column_stack([column(frame, name, file).isna().to_numpy() for name in columns])
    if not gaps.any():
        return frame
    if missing == "error":
        row, place = np.argwhere(gaps)[0]
        raise InputError(
            f"column {columns[place]!r} of {file} has no value in row {frame.index[row] + 1} "
            f"(counted from 1, without the names), and {int(gaps.any(axis=1).sum())} rows have "
            "gaps: fill them in, or leave them out by --drop-missing"
        )
    kept = frame[~gaps.any(axis=1)]
    if not len(kept):
        raise InputError(f"{file} has no row with values in all of {', '.join(columns)}")
    return kept


def numbers(frame: pd.DataFrame, columns: Sequence[str], file: str) -> FloatArray:
    """These columns as an array; text in them is named by row and column."""
    import pandas as pd

    values = np.empty((len(frame), len(columns)))
    for place, name in enumerate(columns):
        series = column(frame, name, file)
        found = pd.to_numeric(series, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        wrong = ~np.isfinite(found)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"column {name!r} of {file} must hold numbers, got {shown(series.iloc[row])} in "
                f"row {frame.index[row] + 1} (counted from 1, without the names): correct it, or "
                "choose other columns by --columns"
            )
        values[:, place] = found
    return values


def check_angles(values: FloatArray, columns: Sequence[str], file: str) -> None:
    """Refuse a column of labels, such as zeros and ones, among angles in radians or degrees."""
    labelled = label_columns(values)
    if not labelled:
        return
    first, *others = [columns[k] for k in labelled]
    ends = " and ".join(f"{value:.4g}" for value in np.unique(values[:, labelled[0]]))
    also = f" (and {listed(others)} two such numbers)" if others else ""
    remedy = f"choose the columns of angles by --columns, or make groups by --group {first}"
    if len(labelled) == len(columns):
        remedy = "ncbayes fit ising is for zeros and ones"
    raise InputError(
        f"column {first!r} of {file} holds only {ends}{also}, which looks like labels and not like "
        f"angles: {remedy}"
    )


def radians(values: FloatArray, units: str | None, file: str) -> tuple[FloatArray, str, str]:
    """Angles in radians, the units they came in, and why these were taken."""
    low, high = float(values.min()), float(values.max())
    largest = max(-low, high)
    small = largest <= TWO_PI + ANGLE_SLACK
    extent = f"values from {low:.4g} to {high:.4g}"
    if units is None:
        if largest > FULL_CIRCLE:
            raise InputError(
                f"{file} has {extent}, which are neither radians (up to 2 pi) nor degrees (up to "
                "360): wrap the angles, or choose other columns by --columns"
            )
        units = "radians" if small else "degrees"
        why = f"angles are taken as {units}: {extent}; --degrees or --radians says otherwise"
    else:
        why = f"angles are in {units}, as told: {extent}"
    if units == "radians" and not small:
        raise InputError(
            f"angles in radians must lie between -2 pi and 2 pi, {file} has {extent}: pass "
            "--degrees if they are degrees"
        )
    turned = np.deg2rad(np.mod(values, FULL_CIRCLE)) if units == "degrees" else values
    return turned, units, why
