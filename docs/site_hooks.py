"""What MkDocs does besides: public names for the reference, formulas as MathML, the changelog."""

from __future__ import annotations

import html
import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
ROOM = re.compile(r"^::: (?P<room>[\w.]+)$", re.MULTILINE)
FENCE = re.compile(r"^```(?P<language>\w+) [\w-]+$", re.MULTILINE)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([\[(])(.*?)\\[\])]</\1>', re.DOTALL)


def public_names(room: str) -> list[str]:
    """The names of a namespace that are no namespaces: its ``__all__``, or what it defines."""
    module = importlib.import_module(room)
    here = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == room
    ]
    names = [
        name
        for name in getattr(module, "__all__", here)
        if not isinstance(getattr(module, name), ModuleType)
    ]
    return sorted(names, key=lambda name: (_is_error(getattr(module, name)), name != "fit"))


def entries(room: str) -> str:
    """What mkdocstrings is asked for: the docstring of a namespace, then its names."""
    lines = [f"::: {room}\n    options: {{members: false, show_root_toc_entry: false}}\n"]
    if "." in room:
        lines.insert(0, _anchor(room))
    is_package = hasattr(importlib.import_module(room), "__path__")
    for name in public_names(room):
        path = f"{room}.{name}"
        if is_package and importlib.util.find_spec(path):
            # A file of the same name: readers of source find the file, and users the object.
            lines.append(_anchor(path))
            path = f"{path}.{name}"
        lines.append(f"::: {path}\n    options: {{show_root_heading: true}}\n")
    return "\n".join(lines)


def _anchor(name: str) -> str:
    return f'<a id="{name}"></a>\n'


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def on_files(files: Any, config: Any) -> Any:
    """``CHANGELOG.md`` as a page."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changes.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """``::: ncbayes.models`` with the names that it exports; fences without the tests' words."""
    named = ROOM.sub(lambda match: entries(match["room"]), markdown)
    return FENCE.sub(r"```\g<language>", named)


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as MathML, which browsers draw by themselves."""

    def drawn(match: re.Match[str]) -> str:
        display = "block" if match[2] == "[" else "inline"
        return convert(html.unescape(match[3]).strip(), display=display)

    return FORMULA.sub(drawn, content)
