"""The commands that read a run's folder: resume, extend, summary, edges, plot, report and check."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ncbayes.cli.fitting import examples, show_run, stopped
from ncbayes.cli.terminal import ATTENTION, print_json, print_table

if TYPE_CHECKING:
    from ncbayes.posterior import Posterior

Run = Annotated[Path, typer.Argument(help="Folder of a run, or a posterior.nc file.")]
Level = Annotated[float, typer.Option(help="Probability of the intervals.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
KeepCheckpoint = Annotated[bool, typer.Option("--keep-checkpoint", help="Keep what extend needs.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No notes and no progress.")]
OneGroup = Annotated[str | None, typer.Option(help="One of the groups.", metavar="LABEL")]
# Short names of pictures, which are also those of the files in a run's folder.
SHORT = {
    "maps": "density_maps",
    "uncertainty": "uncertainty_maps",
    "change": "change_map",
    "bands": "density_bands",
}
# Columns of the summary that fit on 80 columns; summary.csv and --json have all.
SHOWN = ("mean", "sd", "low", "high", "mcse", "ess", "r_hat")


def add_to(app: typer.Typer) -> None:
    """Make these functions commands of the app."""
    lines: dict[Callable[..., None], tuple[str, ...]] = {
        resume: ("resume run",),
        extend: ("extend run --draws 2000",),
        summary: ("summary run", "summary run --level 0.95 --json"),
        edges: ("edges run", "edges run --level 0.99 --all"),
        plot: (
            "plot run network --out network.pdf",
            "plot run change --start 2022-01 --end 2022-12",
        ),
        report: ("report run",),
        check: ("check run", "check run --json"),
    }
    for function, shown in lines.items():
        app.command(epilog=examples(*shown))(function)


def opened(run: Path) -> tuple[Posterior, Path | None]:
    """The posterior of a run, and its folder if it has a run.toml."""
    from ncbayes.base import InputError
    from ncbayes.cli.folders import POSTERIOR, RUN, quoted
    from ncbayes.posterior import load

    if run.is_file():
        return load(run), None
    if not run.is_dir():
        raise InputError(
            f"there is no run {str(run)!r}; pass the folder that ncbayes fit has written"
        )
    is_run = (run / RUN).is_file()
    if not (run / POSTERIOR).is_file():
        why = f"is not finished; ncbayes resume {quoted(run)} goes on" if is_run else "holds no run"
        raise InputError(f"{str(run)!r} {why}")
    return load(run / POSTERIOR), run if is_run else None


def resume(
    run: Annotated[Path, typer.Argument(help="Folder of a run that was stopped.")],
    cores: Annotated[int | None, typer.Option(help="Chains at a time.")] = None,
    keep_checkpoint: KeepCheckpoint = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a fit that was stopped or killed.

    Its draws are those of a fit that was not stopped, bit for bit.
    """
    from ncbayes.base import InputError
    from ncbayes.cli import folders, jobs, specs

    if not (run / folders.RUN).is_file():
        raise InputError(f"{str(run)!r} holds no run; pass the folder that ncbayes fit has made")
    if (run / folders.POSTERIOR).is_file() and not (run / folders.CHECKPOINT).is_dir():
        raise InputError(f"{str(run)!r} is finished; see ncbayes summary {folders.quoted(run)}")
    options = {} if cores is None else {"cores": cores}
    try:
        made = jobs.ready(specs.read(run / folders.RUN))
        found = jobs.fitted(made, run, keep_checkpoint, quiet, **options)
    except KeyboardInterrupt:
        stopped(run)
    show_run(found, json)


def extend(
    run: Annotated[Path, typer.Argument(help="Folder of a run that is finished.")],
    draws: Annotated[int, typer.Option(help="How many more a chain.")],
    cores: Annotated[int | None, typer.Option(help="Chains at a time.")] = None,
    keep_checkpoint: KeepCheckpoint = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a finished fit for more draws.

    From the checkpoint, if the run was made with --keep-checkpoint; else from its seed.
    """
    from ncbayes.base import InputError
    from ncbayes.cli import folders, jobs

    if not (run / folders.RUN).is_file():
        raise InputError(f"{str(run)!r} holds no run; pass the folder that ncbayes fit has made")
    if not (run / folders.POSTERIOR).is_file():
        raise InputError(
            f"{str(run)!r} is not finished; ncbayes resume {folders.quoted(run)} goes on"
        )
    options = {} if cores is None else {"cores": cores}
    try:
        found = jobs.extended(run, draws, keep_checkpoint, quiet, **options)
    except KeyboardInterrupt:
        stopped(run)
    show_run(found, json)


def summary(run: Run, level: Level = 0.9, json: Json = False) -> None:
    """Means, intervals, effective draws and R-hat."""
    posterior, _ = opened(run)
    table = posterior.summary(level)
    if json:
        rows = table.reset_index(names="quantity").to_dict("records")
        print_json({"level": level, "interval": "equal-tailed", "rows": rows})
        return
    typer.echo(f"Equal-tailed intervals of {100 * level:g} %; mcse is the error of the mean.")
    table.columns = [_short(name) for name in table.columns]
    table["ess"] = table["ess"].round()
    table["r_hat"] = table["r_hat"].map("{:.3f}".format)
    print_table(table[list(SHOWN)])


def _short(name: str) -> str:
    ends = {"mcse_mean": "mcse", "ess_bulk": "ess"}
    return ends.get(name, name.rpartition("_")[2] if name.startswith("eti") else name)


def edges(
    run: Run,
    rule: Annotated[str, typer.Option(help="interval or median.")] = "interval",
    threshold: Annotated[float, typer.Option(help="Sizes beyond this count.")] = 0.1,
    level: Level = 0.9,
    group: OneGroup = None,
    every: Annotated[bool, typer.Option("--all", help="Also edges that are not selected.")] = False,
    json: Json = False,
) -> None:
    """The edges of a graph, the strongest first, and how sure."""
    from ncbayes.cli import readouts

    posterior, _ = opened(run)
    table = readouts.edge_table(posterior, group, rule=rule, threshold=threshold, level=level)
    facts = table.attrs
    kept = table if every else table[table["selected"]]
    if json:
        print_json({**facts, "possible": len(table), "rows": kept.to_dict("records")})
        return
    if posterior.data.attrs.get("grade") == "failed":
        for part in _wrapped(str(posterior.data.attrs["verdict"]), ""):
            typer.echo(part)
    names = [name for name in ("group", "node1", "node2") if name in table]
    labels = [" ".join(map(str, row)) for row in kept[names].itertuples(index=False)]
    columns = ["strength", "norm", "probability", *(["selected"] if every else [])]
    print_table(kept[columns].set_axis(labels, axis=0))
    typer.echo(
        f"{int(table['selected'].sum())} of {len(table)} edges selected: "
        f"{readouts.meaning(rule, threshold, level)}."
    )


def plot(
    run: Run,
    kind: Annotated[str, typer.Argument(help="network, adjacency, maps, change, trace, ...")],
    out: Annotated[
        Path | None, typer.Option(help="PNG, PDF or SVG file; default: in the run's folder.")
    ] = None,
    group: OneGroup = None,
    rule: Annotated[str | None, typer.Option(help="interval or median.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Of the rule.")] = None,
    level: Annotated[float | None, typer.Option(help="Of intervals.")] = None,
    start: Annotated[str | None, typer.Option(help="First time of a change.")] = None,
    end: Annotated[str | None, typer.Option(help="Last time of a change.")] = None,
    most: Annotated[int | None, typer.Option(help="How many are shown at most.")] = None,
    json: Json = False,
) -> None:
    """Draw a picture of a run.

    KIND is network, adjacency, coefficients or shrinkage for graphs; maps, uncertainty, change,
    bands or animation for densities over time; density for one dimension; trace and noise for all.
    """
    from ncbayes.base import InputError
    from ncbayes.cli import readouts

    readouts.quiet()
    draw = _plot(kind)
    posterior, folder = opened(run)
    asked = {"group": group, "rule": rule, "threshold": threshold, "level": level,
             "start": start, "end": end, "most": most}  # fmt: skip
    options = {name: value for name, value in asked.items() if value is not None}
    allowed = inspect.signature(draw).parameters
    for name in options:
        if name not in allowed:
            own = [f"--{each}" for each in asked if each in allowed]
            raise InputError(f"{kind} has no --{name}; it has {', '.join(own) or 'no options'}")
    if "start" in allowed:
        labels = readouts.groups_of(posterior)
        options = {"start": labels[0], "end": labels[-1], **options}
    if "model" in allowed:
        options["model"], why_not = _model(posterior, folder)
        if why_not and allowed["model"].default is inspect.Parameter.empty:
            raise InputError(f"{kind} can't be drawn without the model: {why_not}")
    ending = "gif" if "path" in allowed else "png"
    path = out or (run if run.is_dir() else run.parent) / f"{kind}.{ending}"
    _check_picture(path, animated="path" in allowed)
    if "path" in allowed:
        draw(posterior, path, **options)
    else:
        readouts.save_picture(draw(posterior, **options), path)
    _show_file(path, json)


def _show_file(path: Path, json: bool) -> None:
    if json:
        print_json({"file": str(path)})
    else:
        typer.echo(str(path))


def _plot(kind: str) -> Any:
    """The function of a picture by its name."""
    from ncbayes import plots
    from ncbayes.base import InputError
    from ncbayes.cli.specs import closest

    known = {
        name: getattr(plots, name)
        for name in plots.__all__
        if next(iter(inspect.signature(getattr(plots, name)).parameters)) == "posterior"
    }
    known |= {short: known[name] for short, name in SHORT.items()}
    if kind not in known:
        listed = [name for name in known if name not in SHORT.values()]
        raise InputError(
            f"there is no picture {kind!r}{closest(kind, listed)}; there are {', '.join(listed)}"
        )
    return known[kind]


def _check_picture(path: Path, animated: bool) -> None:
    from ncbayes.base import InputError
    from ncbayes.cli.folders import PAGES, PICTURES

    what, allowed = ("an animation", (".gif", *PAGES)) if animated else ("a picture", PICTURES)
    if path.suffix.lower() not in allowed:
        raise InputError(
            f"{what} must end in {', '.join(allowed)}, got {str(path)!r}; name another by --out"
        )
    _check_parent(path)


def _check_parent(path: Path) -> None:
    from ncbayes.base import InputError

    if not path.parent.is_dir() or path.is_dir():
        raise InputError(f"can't write to {str(path)!r}: it must be a file in a folder that exists")


def _model(posterior: Posterior, folder: Path | None) -> tuple[Any, str]:
    """The model of a run, or None and why there is none."""
    from ncbayes.base import InputError
    from ncbayes.cli import folders, jobs, specs

    if folder is None:
        return None, "it needs the run's folder, with its run.toml, and not only posterior.nc"
    try:
        return jobs.model_of(specs.read(folder / folders.RUN)), ""
    except InputError as error:
        return None, f"the model can't be made again ({error})"


def report(
    run: Run,
    out: Annotated[
        Path | None, typer.Option(help="HTML file; default: report.html in the run's folder.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    json: Json = False,
) -> None:
    """Write one HTML page with the results."""
    from ncbayes.cli.folders import RUN, quoted

    posterior, folder = opened(run)
    path = out or (run if run.is_dir() else run.parent) / "report.html"
    _check_parent(path)
    from ncbayes import webreport

    repeat = None if folder is None else f"ncbayes fit {quoted(folder / RUN)}"
    name = title or (run.absolute().name if run.is_dir() else run.stem)
    webreport.write(posterior, path, title=name, repeat=repeat)
    _show_file(path, json)


def check(
    run: Run,
    json: Json = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Look at predictions again, with this seed.")
    ] = None,
) -> None:
    """Can the answer be used? Chains, noise, predictions.

    The first line is the verdict, the second what to do. Exit code 0 if the answer can be used, 1
    if something needs attention.
    """
    from ncbayes.cli import checks
    from ncbayes.cli.folders import quoted

    posterior, folder = opened(run)
    looked, why_not = posterior, ""
    if seed is not None or "verification" not in posterior.data.children:
        looked, why_not = checks.looked_at(posterior, *_model(posterior, folder), seed)
    found, name = looked.verdict(), None if folder is None else quoted(folder)
    if json:
        print_json(checks.document(found, name, why_not))
    else:
        for headline, sentences in checks.lines(found, name, why_not):
            if headline:
                typer.echo(headline)
            for line in sentences:
                for part in _wrapped(line, "  " if headline else ""):
                    typer.echo(part)
    if not found.usable:
        raise typer.Exit(ATTENTION)


def _wrapped(line: str, indent: str = "  ") -> list[str]:
    import textwrap

    return textwrap.wrap(line, 80, initial_indent=indent, subsequent_indent=indent)
