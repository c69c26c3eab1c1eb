"""What the command says of places and dates, what it stores of them, and that it repeats it."""

import json
import tomllib

import numpy as np
import pandas as pd
import pytest

import ncbayes as ncb
from conftest import LENGTH, command
from ncbayes.fields import stored_field

pytestmark = pytest.mark.usefixtures("no_pictures")
LOUD = [word for word in LENGTH if word != "--quiet"]
SMALL = [*LOUD, "--basis", "4", "--noise", "common"]


@pytest.fixture
def events(here):
    """A file with other names, two places that were not found, and dates of days up to 12."""
    frame = pd.read_csv(here / "events.csv")
    frame = frame.rename(columns={"LONGITUDE": "X_COORD", "LATITUDE": "Y_COORD"})
    frame.loc[[3, 8], ["X_COORD", "Y_COORD"]] = 0.0
    dates = pd.to_datetime(frame["REPORT_DAT"])
    frame["DAY"] = pd.to_datetime({"year": 2023, "month": dates.dt.month, "day": 2}).dt.strftime(
        "%d/%m/%Y"
    )
    frame.to_csv(here / "places.csv", index=False)
    return frame


def fit(verb, *words):
    axes = ["--x", "X_COORD", "--y", "Y_COORD"]
    result = command(verb, "density", "places.csv", *axes, *words)
    return result, result.stderr.splitlines()


def test_dropped_points_are_counted_and_everything_is_stored(here, events):
    words = ["--time", "DAY", "--day-first", "--outline", "city.geojson", "--drop-outside"]
    result, lines = fit("fit", *words, "--every", "month", *SMALL, "--out", "run", "--json")
    assert result.exit_code == 0, result.output
    found, kept = json.loads(result.stdout), len(events) - 2
    assert found["rows"] == kept
    assert lines[0] == (
        f"ncbayes: places.csv: {kept} rows of X_COORD, Y_COORD by DAY, 2 left out outside the "
        "outline"
    )
    assert lines[1].startswith(
        "ncbayes: coordinates are taken as degrees, by the outline, which is"
    )
    assert lines[1].endswith(" km; --plane says otherwise")
    assert lines[2] == (
        f"ncbayes: 2 of {len(events)} points are left out, since they lie outside the domain (2 at "
        "(0, 0)), the first in row 4 (counted from 1, without the names) at (0, 0)"
    )
    assert lines[3].endswith("read as day/month/year: 2 months, none empty")
    table = tomllib.loads((here / "run" / "run.toml").read_text())["density"]
    assert (table["coordinates"], table["day_first"]) == ("degrees", True)
    corners = np.array(json.loads((here / "city.geojson").read_text())["coordinates"][0])
    projection = stored_field(ncb.load("run/posterior.nc").data, "here").projection
    assert projection.latitude == pytest.approx((corners.min(axis=0) + corners.max(axis=0))[1] / 2)
    again = command("fit", "run/run.toml", "--out", "again")
    assert "coordinates are in degrees, as told: " in again.stderr
    one, other = (ncb.load(f"{name}/posterior.nc") for name in ("run", "again"))
    np.testing.assert_array_equal(one.theta, other.theta)
    assert other.data.attrs["coordinate_system"] == "degrees"
    assert other.data.attrs["day_first"] == 1


@pytest.mark.usefixtures("here", "events")
def test_dates_that_can_be_read_in_two_ways_are_asked_about():
    result, lines = fit("fit", "--time", "DAY", "--out", "run")
    assert result.exit_code == 2
    assert lines == [
        "ncbayes: times such as '02/01/2023' may begin with the day or the month, and no row tells:"
        " pass --day-first or --month-first, or write them as year-month-day"
    ]


@pytest.mark.usefixtures("here")
def test_a_plan_says_the_same_and_warnings_are_never_quiet(events, monkeypatch):
    from ncbayes.cli import plans

    monkeypatch.setattr(plans, "plan", lambda made: {"rows": made.rows})
    dates = ["--time", "REPORT_DAT", "--tz", "America/New_York"]
    result, lines = fit("plan", *dates, "--degrees", "--json")
    assert json.loads(result.stdout) == {"rows": len(events)}
    assert lines[1].startswith("ncbayes: coordinates are in degrees, as told: X_COORD -30.")
    assert ", by the clock of America/New_York: " in lines[2]
    assert lines[3].startswith(
        "ncbayes: warning: 2 points lie far from the others, the first in row"
    )
    assert "row 4 (counted from 1, without the names) at (0, 0)" in lines[3]
    assert lines[3].endswith("or leave them out by --outline with --drop-outside")
    assert fit("plan", *dates, "--degrees", "--json", "--quiet")[1] == lines[3:4]
    plane = fit("plan", "--time", "REPORT_DAT", "--json")[1]
    assert plane[1].endswith("; if they are longitude and latitude, pass --degrees")
    assert "by the clock as it is written, of Z (--tz converts it): " in plane[2]


@pytest.mark.usefixtures("here", "events")
def test_a_spec_tells_the_same(here):
    (here / "spec.toml").write_text(
        '[data]\nfile = "places.csv"\ncolumns = ["X_COORD", "Y_COORD"]\ntime = "DAY"\n'
        '[density]\ndomain = "city.geojson"\noutside = "drop"\nday_first = false\ntz = "Mars"\n'
    )
    result = command("plan", "spec.toml")
    assert result.exit_code == 2
    assert "tz must be the name of a time zone, such as" in result.stderr
