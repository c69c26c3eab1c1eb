"""What the command says, and how it ends: one line for a mistake, JSON for machines, exit codes."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

# Exit codes besides 0; a traceback, which is a mistake of ours, ends with 1 as well.
ATTENTION, MISTAKE, INTERRUPTED = 1, 2, 130
ORDER = ("fit", "plan", "resume", "extend", "check", "summary", "edges", "plot", "report", "demo")
# What library messages call things, and what the command calls them.
SPOKEN = (
    (r"posterior\.extend\(draws=0\) finishes it", "ncbayes resume finishes it"),
    (r'noise="(\w+)"', r"--noise \1"),
    (r"noise=ncbayes\.noise\.Adaptive\(\)", "--noise Adaptive"),
    (r"noise_ratio=(\S+)", r"--noise-ratio \1"),
    (r'engine="(\w+)"', r"--engine \1"),
    (r'outside="drop"', "--drop-outside"),
    (r'coding="spins"', "--spins"),
    (r'coordinates="(degrees|plane)"', r"--\1"),
    (r"day_first=True or day_first=False", "--day-first or --month-first"),
    (r"\bday_first=True", "--day-first"),
    (r"\bday_first=False", "--month-first"),
    (r"\btz= ", "--tz "),
    (r"\bdomain= with ", "--outline with "),
    (r"\bevery=(?=$|;)", "--every"),
    (
        r"the posterior's groups (.*), and the call (leaves it open|is .*); pass group=",
        r"the run's groups \1, and the command \2; pass --group ",
    ),
)


class Commands(TyperGroup):
    """Commands that end a user's mistake with one line and exit code 2."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of use."""
        known = [name for name in ORDER if name in self.commands]
        return known + [name for name in self.commands if name not in ORDER]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        try:
            with spoken_warnings():
                code = super().main(
                    args, prog_name, complete_var, False, windows_expand_args, **extra
                )
        except (Exception, KeyboardInterrupt) as error:
            code = _ended(error)
        if not standalone_mode:
            return code
        sys.exit(code or 0)


class Kinds(Commands):
    """The commands of ``fit`` and ``plan``, where a word that ends in .toml is a command too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if word.endswith(".toml"):
            return word, self.commands["SPEC.toml"], args
        if word not in self.commands and not word.startswith("-"):
            verb, known = ctx.info_name, [each for each in self.commands if each != "SPEC.toml"]
            ctx.fail(
                f"{verb} needs {', '.join(known)} or the name of a .toml file first, got {word!r}, "
                f"as in ncbayes {verb} torus angles.csv"
            )
        return super().resolve_command(ctx, args)


def _ended(error: BaseException) -> int:
    """Say what went wrong, and with which exit code; what is our mistake is raised again."""
    from ncbayes.base import InputError

    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())  # type: ignore[attr-defined]
        return 0
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        note("stopped")
        return INTERRUPTED
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "ncbayes"
        note(f"{error.format_message().rstrip('.')}; see {path} --help")
        return MISTAKE
    if isinstance(error, InputError):
        note(spoken(str(error)))
        return MISTAKE
    if isinstance(error, OSError):
        _let_go_of_output()
        where = "" if error.filename is None else f"{os.fspath(error.filename)!r}: "
        note(f"{where}{error.strerror or error}")
        return MISTAKE
    if isinstance(error, MemoryError):
        note("there is not enough memory; see ncbayes plan --help")
        return MISTAKE
    raise error


def _let_go_of_output() -> None:
    """Forget output that can't be written, which Python would try again, and complain, at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(words: str) -> None:
    """One line on the standard error stream."""
    typer.echo(f"ncbayes: {' '.join(words.split())}", err=True)


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Warnings are said in one line each, without a path; those for developers are not said."""

    def say(message: Any, category: type[Warning], *rest: object, **more: object) -> None:
        note(f"warning: {spoken(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for developers in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", developers)
        warnings.showwarning = say
        yield


def spoken(line: str, run: str | None = None) -> str:
    """A line of the library in the words of the command; ``run``: the folder of the run."""
    for pattern, words in SPOKEN:
        line = re.sub(pattern, words, line)

    def more(found: re.Match[str]) -> str:
        return "a larger --draws" if run is None else f"ncbayes extend {run} --draws {found[1]}"

    return re.sub(r"posterior\.extend\(draws=(\d+)\)", more, line)


def print_json(document: Any) -> None:
    """One JSON document on the standard output, with null for numbers that are none."""
    typer.echo(json.dumps(_plain(document), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def print_table(table: Any, width: int = 80) -> None:
    """A data frame, its row labels cut so that lines are at most ``width`` wide if they can be."""
    text = {name: [_cell(value) for value in table[name]] for name in table.columns}
    sizes = {name: max(map(len, [str(name), *cells])) for name, cells in text.items()}
    room = max(8, width - sum(size + 2 for size in sizes.values()))
    labels = [_cut(str(label), room) for label in table.index]
    first = max(map(len, ["", *labels]))
    typer.echo(" " * first + "".join(f"  {name!s:>{size}}" for name, size in sizes.items()))
    for position, label in enumerate(labels):
        cells = "".join(f"  {text[name][position]:>{size}}" for name, size in sizes.items())
        typer.echo(f"{label:<{first}}{cells}")


def _cell(value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cut(text: str, most: int) -> str:
    """The text with its middle left out if it is long: names often differ at the end."""
    if len(text) <= most:
        return text
    end = (most - 3) // 2
    return f"{text[: most - 3 - end]}...{text[-end:] if end else ''}"
