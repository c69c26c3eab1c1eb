"""Times of a fitted density: what users write for them, and which groups these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import InputError, shown
from ncbayes.dates import AmbiguousDates, DateStyle, from_numbers
from ncbayes.periods import CALENDAR, LAST_YEAR, periods
from ncbayes.spaces import is_numeric, is_whole

# Times as numbers are the same if they agree but for rounding.
CLOSE = 1e-9
AS_WRITTEN = DateStyle()


def time_coordinate(times: NDArray[Any] | None, labels: Sequence[str]) -> NDArray[Any]:
    """Datetimes or numbers where there are such, else the labels."""
    return np.array(labels) if times is None else times


def position(
    time: Any,
    times: NDArray[Any] | None,
    labels: Sequence[str],
    name: str,
    style: DateStyle = AS_WRITTEN,
) -> int:
    """The group of a time given as label, as date or number, or by position."""
    if isinstance(time, str) and time in labels:
        return labels.index(time)
    if not isinstance(time, bool | list | tuple | np.ndarray):
        found = int(_matched([time], times, labels, style)[0])
        if found >= 0:
            return found
        if is_whole(time) and -len(labels) <= time < len(labels):
            return int(time) % len(labels)
    raise InputError(
        f"{name} must be one of the {len(labels)} times that were fitted, {_span(labels)}, or a "
        f"position among them from 0, got {shown(time)}"
    )


def chosen(
    given: Any, times: NDArray[Any] | None, labels: Sequence[str], style: DateStyle = AS_WRITTEN
) -> list[int]:
    """The groups of some of the times, each as in ``position``."""
    if not _is_list(given) or not len(given):
        raise InputError(f"times must be a list of times, got {shown(given)}")
    return [position(time, times, labels, "each of times", style) for time in given]


def positions(
    given: Any,
    rows: int,
    times: NDArray[Any] | None,
    labels: Sequence[str],
    style: DateStyle = AS_WRITTEN,
) -> NDArray[np.intp]:
    """The groups of time stamps, one a row, as ``fit_density_over_time`` takes them."""
    if not _is_list(given) or len(given) != rows:
        got = f"{len(given)}" if _is_list(given) else shown(given)
        raise InputError(f"times must hold one time for each of the {rows} points, got {got}")
    found = _matched(list(given), times, labels, style)
    wrong = np.flatnonzero(found < 0)
    if len(wrong):
        row = int(wrong[0])
        more = ""
        if times is not None and times.dtype.kind != "M":
            more = "; numbers that every= put together are named by where they start"
        raise InputError(
            f"times must be among those that were fitted, {_span(labels)}, got "
            f"{shown(list(given)[row])} in row {row} (counted from 0) and {len(wrong) - 1} more: "
            f"drop these rows{more}"
        )
    return found


def later(steps: int, times: NDArray[Any] | None, labels: Sequence[str]) -> tuple[Any, str]:
    """The time so many steps after the last one, and its label."""
    import pandas as pd

    if times is None:
        label = f"{labels[-1]} + {steps}"
        return label, label
    if times.dtype.kind == "M":
        letter, form = CALENDAR[calendar(times, labels)]
        last = pd.Timestamp(times[-1]).to_period(letter) + steps
        if last.year > LAST_YEAR:
            raise InputError(
                f"steps must not lead beyond the year {LAST_YEAR}, got {steps}, which is the year "
                f"{last.year}"
            )
        shape = last.start_time.strftime(form) if letter == "W" else last.strftime(form)
        return last.start_time.to_datetime64().astype("datetime64[ns]"), shape
    gap = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    number = float(times[-1]) + steps * gap
    return number, f"{number:.12g}"


def calendar(times: NDArray[Any], labels: Sequence[str]) -> str:
    """The calendar period of groups that start at these dates."""
    import pandas as pd

    index = pd.DatetimeIndex(times)
    for name in ("year", "quarter", "month"):
        letter, form = CALENDAR[name]
        if [each.strftime(form) for each in index.to_period(letter)] == list(labels):
            return name
    gaps = np.diff(times)
    return "week" if len(gaps) and (gaps == np.timedelta64(7, "D")).all() else "day"


def _is_list(given: Any) -> bool:
    """Whether this is a list of times, and not one time or a table."""
    try:
        return np.ndim(given) == 1
    except ValueError:  # rows of different lengths
        return False


def _matched(
    given: list[Any], times: NDArray[Any] | None, labels: Sequence[str], style: DateStyle
) -> NDArray[np.intp]:
    """The groups of the times, -1 where there is none."""
    import pandas as pd

    place = {label: k for k, label in enumerate(labels)}
    found = np.array([place.get(str(each), -1) for each in given], dtype=np.intp)
    if times is None or (found >= 0).all():
        return found
    if times.dtype.kind == "M":
        plain = is_numeric(given) and from_numbers(pd.Series(given)) is None
        return found if plain else _dated(given, times, labels, style)
    if not is_numeric(given):
        return found
    apart = np.abs(np.asarray(given, dtype=float)[:, None] - times)
    nearest = apart.argmin(axis=1)
    width = CLOSE * max(1.0, float(np.abs(times).max()))
    return np.where(apart.min(axis=1) <= width, nearest, -1)


def _dated(
    given: list[Any], times: NDArray[Any], labels: Sequence[str], style: DateStyle
) -> NDArray[np.intp]:
    """The groups of dates, read as in the fit; -1 for what is no date."""
    place = {label: k for k, label in enumerate(labels)}
    try:
        found = periods(given, calendar(times, labels), len(given), style)
    except AmbiguousDates as ambiguous:
        raise InputError(
            f"times must be written as year-month-day, since the fit met none that tells whether "
            f"the day comes first, got {shown(given[0])}"
        ) from ambiguous
    except InputError:
        if len(given) == 1:
            return np.array([-1])
        # One by one, so that the rows at fault are known.
        each = {text: _dated([text], times, labels, style)[0] for text in set(map(str, given))}
        return np.array([each[str(time)] for time in given], dtype=np.intp)
    groups = np.array([place.get(label, -1) for label in found.labels], dtype=np.intp)
    return groups[found.index]


def _span(labels: Sequence[str]) -> str:
    if len(labels) == 1:
        return repr(labels[0])
    return f"{labels[0]!r} to {labels[-1]!r}"
