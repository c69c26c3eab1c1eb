"""Small files of data, the command in this process, and two finished runs that tests share."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ncbayes as ncb
from ncbayes.cli import app

LENGTH = ["--draws", "20", "--tune", "10", "--chains", "2", "--seed", "1", "--quiet"]
SHORT = [*LENGTH, "--noise", "matched"]
NAMES = ["CA1", "CA3", "DG"]
PLACES = ["--x", "LONGITUDE", "--y", "LATITUDE", "--time", "REPORT_DAT"]


def command(*words):
    try:
        runner = CliRunner(mix_stderr=False)  # before typer 0.16 and click 8.2
    except TypeError:
        runner = CliRunner()
    return runner.invoke(app, [str(word) for word in words])


def listing(folder):
    """Every file in a folder, with what it holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def write_files(folder):
    """One file of each kind of data."""
    angles = ncb.datasets.torus_chain(n=40, nodes=3, seed=1).data
    frame = pd.DataFrame(np.rad2deg(angles), columns=NAMES).round(3)
    frame.to_csv(folder / "angles.csv", index=False)
    frame.assign(task=["go", "stop"] * 20).to_csv(folder / "trials.csv", index=False)
    np.save(folder / "angles.npy", angles)
    votes = np.random.default_rng(1).random((60, 4)) < 0.4
    pd.DataFrame(votes.astype(int), columns=list("abcd")).to_csv(folder / "votes.csv", index=False)
    city = ncb.datasets.incidents(months=2, seed=1)
    city.save(folder / "events.csv")
    (folder / "city.geojson").write_text(json.dumps(city.outline))
    return folder


@pytest.fixture(scope="session", autouse=True)
def _small_pictures():
    from ncbayes.cli import readouts

    readouts.DPI = 30


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
def graph_run(files):
    """A finished run of three angles, with its pictures."""
    out = files / "graph-run"
    result = command("fit", "torus", files / "angles.csv", *SHORT, "--out", out)
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="session")
def density_run(files):
    """A finished run of a density in two months, with its pictures."""
    out = files / "density-run"
    options = [*PLACES, "--every", "month", "--basis", "6", *LENGTH, "--noise", "common"]
    result = command("fit", "density", files / "events.csv", *options, "--out", out)
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture
def no_pictures(monkeypatch):
    from ncbayes.cli import readouts

    monkeypatch.setattr(readouts, "pictures", lambda posterior: iter(()))


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A folder of its own with the files, in which the test stands."""
    for path in files.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
