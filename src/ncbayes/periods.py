"""Time stamps as groups in order: dates by calendar periods, numbers, or labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces import is_numeric

if TYPE_CHECKING:
    import pandas as pd

# Calendar periods by name, with pandas' letter for them and how their labels are written.
CALENDAR = {
    "day": ("D", "%Y-%m-%d"),
    "week": ("W", "%Y-%m-%d"),
    "month": ("M", "%Y-%m"),
    "quarter": ("Q", "%Y-Q%q"),
    "year": ("Y", "%Y"),
}
# A period chosen for the user holds at least so many points in the mean...
FEWEST_POINTS = 20
# ...and nobody wants to look at more groups than this without having asked for them.
MOST_GROUPS = 60
# More groups than this are most likely time stamps that should have been put together.
MOST_DISTINCT = 400


@dataclass(frozen=True, eq=False)
class Periods:
    """Groups in order: labels, where they stand, and which one each row belongs to.

    ``starts`` are datetimes or numbers, None for labels; ``places`` are numbers at the groups'
    distances, None where they are equally spaced. Groups without rows are among them.
    """

    labels: tuple[str, ...]
    index: NDArray[np.intp]
    starts: NDArray[Any] | None = None
    places: FloatArray | None = None


def periods(times: Any, every: Any, rows: int) -> Periods:
    """The groups of the time stamps of so many rows."""
    import pandas as pd

    values = pd.Series(times) if np.ndim(times) == 1 else None
    if values is None or len(values) != rows:
        got = "" if values is None else f" of length {len(values)}"
        raise InputError(
            f"times must hold one time stamp for each of the {rows} points, got "
            f"{shown(type(times).__name__)}{got}"
        )
    values = values.reset_index(drop=True)
    missing = np.flatnonzero(values.isna())
    if len(missing):
        raise InputError(
            f"times must not be missing, got {len(missing)} missing, the first in row "
            f"{missing[0]} (counted from 0): drop these rows"
        )
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _labels(values.cat.codes.to_numpy(), values.cat.categories, every)
    if pd.api.types.is_bool_dtype(values):
        values = values.astype(str)
    if pd.api.types.is_numeric_dtype(values):
        return _numbers(values.to_numpy(dtype=float), every)
    dates = _dates(values)
    if dates is not None:
        return _calendar(dates, every)
    codes, labels = pd.factorize(values.astype(str))
    return _labels(codes, labels, every)


def _dates(values: pd.Series[Any]) -> pd.Series[Any] | None:
    """The values as datetimes of the wall clock; None if they are labels."""
    import pandas as pd

    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    if not pd.api.types.is_datetime64_any_dtype(values):
        text = values.astype(str)
        # A word such as "may" would be read as a date of the present year.
        dated = text.str.contains(r"\d{4}|\d[-/.:]\d", regex=True)
        if not dated.any():
            return None
        values = pd.to_datetime(text.where(dated), errors="coerce", format="mixed", utc=True)
        wrong = np.flatnonzero(values.isna())
        if len(wrong) == len(values):
            return None
        if len(wrong):
            raise InputError(
                f"times must be dates throughout, got {shown(text[wrong[0]])} in row {wrong[0]} "
                f"(counted from 0), which is none ({len(wrong)} such rows): drop or repair them, "
                "or pass a pandas Categorical if they are labels"
            )
    return values.dt.tz_localize(None) if values.dt.tz is not None else values


def _calendar(dates: pd.Series[Any], every: Any) -> Periods:
    import pandas as pd

    if every is None:
        every = _fitting(dates)
    if every not in CALENDAR:
        raise InputError(
            f"every must be one of {', '.join(map(repr, CALENDAR))} for dates, or None, got "
            f"{shown(every)}"
        )
    letter, form = CALENDAR[every]
    found = dates.dt.to_period(letter)
    whole = pd.period_range(found.min(), found.max(), freq=letter)
    _check_count(len(whole), 'a longer period, such as every="month" or "year"')
    labels = tuple(each.start_time.strftime(form) if every == "week" else each.strftime(form)
                   for each in whole)  # fmt: skip
    starts = whole.to_timestamp().to_numpy().astype("datetime64[ns]")
    return Periods(labels, whole.get_indexer(pd.PeriodIndex(found)), starts)


def _fitting(dates: pd.Series[Any]) -> str:
    """The shortest calendar period with enough points, and not too many groups."""
    for name, (letter, _) in CALENDAR.items():
        found = dates.dt.to_period(letter)
        count = int((found.max() - found.min()).n) + 1
        if count <= MOST_GROUPS and len(dates) >= FEWEST_POINTS * count:
            return name
    return "year"


def _numbers(values: FloatArray, every: Any) -> Periods:
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise InputError(
            f"times must be finite, got {values[wrong[0]]} in row {wrong[0]} (counted from 0)"
        )
    if every is None:
        starts, index = np.unique(values, return_inverse=True)
        _check_count(len(starts), "every=width to put numbers together")
        return Periods(tuple(f"{start:.15g}" for start in starts), index, starts, starts)
    if not (is_numeric(every) and np.ndim(every) == 0 and np.isfinite(every) and every > 0):
        raise InputError(
            f"every must be a positive number where times are numbers, or None, got {shown(every)}"
        )
    first = np.floor(values.min() / every)
    _check_count(int(np.floor(values.max() / every) - first) + 1, "a larger every=")
    index = (np.floor(values / every) - first).astype(np.intp)
    starts = (first + np.arange(index.max() + 1)) * every
    return Periods(tuple(f"{start:.12g}" for start in starts), index, starts)


def _labels(codes: NDArray[Any], names: Any, every: Any) -> Periods:
    if every is not None:
        raise InputError(
            f"every is for dates and numbers, and times are labels such as {shown(names[0])}, got "
            f"every={shown(every)}; leave it out"
        )
    _check_count(len(names), "dates or numbers instead of labels")
    return Periods(tuple(str(name) for name in names), np.asarray(codes, dtype=np.intp))


def _check_count(count: int, remedy: str) -> None:
    if count > MOST_DISTINCT:
        raise InputError(f"times make {count} groups, more than {MOST_DISTINCT}; use {remedy}")
