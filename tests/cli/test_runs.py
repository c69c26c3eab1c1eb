"""Read-outs of a run's folder: summary, edges, pictures, the report, and what a check says."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ncbayes as ncb
from conftest import SHORT, command
from ncbayes.cli import readouts, terminal


def lines_of(*words, code=0):
    result = command(*words)
    assert result.exit_code == code, result.output
    return result.stdout.splitlines()


def document(*words, code=0):
    result = command(*words)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_the_summary_fits_on_80_columns(graph_run):
    lines = lines_of("summary", graph_run)
    table = ncb.load(graph_run / "posterior.nc").summary()
    assert len(lines) == 2 + len(table)
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Equal-tailed intervals of 90 %")
    assert lines[1].split() == ["mean", "sd", "low", "high", "mcse", "ess", "r_hat"]
    row = lines[2].split()
    assert row[0] == "cos(CA1)"
    assert float(row[1]) == pytest.approx(table.loc["cos(CA1)", "mean"], rel=1e-3)


def test_the_summary_for_machines_has_every_number(graph_run):
    found = document("summary", graph_run / "posterior.nc", "--json", "--level", "0.5")
    table = ncb.load(graph_run / "posterior.nc").summary(0.5)
    assert (found["level"], found["interval"]) == (0.5, "equal-tailed")
    frame = pd.DataFrame(found["rows"]).set_index("quantity")
    assert list(frame.columns) == list(table.columns)
    assert np.allclose(frame, table)


def test_edges_by_rule(graph_run):
    posterior = ncb.load(graph_run / "posterior.nc")
    chosen = ("--rule", "interval", "--level", "0.8", "--threshold", "0.2")
    table = ncb.graphs.edges(posterior, rule="interval", level=0.8, threshold=0.2)
    found = document("edges", graph_run, *chosen, "--json")
    assert found["possible"] == 3
    assert len(found["rows"]) == int(table["selected"].sum())
    assert found["expected_fdr"] == pytest.approx(table.attrs["expected_fdr"])
    every = lines_of("edges", graph_run, *chosen, "--all")
    assert len(every) == 1 + 3 + 1
    assert every[0].split() == ["strength", "norm", "probability", "selected"]
    assert every[-1].startswith(
        f"{len(found['rows'])} of 3 edges selected: the 80 % interval of some"
    )


def test_edges_of_what_has_none(density_run):
    result = command("edges", density_run)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_edges_of_several_groups(files, tmp_path, monkeypatch):
    out, pictures = tmp_path / "groups", readouts.pictures
    monkeypatch.setattr(readouts, "pictures", lambda posterior: iter(()))
    words = ("fit", "torus", files / "trials.csv", "--group", "task", *SHORT, "--out", out)
    lines_of(*words)
    names = {name for name, _ in pictures(ncb.load(out / "posterior.nc"))}
    assert {"network-go", "network-stop", "adjacency-go", "trace", "noise"} <= names
    found = document("edges", out, "--json", "--all")
    assert {row["group"] for row in found["rows"]} == {"go", "stop"}
    assert found["possible"] == 6
    one = document("edges", out, "--json", "--all", "--group", "go")
    assert one["possible"] == 3
    chosen = [row for row in found["rows"] if row["selected"]]
    assert found["expected_fdr"] == pytest.approx(
        np.mean([1 - row["probability"] for row in chosen]) if chosen else 0
    )


@pytest.mark.parametrize(
    ("run", "kind", "options"),
    [
        ("graph", "network", ("--rule", "interval")),
        ("graph", "coefficients", ("--most", "3")),
        ("density", "change", ("--start", "2023-02", "--end", "2023-01")),
        ("density", "uncertainty", ()),
    ],
)
def test_pictures_are_drawn_where_they_are_asked_for(
    graph_run, density_run, tmp_path, run, kind, options
):
    folder, path = graph_run if run == "graph" else density_run, tmp_path / "picture.svg"
    assert lines_of("plot", folder, kind, *options, "--out", path) == [str(path)]
    assert path.read_text().startswith("<?xml")


def test_a_picture_is_put_into_the_folder_by_default(graph_run, tmp_path):
    shutil.copytree(graph_run, tmp_path / "copy")
    (tmp_path / "copy" / "trace.png").unlink()
    found = document("plot", tmp_path / "copy", "trace", "--json")
    assert found == {"file": str(tmp_path / "copy" / "trace.png")}
    assert Path(found["file"]).is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("network", "--start", "1"),
            "network has no --start; it has --group, --rule, --thr",
        ),
        (("network", "--rule", "best"), 'rule must be "interval" or "median", got \'best\''),
        (("network", "--out", "a.xyz"), "a picture must end in .png, .pdf, .svg"),
        (("network", "--out", "a.html"), "a picture must end in .png, .pdf, .svg, .gif, .jpg, got"),
        (("network", "--group", "x"), "groups ['all'], and the command is 'x'; pass --group 'all'"),
        (("network", "--out", "none/a.png"), "can't write to 'none/a.png': it must be a file in"),
        (("maps",), "plots.density_maps needs the posterior of a density"),
        (("trace", "--most", "0"), "most must be a whole number, 1 or more"),
    ],
)
def test_pictures_that_cannot_be_drawn(graph_run, words, message):
    result = command("plot", graph_run, *words)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


def test_an_animation_is_no_picture(density_run):
    result = command("plot", density_run, "animation", "--out", "a.png")
    assert result.exit_code == 2
    assert "an animation must end in .gif, .html, got 'a.png'" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the full disk of Linux")
def test_a_picture_on_a_full_disk_is_one_line(graph_run, tmp_path):
    (tmp_path / "full.svg").symlink_to("/dev/full")
    result = command("plot", graph_run, "adjacency", "--out", tmp_path / "full.svg")
    assert (result.exit_code, result.stderr) == (2, "ncbayes: No space left on device\n")


def test_names_of_pictures_differ_also_where_case_does_not_count():
    found = readouts.file_names(["a/b", "a_b", "A_B", "a_b-2", "c"])
    assert found[0] == "a_b"
    assert len({name.casefold() for name in found}) == 5


def test_hints_can_be_pasted(graph_run, tmp_path):
    run = tmp_path / "my run"
    shutil.copytree(graph_run, run)
    assert f"summary '{run}'" in command("resume", run).stderr
    command("report", run)
    assert f"ncbayes fit '{run / 'run.toml'}'" in (run / "report.html").read_text()
    (run / "posterior.nc").unlink()
    assert f"ncbayes resume '{run}' goes on" in command("summary", run).stderr


def test_the_report_says_how_to_repeat_the_run(graph_run, tmp_path):
    path = tmp_path / "page.html"
    assert lines_of("report", graph_run, "--out", path, "--title", "Three angles") == [str(path)]
    page = path.read_text()
    assert "Three angles" in page
    assert "ncbayes fit" in page
    result = command("report", graph_run, "--out", tmp_path / "none" / "page.html")
    assert result.exit_code == 2
    assert "it must be a file in a folder that exists" in result.stderr


def test_resume_of_a_finished_run_is_refused(graph_run):
    result = command("resume", graph_run)
    assert result.exit_code == 2
    assert "is finished; see ncbayes summary" in result.stderr


def test_extend_goes_on_from_the_seed_or_from_a_checkpoint(graph_run, tmp_path):
    shutil.copy(graph_run.parent / "angles.csv", tmp_path)
    shutil.copytree(graph_run, tmp_path / "run")
    run, before = tmp_path / "run", ncb.load(graph_run / "posterior.nc").theta
    first = command("extend", run, "--draws", "10", "--keep-checkpoint")
    assert first.exit_code == 0
    assert "no checkpoint was kept, so the run is repeated from its seed" in first.stderr
    second = command("extend", run, "--draws", "5")
    assert second.exit_code == 0
    assert "repeated" not in second.stderr
    assert (run / "checkpoint").is_dir()
    after = ncb.load(run / "posterior.nc").theta
    assert after.sizes["draw"] == before.sizes["draw"] + 15
    np.testing.assert_array_equal(after[:, : before.sizes["draw"]], before)
    assert "extended = [10, 5]" in (run / "run.toml").read_text()
    again = command("fit", run / "run.toml", "--out", tmp_path / "again", "--quiet")
    assert again.exit_code == 0
    np.testing.assert_array_equal(ncb.load(tmp_path / "again" / "posterior.nc").theta, after)


def test_extend_says_what_it_needs(graph_run, tmp_path):
    for words, said in (
        ((tmp_path, "--draws", "5"), "holds no run"),
        ((graph_run, "--draws", "0"), "draws must be a whole number, 1 or more, got 0"),
        ((graph_run,), "Missing option '--draws'"),
    ):
        result = command("extend", *words)
        assert result.exit_code == 2
        assert said in result.stderr
    shutil.copytree(graph_run, tmp_path / "run")
    (tmp_path / "run" / "posterior.nc").unlink()
    result = command("extend", tmp_path / "run", "--draws", "5")
    assert "is not finished; ncbayes resume" in result.stderr


def test_an_extension_that_is_refused_leaves_the_run_as_it_was(graph_run, tmp_path):
    shutil.copy(graph_run.parent / "angles.csv", tmp_path)
    shutil.copytree(graph_run, tmp_path / "run")
    run = tmp_path / "run" / "run.toml"
    text = run.read_text()
    run.write_text(text.replace("[fit]", "[fit]\nextended = [0]"))
    refused = command("extend", tmp_path / "run", "--draws", "5", "--quiet")
    assert "each of extended must be a whole number, 1 or more, got 0" in refused.stderr
    run.write_text(text)
    (tmp_path / "run" / "checkpoint").mkdir()
    (tmp_path / "run" / "checkpoint" / "run.json").write_text("not of a fit")
    refused = command("extend", tmp_path / "run", "--draws", "5", "--quiet")
    assert refused.exit_code == 2
    assert run.read_text() == text


def test_resume_with_other_data_is_refused(graph_run, tmp_path):
    shutil.copytree(graph_run, tmp_path / "run")
    (tmp_path / "run" / "posterior.nc").unlink()
    data = (graph_run.parent / "angles.csv").read_text()
    (tmp_path / "angles.csv").write_text(data.replace("1", "2"))
    result = command("resume", tmp_path / "run")
    assert result.exit_code == 2
    assert "angles.csv' has changed since the run" in result.stderr
    assert (tmp_path / "run" / "run.toml").is_file()


def test_a_check_of_a_short_run_asks_for_more_draws(graph_run):
    lines = lines_of("check", graph_run / "posterior.nc", code=1)
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("The answer needs attention before it is used: ")
    assert any(line.startswith("Next: ") for line in lines)
    assert "convergence: poor" in lines
    assert "predictions: good" in lines
    found = document("check", graph_run, "--json", code=1)
    assert not found["fine"]
    assert found["grade"] == found["convergence"]["grade"] == "poor"
    assert "--draws " in found["convergence"]["lines"][-1]
    assert found["predictions"]["grade"] == "good"
    assert found["predictions"]["facts"][0]["kind"] == "predictions"


def test_one_chain_is_not_said_to_have_converged(gaussian):
    one = ncb.Posterior(gaussian[1].data.isel(chain=[0]))
    (concern,) = one.verdict().of("convergence")
    assert concern.grade == "fair"
    assert concern.sentence == "R-hat is not known of one chain; fit with chains=4"


def test_a_seed_looks_at_predictions_again(graph_run, tmp_path):
    def looked(seed):
        found = document("check", graph_run, "--json", "--seed", seed, code=1)
        return found["predictions"]["facts"], found["verification"]

    assert looked(3) != looked(4)
    assert looked(3) == looked(3)


def test_data_that_have_changed_are_not_taken_for_those_of_the_run(graph_run, tmp_path):
    shutil.copytree(graph_run, tmp_path / "run")
    data = (graph_run.parent / "angles.csv").read_text()
    (tmp_path / "angles.csv").write_text(data.replace("1", "2"))
    found = document("check", tmp_path / "run", "--json", "--seed", 1, code=1)
    assert "angles.csv' has changed since the run" in found["not_looked_at"]
    result = command("plot", tmp_path / "run", "density")
    assert result.exit_code == 2
    assert "angles.csv' has changed since the run" in result.stderr


def test_a_check_of_a_density_looks_at_every_time(density_run):
    (found,) = document("check", density_run, "--json", code=1)["predictions"]["facts"]
    stored = ncb.load(density_run / "posterior.nc").data["verification"].to_dataset()
    assert found["comparisons"] == len(stored["p_value"]) == 3
    assert stored["look_group"].values[-1] == "all times"
    assert stored["p_value"].values[:2].min() > 0.001  # the basis follows each time


def test_without_its_folder_a_posterior_is_not_looked_at_again(graph_run):
    found = document("check", graph_run / "posterior.nc", "--json", "--seed", 1, code=1)
    assert found["not_looked_at"] == (
        "it needs the run's folder, with its run.toml, and not only posterior.nc"
    )


@pytest.fixture(scope="module")
def gaussian():
    """A fit that is fine, and its model."""
    model = ncb.models.Gaussian(1)
    data = np.random.default_rng(1).normal(size=(200, 1))
    options = {"noise": "matched", "noise_ratio": 20, "draws": 700, "tune": 200, "seed": 1}
    return model, ncb.fit(model, data, **options, chains=2, progress=False)


def test_a_fit_that_is_fine_is_said_to_be(gaussian, tmp_path):
    _, posterior = gaussian
    posterior.save(tmp_path / "posterior.nc")
    lines = lines_of("check", tmp_path / "posterior.nc")
    assert lines[0].startswith("The answer can be used: the chains agree; ")
    assert {"convergence: good", "noise: good", "verification: good"} <= set(lines)


def test_a_run_whose_model_cannot_be_made_again(graph_run, tmp_path):
    shutil.copytree(graph_run, tmp_path / "run")
    text = (graph_run / "run.toml").read_text()
    (tmp_path / "run" / "run.toml").write_text(text.replace("TorusGraph", "gone.py:Model"))
    found = document("check", tmp_path / "run", "--json", "--seed", 1, code=1)
    assert found["not_looked_at"].startswith("the model can't be made again (there is no file")


def test_long_names_are_cut_in_the_middle(capsys):
    table = pd.DataFrame({"value": [1.0, 2.0]}, index=["short", "a" * 50 + "b" * 50])
    terminal.print_table(table, width=30)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 30
    assert "aaa...bbb" in lines[2]


def test_words_of_the_library_become_options():
    said = terminal.spoken("use posterior.extend(draws=100)", "run")
    assert said == "use ncbayes extend run --draws 100"
    assert terminal.spoken("use posterior.extend(draws=100)") == "use a larger --draws"
    assert terminal.spoken('noise="auto", noise_ratio=4') == "--noise auto, --noise-ratio 4"
