"""The documentation is code: its blocks run, its outputs are compared, its links lead somewhere."""

import re
from pathlib import Path

import pytest

from doc_pages import FENCE, INSTALL, ROOT, Reader, blocks, hidden_modules, run, run_in

RUN = re.compile(r"^```(python|sh)$", re.MULTILINE)
LINKED = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("*/*.md")),
]
PAGES = [page for page in LINKED if RUN.search(page.read_text())]
# Pages that need more than the README's own line installs, with the extra that they name.
WITH_EXTRAS = {"cluster.md": "cluster", "energy.md": "energy", "export.md": "maps"}
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


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


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Runs pages as they run after the README's own line of installation, which has no extras."""
    made = Reader(tmp_path_factory.mktemp("required"), hidden_modules())
    yield made
    made.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, tmp_path, request):
    name, text = str(page.relative_to(ROOT)), page.read_text()
    if page.name in WITH_EXTRAS:
        assert "pip install" in text
        assert f"ncbayes[{WITH_EXTRAS[page.name]}]" in text
        run_in(tmp_path, name, text)
    else:
        request.getfixturevalue("reader").run(tmp_path, name, text)


def test_what_the_readme_does_not_install_is_not_found_by_its_pages(reader, tmp_path):
    """Also in processes that they start; what it does install is."""
    for module in ("shapely", "matplotlib", "numba"):
        reader.run(tmp_path, "page.md", f"```python\nimport {module}\n```\n")
    for module in ("jax", "rasterio", "polars", "pyarrow", "pytest"):
        with pytest.raises(AssertionError, match=rf"page\.md:2: ModuleNotFound.*'{module}'"):
            reader.run(tmp_path, "page.md", f"```python\nimport {module}\n```\n")
    child = 'subprocess.run([sys.executable, "-c", "import jax"], capture_output=True).returncode'
    text = f"```python\nimport subprocess, sys\nprint({child})\n```\n\n```text\n1\n```\n"
    reader.run(tmp_path, "page.md", text)


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
    wanted = [INSTALL.sub("", line) for line in "".join(sh).splitlines()]
    assert wanted[0] == "ncbayes demo"
    recorded = (ROOT / "docs" / "first_report.md").read_text()
    assert re.findall(r"^\$ (.*)$", recorded, re.MULTILINE) == wanted


def test_one_command_of_the_readme_installs_and_runs_the_main_job():
    """The other one, which installs and tests, is what CI runs."""
    sh = [block.body for block in blocks((ROOT / "README.md").read_text()) if block.info == "sh"]
    first = sh[0].splitlines()
    assert len(first) == 1
    assert INSTALL.match(first[0])
    assert "pip install -q -e . " in first[0]  # no extras
