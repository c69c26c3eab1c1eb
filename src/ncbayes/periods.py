"""Time stamps as groups in order: dates by calendar periods, numbers, or labels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces import is_numeric

if TYPE_CHECKING:
    import re

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
# Text that may be a date: a year, or numbers as in 3/12 or 3.12.22. A word such as "may" or a time
# of the day would be read as a date of the present year.
DATED = r"(?<![.\d])\d{4}|\d[-/]\d|\d\.\d+\.\d"
# Text that is meant to be a date for certain.
SURELY_DATED = r"\d{4}[-/.]\d{1,2}[-/.]\d|\d[-/.]\d{1,2}[-/.]\d{4}"
# Day and month of dates whose year stands last.
YEAR_LAST = r"^\s*(\d{1,2})[-/.](\d{1,2})[-/.]\d{2}"
QUARTER = r"^(\d{4})[- ]?[qQ]([1-4])$"
# A time of the day, and the offset of its clock.
OFFSET = r"(:\d{2}(?:\.\d+)?) ?(?:Z|UTC|[+-]\d{2}:?(?:\d{2})?)$"
# The years that datetimes in nanoseconds hold.
FIRST_YEAR, LAST_YEAR = 1678, 2261
# Numbers that lie so little below the start of a period, in its widths, do so by rounding.
SLACK = 1e-9


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
    found = _grouped(_stamps(times, rows), every)
    if len(set(found.labels)) < len(found.labels):
        twice = next(label for label in found.labels if found.labels.count(label) > 1)
        raise InputError(
            "times must differ when they are written as text, got two groups that are both called "
            f"{shown(twice)}: rename one of them, or use a wider every="
        )
    return found


def _stamps(times: Any, rows: int) -> pd.Series[Any]:
    """The time stamps, none of them missing, one for each row."""
    import pandas as pd

    try:
        values = pd.Series(times) if np.ndim(times) == 1 else None
    except (NotImplementedError, TypeError, ValueError):  # rows of several numbers
        values = None
    if values is None or len(values) != rows:
        got = shown(times) if values is None else f"{len(values)}"
        raise InputError(
            f"times must hold one time stamp for each of the {rows} points, such as a column of "
            f"dates, got {got}"
        )
    values = values.reset_index(drop=True)
    missing = np.flatnonzero(values.isna())
    if len(missing):
        raise InputError(
            f"times must not be missing, got {len(missing)} missing, the first in row "
            f"{missing[0]} (counted from 0): drop these rows"
        )
    return values


def _grouped(values: pd.Series[Any], every: Any) -> Periods:
    import pandas as pd

    kinds = pd.api.types
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _labels(values.cat.codes.to_numpy(), values.cat.categories, every)
    if kinds.is_bool_dtype(values):
        values = values.astype(str)
    if kinds.is_timedelta64_dtype(values) or kinds.is_complex_dtype(values):
        raise InputError(
            f"times must be dates, real numbers or labels, got {values.dtype}: pass "
            "real numbers, such as times / np.timedelta64(1, 'D') for days"
        )
    decimals = values.dtype == object and all(isinstance(each, Number) for each in values)
    if kinds.is_numeric_dtype(values) or decimals:
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
        plain = text.str.replace(OFFSET, r"\1", regex=True)
        plain = plain.str.replace(QUARTER, _first_day, regex=True)
        dated = plain.str.contains(DATED, regex=True)
        if not dated.any():
            return None
        values = pd.to_datetime(
            plain.where(dated),
            errors="coerce",
            format="mixed",
            utc=True,
            dayfirst=_day_first(plain),
        )
        wrong = np.flatnonzero(values.isna())
        if len(wrong) == len(values) and not plain.str.contains(SURELY_DATED, regex=True).any():
            return None
        if len(wrong):
            raise InputError(
                f"times must be dates throughout, got {shown(text[wrong[0]])} in row {wrong[0]} "
                f"(counted from 0), which is none ({len(wrong)} such rows): drop or repair them, "
                "or pass a pandas Categorical if they are labels"
            )
    return values.dt.tz_localize(None) if values.dt.tz is not None else values


def _first_day(quarter: re.Match[str]) -> str:
    return f"{quarter[1]}-{3 * int(quarter[2]) - 2:02}-01"


def _day_first(text: pd.Series[Any]) -> bool:
    """Whether dates such as 3/12/2022 begin with the day: if one can't begin with the month."""
    parts = text.str.extract(YEAR_LAST).dropna().astype(int)
    day, month = parts[0] > 12, parts[1] > 12
    if day.any() and month.any():
        one, other = (text[each.idxmax()] for each in (day, month))
        raise InputError(
            f"times must be written in one way, got {shown(one)}, which begins with the day, and "
            f"{shown(other)}, which begins with the month: read them with pandas.to_datetime"
        )
    return bool(day.any())


def _calendar(dates: pd.Series[Any], every: Any) -> Periods:
    import pandas as pd

    if every is None:
        every = _fitting(dates)
    if not isinstance(every, str) or every not in CALENDAR:
        raise InputError(
            f"every must be one of {', '.join(map(repr, CALENDAR))} for dates, or None, got "
            f"{shown(every)}"
        )
    far = np.flatnonzero((dates.dt.year < FIRST_YEAR) | (dates.dt.year > LAST_YEAR))
    if len(far):
        raise InputError(
            f"times must be dates from {FIRST_YEAR} to {LAST_YEAR}, got {dates[far[0]]} in row "
            f"{far[0]} (counted from 0): pass numbers, such as years"
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
        return _each(values)
    if not (is_numeric(every) and np.ndim(every) == 0 and np.isfinite(every) and every > 0):
        raise InputError(
            f"every must be a positive number where times are numbers, or None, got {shown(every)}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        first, last = np.floor(np.array([values.min(), values.max()]) / every + SLACK)
        _check_count(last - first + 1 if np.isfinite(last - first) else np.inf, "a larger every=")
    index = (np.floor(values / every + SLACK) - first).astype(np.intp)
    starts = (first + np.arange(index.max() + 1)) * every
    return Periods(tuple(f"{start:.12g}" for start in starts), index, starts)


def _each(values: FloatArray) -> Periods:
    """A group for every number; those that agree in 15 digits, as 0.1 + 0.2 and 0.3, are one."""
    import pandas as pd

    found, index = np.unique(values, return_inverse=True)
    _check_count(len(found), "every=width to put numbers together")
    codes, labels = pd.factorize(np.array([f"{each:.15g}" for each in found]))
    starts = found[np.unique(codes, return_index=True)[1]]
    return Periods(tuple(map(str, labels)), codes[index], starts, starts)


def _labels(codes: NDArray[Any], names: Any, every: Any) -> Periods:
    if every is not None:
        raise InputError(
            f"every is for dates and numbers, and times are labels such as {shown(names[0])}, got "
            f"every={shown(every)}; leave it out"
        )
    _check_count(len(names), "dates or numbers instead of labels")
    return Periods(tuple(str(name) for name in names), np.asarray(codes, dtype=np.intp))


def _check_count(count: float, remedy: str) -> None:
    if count > MOST_DISTINCT:
        raise InputError(f"times make {count:.6g} groups, more than {MOST_DISTINCT}; use {remedy}")
