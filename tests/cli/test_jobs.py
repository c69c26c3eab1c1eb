"""Runs: what a folder holds, that run.toml repeats it, and that a stopped run goes on."""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

import ncbayes as ncb
from conftest import LENGTH, NAMES, PLACES, SHORT, command, listing
from ncbayes import chains
from ncbayes.cli import folders, jobs, plans, readouts, specs

pytestmark = pytest.mark.usefixtures("no_pictures")


def fitted(*words):
    result = command("fit", *words)
    assert result.exit_code == 0, result.output
    return result


def theta(run):
    return ncb.load(run / "posterior.nc").theta


def same(one, other):
    return np.array_equal(theta(one).to_numpy(), theta(other).to_numpy())


def observed(run):
    return ncb.load(run / "posterior.nc").data["observed_data"]["points"].to_numpy()


@pytest.mark.parametrize("kind", ["graph", "density"])
def test_a_folder_holds_what_the_command_says(kind, graph_run, density_run):
    run = graph_run if kind == "graph" else density_run
    every = {"run.toml", "posterior.nc", "summary.csv", "trace.png", "noise.png"}
    every |= {"predictions.png"}
    own = {
        "graph": {"edges.csv", "network.png", "adjacency.png"},
        "density": {"maps.png", "change.png"},
    }
    assert set(listing(run)) == every | own[kind]
    table = pd.read_csv(run / "summary.csv", index_col="quantity")
    posterior = ncb.load(run / "posterior.nc")
    assert table.index.tolist() == posterior.summary().index.tolist()
    assert np.allclose(table["mean"], posterior.summary()["mean"])


def test_the_edges_of_a_graph_are_in_its_folder(graph_run):
    table = pd.read_csv(graph_run / "edges.csv")
    expected = ncb.graphs.edges(ncb.load(graph_run / "posterior.nc"))
    assert table["node1"].tolist() == expected["node1"].tolist()
    assert np.allclose(table["strength"], expected["strength"])


def test_run_toml_repeats_the_run_bit_for_bit(graph_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted(graph_run / "run.toml", "--quiet")
    again = tmp_path / "graph-run-again"
    assert same(graph_run, again)
    fitted(graph_run / "run.toml", "--quiet", "--seed", "2", "--out", "other")
    assert not same(graph_run, tmp_path / "other")


def test_run_toml_repeats_a_density_bit_for_bit(density_run, tmp_path):
    fitted(density_run / "run.toml", "--quiet", "--out", tmp_path / "again")
    assert same(density_run, tmp_path / "again")


def test_run_toml_holds_everything(graph_run):
    table = tomllib.loads((graph_run / "run.toml").read_text())
    assert table["data"] == {"file": "../angles.csv", "units": "degrees", "columns": NAMES}
    assert table["fit"] == {"draws": 20, "tune": 10, "chains": 2, "seed": 1}
    assert list(table["sha256"]) == ["../angles.csv"]
    assert table["ncbayes"] == ncb.__version__


def test_a_seed_is_drawn_and_written_down(here):
    short = ["--draws", "20", "--tune", "5", "--chains", "1", "--noise", "matched", "--json"]
    seeds = []
    for out in ("one", "two"):
        result = fitted("ising", "votes.csv", *short, "--out", out)
        seeds.append(json.loads(result.stdout)["seed"])
        assert tomllib.loads(Path(out, "run.toml").read_text())["fit"]["seed"] == seeds[-1]
    assert seeds[0] != seeds[1]
    assert not same(Path("one"), Path("two"))


def test_json_is_all_that_is_printed(here):
    options = [each for each in SHORT if each != "--quiet"]
    result = fitted("torus", "angles.csv", *options, "--json")
    found = json.loads(result.stdout)
    assert found["run"] == "angles-run"
    assert set(found["files"]) == {"run.toml", "posterior.nc", "summary.csv", "edges.csv"}
    assert (found["rows"], found["chains"], found["draws"]) == (40, 2, 20)
    lines = result.stderr.splitlines()
    assert lines[0] == "ncbayes: angles.csv: 40 rows of 3 columns"
    assert lines[1].startswith("ncbayes: angles are taken as degrees: values from ")
    assert all(line.startswith("ncbayes: ") for line in lines)


def test_warnings_are_one_line_each_without_a_path(here):
    result = fitted("torus", "angles.csv", *SHORT)
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("ncbayes: warning: R-hat is above 1.01 for ")
    assert "fewer than 100 effective draws a chain for " in lines[0]
    assert " e.g. ncbayes extend angles-run --draws " in lines[0]
    assert ".py" not in result.stderr
    assert result.stdout.splitlines()[-1].startswith("Next: ncbayes check angles-run, ")
    # No warning is dropped from the machines' view either.
    again = fitted("torus", "angles.csv", *SHORT, "--overwrite", "--json")
    said = [f"ncbayes: warning: {line}" for line in json.loads(again.stdout)["warnings"]]
    assert said == lines


def test_degrees_and_radians_are_the_same_angles(here, graph_run):
    fitted("torus", "angles.npy", *SHORT)
    assert np.allclose(observed(Path("angles-run")), observed(graph_run), atol=1e-4)
    table = tomllib.loads(Path("angles-run/run.toml").read_text())
    assert table["data"]["units"] == "radians"
    assert table["data"]["columns"] == ["x1", "x2", "x3"]


def test_columns_rows_and_groups_are_chosen_by_name(here):
    fitted("torus", "trials.csv", "--columns", "DG,CA1", "--group", "task", *SHORT)
    found = theta(Path("trials-run"))
    assert found["group"].to_numpy().tolist() == ["go", "stop"]
    assert "cos(DG - CA1)" in found["statistic"].to_numpy()
    edges = pd.read_csv("trials-run/edges.csv")
    assert set(edges["group"]) == {"go", "stop"}
    fitted("torus", "trials.csv", "--where", "task=go", "--no-reflectional", *SHORT, "--out", "go")
    assert len(observed(Path("go"))) == 20
    names = theta(Path("go"))["statistic"].to_numpy()
    assert not [name for name in names if "+" in name]


def test_matlab_files_with_names(here):
    angles = np.load("angles.npy")
    regions = np.array(["CA3", "CA3", "DG"], dtype=object)
    savemat("phases.mat", {"beta": angles.T, "regions": regions})
    fitted("torus", "phases.mat", "--variable", "beta", "--names", "regions", *SHORT)
    assert "cos(CA3.1 - CA3.2)" in theta(Path("phases-run"))["statistic"].to_numpy()
    assert np.allclose(observed(Path("phases-run")), angles)


def test_a_spec_with_a_model_of_ones_own(here):
    Path("own.py").write_text(
        "import numpy as np\nimport ncbayes as ncb\n\n\nclass Wave:\n"
        "    space = ncb.spaces.Torus(1)\n    groups = {'wave': ('cos', 'sin')}\n\n"
        "    def statistics(self, x):\n"
        "        return np.column_stack([np.cos(x), np.sin(x)])\n\n"
        "    def log_base(self, x):\n        return np.zeros(len(x))\n"
    )
    Path("spec.toml").write_text(
        'engine = "gibbs"\n[data]\nfile = "angles.csv"\ncolumns = ["DG"]\n'
        '[model]\nname = "own.py:Wave"\n[noise]\nname = "Uniform"\n'
        '[prior.wave]\nname = "Normal"\nscale = 2.0\n'
        "[fit]\ndraws = 20\ntune = 5\nchains = 2\nseed = 3\nnoise_ratio = 2\ncores = 2\n"
    )
    fitted("spec.toml", "--quiet")
    assert set(theta(Path("spec-run"))["statistic"].to_numpy()) == {"cos", "sin"}
    fitted("spec-run/run.toml", "--quiet", "--cores", "1")
    assert same(Path("spec-run"), Path("spec-run-again"))
    ours = ncb.load("spec-run/posterior.nc").data["noise"]["noise_points"]
    assert int(ours.sum()) == 80


def test_graphs_in_a_numpy_file(here):
    model = ncb.models.ERGM(5, ["edges"])
    rows = model.sample(np.array([-0.5]), 30, np.random.default_rng(1))
    np.save("graphs.npy", model.space.adjacency(rows))
    Path("spec.toml").write_text(
        'noise = "matched"\n[data]\nfile = "graphs.npy"\n'
        '[model]\nname = "ERGM"\nterms = ["edges", "triangles"]\n'
    )
    fitted("spec.toml", *LENGTH)
    assert theta(Path("spec-run"))["statistic"].to_numpy().tolist() == ["edges", "triangles"]


def test_a_density_in_an_outline_with_rows_left_out(here):
    events = pd.read_csv("events.csv")
    events.loc[3, "LATITUDE"] = np.nan
    events.loc[4, "METHOD"] = "KNIFE"
    events.to_csv("events.csv", index=False)
    outline = ["--outline", "city.geojson", "--drop-missing", "--where", "METHOD=GUN"]
    options = [*PLACES, *outline, "--basis", "5", *LENGTH]
    options.remove("--quiet")
    result = fitted("density", "events.csv", *options, "--every", "month")
    left = len(events) - 2
    assert f"events.csv: {left} rows of LONGITUDE, LATITUDE by REPORT_DAT, 1 left" in result.stderr
    table = tomllib.loads(Path("events-run/run.toml").read_text())
    assert table["density"]["domain"] == "../city.geojson"
    assert set(table["sha256"]) == {"../events.csv", "../city.geojson"}
    assert len(observed(Path("events-run"))) == left


def test_one_axis_and_numbers_as_times(here):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=60), "t": np.repeat([1, 2, 3], 20)})
    frame.to_csv("line.csv", index=False)
    fitted(
        "density", "line.csv", "--x", "x", "--time", "t", "--every", "1", "--basis", "5", *LENGTH
    )
    assert theta(Path("line-run")).sizes["group"] == 3


class Killed(Exception):
    """In the place of a signal."""


def broken_off(monkeypatch, moment, error, *words):
    """Run a command that is broken off when it writes a file for the moment-th time."""
    monkeypatch.setattr(chains, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(chains, "BLOCK_SECONDS", 0.0)
    left, replace = iter(range(moment)), os.replace

    def fail(source, target):
        if next(left, None) is None:
            raise error
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        return command(*words)


@pytest.mark.parametrize("moment", [2, 40])
def test_a_killed_run_goes_on_to_the_same_posterior(here, graph_run, monkeypatch, moment):
    words = ("fit", "torus", "angles.csv", *SHORT, "--out", "killed")
    result = broken_off(monkeypatch, moment, Killed, *words)
    assert isinstance(result.exception, Killed)
    assert set(os.listdir("killed")) == {"run.toml", "checkpoint"}
    refused = command("summary", "killed")
    assert refused.exit_code == 2
    assert refused.stderr == ("ncbayes: 'killed' is not finished; ncbayes resume killed goes on\n")
    assert "holds a run that is not finished (ncbayes resume killed" in command(*words).stderr
    result = command("resume", "killed", "--quiet")
    assert result.exit_code == 0, result.output
    assert same(Path("killed"), graph_run)
    assert set(os.listdir("killed")) == {"run.toml", "posterior.nc", "summary.csv", "edges.csv"}


@pytest.mark.parametrize("moment", [2, 50])
def test_ctrl_c_says_how_to_go_on(here, graph_run, monkeypatch, moment):
    words = ("fit", "torus", "angles.csv", *SHORT, "--out", "stopped")
    result = broken_off(monkeypatch, moment, KeyboardInterrupt, *words)
    assert result.exit_code == 130
    assert result.stderr == "ncbayes: stopped; ncbayes resume stopped goes on where it was\n"
    assert set(os.listdir("stopped")) == {"run.toml", "checkpoint"}
    result = broken_off(monkeypatch, 2, KeyboardInterrupt, "resume", "stopped", "--quiet")
    assert (result.exit_code, result.stderr[:17]) == (130, "ncbayes: stopped;")
    found = json.loads(command("resume", "stopped", "--quiet", "--json", "--cores", "1").stdout)
    assert found["run"] == "stopped"
    assert same(Path("stopped"), graph_run)


def test_a_checkpoint_is_kept_where_it_is_asked_for(here):
    fitted("ising", "votes.csv", *SHORT, "--keep-checkpoint")
    assert Path("votes-run/checkpoint").is_dir()
    result = command("resume", "votes-run", "--quiet")
    assert result.exit_code == 0
    assert not Path("votes-run/checkpoint").exists()


def test_a_run_is_replaced_only_by_a_run_that_works(here):
    fitted("ising", "votes.csv", *SHORT)
    before = listing(here)
    result = command("fit", "ising", "angles.csv", *SHORT, "--out", "votes-run", "--overwrite")
    assert result.exit_code == 2
    assert listing(here) == before
    fitted("ising", "votes.csv", *SHORT, "--seed", "2", "--overwrite")
    assert Path("votes-run/posterior.nc").read_bytes() != before["votes-run/posterior.nc"]
    assert set(listing(here)) == set(before)


def test_a_fit_that_fails_takes_nothing_of_its_siblings_away(here, monkeypatch):
    def wrong(*arguments, **options):
        Path("new/study/other").mkdir()
        raise ncb.InputError("no")

    monkeypatch.setattr("ncbayes.cli.jobs.fitted", wrong)
    assert command("fit", "ising", "votes.csv", "--out", "new/study/one").exit_code == 2
    assert set(listing(Path("new"))) == {"study", "study/other"}


def a_run(folder, *finished):
    Path(folder).mkdir()
    for name in ("run.toml", *finished):
        Path(folder, name).write_text(f"{folder} {name}")


def overwritten(monkeypatch, error, out="run"):
    """What a command says whose fit writes a checkpoint and then fails."""

    def failing(made, out, keep, quiet):
        (out / "checkpoint").mkdir()
        (out / "checkpoint" / "chain").write_text("draws")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("ncbayes.cli.jobs.fitted", failing)
        return command("fit", "ising", "votes.csv", "--quiet", "--out", out, "--overwrite")


@pytest.mark.parametrize("error", [ncb.InputError("no"), OSError(28, "full"), RuntimeError("ours")])
def test_any_failure_brings_the_run_back_that_was_to_be_replaced(here, monkeypatch, error):
    a_run("run", "posterior.nc")
    before = listing(here)
    assert overwritten(monkeypatch, error).exit_code != 0
    assert listing(here) == before


def test_a_run_that_waits_to_be_replaced_is_never_lost(here, monkeypatch):
    a_run("run", "posterior.nc")
    good = listing(Path("run"))
    result = overwritten(monkeypatch, jobs.Stopped())
    assert result.exit_code == 130
    assert result.stderr == (
        "ncbayes: stopped; ncbayes resume run goes on where it was; until it is done, "
        f"'{here / '.run.before'}' holds the run before\n"
    )
    assert set(os.listdir("run")) == {"run.toml", "checkpoint"}
    assert listing(Path(".run.before")) == good
    # Stopped once more: the good run still waits, not what was stopped.
    overwritten(monkeypatch, jobs.Stopped())
    assert listing(Path(".run.before")) == good
    # A mistake brings it back.
    assert overwritten(monkeypatch, ncb.InputError("no")).exit_code == 2
    assert listing(Path("run")) == good
    assert not Path(".run.before").exists()


def test_of_two_runs_the_finished_one_waits(here, monkeypatch):
    a_run(".run.before", "posterior.nc")
    a_run("run", "posterior.nc")
    new = listing(Path("run"))
    overwritten(monkeypatch, ncb.InputError("no"))
    assert listing(Path("run")) == new
    assert not Path(".run.before").exists()


def test_a_fit_that_crashes_can_be_resumed(here, monkeypatch):
    assert overwritten(monkeypatch, RuntimeError("ours")).exit_code == 1
    assert set(os.listdir("run")) == {"run.toml", "checkpoint"}


def test_a_run_in_a_link_or_in_the_folder_where_one_stands_is_replaced(here, monkeypatch):
    Path("data").mkdir()
    Path("data/target").mkdir()
    Path("link").symlink_to("data/target")
    for seed in ("1", "2", "3"):
        fitted("ising", "votes.csv", *SHORT, "--seed", seed, "--out", "link", "--overwrite")
        assert Path("link").is_symlink()
        assert tomllib.loads(Path("data/target/run.toml").read_text())["fit"]["seed"] == int(seed)
        assert os.listdir("data") == ["target"]
    monkeypatch.chdir("data/target")
    fitted("ising", "../../votes.csv", *SHORT, "--out", ".", "--overwrite")
    assert set(os.listdir(".")) == {"run.toml", "posterior.nc", "summary.csv", "edges.csv"}
    assert os.listdir("..") == ["target"]


def test_what_a_killed_writer_has_left_is_ours(tmp_path):
    a_run(tmp_path / "run", ".posterior.nc.part", "Network.PNG", ".report.html.part")
    folders.check_folder(tmp_path / "run", overwrite=True)
    a_run(tmp_path / "other", ".notes.part")
    with pytest.raises(ncb.InputError, match=r"holds '.notes.part', which is not a run's"):
        folders.check_folder(tmp_path / "other", overwrite=True)


def test_a_column_named_twice_means_either_value(here):
    either = ["--where", "task=go", "--where", "task=stop"]
    fitted("torus", "trials.csv", *either, *SHORT)
    assert len(observed(Path("trials-run"))) == 40
    table = tomllib.loads(Path("trials-run/run.toml").read_text())
    assert table["data"]["where"] == {"task": ["go", "stop"]}


def test_what_was_read_is_said(here):
    def said(*words):
        return jobs.ready(specs.Job(here, *words)).notes[0]

    votes = pd.read_csv("votes.csv", dtype=object).assign(g=["01"] * 60)
    votes.loc[[3, 5], "a"] = None
    votes.to_csv("gaps.csv", index=False)
    data = {"file": "gaps.csv", "group": "g", "missing": "drop"}
    assert said(data, {"name": "Ising"}) == (
        "gaps.csv: 58 rows of 4 columns in 1 group, 2 left out for gaps"
    )
    assert said({**data, "columns": ["b"]}, {"name": "Ising"}) == (
        "gaps.csv: 60 rows of 1 column in 1 group"
    )
    made = jobs.ready(specs.Job(here, data, {"name": "Ising"}))
    assert list(made.call.args[1]) == ["01"]


def test_a_mistake_of_ours_leaves_what_was_done(here, monkeypatch):
    def wrong(posterior):
        raise RuntimeError("ours")

    monkeypatch.setattr(readouts, "pictures", wrong)
    result = command("fit", "ising", "votes.csv", *SHORT)
    assert isinstance(result.exception, RuntimeError)
    assert {"posterior.nc", "summary.csv", "run.toml"} <= set(os.listdir("votes-run"))


def test_another_version_is_said(here, graph_run, monkeypatch):
    monkeypatch.setattr(plans, "ENOUGH_SECONDS", 0.01)
    path = here / "old.toml"
    text = (graph_run / "run.toml").read_text().replace("../angles", "angles")
    path.write_text(text.replace(f'"{ncb.__version__}"', '"0.0.1"'))
    result = command("plan", "old.toml", "--out", "p")
    assert f"written by ncbayes 0.0.1, this is {ncb.__version__}" in result.stderr


def test_a_plan_is_measured_and_writes_nothing(here, monkeypatch):
    monkeypatch.setattr(plans, "ENOUGH_SECONDS", 0.05)
    before = listing(here)
    length = ["--draws", "400", "--tune", "100", "--chains", "3", "--cores", "1"]
    result = command(
        "plan", "torus", "angles.csv", *length, "--noise", "matched", "--noise-ratio", "2", "--json"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert listing(here) == before
    assert (found["rows"], found["statistics"], found["noise_points"]) == (40, 18, 80)
    assert (found["chains"], found["sweeps_a_chain"], found["processes"]) == (3, 500, 1)
    assert found["measured_sweeps"] >= plans.FIRST
    assert found["seconds"] == pytest.approx(
        found["seconds_before"] + 3 * 500 * found["seconds_a_sweep"]
    )
    assert found["gigabytes"] > 0
    assert not found["noise_is_chosen_first"]


def test_a_plan_says_what_comes_on_top(here, monkeypatch):
    monkeypatch.setattr(plans, "ENOUGH_SECONDS", 0.01)
    result = command("plan", "torus", "angles.csv")
    assert result.exit_code == 0, result.output
    assert "The noise will be chosen or adapted in trials before the chains" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    density = command("plan", "density", "events.csv", *PLACES, "--basis", "5", "--json")
    found = json.loads(density.stdout)
    assert (found["noise_is_chosen_first"], found["groups"]) == (False, 2)
    exact = command("plan", "ising", "votes.csv", "--engine", "exact", "--json")
    found = json.loads(exact.stdout)
    assert (found["noise_is_chosen_first"], found["noise_points"]) == (False, 0)


def test_a_plan_that_memory_does_not_hold_is_refused(here, monkeypatch):
    monkeypatch.setattr(plans, "ENOUGH_SECONDS", 0.0)
    result = command("plan", "torus", "angles.csv", "--draws", str(10**13))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("ncbayes: this fit needs about ")


def test_jobs_know_their_own_files():
    assert {folders.RUN, folders.CHECKPOINT, folders.POSTERIOR} <= set(folders.OURS)


def test_columns_are_matched_with_the_nodes_of_a_spec(tmp_path, monkeypatch):
    """By name, whatever their order in the file; those of a file without names by their order."""
    monkeypatch.chdir(tmp_path)
    angles = np.random.default_rng(1).uniform(0, 6, (20, 3)).round(6)
    frame = pd.DataFrame(angles, columns=NAMES)
    frame[[NAMES[2], *NAMES[:2]]].to_csv("turned.csv", index=False)
    np.save("nameless.npy", angles[:, ::-1])
    for name, more in {"turned.csv": "", "nameless.npy": 'columns = ["x3", "x2", "x1"]\n'}.items():
        Path("spec.toml").write_text(
            f'[data]\nfile = "{name}"\n{more}[model]\nname = "TorusGraph"\nnodes = {NAMES}\n'
        )
        fitted("spec.toml", *SHORT, "--out", f"{name}-run")
        assert np.allclose(observed(Path(f"{name}-run")), angles)
    fitted("turned.csv-run/run.toml", "--out", "again", "--quiet")
    assert same(Path("turned.csv-run"), Path("again"))
