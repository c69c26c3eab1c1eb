"""``ncbayes reproduce``: the frame around the studies, with small fits."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import ncbayes as ncb
import ncbayes_paper
from ncbayes import cli
from ncbayes_paper import kept, pages, published, reproduction, watching
from ncbayes_paper.study import Column, Row, Table

NAMES = tuple(ncbayes_paper.FILES)
TABLES = [name for name in NAMES if name.startswith("table")]
runner = CliRunner()


def doubled(scenario, method, replication, tune, draws):
    """In the place of a fit."""
    if method == "failing":
        raise RuntimeError("no fit")
    return {"score": replication / 10 + (method == "b"), "seconds": 0.5}


SMALL = Table(
    "table9",
    "Small",
    "small",
    doubled,
    (Row("a", "A"), Row("b", "B", paper=False)),
    (Column("score", "score", "high"), Column("seconds", "s", digits=0, median=True)),
    {("a", "score"): 0.2},
    100,
    (5, 10),
    2,
    "A note.",
)


@pytest.mark.parametrize("name", TABLES)
def test_every_figure_of_the_papers_tables_has_its_cell(name):
    table = ncbayes_paper.item(name)
    own = {row.method for row in table.rows if row.paper}
    columns = {column.name for column in table.columns}
    assert {method for method, _ in table.paper} == own
    assert {column for _, column in table.paper} <= columns
    places = table.places(2, None)
    assert len(set(places)) == len(places) == 2 * len(table.rows)
    many = table.places(30, None)
    paper = sum(row.paper for row in table.rows)
    assert len(many) == 30 * paper + table.beyond * (len(table.rows) - paper)
    # Any number of replications is the start of a larger one.
    assert table.places(3, None)[: len(places)] == places


def test_the_papers_numbers_keep_their_arithmetic():
    """Accuracy follows from recall and precision and the number of edges, but for rounding."""
    edges = {"chain": (11, 66), "cycle": (5, 10)}
    for scenario, (true, pairs) in edges.items():
        for rows in (published.MEDIAN, published.INTERVAL):
            for recall, precision, accuracy in (row[-3:] for row in rows[scenario].values()):
                false = recall * true * (1 / precision - 1)
                wrong = (true * (1 - recall) + false) / pairs
                # A mean of ratios is not the ratio of means; it is near.
                assert accuracy == pytest.approx(1 - wrong, abs=0.03)


@pytest.mark.parametrize(
    ("value", "error", "paper", "aim", "found"),
    [
        (0.990, 0.005, 0.995, "high", "agrees"),
        (0.900, 0.005, 0.995, "high", "worse"),
        (0.995, 0.005, 0.900, "high", "better"),
        (0.30, 0.005, 0.35, "low", "better"),
        (0.40, 0.005, 0.35, "low", "worse"),
        # Beyond the errors of either, within those of both.
        (0.989, 0.002, 0.995, "high", "worse"),
        (0.991, 0.002, 0.995, "high", "agrees"),
        # The paper's figure is rounded.
        (1.0, 0.0, 0.9996, "high", "agrees"),
        (1.0, 0.0, 0.998, "high", "better"),
        # Coverages: more than the level is not worse; less is, by its distance.
        (0.99, 0.001, 0.97, 0.9, "agrees"),
        (0.85, 0.001, 0.97, 0.9, "worse"),
        (0.899, 0.001, 0.97, 0.9, "agrees"),
        (0.88, 0.001, 0.80, 0.9, "better"),
        (0.80, 0.001, 0.88, 0.9, "worse"),
        (0.5, math.nan, 0.5, "high", ""),
        (0.5, 0.1, math.nan, "high", ""),
        (0.5, 0.1, 0.5, None, ""),
    ],
)
def test_marks(value, error, paper, aim, found):
    cell = pages.Cell(Row("a", "A"), Column("x", "x", aim), value, error, 50, paper)
    assert pages.mark(cell, 100) == found


def fits_of(table, count):
    return {place: table.measured(*place) for place in table.places(count, None)}


def test_cells_are_means_errors_and_marks():
    a, middle, b, _ = pages.cells(SMALL, fits_of(SMALL, 3), 3, None)
    assert a.value == pytest.approx(0.2)
    assert a.error == pytest.approx(0.1 / math.sqrt(3))
    assert (a.paper, a.mark, a.count) == (0.2, "agrees", 3)
    assert math.isnan(middle.error)
    # Of our own rows there are two data sets at most.
    assert (b.value, b.mark, b.count) == (pytest.approx(1.15), "", 2)
    assert math.isnan(b.paper)
    text = pages.page(SMALL, [a, middle, b], "the command", None)
    assert text.startswith("# Table 9: Small\n\n`the command`: data sets 1 to 3, ")
    assert "| A | 0.200 ± 0.058 (0.200, agrees) | 0 |" in text
    assert "| B | 1.150 ± 0.050 |" in text
    middle = text.index("| beyond the paper, data sets 1 to 2 |")
    assert text.index("| A |") < middle < text.index("| B |")
    assert text.endswith("A note.\n")


def test_one_replication_has_no_error_and_no_mark():
    cell = pages.cells(SMALL, fits_of(SMALL, 1), 1, None)[0]
    assert math.isnan(cell.error)
    assert pages.shown(cell) == "0.100 (0.200)"


def test_tables_are_files_that_other_tools_read(tmp_path):
    request = reproduction.Request(("table9",), tmp_path, replications=3)
    fits = fits_of(SMALL, 3)
    written = reproduction.write_table(request, SMALL, fits)
    assert [path.name for path in written] == ["table9.csv", "table9.md", "table9_fits.csv"]
    cells = pd.read_csv(written[0])
    assert cells["value"].tolist() == pytest.approx([0.2, 0.5, 1.15, 0.5])
    single = pd.read_csv(written[2])
    assert single["score"].tolist() == pytest.approx([0.1, 1.1, 0.2, 1.2, 0.3])
    # No two runs take the same time: seconds are in a file of their own.
    assert list(single) == ["replication", "method", "score"]
    text = reproduction.write_seconds(request, SMALL, fits).read_text()
    assert f"ncbayes {ncb.__version__}, 20" in text
    assert "| A | 0.50 |" in text
    assert not list(tmp_path.glob("*.part"))


def test_replications_are_run_once(tmp_path):
    file, calls = tmp_path / "rows.jsonl", []

    def measured(name, number):
        calls.append(number)
        return {"twice": 2 * number}

    places = [("a", number) for number in (1, 2, 3)]
    first = kept.replications(measured, places[:2], 1, file)
    # A killed run leaves half a line behind.
    with file.open("a") as lines:
        lines.write('[["a", 3], {"twi')
    every = kept.replications(measured, places, 1, file)
    assert calls == [1, 2, 3]
    assert first == every[:2] == [{"twice": 2}, {"twice": 4}]
    assert [json.loads(line)[0][1] for line in file.read_text().splitlines()] == [1, 2, 3]
    assert kept.replications(measured, [*places, places[0]], 1, None) == [*every, every[0]]
    assert calls == [1, 2, 3, 1, 2, 3]


def test_a_fit_that_fails_costs_no_other(tmp_path):
    file = tmp_path / "rows.jsonl"
    places = [("small", method, 1, 5, 10) for method in ("a", "b", "failing")]
    with pytest.raises(RuntimeError, match="no fit"):
        kept.replications(doubled, places, 1, file)
    assert list(kept.finished(file)) == places[:2]


def test_the_time_left_counts_what_fits_of_a_kind_have_cost(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    places = [("s", method, r, 5, 10) for r in (1, 2) for method in ("cheap", "dear")]
    clock = watching.Clock(places, {("s", "dear", 9, 5, 10): {"seconds": 30.0}})
    assert clock.line() == "0 of 4 fits, time left unknown"
    now[0] += 2.0
    clock.tell(places[0], {"seconds": 1.0})
    # A second of a fit takes two by the clock; left are 1 + 30 + 30 of them.
    assert clock.seconds_left() == pytest.approx(122)
    assert clock.line() == "1 of 4 fits, about 2 min left"
    kept_before = watching.Clock(places, {places[1]: {"seconds": 3.0}})
    assert (kept_before.done, len(kept_before.left)) == (1, 3)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3, "about 3 s left"), (600, "about 10 min left"), (9000, "about 2.5 h left")],
)
def test_durations_are_said_roughly(seconds, words):
    assert watching.duration(seconds) == words


def test_without_a_number_all_cores_are_used(tmp_path):
    assert reproduction.Request((), tmp_path).processes >= 1
    assert reproduction.Request((), tmp_path, cores=3).processes == 3


def test_names_are_taken_in_any_case_and_come_in_the_papers_order():
    assert reproduction.chosen(["TABLES1", "table1"]) == ("table1", "tableS1")
    assert reproduction.chosen(["all"]) == reproduction.chosen([]) == NAMES


def invoke(*words):
    return runner.invoke(cli.app, ["reproduce", *map(str, words)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table4"], "there is no 'table4' in the paper; choose among table1, table2, .*, or all"),
        (["figure2", "--data", "no.csv"], "--data: there is no file 'no.csv'"),
        (["figure2", "--data", "x.xlsx"], r"--data must be a file of one of \.csv .*got 'x.xlsx'"),
        (["table2", "--tune", "5"], "--tune and --draws go together: the length of each fit"),
    ],
)
def test_a_users_mistake_is_one_line(words, message, tmp_path):
    result = invoke(*words, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert re.fullmatch(f"ncbayes: {message}", result.output.strip())
    assert not (tmp_path / "out").exists()


def test_two_files_of_a_kind_are_refused(tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.CSV"]
    for path in paths:
        path.write_text("")
    result = invoke("figure2", "--data", paths[0], "--data", paths[1], "--out", tmp_path / "out")
    assert result.output.strip() == "ncbayes: --data: two files end in .csv; give one of each kind"


def test_a_folder_that_can_not_be_written_and_one_of_another_version(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = invoke("table2", "--out", blocked / "out")
    assert result.exit_code == 2
    assert "can't be written (Not a directory); name a folder that can" in result.output
    (tmp_path / "version.txt").write_text("0.0.1\n")
    result = invoke("table2", "--out", tmp_path)
    assert result.exit_code == 2
    assert "holds fits of ncbayes 0.0.1, this is " in result.output


def test_a_scheduler_that_does_not_answer_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "WAIT_SECONDS", 1)
    result = invoke("table2", "--scheduler", "tcp://127.0.0.1:9", "--out", tmp_path)
    assert result.exit_code == 2
    assert "--scheduler 'tcp://127.0.0.1:9' does not answer" in result.output


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "replications", stopped)
    result = invoke("table2", "--out", tmp_path)
    assert result.exit_code == 130
    assert "stopped; finished fits are kept in" in result.output


# The fits of a real table, as short as they can be.
SHORT = ["tableS1", "--replications", "1", "--tune", "2", "--draws", "20"]
SAME = ("tableS1.csv", "tableS1.md", "tableS1_fits.csv")


def contents(folder):
    return [(folder / name).read_bytes() for name in SAME]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed run on one core."""
    folder = tmp_path_factory.mktemp("whole")
    result = invoke(*SHORT, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


def lines_of(file):
    return len(file.read_text().splitlines()) if file.exists() else 0


def waited(condition, seconds=400):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_files(whole, tmp_path):
    """Killed on two cores, resumed on two: what one undisturbed core has written."""
    command = [sys.executable, "-m", "ncbayes", "reproduce", *SHORT, "--cores", "2"]
    process = subprocess.Popen([*command, "--out", str(tmp_path)], start_new_session=True)
    store = tmp_path / reproduction.FITS
    try:
        waited(lambda: lines_of(store) >= 3 or process.poll() is not None)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = kept.finished(store)
    assert 3 <= len(before) < 8
    assert not any((tmp_path / name).exists() for name in SAME)
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert f"8 fits, {len(before)} kept from before" in done.stderr
    after = kept.finished(store)
    # Nothing was computed twice: the kept lines, seconds included, are those of before.
    assert {place: after[place] for place in before} == before
    assert lines_of(store) == len(after) == 8
    assert contents(tmp_path) == contents(whole)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_cluster_gives_the_same_files_though_a_worker_dies(whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    store = tmp_path / reproduction.FITS
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        command = [sys.executable, "-m", "ncbayes", "reproduce", *SHORT]
        address = ["--scheduler", cluster.scheduler_address, "--out", str(tmp_path)]
        process = subprocess.Popen([*command, *address])
        waited(lambda: lines_of(store) >= 2 or process.poll() is not None)
        assert process.poll() is None
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        assert process.wait(300) == 0
    assert contents(tmp_path) == contents(whole)


def test_the_studies_are_installed_beside_the_package():
    """The command finds them from any folder, and workers of a cluster do too."""
    code = "import ncbayes_paper; print(ncbayes_paper.__file__)"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert Path(shown.stdout.strip()).name == "__init__.py"
