"""The study of verdicts, in small."""

import json

import numpy as np
import pytest

import verdicts

CELLS = {
    "false": ["one angle", "a positive number"],
    "power": ["an angle on two opposite sides", "lognormal as gamma"],
}


def table_rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(heads, row, strict=True)) for row in rows}


def run(part, folder, *more):
    verdicts.main(["--part", part, "--replications", "2", "--out", str(folder), "--cells",
                   *CELLS[part], *more])  # fmt: skip


@pytest.mark.parametrize("part", ["false", "power"])
def test_fits_are_counted_and_not_run_again(part, tmp_path, capsys, monkeypatch):
    run(part, tmp_path)
    first = capsys.readouterr().out
    rows = table_rows(first)
    assert list(rows) == CELLS[part]
    assert {row["fits"] for row in rows.values()} == {"2"}
    assert {row["stopped"] for row in rows.values()} == {"0"}
    # Alarms where a model is wrong are the broken twins of those where it is right.
    wanted = {"false": "0", "power": "2"}[part]
    assert {row["predictions poor"] for row in rows.values()} == {wanted}
    kept = (tmp_path / f"{part}.jsonl").read_text()
    assert len(kept.splitlines()) == 4
    monkeypatch.setattr(verdicts, "fitted", lambda *given, **more: pytest.fail("run again"))
    for more in ((), ("--table",)):
        run(part, tmp_path, *more)
        assert capsys.readouterr().out == first
    assert (tmp_path / f"{part}.jsonl").read_text() == kept


def test_a_fit_that_stops_is_a_line_of_its_own(tmp_path, capsys, monkeypatch):
    def broken(*given, **more):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(verdicts, "fitted", broken)
    run("false", tmp_path)
    row = table_rows(capsys.readouterr().out)["one angle"]
    assert (row["fits"], row["stopped"], row["not verified"]) == ("2", "2", "0")
    _, kept = json.loads((tmp_path / "false.jsonl").read_text().splitlines()[0])
    assert kept["error"] == "LinAlgError: Eigenvalues did not converge"


def test_another_seed_of_the_check_leaves_the_draws_alone():
    with verdicts.quiet():
        posterior = verdicts.fitted("one angle", 1, chains=2, tune=50, draws=50)
        again = []
        for seed in (1, 1, 2):
            with verdicts.other_numbers(seed):
                again.append(posterior.extend(0))
    assert all(each.theta.equals(posterior.theta) for each in again)
    first, same, other = (each.data["verification"]["simulated"].to_numpy() for each in again)
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_the_grid_has_every_cell_once():
    for part, count in (("false", len(verdicts.RIGHT)), ("power", len(verdicts.WRONG))):
        places = verdicts.places(part, 3, None)
        assert len(places) == len(set(places)) == 3 * count
    case = verdicts.places("case", 50, None)
    assert len(case) == 5 * 5 + 2 * 50
    later = verdicts.places("case", 50, None, first=1001)
    assert later == [(kind, noise, seed + 1000) for kind, noise, seed in case]
    assert set(verdicts.CHECKED) <= set(verdicts.CELLS)
    assert len(verdicts.CELLS) == len(verdicts.RIGHT) + len(verdicts.WRONG)
