"""Dates as people write them: none is read in one of two ways without a word."""

import datetime
import zoneinfo

import numpy as np
import pandas as pd
import pytest

import ncbayes as ncb
from ncbayes.dates import AmbiguousDates, DateStyle, checked_style, guess_numbers, read_dates
from ncbayes.periods import periods

# Days of at most 12, in three months, as a European and an American write them.
DAYS = pd.to_datetime(["2023-03-01", "2023-04-12", "2023-05-07", "2023-05-11"])
EUROPEAN, AMERICAN = DAYS.strftime("%d/%m/%Y"), DAYS.strftime("%m/%d/%Y")


def found(times, every=None, **style):
    return periods(times, every, len(times), checked_style(None, None) if not style else
                   DateStyle(**style))  # fmt: skip


def read(*times, **style):
    return read_dates(pd.Series(list(times)), DateStyle(**style))


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m-%d-%y", "%d/%m/%Y %H:%M"])
def test_dates_that_can_be_read_in_two_ways_are_asked_about(form):
    times = DAYS.strftime(form)
    message = (
        rf"^times such as '{times[0]}' may begin with the day or the month, and no row tells: pass "
        "day_first=True or day_first=False, or write them as year-month-day$"
    )
    with pytest.raises(AmbiguousDates, match=message):
        found(times, "month")
    right = form.startswith("%d")
    assert found(times, "month", day_first=right).labels == ("2023-03", "2023-04", "2023-05")
    other = found(times, "month", day_first=not right)
    assert (len(other.labels), other.labels[0]) == (12, "2023-01")


def test_one_row_that_tells_is_enough_and_what_was_found_is_kept():
    for times, day_first in (([*EUROPEAN, "13/05/2023"], True), ([*AMERICAN, "05/13/2023"], False)):
        got = found(times, "month")
        assert got.labels == ("2023-03", "2023-04", "2023-05")
        assert got.reading.style == DateStyle(day_first)
    same = found(["05/05/2023", "07/07/2023"], "month")  # the order does not matter
    assert same.labels == ("2023-05", "2023-06", "2023-07")
    # ISO dates stay what they are, whatever is said of others.
    assert found(DAYS.strftime("%Y-%m-%d"), "month", day_first=True).labels[0] == "2023-03"


def test_what_was_told_and_cannot_be_is_named():
    message = (
        r"^times must begin with the day, as day_first=True says, got '05/13/2023' in row 4 "
        r"\(counted from 0\), which can't: leave it out, or repair this row$"
    )
    with pytest.raises(ncb.InputError, match=message):
        found([*AMERICAN, "05/13/2023"], day_first=True)
    with pytest.raises(ncb.InputError, match="begin with the month, as day_first=False says"):
        found([*EUROPEAN, "13/05/2023"], day_first=False)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2022-03-05", "year-month-day"),
        ("2022/3/5", "year-month-day"),
        ("2022.03.05 10:00", "year-month-day"),
        ("20220305", "yyyymmdd"),
        (20220305, "yyyymmdd"),
        ("25/03/2022", "day/month/year"),
        ("3/25/22", "month/day/year"),
        ("Fri 03/25/2022 1:05 PM", "month/day/year"),
        ("97/03/25", "year/month/day"),
        ("25 March 2022", "day, name of the month, year"),
        ("25-Mar-22", "day, name of the month, year"),
        ("25MAR2022", "text such as '25MAR2022'"),
        ("March 25, 2022", "text such as 'March 25, 2022'"),
        ("Mar-22", "name of the month, year"),
        ("february 2022", "name of the month, year"),
        ("2022-03", "year-month"),
        (202203, "yyyymm"),
        ("2022 Q1", "year and quarter"),
        (datetime.date(2022, 3, 5), "dates"),
        (np.datetime64("2022-03-05"), "dates"),
        (pd.Period("2022-03"), "calendar periods"),
    ],
)
def test_the_form_is_named(text, form):
    got = found([text, text], "quarter")
    assert got.reading.form == form
    assert got.labels == ("1997-Q1" if "97" in str(text) else "2022-Q1",)


def test_words_that_only_begin_like_a_month_are_labels():
    assert found(["market 22", "decade 90", "mayor 12"]).reading.form.startswith("labels")


def test_two_digit_years_that_may_be_days():
    dates = pd.date_range("2022-03-01", periods=40)
    with pytest.raises(AmbiguousDates, match="'22/03/01' may begin with the year, the day or the"):
        found(dates.strftime("%y/%m/%d"))
    european = found(dates.strftime("%d/%m/%y"), "month")
    assert european.labels == ("2022-03", "2022-04")
    assert read("1/2/68", "25/2/69").values.dt.year.tolist() == [2068, 1969]


def test_numbers_of_the_calendar_are_dates_and_others_are_not():
    """From December to January is one month, and not 89 units of a number."""
    got = found([202111, 202112, 202201, 202202] * 20)
    assert got.labels == ("2021-11", "2021-12", "2022-01", "2022-02")
    assert got.places is None
    assert found([20220131, 20220201], "month").labels == ("2022-01", "2022-02")
    assert found([202112, 202201], 1).reading.form == "numbers"  # a width is for numbers
    for times in ([202112, 202213], [20220230.5, 20220201], [123456, 123457], [2021, 2022]):
        assert found(times).reading.form == "numbers"
    assert found([2021, 2023], "year").labels == ("2021", "2022", "2023")
    with pytest.raises(ncb.InputError, match="every must be a positive number where times are num"):
        found([1.5, 2.5], "year")


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1640995200, 1672444800, 'since 1970, 2022-01-01 to 2022-12-31, pass .*unit="s"'),
        (1640995200e3, 1672444800e3, 'milliseconds .* 2022-01-01 to 2022-12-31, pass .*unit="ms"'),
        (44562, 44926, '2022-01-01 to 2022-12-31, .*unit="D", origin="1899-12-30"'),
    ],
)
def test_numbers_that_may_be_dates_are_told_with_the_cure(low, high, words):
    import re

    assert re.search(words, guess_numbers(low, high))
    many = np.linspace(low, high, 500)
    with pytest.raises(ncb.InputError, match=f"times make 500 groups, .*{words}"):
        found(many)
    with pytest.raises(ncb.InputError, match=f"every must be a positive number .*{words}"):
        found(many, "month")
    assert guess_numbers(0, 100) == ""


LATE = ["2022-02-01T02:34:28Z", "2022-08-01 03:00:00+00:00", "2022/03/01 04:59:59 +0000"]


@pytest.mark.parametrize("tz", ["America/New_York", zoneinfo.ZoneInfo("America/New_York")])
def test_months_of_a_zone_begin_at_its_midnight(tz):
    style = checked_style(None, tz)
    assert style.tz == "America/New_York"
    local = read(*LATE, tz=style.tz).values
    assert local.dt.month.tolist() == [1, 7, 2]
    assert local.astype(str).tolist()[0].startswith("2022-01-31 21:34:28")
    assert read(*LATE).values.dt.month.tolist() == [2, 8, 3]
    aware = pd.Series(pd.to_datetime(LATE, format="mixed", utc=True))
    assert read_dates(aware, style).values.tolist() == local.tolist()
    # Offsets that differ from row to row, as with daylight saving time.
    mixed = read("2022-01-31T23:30:00-05:00", "2022-07-31T23:30:00-0400", tz="UTC").values
    assert mixed.astype(str).tolist() == ["2022-02-01 04:30:00", "2022-08-01 03:30:00"]
    basic = read("20220201T023428Z", "20220801T0300+0000", tz=style.tz).values
    assert basic.dt.month.tolist() == [1, 7]
    plain = read("2022-01-31 23:30", tz="UTC")
    assert plain.values.dt.month.tolist() == [1]
    assert plain.clock.endswith("taken as that of UTC since no date names a zone")
    assert checked_style(None, datetime.UTC).tz == "UTC"


def test_whose_clock_it_is_is_said():
    assert read(*LATE).clock == "by the clock as it is written, of +0000 to Z (tz= converts it)"
    assert read(*LATE, tz="UTC").clock == "by the clock of UTC"
    assert read("2022-02-01", "2022-03-01").clock == ""
    assert read("2022-02-01 10:00:00 EST").values[0] == pd.Timestamp("2022-02-01 10:00")


@pytest.mark.parametrize(
    ("times", "style", "message"),
    [
        (
            ["2022-02-01 10:00Z", "2022-02-02 10:00"],
            {"tz": "UTC"},
            r"all or none .* in row 1 \(cou",
        ),
        (["2022-02-01 10:00 EST"], {"tz": "UTC"}, "name zones by offset where tz= is given, as in"),
    ],
)
def test_zones_that_are_not_known(times, style, message):
    with pytest.raises(ncb.InputError, match=message):
        read(*times, **style)


@pytest.mark.parametrize("tz", ["Mars/Base", "", 5, ["UTC"], "../etc", "America"])
def test_names_that_are_no_zone(tz):
    with pytest.raises(ncb.InputError, match="tz must be the name of a time zone, such as"):
        checked_style(None, tz)


@pytest.mark.parametrize("day_first", ["yes", 1, [True]])
def test_day_first_is_a_switch(day_first):
    with pytest.raises(ncb.InputError, match="day_first must be True, False or None, got"):
        checked_style(day_first, None)


def test_a_period_chosen_for_the_user_has_few_empty_ones():
    """Years as text are dates of January, and 800 points would do for months otherwise."""
    assert found(["2021", "2022", "2023"] * 300).labels == ("2021", "2022", "2023")
    assert found(["2022-01", "2022-02"] * 600).labels == ("2022-01", "2022-02")
