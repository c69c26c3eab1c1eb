"""A mistake gets one line and exit code 2, and leaves nothing behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import PLACES, SHORT, command, listing, write_files

TORUS, ISING = ("fit", "torus"), ("fit", "ising")
OUT = ("--out", "new/run")
SPEC = '[data]\nfile = "angles.csv"\n[model]\nname = "TorusGraph"\n'
OWN = """
import numpy as np
import ncbayes as ncb


class Failing:
    space = ncb.spaces.Torus(3)
    groups = {"wave": ("cos", "sin")}

    def statistics(self, x):
        return np.column_stack([np.cos(x), undefined])

    def log_base(self, x):
        return np.zeros(len(x))


class Nothing:
    pass


class Raising:
    def __init__(self):
        raise RuntimeError("no luck")
"""


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """Files with all kinds of mistakes, next to good ones."""
    folder = write_files(tmp_path_factory.mktemp("bad"))
    texts = {
        "empty.csv": "",
        "names.csv": "a,b\n",
        "one.csv": "a,b\n1,2\n",
        "text.csv": "a,b\n1,2\n1,two\n0,1\n",
        "gap.csv": "a,b\n1,2\n1,\n0,1\n",
        "ragged.csv": "a,b\n1,2\n1,2,3\n",
        "constant.csv": "a,b\n0,1\n0,1\n0,0\n0,1\n",
        "condition.csv": "a,cond,b\n" + "10,0,300\n200,1,40\n30,0,50\n" * 3,
        "radians.csv": "a,cond,run\n" + "1.5,0,1\n2.25,1,2\n0.3,0,1\n" * 3,
        "bits.csv": "a,b\n" + "0,1\n1,1\n0,0\n" * 3,
        "nodes.toml": SPEC + 'nodes = ["CA1", "CA3", "CA4"]\n',
        "few.toml": SPEC + 'nodes = ["CA1", "DG"]\n',
        "turns.csv": "a,b\n100,2\n700,3\n2,3\n",
        "comma.csv": "a;b\n1,5;2,5\n2,5;3,5\n",
        "dates.csv": "x,y,t\n1,2,2022-01-01\n2,1,soon\n3,3,2022-02-01\n",
        "typo.toml": SPEC + "[fit]\ndrwas = 100\n",
        "section.toml": SPEC + "[nose]\n",
        "broken.toml": "[data\n",
        "nodata.toml": '[model]\nname = "TorusGraph"\n',
        "nomodel.toml": '[data]\nfile = "angles.csv"\n',
        "unknown.toml": SPEC.replace("TorusGraph", "TorusGraf"),
        "argument.toml": SPEC + "rotatonal = false\n",
        "value.toml": SPEC + "rotational = 3\n",
        "type.toml": SPEC + '[fit]\ndraws = "many"\n',
        "prior.toml": SPEC + '[prior]\nname = "Normal"\n',
        "block.toml": SPEC + '[prior.edges]\nname = "Normal"\nscale = 1.0\n',
        "failing.toml": SPEC.replace("TorusGraph", "own.py:Failing"),
        "nothing.toml": SPEC.replace("TorusGraph", "own.py:Nothing"),
        "missing.toml": SPEC.replace("TorusGraph", "other.py:Model"),
        "changed.toml": SPEC + f'[sha256]\n"angles.csv" = "{"0" * 64}"\n',
        "units.toml": '[data]\nfile = "votes.csv"\nunits = "degrees"\n[model]\nname = "Ising"\n',
        "raising.toml": SPEC.replace("TorusGraph", "own.py:Raising"),
        "exit.toml": SPEC.replace("TorusGraph", "exit.py:Model"),
        "exit.py": "import sys\n\nsys.exit(0)\n",
        "nocolumns.toml": '[data]\nfile = "events.csv"\ntime = "t"\ncolumns = []\n[density]\n',
        "cube.toml": '[data]\nfile = "cube.npy"\ngroup = "g"\n[model]\nname = "ERGM"\n',
        "index.csv": ",a,b\n0,1,2\n1,2,3\n2,3,1\n",
        "alone.csv": "a\n1\n2\n",
        "wrong.csv": "a,b,g\n0,1,x\n0,1,y\n1,0,x\n1,5,y\n0,0,y\n",
        "own.py": OWN,
        "outline.geojson": "{",
        "file": "a file, not a folder",
        "taken/notes.txt": "mine",
        "run/run.toml": SPEC,
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "junk.csv").write_bytes(bytes(range(256)) * 50)
    (folder / "junk.npy").write_bytes(bytes(range(256)))
    (folder / "junk.mat").write_bytes(bytes(range(256)))
    (folder / "junk.nc").write_bytes(bytes(range(256)))
    np.save(folder / "cube.npy", np.zeros((4, 3, 3)))
    np.save(folder / "objects.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    return folder


def shown(case):
    return case[:20] if isinstance(case, str) else " ".join(map(repr, case))


DENSITY = ("fit", "density", "events.csv")
CASES = [
    # Words
    (("fitt",), "No such command 'fitt'"),
    (("fit", "angles.csv"), "fit needs torus, density, ising or the name of a .toml file first"),
    (("plan", "toruss", "angles.csv"), "plan needs torus, density, ising or the name of a .toml"),
    (TORUS, "Missing argument"),
    ((*TORUS, "angles.csv", "--drws", 3), "No such option: --drws"),
    ((*TORUS, "angles.csv", "--draws", "many"), "Invalid value for '--draws'"),
    ((*TORUS, "angles.csv", "--draws", 0), "draws must be a whole number, 1 or more, got 0"),
    ((*TORUS, "angles.csv", "--chains", -1), "chains must be a whole number, 1 or more"),
    ((*TORUS, "angles.csv", "--tune", -1), "tune must be a whole number, 0 or more"),
    ((*TORUS, "angles.csv", "--cores", 0), "cores must be a whole number, 1 or more"),
    ((*TORUS, "angles.csv", "--seed", -1), "seed must be a whole number, 0 or more"),
    ((*TORUS, "angles.csv", "--noise-ratio", 0), "noise_ratio must be a positive number"),
    ((*TORUS, "angles.csv", "--noise", "mached"), "there is no noise called 'mached' (did you m"),
    ((*TORUS, "angles.csv", "--engine", "stan"), "there is no engine called 'stan'"),
    ((*TORUS, "angles.csv", "--engine", "exact", "--noise", "matched"), "Exact"),
    ((*TORUS, "angles.csv", "--columns", "CA1,,DG"), "must be different names with commas"),
    ((*TORUS, "angles.csv", "--columns", "CA1,CA1"), "must be different names with commas"),
    ((*TORUS, "trials.csv", "--where", "task"), "must be COLUMN=VALUE, got 'task'"),
    ((*TORUS, "angles.csv", "--draws", 10**15), "GB of memory"),
    # Files
    ((*TORUS, "none.csv"), "'none.csv' does not exist"),
    ((*TORUS, "taken"), "'taken' must be a file of one of the kinds"),
    ((*TORUS, "empty.csv"), "empty.csv is empty"),
    ((*TORUS, "names.csv"), "names.csv has names of columns but no rows"),
    ((*TORUS, "one.csv"), "data must have at least 2 rows"),
    ((*TORUS, "text.csv"), "column 'b' of text.csv must hold numbers, got 'two' in row 2"),
    ((*TORUS, "gap.csv"), "column 'b' of gap.csv has no value in row 2"),
    ((*TORUS, "ragged.csv"), "ragged.csv cannot be read as a table"),
    ((*TORUS, "comma.csv"), "column 'a' of comma.csv must hold numbers, got '1,5' in row 1"),
    ((*TORUS, "junk.csv"), "junk.csv is not text"),
    ((*TORUS, "junk.npy"), "junk.npy is not an NPY file of numbers"),
    ((*TORUS, "objects.npy"), "objects.npy is not an NPY file of numbers"),
    ((*TORUS, "junk.mat"), "junk.mat cannot be read as a MATLAB file"),
    (
        (*TORUS, "condition.csv"),
        "column 'cond' of condition.csv holds only 0 and 1, which looks like "
        "labels and not like angles: choose the columns of angles by --columns, or make groups "
        "by --group cond",
    ),
    ((*TORUS, "condition.csv", "--columns", "a,cond"), "column 'cond' of condition.csv holds only"),
    ((*TORUS, "radians.csv"), "column 'cond' of radians.csv holds only 0 and 1 (and run two such "),
    ((*TORUS, "bits.csv"), "ncbayes fit ising is for zeros and ones"),
    (("fit", "nodes.toml"), "there is no column 'CA4' and 'DG' is no node; rename the columns"),
    (("fit", "few.toml"), "'CA3' is no node; rename the columns or choose those of the nodes (--c"),
    ((*TORUS, "turns.csv"), "which are neither radians (up to 2 pi) nor degrees (up to 360)"),
    ((*TORUS, "angles.csv", "--radians"), "angles in radians must lie between -2 pi and 2 pi"),
    ((*TORUS, "angles.csv", "--columns", "CA1,CA2"), "angles.csv has no column 'CA2' (did you m"),
    ((*TORUS, "trials.csv"), "column 'task' of trials.csv must hold numbers, got 'go' in row 1"),
    ((*TORUS, "trials.csv", "--group", "tsk"), "trials.csv has no column 'tsk' (did you mean"),
    ((*TORUS, "trials.csv", "--where", "task=wait"), "no row of trials.csv has task = 'wait'"),
    ((*ISING, "angles.csv"), "data must be 0 or 1, got 120 such values, the first in row 1 "),
    ((*ISING, "votes.csv", "--spins"), "-1"),
    ((*ISING, "constant.csv"), "the node 'a' (column 0, counted from 0) is 0 in all rows"),
    ((*DENSITY, "--x", "LONGITUDE", "--y", "LATITUDE"), "Missing option '--time'"),
    ((*DENSITY, "--x", "LON", "--y", "LATITUDE", "--time", "REPORT_DAT"), "no column 'LON'"),
    ((*DENSITY, *PLACES, "--every", "fortnight"), "every must be"),
    ((*DENSITY, *PLACES, "--outline", "none.geojson"), "there is no file 'none.geojson'"),
    ((*DENSITY, *PLACES, "--outline", "outline.geojson"), "outline.geojson"),
    ((*DENSITY, *PLACES, "--kernel", "box"), "RadialBasis(kernel=...) must be"),
    ((*DENSITY, *PLACES, "--basis", 0), "basis"),
    ((*DENSITY, *PLACES, "--noise", "matchd"), "there is no noise called 'matchd'"),
    (("fit", "density", "dates.csv", "--x", "x", "--y", "y", "--time", "t"), "soon"),
    ((*TORUS, "index.csv"), "column 1 of index.csv has no name: drop it, or choose columns by --"),
    ((*TORUS, "alone.csv", "--group", "a"), "alone.csv has no columns besides 'a', and the model"),
    (
        (*ISING, "wrong.csv", "--where", "g=y"),
        "such value in row 4 (counted from 1, without the na",
    ),
    (
        (*ISING, "wrong.csv", "--group", "g"),
        "in group 'y': data must be 0 or 1, got 1 such value i",
    ),
    ((*ISING, "wrong.csv", "--group", "g"), "in row 4 (counted from 1, without the names)"),
    (
        (*DENSITY, "--x", "X", "--y", "X", "--time", "T"),
        "must be different columns, got X, X and T",
    ),
    (
        (*DENSITY, "--x", "X", "--y", "Y", "--time", "X"),
        "must be different columns, got X, Y and X",
    ),
    # Specs
    (("fit", "raising.toml"), "can't be made of no arguments: RuntimeError: no luck"),
    (("plan", "raising.toml"), "can't be made of no arguments: RuntimeError: no luck"),
    (("plan", "failing.toml", "--noise", "matched", "--quiet"), "own.py failed in line 11: NameEr"),
    (("fit", "exit.toml"), "exit.py can't be run: SystemExit: 0 (line 3)"),
    (("fit", "nocolumns.toml"), "columns of [data] in nocolumns.toml must be a list of names, one"),
    (("fit", "cube.toml"), "cube.npy holds graphs (an array of 3 axes), of which no rows or colum"),
    (
        ("plan", "torus", "angles.csv", "--draws", -5),
        "draws must be a whole number, 1 or more, got",
    ),
    (
        ("plan", "torus", "angles.csv", "--chains", 0),
        "chains must be a whole number, 1 or more, go",
    ),
    (("plan", "torus", "angles.csv", "--cores", 0), "cores must be a whole number, 1 or more, got"),
    (("fit", "none.toml"), "there is no file 'none.toml'"),
    (("fit", "typo.toml"), "has an unknown key 'drwas' (did you mean 'draws'?)"),
    (("fit", "section.toml"), "has an unknown key 'nose' (did you mean 'noise'?)"),
    (("fit", "broken.toml"), "broken.toml is not a TOML file"),
    (("fit", "nodata.toml"), "nodata.toml needs a table [data]"),
    (("fit", "nomodel.toml"), "nomodel.toml needs a table [model]"),
    (("fit", "unknown.toml"), "there is no model called 'TorusGraf' (did you mean 'TorusGraph'?)"),
    (("fit", "argument.toml"), "has no argument 'rotatonal' (did you mean 'rotational'?)"),
    (("fit", "value.toml"), "rotational"),
    (("fit", "type.toml"), "draws of [fit] in type.toml must be a whole number, got 'many'"),
    (("fit", "prior.toml"), "Normal in [prior] needs scale"),
    (("fit", "block.toml", "--noise", "matched"), "edges"),
    (("fit", "failing.toml", "--noise", "matched"), "own.py failed in line 11: NameError: name "),
    (("fit", "nothing.toml"), "which lacks space, groups, statistics, log_base"),
    (("fit", "missing.toml"), "there is no file 'other.py', which 'other.py:Model' names"),
    (("fit", "changed.toml"), "'angles.csv' has changed since the run"),
    (("fit", "units.toml"), "units are for models of angles, and Ising is none"),
]
# Where to write, and what to read.
PLACED = [
    ((*TORUS, "angles.csv", "--out", "file"), "'file' is a file; --out must be the name of a fold"),
    ((*TORUS, "angles.csv", "--out", "file/run"), "can't make the folder 'file/run': Not a direct"),
    ((*TORUS, "angles.csv", "--out", "taken"), "'taken' holds 'notes.txt', which is not a run's"),
    ((*TORUS, "angles.csv", "--out", "taken", "--overwrite"), "'taken' holds 'notes.txt', which"),
    ((*TORUS, "angles.csv", "--out", "run"), "(ncbayes resume run goes on); name another folder"),
    (("resume", "none"), "'none' holds no run"),
    (("summary", "none"), "there is no run 'none'"),
    (("summary", "run"), "'run' is not finished; ncbayes resume run goes on"),
    (("summary", "taken"), "'taken' holds no run"),
    (("edges", "junk.nc"), "'junk.nc' is not a netCDF file"),
    (("check", "run", "--seed", -1), "Invalid value for '--seed'"),
    (("check", "angles.csv"), "'angles.csv' is not a netCDF file"),
    (("report", "none"), "there is no run 'none'"),
    (("plot", "none", "network"), "there is no run 'none'"),
    (("plot", "none", "netwrk"), "there is no picture 'netwrk' (did you mean 'network'?)"),
]


def refused(folder, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    before = listing(folder)
    result = command(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("ncbayes: ")
    assert message in lines[0]
    assert listing(folder) == before


@pytest.mark.parametrize(("words", "message"), CASES, ids=shown)
def test_a_mistake_gets_one_line_and_leaves_nothing(bad, monkeypatch, words, message):
    out = OUT if words[0] == "fit" and len(words) > 1 and words[1] != "angles.csv" else ()
    quiet = ("--quiet",) if out else ()
    refused(bad, monkeypatch, (*words, *out, *quiet), message)


@pytest.mark.parametrize(("words", "message"), PLACED, ids=shown)
def test_places_that_cannot_be_used(bad, monkeypatch, words, message):
    refused(bad, monkeypatch, (*words, *SHORT) if words[0] == "fit" else words, message)


def test_a_good_command_would_not_pass_for_a_mistake(bad, monkeypatch):
    with pytest.raises(AssertionError):
        refused(bad, monkeypatch, ("--version",), "ncbayes")


def test_an_empty_folder_stays_an_empty_folder(bad, monkeypatch):
    (bad / "new").mkdir()
    words = (*TORUS, "one.csv", *SHORT, "--out", "new")
    refused(bad, monkeypatch, words, "data must have at least 2 rows")
    (bad / "new").rmdir()


def test_a_file_larger_than_memory(bad, monkeypatch):
    from ncbayes.cli import tables

    monkeypatch.setattr(tables, "available_bytes", lambda: 100.0)
    refused(bad, monkeypatch, (*TORUS, "angles.csv"), "GB of memory, of which 1e-07 GB are availab")


def test_a_full_disk_is_one_line(bad, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "run/posterior.nc")

    monkeypatch.setattr("ncbayes.cli.jobs.run", full)
    refused(bad, monkeypatch, (*TORUS, "angles.csv"), "'run/posterior.nc': No space left on device")


def test_too_little_memory_is_one_line(bad, monkeypatch):
    def large(*arguments):
        raise MemoryError

    monkeypatch.setattr("ncbayes.cli.jobs.run", large)
    refused(
        bad, monkeypatch, (*TORUS, "angles.csv"), "there is not enough memory; see ncbayes plan"
    )


def test_a_mistake_of_ours_shows_where(bad, monkeypatch):
    def wrong(*arguments):
        raise RuntimeError("ours")

    monkeypatch.setattr("ncbayes.cli.jobs.run", wrong)
    monkeypatch.chdir(bad)
    result = command(*TORUS, "angles.csv")
    assert isinstance(result.exception, RuntimeError)
    assert result.exit_code == 1


def test_a_name_that_is_not_utf8_is_one_line(bad, monkeypatch):
    name = os.fsdecode(b"caf\xe9.csv")
    shutil.copy(bad / "angles.csv", bad / name)
    refused(bad, monkeypatch, (*TORUS, name, *SHORT, *OUT), r"must be text in UTF-8, got ")
    (bad / name).unlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the full disk of Linux")
def test_output_that_cannot_be_written_is_one_line():
    words = [sys.executable, "-m", "ncbayes", "--help"]
    with Path("/dev/full").open("w") as full:
        shown = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert shown.stderr == "ncbayes: No space left on device\n"
    assert shown.returncode == 2


def test_ctrl_c_before_there_is_a_run_promises_nothing(bad, monkeypatch):
    def stop(job):
        raise KeyboardInterrupt

    monkeypatch.setattr("ncbayes.cli.jobs.ready", stop)
    monkeypatch.chdir(bad)
    result = command(*TORUS, "angles.csv", *OUT)
    assert result.exit_code == 130
    assert result.stderr == "ncbayes: stopped before the fit began; nothing was written\n"
