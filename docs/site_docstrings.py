"""For mkdocstrings: examples in prose become code; attributes without words are left out."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Module, Object

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *\n).+)*", re.MULTILINE)


def fenced(text: str) -> str:
    """The text with its examples in fences.

    >>> fenced("One more.")
    'One more.'
    """
    return EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


def without_bare_fields(module: Module) -> None:
    """Fields and properties without words stand in their class's signature, if anywhere."""
    for member in list(module.members.values()):
        if member.is_alias:
            continue
        if member.is_module:
            without_bare_fields(member)
        if member.is_class:
            for name, field in list(member.members.items()):
                if not field.is_alias and field.is_attribute and not field.docstring:
                    member.del_member(name)


class Docstrings(Extension):
    """Fences around examples, and no headings for bare fields."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called by Griffe with everything it finds."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called by Griffe at the end, when signatures have been made of the fields."""
        without_bare_fields(pkg)
