from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ncbayes.base import InputError
from ncbayes.datasets import Incidents, load_crime

# Beside the checkout, where there is one; never part of it.
REAL = Path(__file__).parents[3] / "shared" / "data" / "dc_gun_assaults_2022.csv"

PORTAL = """\
X,Y,CCN,REPORT_DAT,SHIFT,METHOD,OFFENSE,WARD,LATITUDE,LONGITUDE
1,2,3,2022-01-01T02:34:28Z,EVENING,GUN,ASSAULT W/DANGEROUS WEAPON,8,38.8361006291,-77.0019350031
1,2,3,2022/01/02 23:59:59+00,DAY,GUN,ASSAULT W/DANGEROUS WEAPON,8,38.9,-77.1
1,2,3,2022-01-03T01:00:00.000Z,DAY,KNIFE,ASSAULT W/DANGEROUS WEAPON,8,38.91,-77.11
1,2,3,2022-01-04T01:00:00-05:00,DAY,GUN,ROBBERY,8,38.92,-77.12
1,2,3,2022-01-05,DAY, gun ,Assault w/Dangerous Weapon,8,38.93,-77.13
1,2,3,2022-01-06T01:00:00Z,DAY,GUN,ASSAULT W/DANGEROUS WEAPON,8,,-77.14
1,2,3,,DAY,GUN,ASSAULT W/DANGEROUS WEAPON,8,38.94,-77.15
1,2,3, ,DAY,GUN,ASSAULT W/DANGEROUS WEAPON,8,38.94,
1,2,3,2022-01-08T01:00:00Z,DAY,,,8,38.95,-77.16
"""


@pytest.fixture
def portal(tmp_path):
    path = tmp_path / "portal.csv"
    path.write_text(PORTAL)
    return path


def changed(path, old, new):
    assert old in PORTAL
    path.write_text(PORTAL.replace(old, new))
    return path


def test_the_papers_kind_is_kept_and_the_rest_is_counted(portal):
    found = load_crime(portal)
    assert found.points.columns.tolist() == ["LONGITUDE", "LATITUDE"]
    expected = [[-77.0019350031, 38.8361006291], [-77.1, 38.9], [-77.13, 38.93]]
    assert found.points.to_numpy().tolist() == expected
    assert found.points.dtypes.tolist() == [np.float64] * 2
    days = ["2022-01-01 02:34:28", "2022-01-02 23:59:59", "2022-01-05"]
    assert found.times.tolist() == [pd.Timestamp(day) for day in days]
    assert found.times.dt.tz is None
    assert found.kinds["METHOD"].tolist() == ["GUN", "GUN", "gun"]
    assert found.dropped == {"missing coordinates": 2, "missing dates": 1}
    assert found.outline is None
    indices = [part.index.tolist() for part in (found.points, found.times, found.kinds)]
    assert indices == [[0, 1, 2]] * 3


def test_dates_with_a_zone_can_be_converted(portal):
    found = load_crime(portal, tz="America/New_York")
    days = ["2021-12-31 21:34:28", "2022-01-02 18:59:59", "2022-01-05"]
    assert found.times.tolist() == [pd.Timestamp(day) for day in days]
    assert found.times.dtype == load_crime(portal).times.dtype
    robbery = load_crime(portal, offense="robbery", tz="UTC")  # one o'clock, five hours behind
    assert robbery.times.tolist() == [pd.Timestamp("2022-01-04 06:00")]
    with pytest.raises(InputError, match="tz must be the name of a time zone"):
        load_crime(portal, tz="Washington")


def test_other_kinds_or_all(portal):
    assert load_crime(portal, method="knife").points["LATITUDE"].tolist() == [38.91]
    assert len(load_crime(portal, method=None).points) == 4
    robbery = load_crime(portal, offense="ROBBERY")
    # The clock stays as it stands in the file, whatever the zone.
    assert robbery.times[0] == pd.Timestamp("2022-01-04 01:00:00")
    everything = load_crime(portal, method=None, offense=None)
    assert len(everything.points) == 6
    assert everything.kinds["METHOD"].isna().sum() == 1
    assert everything.dropped == {"missing coordinates": 2, "missing dates": 1}


def test_columns_in_any_order_and_case(portal):
    expected = load_crime(portal)
    table = pd.read_csv(portal, dtype=str)
    table = table[table.columns[::-1]].rename(columns=lambda name: f" {name.lower()}")
    table.to_csv(portal, index=False, encoding="utf-8-sig")
    found = load_crime(str(portal))
    assert found.points.equals(expected.points)
    assert found.times.equals(expected.times)


def test_what_is_saved_is_read_back(portal, tmp_path):
    found = load_crime(portal, method=None, offense=None)
    found.save(tmp_path / "again.csv")
    again = load_crime(tmp_path / "again.csv", method=None, offense=None)
    assert again.points.equals(found.points)
    assert again.times.equals(found.times)
    assert again.kinds.equals(found.kinds)
    assert again.dropped == {"missing coordinates": 0, "missing dates": 0}
    first = (tmp_path / "again.csv").read_text().splitlines()[:2]
    assert first[0] == "REPORT_DAT,METHOD,OFFENSE,LATITUDE,LONGITUDE"
    assert first[1].startswith("2022-01-01T02:34:28Z,GUN,ASSAULT W/DANGEROUS WEAPON,38.8361006291,")


def test_places_where_nothing_can_be_saved(portal, tmp_path):
    found = load_crime(portal)
    for path in (tmp_path / "none" / "x.csv", tmp_path, 3):
        with pytest.raises(InputError, match="it must be a file in a folder that exists"):
            found.save(path)


@pytest.mark.parametrize("path", ["none.csv", ".", 3, None])
def test_files_that_are_not_there(path):
    with pytest.raises(InputError, match=r"there is no file .*; pass the path of a CSV file"):
        load_crime(path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00\x81", b'a,b\n1,2\n3,4,5\n"'])
def test_files_that_are_no_csv(tmp_path, content):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.csv cannot be read as a CSV file \(.*\); download"):
        load_crime(tmp_path / "x.csv")


def test_columns_that_are_missing(portal):
    with pytest.raises(
        InputError, match=r"portal\.csv has no column METHOD; it needs REPORT_DAT, M"
    ):
        load_crime(changed(portal, "METHOD", "WAY"))
    with pytest.raises(InputError, match=r"no column METHOD and none LATITUDE; .* and has 'X, Y, "):
        load_crime(changed(portal, "METHOD,OFFENSE,WARD,LATITUDE", "WAY,OFFENSE,WARD,NORTH"))


def test_nothing_left(portal):
    message = (
        r"portal\.csv has no rows with method='AXE' and offense=None; METHOD there is "
        r"\['GUN', 'KNIFE', 'gun'\], OFFENSE there is \['ASSAULT W/DANGEROUS WEAPON', .*"
        "pass one of these, or None for all"
    )
    with pytest.raises(InputError, match=message):
        load_crime(portal, method="AXE", offense=None)
    portal.write_text(PORTAL.splitlines()[0])
    with pytest.raises(InputError, match=r"portal\.csv has column names but no rows"):
        load_crime(portal)
    lines = PORTAL.splitlines()
    portal.write_text("\n".join([lines[0], lines[6], lines[7]]))
    with pytest.raises(InputError, match=r"none of the 2 rows of portal\.csv that were asked for"):
        load_crime(portal)


@pytest.mark.parametrize("date", ["soon", "2022-13-01", "20th May", "1/2/2022 3:04:05 AM", "5"])
def test_dates_that_are_none(portal, date):
    path = changed(portal, "2022-01-05", date)
    with pytest.raises(InputError, match=rf"REPORT_DAT in .* got '{date}' in row 5 \(counted from"):
        load_crime(path)
    # Rows of other kinds are not looked at.
    assert len(load_crime(path, method="KNIFE").points) == 1


@pytest.mark.parametrize("place", ["north", "91", "inf", "136477.0"])
def test_places_that_are_none(portal, place):
    path = changed(portal, "38.93", place)
    with pytest.raises(
        InputError,
        match=rf"LATITUDE in .* must be degrees between -90 and 90, got '{place}' in row 5",
    ):
        load_crime(path)


@pytest.mark.parametrize("name", ["method", "offense"])
def test_kinds_that_are_no_words(portal, name):
    with pytest.raises(InputError, match=f"{name} must be one of the words in the file's column"):
        load_crime(portal, **{name: ["GUN"]})


@pytest.mark.skipif(not REAL.is_file(), reason="the crime file of 2022 is not beside the checkout")
def test_the_papers_year():
    found = load_crime(REAL)
    assert isinstance(found, Incidents)
    assert len(found.points) == len(found.times) == 850
    assert found.dropped == {"missing coordinates": 0, "missing dates": 0}
    months = found.times.dt.month.value_counts()
    assert len(months) == 12
    assert (months.min(), months.max()) == (60, 86)
    assert (found.times.dt.year == 2022).all()
    assert found.points["LONGITUDE"].between(-77.12, -76.9).all()
    assert found.points["LATITUDE"].between(38.79, 39.0).all()
    local = load_crime(REAL, tz="America/New_York").times
    assert (local.dt.year == 2021).sum() == 1
