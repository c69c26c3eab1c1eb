"""The command as a whole: its help, its version, and how fast it answers."""

import ast
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner

import ncbayes as ncb
from conftest import command
from ncbayes import cli

runner = CliRunner()
COMMANDS = (
    "fit",
    "plan",
    "resume",
    "extend",
    "check",
    "summary",
    "edges",
    "plot",
    "report",
    "demo",
)
OTHERS = ("reproduce", "bench")
KINDS = ("torus", "density", "ising", "SPEC.toml")


@pytest.fixture(autouse=True)
def _agg():
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_version_and_help():
    assert runner.invoke(cli.app, ["--version"]).output == f"ncbayes {ncb.__version__}\n"
    assert "demo" in runner.invoke(cli.app, ["--help"]).output


def test_commands_are_listed_in_the_order_of_use():
    lines = command("--help").stdout.splitlines()
    start = lines.index("Commands:") + 1
    listed = [line.split()[0] for line in lines[start : lines.index("", start)]]
    assert tuple(listed) == COMMANDS + OTHERS


@pytest.mark.parametrize(
    "words",
    [
        (),
        *((name,) for name in (*COMMANDS, *OTHERS)),
        *((verb, kind) for verb in ("fit", "plan") for kind in KINDS),
    ],
    ids=" ".join,
)
def test_every_help_ends_with_examples_and_fits_on_80_columns(words):
    result = command(*words, "--help")
    assert result.exit_code == 0
    lines = result.stdout.rstrip().splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.startswith("  ") and line.endswith("...")]
    assert lines[-1].startswith("    ")
    after = lines[lines.index("  Examples:") + 1 :]
    path = " ".join(["ncbayes", *(word for word in words if word != "SPEC.toml")])
    assert after[0].startswith(f"    {path}")


@pytest.mark.parametrize("words", [(), ("fit",), ("plan",)])
def test_no_words_at_all_are_answered_with_help(words):
    result = command(*words)
    assert result.exit_code == 0
    assert "Commands:" in result.stdout


def test_plan_takes_what_fit_takes():
    for kind in KINDS:
        fit, plan = (command(verb, kind, "--help").stdout for verb in ("fit", "plan"))
        assert plan == fit.replace(" fit ", " plan ")


# What --help has no use for: imports of these are what takes time.
HEAVY = ("matplotlib", "ncbayes.base", "numpy", "pandas", "scipy", "xarray")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from ncbayes.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "[]"


def test_bench_writes_the_page_of_the_comparison(tmp_path, monkeypatch):
    from ncbayes_bench import compare

    def run(out, quick, say):
        assert quick
        say("a line")
        return [out / "comparison.md"]

    monkeypatch.setattr(compare, "run", run)
    result = runner.invoke(cli.app, ["bench", "--quick", "--out", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    assert result.stderr == "a line\n"
    assert result.stdout == f"{tmp_path / 'new' / 'comparison.md'}\n"
    (tmp_path / "file").write_text("")
    monkeypatch.undo()
    result = runner.invoke(cli.app, ["bench", "--out", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"ncbayes: --out '{tmp_path / 'file'}' can't be written (File ")


def test_the_module_is_the_command():
    words = [sys.executable, "-m", "ncbayes", "summary", "none"]
    shown = subprocess.run(words, capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    assert shown.stderr == (
        "ncbayes: there is no run 'none'; pass the folder that ncbayes fit has written\n"
    )


def test_functions_that_use_the_package_go_to_other_processes():
    """By value, as those of a user's script do, with the package among their globals."""
    code = (
        "import ncbayes as ncb\nfrom joblib import Parallel, delayed\n"
        "def name(k):\n    return ncb.fit.__name__ * k\n"
        "print(Parallel(n_jobs=2)(delayed(name)(k) for k in (1, 2)))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "['fit', 'fitfit']\n"


def test_editors_see_the_names_that_are_imported_late():
    tree = ast.parse(Path(ncb.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body for alias in node.names}
    assert seen == set(ncb.__all__)


def test_all_names_of_the_package_are_found():
    for name in ncb.__all__:
        assert getattr(ncb, name) is not None
    assert set(ncb.__all__) <= set(dir(ncb))
    with pytest.raises(AttributeError, match=r"^module 'ncbayes' has no attribute 'fitt'$"):
        _ = ncb.fitt
