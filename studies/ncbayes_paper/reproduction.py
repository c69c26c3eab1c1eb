"""``ncbayes reproduce``: run what was asked for, and write tables and figures to a folder."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import joblib

import ncbayes as ncb
import ncbayes_paper
from ncbayes_paper import pages
from ncbayes_paper.kept import finished, replications
from ncbayes_paper.study import Figure, Measured, Settings, Table
from ncbayes_paper.watching import Clock, watched

FITS, VERSION = "fits.jsonl", "version.txt"
# Files that a figure may use, by ending.
ENDINGS = {".csv": "incidents of figure2", ".mat": "recording of figure4 to figure7"}


@dataclass(frozen=True)
class Request:
    """What to reproduce, and how.

    ``replications`` None: as many as the paper has; ``cores`` None: all that there are.
    """

    names: tuple[str, ...]
    out: Path
    replications: int | None = None
    cores: int | None = None
    sweeps: tuple[int, int] | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    outline: Path | None = None
    scheduler: str | None = None

    @property
    def processes(self) -> int:
        """Fits at a time."""
        return self.cores or joblib.cpu_count()

    def count(self, table: Table) -> int:
        """The number of data sets of a table."""
        return self.replications or table.replications

    def command(self, name: str, count: int | None = None) -> str:
        """The call that gives the same numbers, whatever the cores and the folder."""
        words = ["ncbayes", "reproduce", name]
        if count is not None:
            words += ["--replications", str(count)]
        if self.sweeps is not None:
            words += ["--tune", str(self.sweeps[0]), "--draws", str(self.sweeps[1])]
        return shlex.join(words)


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The items of these names, "all" among them, in the paper's order."""
    known = list(ncbayes_paper.FILES)
    lower = {name.lower(): name for name in known}
    wrong = [name for name in names if name.lower() not in (*lower, "all")]
    if wrong:
        raise ncb.InputError(
            f"there is no {wrong[0]!r} in the paper; choose among {', '.join(known)}, or all"
        )
    if not names or "all" in map(str.lower, names):
        return tuple(known)
    wanted = {lower[name.lower()] for name in names}
    return tuple(name for name in known if name in wanted)


def by_ending(files: Sequence[Path]) -> dict[str, Path]:
    """Files of the user's by what they are for."""
    found: dict[str, Path] = {}
    for path in files:
        ending = path.suffix.lower()
        if ending not in ENDINGS:
            known = ", ".join(f"{end} ({use})" for end, use in ENDINGS.items())
            raise ncb.InputError(f"--data must be a file of one of {known}, got {str(path)!r}")
        if not path.is_file():
            raise ncb.InputError(f"--data: there is no file {str(path)!r}")
        if ending in found:
            raise ncb.InputError(f"--data: two files end in {ending}; give one of each kind")
        found[ending] = path
    return found


def reproduce(request: Request, say: Callable[[str], object]) -> list[Path]:
    """Run and write everything; the files written."""
    prepare(request.out)
    items = {name: ncbayes_paper.item(name) for name in request.names}
    tables = [each for each in items.values() if isinstance(each, Table)]
    figures = [each for each in items.values() if isinstance(each, Figure)]
    written: list[Path] = []
    if tables:
        fits = run(request, tables, say)
        for table in tables:
            written += [*write_table(request, table, fits), write_seconds(request, table, fits)]
    for figure in figures:
        say(f"{pages.title(figure.name)}: {figure.title} ...")
        written += write_figure(request, figure)
    return written


def prepare(out: Path) -> None:
    """Make the folder; refuse one with fits of another version, which must not be mixed."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        stamp = out / VERSION
        if not stamp.exists():
            put(stamp, ncb.__version__ + "\n")
    except OSError as error:
        raise ncb.InputError(
            f"--out {str(out)!r} can't be written ({error.strerror}); name a folder that can"
        ) from None
    stored = stamp.read_text().strip()
    if stored != ncb.__version__:
        raise ncb.InputError(
            f"--out {str(out)!r} holds fits of ncbayes {stored}, this is {ncb.__version__}; name "
            "another folder"
        )


def run(request: Request, tables: Sequence[Table], say: Callable[[str], object]) -> pages.Fits:
    """The fits of all tables, those that the folder holds read and the others run."""
    places = [p for each in tables for p in each.places(request.count(each), request.sweeps)]
    store = request.out / FITS
    known = finished(store)
    clock = Clock(places, known)
    kept = f", {clock.done} kept from before" if clock.done else ""
    say(f"{clock.total} fits{kept}; stop at any time, the same command goes on")
    with watched(clock) as report:
        found = replications(measured, places, request.processes, store, request.scheduler, report)
    return known | dict(zip(places, found, strict=True))


def measured(scenario: str, *place: Any) -> Measured:
    """One fit of any table."""
    if scenario == "density":
        from ncbayes_paper import density_table

        return density_table.measured(scenario, *place)
    from ncbayes_paper import torus_tables

    return torus_tables.measured(scenario, *place)


def write_table(request: Request, table: Table, fits: pages.Fits) -> list[Path]:
    """The files of a table: its cells, its page and its single fits."""
    given = (table, fits, request.count(table), request.sweeps)
    found = pages.cells(*given)
    command = request.command(table.name, request.count(table))
    return [
        put(request.out / f"{table.name}.csv", pages.frame(found).to_csv(index=False)),
        put(request.out / f"{table.name}.md", pages.page(table, found, command, request.sweeps)),
        put(request.out / f"{table.name}_fits.csv", pages.single_fits(*given).to_csv(index=False)),
    ]


def write_seconds(request: Request, table: Table, fits: pages.Fits) -> Path:
    """What differs from run to run: seconds, the date, the machine."""
    import numpy as np

    found = pages.seconds(table, fits, request.count(table), request.sweeps)
    lines = [
        f"# {pages.title(table.name)}: how long it took",
        "",
        f"ncbayes {ncb.__version__}, {date.today().isoformat()}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores. Processor "
        "seconds of a fit, noise included, in the median over data sets.",
        "",
        "| method | seconds a fit |",
        "|---|---|",
        *(f"| {method} | {seconds:.2f} |" for method, seconds in found.items()),
        "",
    ]
    return put(request.out / f"{table.name}_seconds.md", "\n".join(lines))


def write_figure(request: Request, figure: Figure) -> list[Path]:
    """The picture and its caption."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("agg")
    folder = request.out / "posteriors"
    folder.mkdir(exist_ok=True)
    settings = Settings(folder, request.files, request.outline, request.sweeps, request.processes)
    drawn, caption = figure.drawn(settings)
    path = request.out / f"{figure.name}.png"
    drawn.savefig(path, dpi=110)
    plt.close(drawn)
    words = f"# {pages.title(figure.name)}: {figure.title}\n\n"
    picture = f"![{figure.title}]({path.name})\n\n{caption}\n"
    return [path, put(path.with_suffix(".md"), words + picture)]


def put(path: Path, text: str) -> Path:
    """Write a file whole, or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)
    return path
