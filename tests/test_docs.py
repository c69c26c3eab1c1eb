"""The documentation is code: its blocks run, its outputs are compared, its links lead somewhere."""

import contextlib
import io
import re
import shlex
import traceback
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner

from ncbayes.cli import app

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
RUN = re.compile(r"^```(python|sh)$", re.MULTILINE)
LINKED = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("*/*.md")),
]
PAGES = [page for page in LINKED if RUN.search(page.read_text())]
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


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
    printed = []
    for number, line in commands(block):
        words = shlex.split(line, comments=True)
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


def slug(heading: str) -> str:
    """The anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def dead_links(page: Path, text: str) -> list[str]:
    dead = []
    for match in LINK.finditer(FENCE.sub("", text)):
        target, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        is_page = file.is_file() and file.suffix == ".md"
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M) if is_page else []
        if not file.exists() or (anchor and anchor not in map(slug, headings)):
            dead.append(match["target"])
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    try:
        run(str(page.relative_to(ROOT)), page.read_text())
    finally:
        plt.close("all")  # matplotlib warns of more than twenty


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_exist(page):
    assert dead_links(page, page.read_text()) == []


def test_hardly_any_block_is_left_out_and_infos_are_known():
    infos = [block.info for page in LINKED for block in blocks(page.read_text())]
    known = {"", "python", "python no-run", "text", "text example", "sh", "sh no-run"}
    assert set(infos) <= known
    assert infos.count("python no-run") <= 2
    # Installation, schedulers of clusters, studies of hours.
    assert infos.count("sh no-run") <= 10
    # Numbers of chains, which another processor rounds differently: shown, not compared.
    assert infos.count("text example") <= 4


GOOD = "# A\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\n[a](#a)\n"


def test_a_good_page_passes_and_broken_ones_are_named_by_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(GOOD)
    run("page.md", GOOD)
    assert dead_links(page, GOOD) == []
    with pytest.raises(AssertionError, match=r"page\.md:4: prints\n1\nand the page shows\n2"):
        run("page.md", GOOD.replace("text\n1", "text\n2"))
    with pytest.raises(AssertionError, match=r"page\.md:5: NameError"):
        run("page.md", GOOD.replace("print(x)", "print(y)"))
    assert dead_links(page, "[a](#b) [c](none.md) [d](https://x.org)") == ["#b", "none.md"]


SHELL = "```sh\nncbayes --version  # of the command\nncbayes \\\n  --help\n```\n"


def test_commands_of_a_page_run_and_broken_ones_are_named_by_line():
    run("page.md", SHELL)
    with pytest.raises(
        AssertionError, match=r"page\.md:2: prints\nncbayes 0.*\nand the page shows"
    ):
        run("page.md", "```sh\nncbayes --version\n```\n\n```text\nncbayes 99\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:3: exit code 2"):
        run("page.md", SHELL.replace("--help", "--nonsense"))
    with pytest.raises(AssertionError, match=r"page\.md:2: sh blocks call ncbayes"):
        run("page.md", "```sh\npip install ncbayes\n```\n")


def test_the_recorded_session_has_the_commands_of_the_readme():
    """Those that are run above; docs/make_transcript.py records them anew."""
    sh = [block.body for block in blocks((ROOT / "README.md").read_text()) if block.info == "sh"]
    wanted = "".join(sh).splitlines()
    assert wanted[0] == "ncbayes demo"
    recorded = (ROOT / "docs" / "first_report.md").read_text()
    assert re.findall(r"^\$ (.*)$", recorded, re.MULTILINE) == wanted
