"""Time stamps as groups: dates by the calendar, numbers, labels, and what is neither."""

import datetime
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ncbayes as ncb
from ncbayes.periods import FEWEST_POINTS, MOST_DISTINCT, MOST_GROUPS, periods

DAYS = ["2022-03-05", "2022-01-31", "2022-01-01", "2022-03-01", "2022-05-31"]
MONTHS = ("2022-01", "2022-02", "2022-03", "2022-04", "2022-05")
INDEX = [2, 0, 0, 2, 4]


def found(times, every=None):
    return periods(times, every, len(times))


FORMS = {
    "text": DAYS,
    "datetimes": [datetime.datetime.fromisoformat(day) for day in DAYS],
    "dates": [datetime.date.fromisoformat(day) for day in DAYS],
    "numpy": np.array(DAYS, "datetime64[D]"),
    "timestamps": [pd.Timestamp(day) for day in DAYS],
    "a series with an index": pd.Series(pd.to_datetime(DAYS), index=[9, 7, 7, 1, 0]),
    "polars": pl.Series(DAYS).str.to_date(),
    "with a zone": pd.to_datetime(DAYS).tz_localize("America/New_York"),
    "periods": pd.PeriodIndex(DAYS, freq="D"),
    "periods of months": pd.PeriodIndex(DAYS, freq="M"),
    "in words": ["March 5, 2022", "31 Jan 2022", "1 Jan 2022", "Mar 1 2022", "31 May 2022"],
    "in several ways": ["2022/03/05 23:59", *DAYS[1:]],
    "the day first": ["05/03/2022", "31/01/2022", "01/01/2022", "01/03/2022", "31/05/2022"],
    "the day first, with dots": ["5.3.2022", "31.1.2022", "1.1.2022", "1.3.2022", "31.5.2022"],
    "the month first": ["03/05/2022", "01/31/2022", "01/01/2022", "03/01/2022", "05/31/2022"],
    "months": ["2022-03", "2022-01", "2022-01", "2022-03", "2022-05"],
}


@pytest.mark.parametrize("times", FORMS.values(), ids=FORMS)
def test_dates_come_in_many_forms_and_any_order(times):
    got = found(times, "month")
    assert got.labels == MONTHS  # February and April have no points
    assert got.index.tolist() == INDEX
    assert got.starts.dtype == "datetime64[ns]"
    assert got.starts.tolist() == np.array(MONTHS, "datetime64[ns]").tolist()
    assert got.places is None


def test_clocks_are_those_on_the_wall():
    """The last minute of January in New York is in January, though February has begun in UTC."""
    late = pd.Timestamp("2022-01-31 23:59", tz="America/New_York")
    summer = pd.Timestamp("2022-07-31 23:59", tz="America/New_York")
    for times in (
        pd.Series([late, summer]),
        [late.isoformat(), summer.isoformat()],
        ["2022-01-31T23:59:00Z", "2022-07-31 23:59:30.25 +0530"],
        ["2022-01-31 23:59 UTC", "2022-07-31 23:59:59-04"],
        [late, summer.tz_convert(None).tz_localize("UTC").tz_convert("America/New_York")],
    ):
        labels = found(times, "month").labels
        assert (labels[0], labels[-1]) == ("2022-01", "2022-07")


@pytest.mark.parametrize(
    ("every", "labels", "index"),
    [
        ("day", ("2022-01-02", "2022-01-03", "2022-01-04"), [1, 0, 2, 1]),
        ("week", ("2021-12-27", "2022-01-03"), [1, 0, 1, 1]),  # weeks begin on Mondays
        ("month", ("2022-01",), [0] * 4),
        ("quarter", ("2022-Q1",), [0] * 4),
        ("year", ("2022",), [0] * 4),
    ],
)
def test_periods_of_the_calendar(every, labels, index):
    got = found(["2022-01-03", "2022-01-02 23:59", "2022-01-04", "2022-01-03 01:00"], every)
    assert got.labels == labels
    assert got.index.tolist() == index


def test_quarters_and_years():
    got = found(["2022-11-05", "2021-12-31", "2022-04-01"], "quarter")
    assert got.labels == ("2021-Q4", "2022-Q1", "2022-Q2", "2022-Q3", "2022-Q4")
    assert got.index.tolist() == [4, 0, 2]
    again = found(["2022-Q4", "2021Q4", "2022 q2"], "quarter")
    assert (again.labels, again.index.tolist()) == (got.labels, got.index.tolist())
    got = found(["2022", "2019", "2020"], "year")
    assert got.labels == ("2019", "2020", "2021", "2022")
    assert got.starts[0] == np.datetime64("2019-01-01")


@pytest.mark.parametrize(
    ("days", "each", "every"),
    [
        (30, FEWEST_POINTS, "day"),
        (30, FEWEST_POINTS - 1, "week"),
        (MOST_GROUPS, FEWEST_POINTS, "day"),
        (MOST_GROUPS + 1, FEWEST_POINTS, "week"),
        (365, 2, "month"),
        (365, 0.3, "quarter"),
        (365, 0.03, "year"),
    ],
)
def test_without_every_the_shortest_period_with_enough_points_is_taken(days, each, every):
    count = round(days * each)
    stamps = pd.Timestamp("2022-01-03") + pd.to_timedelta(np.linspace(0, days - 1, count), "D")
    assert found(stamps).labels == found(stamps, every).labels


def test_numbers_are_groups_in_order_at_their_distances():
    numbers = [5.0, 1.5, 2.0, 5.0]
    for times in (numbers, pl.Series(numbers), [Decimal(5), Decimal("1.5"), 2, 5.0]):
        got = found(times)
        assert got.labels == ("1.5", "2", "5")
        assert got.index.tolist() == [2, 0, 1, 2]
        assert got.starts.tolist() == got.places.tolist() == [1.5, 2, 5]


def test_numbers_that_differ_by_rounding_are_one_group():
    got = found([0.1 + 0.2, 0.3, 0.4])
    assert got.labels == ("0.3", "0.4")
    assert got.index.tolist() == [0, 0, 1]
    assert (np.diff(got.places) > 0).all()
    assert found([0.0, -0.0]).labels == ("0",)


def test_numbers_are_put_together_by_width():
    got = found([7.9, 1.0, 2.4, 2.0, 7], 2)
    assert got.labels == ("0", "2", "4", "6")
    assert got.index.tolist() == [3, 0, 1, 1, 3]
    assert got.starts.tolist() == [0, 2, 4, 6]
    assert got.places is None  # equally spaced, with an empty group
    # 0.3 / 0.1 lies below 3, and -0.1 above -1 tenth, by rounding alone.
    tenths = np.arange(-5, 50) / 10
    assert found(tenths, 0.1).index.tolist() == list(range(55))


def test_labels_keep_their_order():
    got = found(["spring", "autumn", "spring", "winter"])
    assert got.labels == ("spring", "autumn", "winter")
    assert got.index.tolist() == [0, 1, 0, 2]
    assert got.starts is None
    assert got.places is None
    seasons = ["winter", "spring", "summer", "autumn"]
    got = found(pd.Categorical(["spring", "autumn", "spring"], categories=seasons))
    assert got.labels == tuple(seasons)
    assert got.index.tolist() == [1, 3, 1]
    assert found(pd.Categorical([3, 1, 2])).labels == ("1", "2", "3")


@pytest.mark.parametrize(
    "labels",
    [["may", "june"], ["site 1234", "site 1235"], ["12:30", "13:30"], ["v1.2", "v1.3"],
     ["before", "after"], ["1.5", "1.25"], [True, False], [datetime.time(1), datetime.time(0, 30)],
     ["12:30-13:00", "13:00-13:30"]],
    ids=str,
)  # fmt: skip
def test_what_only_looks_like_a_date_is_a_label(labels):
    assert found(labels).labels == tuple(map(str, labels))


@pytest.mark.parametrize(
    "times",
    [None, 3, "date", np.ones((4, 1)), pd.DataFrame({"t": [1, 2, 3, 4]}), [[1], [2, 3], 4, 5],
     {1: 2}, [(1, 2)] * 4, pd.MultiIndex.from_tuples([(1, 2)] * 4), iter([1, 2, 3, 4])],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
def test_times_are_one_column(times):
    message = (
        "^times must hold one time stamp for each of the 4 points, such as a column of dates, got "
    )
    with pytest.raises(ncb.InputError, match=message):
        periods(times, None, 4)


def refused(times, message, every=None):
    with pytest.raises(ncb.InputError, match=re.escape(message)):
        found(times, every)


def test_there_are_as_many_times_as_points():
    with pytest.raises(ncb.InputError, match=r"for each of the 4 points, .* dates, got 3$"):
        periods([1, 2, 3], None, 4)


@pytest.mark.parametrize(
    "times",
    [[1.0, 2.0, np.nan, np.nan], ["2022", "2021", None, None],
     pd.to_datetime(["2022", "2022", None, None]),
     pd.array([1, 2, None, None], dtype="Int64"), pd.Categorical(["a", "b", None, None])],
    ids=str,
)  # fmt: skip
def test_missing_times_are_named(times):
    refused(times, "times must not be missing, got 2 missing, the first in row 2 (counted from 0): "
            "drop these rows")  # fmt: skip


def test_infinite_times_are_named():
    refused([1.0, np.inf], "times must be finite, got inf in row 1 (counted from 0)")


@pytest.mark.parametrize("times", [np.array([1, 2], "m8[D]"), np.array([1j, 2])], ids=str)
def test_lengths_of_time_and_complex_numbers_are_no_times(times):
    refused(times, f"times must be dates, real numbers or labels, got {pd.Series(times).dtype}: "
            "pass real numbers, such as times / np.timedelta64(1, 'D') for days")  # fmt: skip


@pytest.mark.parametrize(
    ("times", "first", "row", "rows"),
    [
        (["2022-01-05", "2022-13-45", "2022-02-30"], "2022-13-45", 1, 2),
        (["2022-01-05", "2022-01-06", "unknown"], "unknown", 2, 1),
        (["2022-01-05", 7], "7", 1, 1),
        (["2022-13-01", "2022-14-01"], "2022-13-01", 0, 2),
    ],
)
def test_dates_that_are_none_are_named(times, first, row, rows):
    refused(times, f"times must be dates throughout, got {first!r} in row {row} (counted from 0), "
            f"which is none ({rows} such rows): drop or repair them, or pass a pandas Categorical "
            "if they are labels")  # fmt: skip


def test_dates_are_written_in_one_way():
    refused(["13/01/2022", "01/14/2022"], "times must be written in one way, got '13/01/2022', "
            "which begins with the day, and '01/14/2022', which begins with the month: read them "
            "with pandas.to_datetime")  # fmt: skip


@pytest.mark.parametrize("year", ["0001", "1677", "2262"])
def test_dates_far_from_ours_are_refused(year):
    refused([f"{year}-01-01"] * 2, f"times must be dates from 1678 to 2261, got {year}-01-01 "
            "00:00:00 in row 0 (counted from 0): pass numbers, such as years")  # fmt: skip


@pytest.mark.parametrize("every", ["fortnight", 5, "", True, ["month"], np.array([1, 2])])
def test_dates_have_periods_of_the_calendar(every):
    refused(DAYS, "every must be one of 'day', 'week', 'month', 'quarter', 'year' for dates, or "
            "None, got ", every)  # fmt: skip


@pytest.mark.parametrize("every", ["month", 0, -1, np.nan, np.inf, True, [1.0]])
def test_numbers_have_widths(every):
    refused([1, 2], "every must be a positive number where times are numbers, or None, got ", every)


@pytest.mark.parametrize("every", ["month", 3])
def test_labels_are_not_put_together(every):
    refused(["a", "b"], "every is for dates and numbers, and times are labels such as 'a', got "
            f"every={every!r}; leave it out", every)  # fmt: skip


@pytest.mark.parametrize(
    ("times", "every", "count", "remedy"),
    [
        (range(401), None, "401", "every=width to put numbers together"),
        ([0, 400], 1, "401", "a larger every="),
        ([-1e300, 1e300], 1e-300, "inf", "a larger every="),
        ([1.0, 1.0], 1e-320, "inf", "a larger every="),
        (["1990-01-01", "2022-01-01"], "day", "11689", "a longer period, such as every=\"month\""),
        ([f"x{k}" for k in range(401)], None, "401", "dates or numbers instead of labels"),
    ],
)  # fmt: skip
def test_too_many_groups_are_most_likely_a_mistake(times, every, count, remedy):
    assert len(found(range(MOST_DISTINCT)).labels) == MOST_DISTINCT
    refused(times, f"times make {count} groups, more than 400; use {remedy}", every)


def test_groups_that_look_the_same_are_refused():
    message = "times must differ when they are written as text, got two groups that are both called"
    refused(pd.Categorical([1, "1"], categories=[1, "1"]), f"{message} '1': rename one of them")
    refused([1e6, 1e6 + 1e-8], f"{message} '1000000'", 1e-9)
