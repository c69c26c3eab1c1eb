"""The demo: both kinds of fits from simulated data to one page. The README's test runs it whole."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import ncbayes as ncb
from conftest import command, listing
from ncbayes.cli import demonstration, jobs, specs

RUN = {"posterior.nc", "run.toml", "summary.csv", "trace.png", "noise.png", "predictions.png"}
WRITTEN = {"angles.csv", "events.csv", "city.geojson", "report.html", "graph", "density"}


@pytest.fixture
def small(monkeypatch):
    """Fits that take seconds."""
    monkeypatch.setattr(demonstration, "NODES", 3)
    monkeypatch.setattr(demonstration, "MONTHS", 2)


def stub(made, run, keep, quiet):
    """In the place of a fit: files of the right names."""
    (run / "posterior.nc").write_text(run.name)
    return {"chains": 4, "draws": 100, "seconds": 1.0}


@pytest.fixture
def no_fits(monkeypatch):
    monkeypatch.setattr(jobs, "fitted", stub)
    for name in ("_show_edges", "_show_change", "_write_report"):
        monkeypatch.setattr(demonstration, name, lambda *_: None)


@pytest.mark.usefixtures("small")
def test_demo_fits_a_graph_and_a_density_and_writes_one_page_of_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = command("demo", "--draws", "100", "--out", "out")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert re.findall(r"^\[(\d)/4\]", result.stdout, re.MULTILINE) == ["1", "2", "3", "4"]
    assert re.search(r"\d of the 2 true edges, \d false", result.stdout)
    assert re.search(r"it rose in \d+ % of the city and fell in \d+ %", result.stdout)
    assert "ncbayes: writing draws, tables and pictures to graph/" in result.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == WRITTEN
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    graph, density = (
        {path.name for path in (tmp_path / "out" / name).iterdir()} for name in ("graph", "density")
    )
    assert graph == RUN | {"edges.csv", "network.png", "adjacency.png"}
    assert density == RUN | {"maps.png", "change.png"}
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    fits = json.loads(re.search(r'id="data">(.*?)</script', text, re.DOTALL)[1])["fits"]
    assert ["network" in fits[0]["view"], "map" in fits[1]["view"]] == [True, True]
    for fit, name in zip(fits, ("graph", "density"), strict=True):
        words = fit["repeat"]["command"].split()
        assert words == ["ncbayes", "fit", f"out/{name}/run.toml"]
        # It is a run like others, with data that are found beside it.
        assert jobs.ready(specs.read(Path(words[2]))).rows
        assert ncb.load(tmp_path / "out" / name / "posterior.nc").theta.sizes["draw"] == 100
    assert pd.read_csv("out/angles.csv").shape == (200, 3)
    assert result.stdout.endswith(
        "With these angles or yours:\n  ncbayes fit torus out/angles.csv\n"
    )


@pytest.mark.usefixtures("no_fits")
def test_demo_replaces_only_a_demo_and_only_when_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("demo").exit_code == 0
    before = listing(tmp_path)
    assert set(before) > {"ncbayes-demo/angles.csv", "ncbayes-demo/graph/posterior.nc"}
    result = command("demo", "--seed", "2")
    assert result.exit_code == 2
    assert result.stderr == (
        "ncbayes: 'ncbayes-demo' holds a demo; name another folder by --out, or pass --overwrite\n"
    )
    assert listing(tmp_path) == before
    assert command("demo", "--seed", "2", "--overwrite").exit_code == 0
    after = listing(tmp_path)
    assert set(after) == set(before)
    assert after["ncbayes-demo/angles.csv"] != before["ncbayes-demo/angles.csv"]
    (tmp_path / "ncbayes-demo" / "thesis.txt").write_text("mine")
    result = command("demo", "--overwrite")
    assert result.exit_code == 2
    assert "holds 'thesis.txt', which is not the demo's; name another folder" in result.stderr
    result = command("demo", "--out", "ncbayes-demo/angles.csv")
    assert result.exit_code == 2
    assert "is a file; --out must be the name of a folder" in result.stderr
    result = command("demo", "--out", "ncbayes-demo/angles.csv/new")
    assert result.exit_code == 2
    assert "ncbayes: can't write to 'ncbayes-demo/angles.csv/new': Not a dir" in result.stderr


@pytest.mark.usefixtures("no_fits")
@pytest.mark.parametrize("error", [KeyboardInterrupt, jobs.Stopped])
def test_demo_that_is_stopped_leaves_all_as_it_was(tmp_path, monkeypatch, error):
    monkeypatch.chdir(tmp_path)

    def stopped(made, run, keep, quiet):
        if run.name == "density":
            raise error
        return stub(made, run, keep, quiet)

    monkeypatch.setattr(jobs, "fitted", stopped)
    result = command("demo", "--out", "new/place")
    assert result.exit_code == 130
    assert result.stderr.endswith(
        "ncbayes: stopped, and nothing was written; the same command starts again\n"
    )
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(jobs, "fitted", stub)
    assert command("demo", "--out", "place").exit_code == 0
    before = listing(tmp_path)
    monkeypatch.setattr(jobs, "fitted", stopped)
    assert command("demo", "--out", "place", "--overwrite", "--seed", "2").exit_code == 130
    assert listing(tmp_path) == before


@pytest.mark.usefixtures("no_fits")
def test_demo_takes_a_folder_that_is_empty_and_what_a_killed_one_left(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / ".here.part").mkdir()
    (tmp_path / ".here.part" / "graph").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = command("demo", "--out", ".")
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert WRITTEN - {"report.html"} == {path.name for path in (tmp_path / "here").iterdir()}
