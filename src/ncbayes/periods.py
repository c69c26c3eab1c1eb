"""Time stamps as groups in order: dates by calendar periods, numbers, or labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.dates import Dates, DateStyle, from_numbers, guess_numbers, read_dates
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
# As a share of them, so many periods may be empty where the period is chosen for the user.
MOST_EMPTY = 0.5
# More groups than this are most likely time stamps that should have been put together.
MOST_DISTINCT = 400
# The years that datetimes in nanoseconds hold.
FIRST_YEAR, LAST_YEAR = 1678, 2261
# Numbers that lie so little below the start of a period, in its widths, do so by rounding.
SLACK = 1e-9


@dataclass(frozen=True)
class Reading:
    """What times were taken for, in words: ``kind`` of times, from ``first`` to ``last``, ``form``.

    ``unit`` is what a group is called, ``hint`` what to do if they were meant as something else.
    """

    kind: str
    first: str
    last: str
    form: str
    unit: str
    hint: str = ""
    style: DateStyle = field(default_factory=DateStyle)


@dataclass(frozen=True, eq=False)
class Periods:
    """Groups in order: labels, where they stand, and which one each row belongs to.

    ``starts`` are datetimes or numbers, None for labels; ``places`` are numbers at the groups'
    distances, None where they are equally spaced. Groups without rows are among them.
    """

    labels: tuple[str, ...]
    index: NDArray[np.intp]
    starts: NDArray[Any] | None
    places: FloatArray | None
    reading: Reading


def periods(times: Any, every: Any, rows: int, style: DateStyle | None = None) -> Periods:
    """The groups of the time stamps of so many rows."""
    found = _grouped(_stamps(times, rows), every, style or DateStyle())
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


def _grouped(values: pd.Series[Any], every: Any, style: DateStyle) -> Periods:
    import pandas as pd

    kinds = pd.api.types
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, names = values.cat.codes.to_numpy(), values.cat.categories
        return _labels(codes, names, every, "the order of the categories")
    if kinds.is_bool_dtype(values):
        values = values.astype(str)
    if kinds.is_timedelta64_dtype(values) or kinds.is_complex_dtype(values):
        raise InputError(
            f"times must be dates, real numbers or labels, got {values.dtype}: pass "
            "real numbers, such as times / np.timedelta64(1, 'D') for days"
        )
    decimals = values.dtype == object and all(isinstance(each, Number) for each in values)
    if kinds.is_numeric_dtype(values) or decimals:
        calendar = every is None or (isinstance(every, str) and every in CALENDAR)
        text = from_numbers(values, years=calendar and every == "year") if calendar else None
        if text is None:
            return _numbers(values.to_numpy(dtype=float), every)
        values = text
    dates = read_dates(values, style)
    if dates is not None:
        return _calendar(dates, every)
    codes, labels = pd.factorize(values.astype(str))
    return _labels(codes, labels, every, "the order in which they appear")


def _calendar(read: Dates, every: Any) -> Periods:
    import pandas as pd

    dates = read.values
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
    first, last = (f"{each:%Y-%m-%d}" for each in (dates.min(), dates.max()))
    form = ", ".join(filter(None, (read.form, read.clock)))
    reading = Reading("dates", first, last, form, every, style=read.style)
    return Periods(labels, whole.get_indexer(pd.PeriodIndex(found)), starts, None, reading)


def _fitting(dates: pd.Series[Any]) -> str:
    """The shortest calendar period with enough points, not too many groups, and few of them empty.

    Dates that name the month only, say, leave most days empty.
    """
    for name, (letter, _) in CALENDAR.items():
        found = dates.dt.to_period(letter)
        count = int((found.max() - found.min()).n) + 1
        filled = found.nunique() >= (1 - MOST_EMPTY) * count
        if count <= MOST_GROUPS and len(dates) >= FEWEST_POINTS * count and filled:
            return name
    return "year"


def _numbers(values: FloatArray, every: Any) -> Periods:
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise InputError(
            f"times must be finite, got {values[wrong[0]]} in row {wrong[0]} (counted from 0)"
        )
    hint = guess_numbers(float(values.min()), float(values.max()))
    if every is None:
        return _each(values, hint)
    if not (is_numeric(every) and np.ndim(every) == 0 and np.isfinite(every) and every > 0):
        raise InputError(
            f"every must be a positive number where times are numbers, or None, got {shown(every)}"
            + (f"; {hint}" if hint else "")
        )
    with np.errstate(over="ignore", invalid="ignore"):
        first, last = np.floor(np.array([values.min(), values.max()]) / every + SLACK)
        _check_count(last - first + 1 if np.isfinite(last - first) else np.inf, "a larger every=")
    index = (np.floor(values / every + SLACK) - first).astype(np.intp)
    starts = (first + np.arange(index.max() + 1)) * every
    reading = _of_numbers(values, f"period of {every:g}", hint)
    return Periods(tuple(f"{start:.12g}" for start in starts), index, starts, None, reading)


def _of_numbers(values: FloatArray, unit: str, hint: str) -> Reading:
    first, last = (f"{each:.12g}" for each in (values.min(), values.max()))
    return Reading("times", first, last, "numbers", unit, hint)


def _each(values: FloatArray, hint: str) -> Periods:
    """A group for every number; those that agree in 15 digits, as 0.1 + 0.2 and 0.3, are one."""
    import pandas as pd

    found, index = np.unique(values, return_inverse=True)
    remedy = "every=width to put numbers together"
    _check_count(len(found), f"{remedy}; {hint}" if hint else remedy)
    codes, labels = pd.factorize(np.array([f"{each:.15g}" for each in found]))
    starts = found[np.unique(codes, return_index=True)[1]]
    reading = _of_numbers(values, "value", hint)
    return Periods(tuple(map(str, labels)), codes[index], starts, starts, reading)


def _labels(codes: NDArray[Any], names: Any, every: Any, order: str) -> Periods:
    if every is not None:
        raise InputError(
            f"every is for dates and numbers, and times are labels such as {shown(names[0])}, got "
            f"every={shown(every)}; leave it out"
        )
    _check_count(len(names), "dates or numbers instead of labels")
    labels = tuple(str(name) for name in names)
    reading = Reading("times", labels[0], labels[-1], f"labels, in {order}", "label")
    return Periods(labels, np.asarray(codes, dtype=np.intp), None, None, reading)


def _check_count(count: float, remedy: str) -> None:
    if count > MOST_DISTINCT:
        raise InputError(f"times make {count:.6g} groups, more than {MOST_DISTINCT}; use {remedy}")
