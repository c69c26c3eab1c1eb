"""The commands ``fit`` and ``plan``, which take the same words."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ncbayes.cli.terminal import INTERRUPTED, Kinds, note, print_json

File = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, NPY or MAT file, rows by columns.")]
Columns = Annotated[
    str | None, typer.Option(help="Names of columns, as in a,b,c; default: all.", metavar="A,B,C")
]
Group = Annotated[
    str | None, typer.Option(help="Column that says which group a row is of.", metavar="COLUMN")
]
Where = Annotated[
    list[str] | None,
    typer.Option(help="Only rows with this value; if repeated, either.", metavar="COLUMN=VALUE"),
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave rows with gaps out.")]
Variable = Annotated[str | None, typer.Option(help="MAT: the matrix to take.", metavar="NAME")]
Names = Annotated[
    str | None, typer.Option(help="MAT: the variable with the names of columns.", metavar="NAME")
]


@dataclass(frozen=True)
class Options:
    """What all kinds of fits are asked."""

    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; default: the file's name and -run.")
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in it.")] = False
    draws: Annotated[
        int | None, typer.Option(help="Kept draws a chain; default: 1000, or until chains agree.")
    ] = None
    minutes: Annotated[
        float | None, typer.Option(help="Without --draws: how long chains go on; default: 30.")
    ] = None
    tune: Annotated[int | None, typer.Option(help="Sweeps before them; default: 1000.")] = None
    chains: Annotated[int | None, typer.Option(help="Chains; default: 4.")] = None
    cores: Annotated[int | None, typer.Option(help="Chains at a time; default: all cores.")] = None
    seed: Annotated[int | None, typer.Option(help="The same seed, the same draws.")] = None
    noise: Annotated[
        str | None, typer.Option(help="auto, matched, or one such as Adaptive, Tree, Fresh.")
    ] = None
    noise_ratio: Annotated[float | None, typer.Option(help="Noise points for each data point.")] = (
        None
    )
    engine: Annotated[
        str | None, typer.Option(help="joint, gibbs, nuts, exact, ...; default: auto.")
    ] = None
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Simulate from the fit, and compare.")
    ] = True
    keep_checkpoint: Annotated[
        bool, typer.Option("--keep-checkpoint", help="Keep what extend needs.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="No notes and no progress.")] = False

    def job(self, job: Any) -> Any:
        """The job as these options have it."""
        counts = ("draws", "minutes", "tune", "chains", "cores", "seed", "noise_ratio")
        given = {name: getattr(self, name) for name in counts if getattr(self, name) is not None}
        if not self.verify:
            given["verify"] = False
        named = {
            name: {"name": getattr(self, name)}
            for name in ("noise", "engine")
            if getattr(self, name) is not None
        }
        return dataclasses.replace(job, fit={**job.fit, **given}, **named)


def torus(
    file: File,
    columns: Columns = None,
    group: Group = None,
    degrees: Annotated[
        bool | None,
        typer.Option("--degrees/--radians", help="Units of the angles; default: by their size."),
    ] = None,
    marginal: Annotated[bool, typer.Option(help="Directions of single angles.")] = True,
    rotational: Annotated[bool, typer.Option(help="Couplings of differences.")] = True,
    reflectional: Annotated[bool, typer.Option(help="Couplings of sums.")] = True,
    variable: Variable = None,
    names: Names = None,
    where: Where = None,
    drop_missing: DropMissing = False,
) -> Any:
    """Angles: which of them are coupled directly (a torus graph)."""
    flags = {"marginal": marginal, "rotational": rotational, "reflectional": reflectional}
    units = None if degrees is None else "degrees" if degrees else "radians"
    return _job(
        _data(file, columns, where, drop_missing,
              group=group, units=units, variable=variable, names=names),
        model={"name": "TorusGraph", **{name: on for name, on in flags.items() if not on}},
    )  # fmt: skip


def ising(
    file: File,
    columns: Columns = None,
    group: Group = None,
    spins: Annotated[bool, typer.Option("--spins", help="Values are -1 and 1, not 0 and 1.")] = (
        False
    ),
    variable: Variable = None,
    names: Names = None,
    where: Where = None,
    drop_missing: DropMissing = False,
) -> Any:
    """Zeros and ones: which of them go together (an Ising model)."""
    return _job(
        _data(file, columns, where, drop_missing, group=group, variable=variable, names=names),
        model={"name": "Ising", **({"coding": "spins"} if spins else {})},
    )


def density(
    file: File,
    x: Annotated[str, typer.Option("--x", help="Column of longitudes, or of the first axis.")],
    time: Annotated[str, typer.Option(help="Column of dates, numbers or labels.")],
    y: Annotated[str | None, typer.Option("--y", help="Column of latitudes, or none.")] = None,
    every: Annotated[
        str | None, typer.Option(help="day, week, month, quarter, year, or a width of numbers.")
    ] = None,
    outline: Annotated[Path | None, typer.Option(help="GeoJSON file: points are inside.")] = None,
    drop_outside: Annotated[
        bool, typer.Option("--drop-outside", help="Leave points outside of the outline out.")
    ] = False,
    degrees: Annotated[
        bool | None,
        typer.Option("--degrees/--plane", help="Coordinates; default: by names and outline."),
    ] = None,
    day_first: Annotated[
        bool | None, typer.Option("--day-first/--month-first", help="How 3/12/2022 is read.")
    ] = None,
    tz: Annotated[
        str | None, typer.Option(help="Zone in which months begin, as America/New_York.")
    ] = None,
    basis: Annotated[int | None, typer.Option(help="How many bumps; default: 30.")] = None,
    bandwidth: Annotated[float | None, typer.Option(help="Their width; default: by data.")] = None,
    kernel: Annotated[str | None, typer.Option(help="exponential or gaussian.")] = None,
    where: Where = None,
    drop_missing: DropMissing = False,
) -> Any:
    """Points with dates: a density that changes over time."""
    axes = [x] if y is None else [x, y]
    options = {
        "domain": None if outline is None else str(outline),
        "every": _number(every),
        "coordinates": None if degrees is None else "degrees" if degrees else "plane",
        "outside": "drop" if drop_outside else None,
        "day_first": day_first,
        "tz": tz,
        "basis": basis,
        "bandwidth": bandwidth,
        "kernel": kernel,
    }
    return _job(
        {**_data(file, None, where, drop_missing), "columns": axes, "time": time},
        density={name: value for name, value in options.items() if value is not None},
    )


def spec(file: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="A TOML file.")]) -> Any:
    """Any model, as a TOML file tells; run.toml of a run repeats it.

    Options go before what the file says.
    """
    from ncbayes.cli import specs

    return specs.read(file)


EXAMPLES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "torus": (
        torus,
        (
            "torus angles.csv",
            "torus angles.csv --degrees --columns CA1,CA3,DG --seed 1",
            "torus trials.csv --group condition --out study",
            "torus phases.mat --variable anglebeta --names subregions",
        ),
    ),
    "density": (
        density,
        (
            "density events.csv --x LONGITUDE --y LATITUDE --time REPORT_DAT",
            "density events.csv --x LONGITUDE --y LATITUDE \\\n"
            "      --time REPORT_DAT --every month --outline city.geojson",
            "density events.csv --x X --y Y --time DAY --degrees --day-first",
        ),
    ),
    "ising": (ising, ("ising symptoms.csv", "ising votes.csv --spins --engine exact")),
    "SPEC.toml": (spec, ("spec.toml", "spec.toml --draws 4000 --out long", "study/run.toml")),
}


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  ncbayes {line}" for line in lines)


def kinds(verb: str, words: str, act: Callable[[Any, Path, Options], None]) -> typer.Typer:
    """A group with a command for each kind of fit, which are all handed to ``act``."""
    shown = [f"{verb} {lines[0]}" for _, lines in EXAMPLES.values()]
    group = typer.Typer(
        cls=Kinds, name=verb, help=words, epilog=examples(*shown), no_args_is_help=True,
        subcommand_metavar="torus|density|ising|SPEC.toml [ARGS]...",
    )  # fmt: skip
    for name, (make, lines) in EXAMPLES.items():
        epilog = examples(*(f"{verb} {line}" for line in lines))
        group.command(name, help=make.__doc__, epilog=epilog)(_command(make, act))
    return group


def _command(
    make: Callable[..., Any], act: Callable[[Any, Path, Options], None]
) -> Callable[..., None]:
    """A function that takes the options of a kind and those of all, for typer to read."""
    own = list(inspect.signature(make, eval_str=True).parameters.values())
    types = get_type_hints(Options, include_extras=True)
    common = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default,
            annotation=types[each.name],
        )
        for each in dataclasses.fields(Options)
    ]  # fmt: skip

    def command(**given: Any) -> None:
        options = Options(**{each.name: given.pop(each.name) for each in common})
        file: Path = given["file"]
        act(options.job(make(**given)), options.out or _default_folder(file), options)

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own] + common
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _default_folder(file: Path) -> Path:
    if file.name == "run.toml":
        return Path(f"{file.absolute().parent.name}-again")
    return Path(f"{file.stem}-run")


def _job(data: Any, **tables: Any) -> Any:
    from ncbayes.cli.specs import Job

    return Job(Path(), data, **tables)


def _data(
    file: Path, columns: str | None, where: list[str] | None, drop_missing: bool, **others: Any
) -> dict[str, Any]:
    """The table [data]."""
    table: dict[str, Any] = {"file": str(file)}
    if columns is not None:
        table["columns"] = _words("--columns", columns)
    if where:
        table["where"] = _choices(where)
    if drop_missing:
        table["missing"] = "drop"
    return table | {name: value for name, value in others.items() if value is not None}


def _words(option: str, text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words) or len(set(words)) < len(words):
        raise typer.BadParameter(
            f"must be different names with commas between them, got {text!r}", param_hint=option
        )
    return words


def _choices(where: list[str]) -> dict[str, Any]:
    """The values of columns; those of a column that is named twice are a list."""
    values: dict[str, list[str]] = {}
    for name, value in map(_pair, where):
        values.setdefault(name, []).append(value)
    return {name: each if len(each) > 1 else each[0] for name, each in values.items()}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"must be COLUMN=VALUE, got {text!r}", param_hint="--where")
    return name, value


def _number(text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def fit(job: Any, out: Path, options: Options) -> None:
    """Fit, and write a run's folder."""
    from ncbayes.cli import jobs

    try:
        found = jobs.run(job, out, options.overwrite, options.keep_checkpoint, options.quiet)
    except jobs.Stopped:
        stopped(out)
    except KeyboardInterrupt:
        note("stopped before the fit began; nothing was written")
        raise typer.Exit(INTERRUPTED) from None
    show_run(found, options.json)


def stopped(out: Path) -> None:
    """Say how to go on after Ctrl-C."""
    from ncbayes.cli import folders

    waiting = folders.before(out)
    old = f"; until it is done, {str(waiting)!r} holds the run before" if waiting.is_dir() else ""
    note(f"stopped; ncbayes resume {folders.quoted(out)} goes on where it was{old}")
    raise typer.Exit(INTERRUPTED)


def show_run(found: dict[str, Any], json: bool) -> None:
    """Say what a run has written."""
    if json:
        print_json(found)
        return
    out, name = found["run"], shlex.quote(found["run"])
    for line in textwrap.wrap(found["verdict"], 80):
        typer.echo(line)
    typer.echo(
        f"{found['model']}, {found['rows']} rows, {found['chains']} chains of {found['draws']} "
        f"draws: {found['seconds']:.1f} s, seed {found['seed']}"
    )
    typer.echo(f"Wrote to {out}/: {', '.join(found['files'])}")
    typer.echo(f"Next: ncbayes check {name}, ncbayes summary {name}, ncbayes report {name}")


def plan(job: Any, out: Path, options: Options) -> None:
    """Say what the fit would take."""
    from ncbayes.cli import folders, jobs, plans

    made = jobs.ready(job)
    made.say(options.quiet)
    folders.check_folder(out, options.overwrite)
    found = plans.plan(made)
    if options.json:
        print_json(found)
        return
    for line in plans.lines(found):
        typer.echo(line)
