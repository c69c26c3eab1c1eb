"""The site builds offline without a warning; its links lead somewhere, and it loads nothing."""

import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urldefrag

import ncbayes

ROOT = Path(__file__).parents[1]
ELSEWHERE = re.compile(r"^(https?:)?//")
# Of other packages' files and of our pages: what a browser fetches when it opens a page.
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADING_LINKS = {"stylesheet", "preload", "prefetch", "preconnect", "icon", "modulepreload"}


class Page(HTMLParser):
    """Anchors, links and fetched addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "__top"}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADS and LOADS[tag] in found:
            self.loaded.append(found[LOADS[tag]])
        if tag == "link" and LOADING_LINKS & set(found.get("rel", "").split()):
            self.loaded.append(found["href"])
        self.loaded += re.findall(r"url\(['\"]?([^'\")]+)", found.get("style", ""))


def dead_links(pages: dict[Path, Page]) -> list[str]:
    """Links inside the site that lead to no file, or to no anchor of a page."""
    dead = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            target, anchor = urldefrag(link)
            if re.match(r"^([a-z]+:|//)", target):
                continue
            file = (path.parent / unquote(target)).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            known = file not in pages or unquote(anchor) in pages[file].anchors
            if not file.is_file() or not known:
                dead.append(f"{path.name}: {link}")
    return dead


def loaded_from_elsewhere(pages: dict[Path, Page], sheets: dict[str, str]) -> list[str]:
    found = [address for page in pages.values() for address in page.loaded]
    for text in sheets.values():
        found += re.findall(r"url\(['\"]?([^'\")]+)", text)
        found += re.findall(r"@import\s+['\"]([^'\"]+)", text)
    return [address for address in found if ELSEWHERE.match(address)]


def public(room: str) -> list[str]:
    """Names that a reader of the reference looks for."""
    module = importlib.import_module(room)
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == room
    ]
    return list(getattr(module, "__all__", defined))


def rooms() -> list[str]:
    found = [name for name in ncbayes.__all__ if isinstance(getattr(ncbayes, name), ModuleType)]
    return ["ncbayes", *(f"ncbayes.{name}" for name in found), "ncbayes.models.terms"]


def built(folder: Path) -> dict[Path, Page]:
    # A proxy that is not there: whatever is fetched fails.
    nowhere = {f"{name}_proxy": "http://127.0.0.1:9" for name in ("http", "https", "all")}
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert result.returncode == 0, result.stderr
    return {path: Page(path.read_text()) for path in folder.resolve().rglob("*.html")}


def not_in_navigation(home: Path, pages: dict[Path, Page]) -> list[str]:
    linked = {(home.parent / unquote(urldefrag(link)[0])).resolve() for link in pages[home].links}
    return [path.name for path in pages if path not in linked | {home} and path.stem != "404"]


def not_in_reference(pages: dict[Path, Page]) -> list[str]:
    found = [page.anchors for path, page in pages.items() if path.parent.name == "reference"]
    names = [f"{room}.{name}" for room in rooms() for name in public(room)]
    return [name for name in names if name not in set().union(*found)]


def not_drawn(pages: dict[Path, Page]) -> list[str]:
    """Pages with formulas or examples that were taken for prose."""
    texts = {path: re.sub(r"<code>.*?</code>", "", path.read_text(), flags=re.S) for path in pages}
    return [
        path.name
        for path, text in texts.items()
        if "arithmatex" in text or "<p>&gt;&gt;&gt;" in text
    ]


# One test for all, as building takes a while and every worker would build its own.
def test_the_site_builds_offline_without_a_warning_and_holds_together(tmp_path):
    pages = built(tmp_path)
    sheets = {path.name: path.read_text() for path in tmp_path.rglob("*.css")}
    assert len(pages) > 50
    assert sheets
    # The page of errors is shown at any address, so its links are those of a server.
    assert dead_links({path: page for path, page in pages.items() if path.stem != "404"}) == []
    assert loaded_from_elsewhere(pages, sheets) == []
    assert not_in_navigation((tmp_path / "index.html").resolve(), pages) == []
    assert not_in_reference(pages) == []
    assert not_drawn(pages) == []
    assert "<math" in (tmp_path / "glossary.html").read_text()


def test_broken_sites_are_told(tmp_path):
    (tmp_path / "other.html").write_text('<h2 id="there">There</h2>')
    good = '<a href="other.html#there"></a><a href="https://x.org"></a>'
    bad = '<a href="other.html#gone"></a><a href="none.html"></a><img src="none.png">'
    for text, dead in ((good, []), (bad, ["#gone", "none.html", "none.png"])):
        (tmp_path / "page.html").write_text(text)
        pages = {path.resolve(): Page(path.read_text()) for path in tmp_path.glob("*.html")}
        assert [
            line.partition("l: ")[2].removeprefix("other.html") for line in dead_links(pages)
        ] == dead
    page = {
        tmp_path: Page(
            '<script src="https://cdn.org/a.js"></script><link rel="stylesheet" href="//x/y">'
        )
    }
    sheets = {"a.css": "@import 'https://fonts.org/a'; b {background: url(http://c.org/d.png)}"}
    assert len(loaded_from_elsewhere(page, sheets)) == 4
