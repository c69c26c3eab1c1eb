"""Dates as people write them: which number is the day, and whose clock it is."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import InputError, shown

if TYPE_CHECKING:
    import pandas as pd

# Text that may be a date: a year, or numbers as in 3/12 or 3.12.22. A word such as "may" or a time
# of the day would be read as a date of the present year.
DATED = r"(?<![.\d])\d{4}|\d[-/]\d|\d\.\d+\.\d"
# Text that is meant to be a date for certain.
SURELY_DATED = r"\d{4}[-/.]\d{1,2}[-/.]\d|\d[-/.]\d{1,2}[-/.]\d{4}"
QUARTER = r"^(\d{4})[- ]?[qQ]([1-4])$"
# Dates in numbers, anywhere in the text: 3/12/2022 or 3/12/22, and 2022/3/12.
YEAR_LAST = r"(?<!\d)(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\d)"
YEAR_FIRST = r"(?<!\d)(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)"
# The same without anything between the numbers: 20220312 and 202203.
COMPACT = r"^(\d{4})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])?$"
# Months by name with years of two digits, which need not have been dates: 5-Jan-22 and Jan-22.
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NAME = (
    r"((?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))"
)
NAMED_DAY = rf"(?<![A-Za-z\d])(\d{{1,2}})[-/. ]{NAME}[-/., ]+(\d{{4}}|\d{{2}})(?![\d:])"
NAMED_MONTH = rf"^{NAME}[-/., ']+(\d{{4}}|\d{{2}})$"
# A time of the day, and the offset of its clock or its zone's short name.
OFFSET = (
    r"(:\d{2}(?:\.\d+)?(?: ?[AaPp][Mm])?|T\d{2}(?:\d{2}){0,2})"
    r" ?(Z|z|UTC|GMT|[+-]\d{2}:?(?:\d{2})?)$"
)
ABBREVIATION = r"(:\d{2}(?:\.\d+)?(?: ?[AaPp][Mm])?) ?([A-Z]{1,3}T)$"
# Two-digit years from here on are of the 20th century, as in POSIX.
FIRST_OF_1900S = 69
# The order of numbers, as it is said.
DAY_FIRST, MONTH_FIRST, YEAR_AHEAD = "day/month/year", "month/day/year", "year/month/day"
TYPED, ISO = "dates", "year-month-day"


@dataclass(frozen=True)
class DateStyle:
    """How dates are read: whether 3/12/2022 begins with the day, and in which zone months begin.

    ``day_first`` None: not known, and not needed as long as no date can be read in two ways.
    ``tz`` None: the clock as it is written.
    """

    day_first: bool | None = None
    tz: str | None = None


@dataclass(frozen=True, eq=False)
class Dates:
    """Datetimes of the wall clock, how they were written, whose clock it is, and the full style."""

    values: pd.Series[Any]
    form: str
    clock: str
    style: DateStyle


class AmbiguousDates(InputError):
    """Dates that can be read in two ways."""


def checked_style(day_first: Any, tz: Any) -> DateStyle:
    """The style, if these are a switch or None, and the name of a time zone or None."""
    import zoneinfo

    if not (day_first is None or isinstance(day_first, bool | np.bool_)):
        raise InputError(f"day_first must be True, False or None, got {shown(day_first)}")
    if isinstance(tz, zoneinfo.ZoneInfo):
        tz = tz.key
    if tz is datetime.UTC:
        tz = "UTC"
    if tz is not None:
        try:
            zoneinfo.ZoneInfo(tz)
        # Names that are no text, lead out of the folder of zones, or are folders.
        except (TypeError, ValueError, OSError, KeyError, AttributeError) as unknown:
            raise InputError(
                'tz must be the name of a time zone, such as "America/New_York" or "UTC", or None '
                f"for the clock as it is written, got {shown(tz)}"
            ) from unknown
    return DateStyle(None if day_first is None else bool(day_first), tz)


def read_dates(values: pd.Series[Any], style: DateStyle) -> Dates | None:
    """The values as datetimes of the wall clock; None if they are labels."""
    import pandas as pd

    if isinstance(values.dtype, pd.PeriodDtype):
        return Dates(values.dt.to_timestamp(), "calendar periods", "", style)
    if pd.api.types.is_datetime64_any_dtype(values):
        return _typed(values, style)
    typed = all(isinstance(each, datetime.date) for each in values)
    text = values.astype(str).str.strip()
    plain, offset, clock = _offsets(text, style)
    spelled, forms, day_first = _spelled(plain, style)
    found = _parsed(text, spelled)
    if found is None:
        return None
    if style.tz is not None and offset is not None:
        found = (found - offset).dt.tz_localize("UTC").dt.tz_convert(style.tz).dt.tz_localize(None)
    resolved = style if day_first is None else replace(style, day_first=day_first)
    return Dates(found, TYPED if typed else forms, clock, resolved)


def from_numbers(values: pd.Series[Any], *, years: bool = False) -> pd.Series[Any] | None:
    """Numbers such as 20220312 and 202203 as text, and ``years`` if asked for; None for others.

    That all of some numbers are days or months of the calendar by chance is next to impossible.
    """
    import pandas as pd

    numbers = values.to_numpy(dtype=float)
    if not np.isfinite(numbers).all() or (numbers % 1 != 0).any():
        return None
    low, high = numbers.min(), numbers.max()
    if (low >= 1e7 and high < 1e8) or (low >= 1e5 and high < 1e6):
        text = pd.Series(numbers.astype(np.int64)).astype(str)
        century = text.str[:2].isin(["17", "18", "19", "20", "21"]).all()
        return text if century and text.str.fullmatch(COMPACT).all() else None
    if years and low >= 1000 and high < 10000:
        return pd.Series(numbers.astype(np.int64)).astype(str)
    return None


def guess_numbers(low: float, high: float) -> str:
    """What numbers may be that are meant as dates, with the cure; empty if nothing is known."""
    import pandas as pd

    scales = {
        "s": ("seconds since 1970", 6.3e8, 4.1e9, "unix"),
        "ms": ("milliseconds since 1970", 6.3e11, 4.1e12, "unix"),
        "D": ("days as spreadsheets count them", 36526.0, 54789.0, "1899-12-30"),
    }
    for unit, (what, least, most, origin) in scales.items():
        if least <= low and high <= most:
            first, last = (pd.to_datetime(each, unit=unit, origin=origin) for each in (low, high))
            start = "" if origin == "unix" else f', origin="{origin}"'
            return (
                f"if they are {what}, {first:%Y-%m-%d} to {last:%Y-%m-%d}, pass "
                f'pandas.to_datetime(times, unit="{unit}"{start})'
            )
    return ""


def _typed(values: pd.Series[Any], style: DateStyle) -> Dates:
    """Datetimes of NumPy or pandas."""
    zone = values.dt.tz
    if zone is None:
        return Dates(values, TYPED, _no_zone(style), style)
    if style.tz is None:
        clock = f"by the clock of {zone} (tz= converts it)"
        return Dates(values.dt.tz_localize(None), TYPED, clock, style)
    moved = values.dt.tz_convert(style.tz).dt.tz_localize(None)
    return Dates(moved, TYPED, f"by the clock of {style.tz}, from that of {zone}", style)


def _no_zone(style: DateStyle) -> str:
    if style.tz is None:
        return ""
    return f"by the clock as it is written, taken as that of {style.tz} since no date names a zone"


def _offsets(
    text: pd.Series[Any], style: DateStyle
) -> tuple[pd.Series[Any], pd.Series[Any] | None, str]:
    """The text without the offsets of clocks, the offsets, and whose clock counts."""
    import pandas as pd

    short = text.str.endswith("T") & _has(text, ABBREVIATION)
    if short.any() and style.tz is not None:
        row = int(np.argmax(short))
        raise InputError(
            f"times must name zones by offset where tz= is given, as in 02:34:28-05:00, got "
            f"{shown(text[row])} in row {row} (counted from 0): short names stand for several zones"
        )
    text = _replaced(text, short, ABBREVIATION, r"\1")
    zones = text.str.extract(OFFSET)[1]
    there = zones.notna()
    plain = _replaced(text, there, OFFSET, r"\1")
    if not there.any():
        return plain, None, _no_zone(style)
    if style.tz is None:
        names = sorted(zones.dropna().unique())
        what = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        return plain, None, f"by the clock as it is written, of {what} (tz= converts it)"
    if not there.all():
        row = int(np.argmin(there))
        raise InputError(
            f"times must name their zones all or none where tz= is given, got {shown(text[row])} "
            f"in row {row} (counted from 0), which names none: add its offset, as in +00:00"
        )
    parts = zones.str.extract(r"^([+-])(\d{2}):?(\d{2})?$")
    sign = parts[0].map({"+": 1.0, "-": -1.0}).fillna(0.0).astype(float)
    hours, minutes = (parts[k].fillna("0").astype(float) for k in (1, 2))
    offset = pd.to_timedelta(sign * (60 * hours + minutes), unit="min")
    return plain, offset, f"by the clock of {style.tz}"


def _spelled(plain: pd.Series[Any], style: DateStyle) -> tuple[pd.Series[Any], str, bool | None]:
    """Dates in numbers as year-month-day, the forms that were met, and whether the day is first."""
    if plain.str.match(r"\d{4}-\d{2}-\d{2}(?:\D|$)").all():
        return plain, ISO, None
    quarter, compact, ahead = (_has(plain, each) for each in (QUARTER, COMPACT, YEAR_FIRST))
    text = _replaced(plain, quarter, QUARTER, lambda q: f"{q[1]}-{3 * int(q[2]) - 2:02}-01")
    text = _replaced(text, compact, COMPACT, lambda c: f"{c[1]}-{c[2]}-{c[3] or '01'}")
    text = _replaced(text, ahead, YEAR_FIRST, lambda d: _padded(d[1], d[3], d[4]))
    day, month_only = (_has(text, each) for each in (NAMED_DAY, NAMED_MONTH))
    text = _replaced(text, day, NAMED_DAY, lambda d: _padded(d[3], _month(d[2]), d[1]))
    text = _replaced(text, month_only, NAMED_MONTH, lambda d: _padded(d[2], _month(d[1]), "1"))
    last = _has(text, YEAR_LAST)
    order = _order(text[last], style.day_first) if last.any() else None
    if order is not None:
        text = _replaced(text, last, YEAR_LAST, lambda d: _iso(d[1], d[3], d[4], order))
    year, month = (plain.str.fullmatch(each) for each in (r"\d{4}", r"\d{4}[-/]\d{1,2}"))
    kinds = {
        ISO: ahead, str(order): last, "year-month": month, "year": year,
        "year and quarter": quarter, "day, name of the month, year": day,
        "name of the month, year": month_only,
        "yyyymmdd": compact & (plain.str.len() == 8), "yyyymm": compact & (plain.str.len() == 6),
    }  # fmt: skip
    met = [name for name, where in kinds.items() if where.any()]
    other = ~np.logical_or.reduce([where.to_numpy() for where in kinds.values()])
    if other.any():
        met.append(f"text such as {shown(plain[int(np.argmax(other))])}")
    day_first = None if order in (None, YEAR_AHEAD) else order == DAY_FIRST
    return text, " and ".join(met), day_first


def _iso(first: str, second: str, third: str, order: str) -> str:
    year, month, day = {
        DAY_FIRST: (third, second, first),
        MONTH_FIRST: (third, first, second),
        YEAR_AHEAD: (first, second, third),
    }[order]
    return _padded(year, month, day)


def _padded(year: str, month: str | int, day: str) -> str:
    """A date as year-month-day, with the century where it is left out."""
    century = "" if len(year) == 4 else "19" if int(year) >= FIRST_OF_1900S else "20"
    return f"{century}{year}-{int(month):02}-{int(day):02}"


def _month(name: str) -> int:
    return MONTHS.index(name[:3].lower()) + 1


def _order(text: pd.Series[Any], day_first: bool | None) -> str:
    """The order of day, month and year in which all of these dates are possible."""
    parts = text.str.extract(YEAR_LAST)
    long = parts[3].str.len() == 4
    first, second, third = (parts[k].astype(int) for k in (0, 2, 3))
    day, month = first > 12, second > 12
    # 22/03/28 may be of 2022; of days there are more than of years.
    possible = not long.any() and not month.any() and not (third > 31).any()
    ahead = possible and parts[0].str.len().eq(2).all() and third.nunique() > first.nunique()
    if day_first is not None:
        wrong = month if day_first else day
        if wrong.any():
            row = wrong.idxmax()
            begins = "day" if day_first else "month"
            raise InputError(
                f"times must begin with the {begins}, as day_first={day_first} says, got "
                f"{shown(text[row])} in row {row} (counted from 0), which can't: leave it out, or "
                "repair this row"
            )
        return DAY_FIRST if day_first else MONTH_FIRST
    if day.any() and month.any():
        one, other = (text[each.idxmax()] for each in (day, month))
        raise InputError(
            f"times must be written in one way, got {shown(one)}, which begins with the day, and "
            f"{shown(other)}, which begins with the month: read them with pandas.to_datetime"
        )
    if possible and (first > 31).any():
        return YEAR_AHEAD
    if ahead or not (day.any() or month.any() or (first == second).all()):
        row = int(np.argmax(first.to_numpy() != second.to_numpy()))
        begin = "the year, the day or the month" if ahead else "the day or the month"
        raise AmbiguousDates(
            f"times such as {shown(text.iloc[row])} may begin with {begin}, and no row tells: pass "
            "day_first=True or day_first=False, or write them as year-month-day"
        )
    return DAY_FIRST if day.any() else MONTH_FIRST


def _replaced(
    text: pd.Series[Any], where: pd.Series[Any], pattern: str, by: str | Callable[[Any], str]
) -> pd.Series[Any]:
    """The texts with the pattern replaced in some of them."""
    if not where.any():
        return text
    return text.where(~where, text[where].str.replace(pattern, by, regex=True))


def _has(text: pd.Series[Any], pattern: str) -> pd.Series[Any]:
    """Whether each text has the pattern in it; pandas would warn of groups in it."""
    search = re.compile(pattern).search
    return text.map(lambda each: search(each) is not None).astype(bool)


def _parsed(text: pd.Series[Any], spelled: pd.Series[Any]) -> pd.Series[Any] | None:
    """Datetimes of the text; None if there is no date in it."""
    import pandas as pd

    dated = _has(spelled, DATED)
    if not dated.any():
        return None
    found = pd.to_datetime(spelled.where(dated), errors="coerce", format="mixed", utc=True)
    wrong = np.flatnonzero(found.isna())
    if len(wrong) == len(found) and not _has(spelled, SURELY_DATED).any():
        return None
    if len(wrong):
        raise InputError(
            f"times must be dates throughout, got {shown(text[wrong[0]])} in row {wrong[0]} "
            f"(counted from 0), which is none ({len(wrong)} such rows): drop or repair them, "
            "or pass a pandas Categorical if they are labels"
        )
    return found.dt.tz_localize(None)
