"""Pages of documentation are programs: this runs their blocks, with or without the extras.

    python tests/doc_pages.py README.md docs/quickstart.md

runs pages in any environment, each in an empty folder of its own. ``Reader`` runs them in a process
that sees only what the README's own line installs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import traceback
import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
# The README's first command installs, and then runs the demo. CI runs the whole of it before the
# tests, in a new environment; here all is installed, and the demo's chains are shorter.
INSTALL = re.compile(r"^python3 -m venv .* && (?=ncbayes )")
SHORTER = ("--draws", "100")
# Resolution of pictures: most of the time of drawing one goes into pixels that nobody sees.
DPI = 30


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is, where its first line stands, and the output shown after it."""

    info: str
    line: int
    body: str
    output: str | None


def blocks(text: str) -> list[Block]:
    fences = list(FENCE.finditer(text))
    found = []
    for k, fence in enumerate(fences):
        after = fences[k + 1] if k + 1 < len(fences) else None
        follows = after is not None and not text[fence.end() : after.start()].strip()
        shown = after["body"] if follows and after["info"].strip() == "text" else None
        line = text.count("\n", 0, fence.start("body")) + 1
        found.append(Block(fence["info"].strip(), line, fence["body"], shown))
    return found


def run(name: str, text: str) -> None:
    """Run the python blocks (in one namespace) and the sh blocks of a page, in order."""
    namespace = {"__name__": "__main__"}
    for block in blocks(text):
        if block.info == "python":
            printed = run_python(name, block, namespace)
        elif block.info == "sh":
            printed = run_shell(name, block)
        else:
            continue
        if block.output is not None:
            got, shown = plain(printed), plain(block.output)
            if got != shown:
                raise AssertionError(
                    f"{name}:{block.line}: prints\n{got}\nand the page shows\n{shown}"
                )


def run_in(folder: Path, name: str, text: str) -> None:
    """The same in a folder, without windows, and with warnings as errors unless the page says."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    from ncbayes.cli import readouts

    mpl.use("Agg")
    usual, readouts.DPI = readouts.DPI, DPI
    try:
        with contextlib.chdir(folder), warnings.catch_warnings(), mpl.rc_context():
            mpl.rcParams["savefig.dpi"] = DPI
            warnings.simplefilter("error")
            run(name, text)
    finally:
        readouts.DPI = usual
        plt.close("all")  # matplotlib warns of more than twenty


def run_python(name: str, block: Block, namespace: dict[str, object]) -> str:
    # Blank lines in front, so that a traceback counts lines as the page does.
    code = compile("\n" * (block.line - 1) + block.body, name, "exec")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = [frame.lineno for frame in frames if frame.filename == name][-1:] or [block.line]
        raise AssertionError(f"{name}:{line[0]}: {type(error).__name__}: {error}") from error
    return printed.getvalue()


def run_shell(name: str, block: Block) -> str:
    """Every line is a call of the command ``ncbayes``, run in this process."""
    from typer.testing import CliRunner

    from ncbayes.cli import app

    printed = []
    for number, line in commands(block):
        words = shlex.split(INSTALL.sub("", line), comments=True)
        words += SHORTER if INSTALL.match(line) else ()
        if not words:
            continue
        if words[0] != "ncbayes":
            raise AssertionError(f"{name}:{number}: sh blocks call ncbayes; else they are no-run")
        result = CliRunner().invoke(app, words[1:])
        if result.exit_code != 0:
            raise AssertionError(
                f"{name}:{number}: exit code {result.exit_code}: {result.output}"
            ) from result.exception
        printed.append(result.stdout)
    return "".join(printed)


def commands(block: Block) -> list[tuple[int, str]]:
    """Lines with their numbers; those that end with a backslash go on in the next."""
    found, before, start = [], "", block.line
    for number, line in enumerate(block.body.splitlines(), block.line):
        start = start if before else number
        if line.endswith("\\"):
            before += line[:-1]
            continue
        found.append((start, before + line))
        before = ""
    return found


def plain(output: str) -> str:
    return "\n".join(line.rstrip() for line in output.strip().splitlines())


def normal(name: str) -> str:
    """The name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(wanted: list[str]) -> set[str]:
    """The distributions that installing these brings: they, what they require, and so on."""
    from packaging.requirements import Requirement

    found: set[tuple[str, str]] = set()
    left = [Requirement(each) for each in wanted]
    while left:
        each = left.pop()
        for extra in ("", *each.extras):
            key = (normal(each.name), extra)
            if key in found:
                continue
            found.add(key)
            for text in metadata.requires(each.name) or ():
                needs = Requirement(text)
                if needs.marker is None or needs.marker.evaluate({"extra": extra}):
                    left.append(needs)
    return {name for name, _ in found}


def hidden_modules() -> list[str]:
    """Modules here that the README's own line would not install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kept = required(project["dependencies"]) | {project["name"]}
    owners = metadata.packages_distributions()
    return sorted(
        name for name, each in owners.items() if not {normal(owner) for owner in each} & kept
    )


# In a process that starts with this, and in those it starts, the hidden modules are not there.
HIDING = """
import sys
from importlib.machinery import PathFinder

HIDDEN = frozenset({hidden!r})


class Required(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            return None
        return PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Required
"""


class Reader:
    """A process that runs pages, one after the other, and sees no module that is hidden."""

    def __init__(self, folder: Path, hidden: list[str]) -> None:
        (folder / "sitecustomize.py").write_text(HIDING.format(hidden=hidden), encoding="utf-8")
        places = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        )

    def run(self, folder: Path, name: str, text: str) -> None:
        """Run a page in this folder; raises AssertionError as ``run`` does."""
        ask, answer = self._process.stdin, self._process.stdout
        assert ask is not None
        assert answer is not None
        ask.write(json.dumps([str(folder), name, text]) + "\n")
        ask.flush()
        wrong = json.loads(answer.readline())
        if wrong is not None:
            raise AssertionError(wrong)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve() -> None:
    """Answer each line of the standard input: null, or what was wrong with the page."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what others print is no answer
    for line in sys.stdin:
        folder, name, text = json.loads(line)
        try:
            run_in(Path(folder), name, text)
            wrong = None
        except Exception as error:
            wrong = str(error) or repr(error)
        answers.write(json.dumps(wrong) + "\n")
        answers.flush()


def main(names: list[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            run_in(Path(folder), name, (ROOT / name).read_text(encoding="utf-8"))
        print(f"{name}: all blocks run", flush=True)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main(sys.argv[1:])
