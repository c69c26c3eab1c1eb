"""The command ``ncbayes``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ncbayes import __version__
from ncbayes.cli import fitting, runs
from ncbayes.cli.fitting import examples
from ncbayes.cli.terminal import INTERRUPTED, MISTAKE, Commands, note

app = typer.Typer(
    cls=Commands,
    help="Bayesian inference for models whose normalizing constant nobody can compute.",
    epilog=examples(
        "fit torus angles.csv --out run",
        "check run",
        "report run",
        "demo",
    ),
    no_args_is_help=True,
    add_completion=False,
    # Plain text is the same in logs and on terminals, and needs no imports.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(fitting.kinds("fit", "Fit a model to a file of data; writes a folder.", fitting.fit))
app.add_typer(fitting.kinds("plan", "Say what a fit would take, in memory and time.", fitting.plan))
runs.add_to(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ncbayes {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian inference for models whose normalizing constant nobody can compute."""


@app.command(
    short_help="See it work on simulated data, in a minute.",
    epilog=examples("demo", "demo --out try --seed 2"),
)
def demo(
    out: Annotated[Path, typer.Option(help="Folder for all that it writes.")] = Path(
        "ncbayes-demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the fits.")] = 1,
    draws: Annotated[
        int, typer.Option(min=100, help="Kept draws a chain, after as many of tuning.")
    ] = 1000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the demo in it.")] = False,
) -> None:
    """Fit a torus graph and a density over time; write pictures, tables and a report page.

    The data are simulated. They are written too, to try the other commands on: angles.csv, six
    angles in a chain, and events.csv, incidents of three months in the outline city.geojson.
    """
    from ncbayes.cli import demonstration

    try:
        demonstration.run(out, seed, draws, overwrite)
    except KeyboardInterrupt:
        note("stopped, and nothing was written; the same command starts again")
        raise typer.Exit(INTERRUPTED) from None


@app.command(
    short_help="The tables and figures of the paper.",
    epilog=examples(
        "reproduce table2 --replications 2 --cores 2",
        "reproduce figure2 --data crime.csv --outline city.geojson",
    ),
)
def reproduce(
    items: Annotated[
        list[str] | None,
        typer.Argument(help="table1, table2, ..., tableS4, figure1, ..., figureS1, or all."),
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Data sets of each table; default: the paper's.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Fits at a time; default: one for each core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for fits, tables and figures.")] = Path(
        "ncbayes-paper"
    ),
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A file for figures: incidents (.csv) or the recording (.mat)."),
    ] = None,
    outline: Annotated[
        Path | None, typer.Option(help="GeoJSON outline of the city of figure2.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler whose workers run the fits.")
    ] = None,
    tune: Annotated[int | None, typer.Option(min=1, help="Sweeps of tuning of each fit.")] = None,
    draws: Annotated[int | None, typer.Option(min=20, help="Kept sweeps of each fit.")] = None,
) -> None:
    """Run the paper's studies: its tables and figures beside the published numbers.

    Stop at any time: the same command goes on, and no finished fit is run again. Data set r has
    seed r, so a longer run begins with the shorter one, whatever the number of cores.
    """
    from ncbayes import InputError

    try:
        # The studies use the package, not the other way round; they are installed beside it.
        from ncbayes_paper import reproduction
    except ModuleNotFoundError as error:
        if error.name != "ncbayes_paper":
            raise
        _refuse("the studies of the paper are not installed; run: pip install ncbayes")
    if (tune is None) != (draws is None):
        _refuse("--tune and --draws go together: the length of each fit")
    sweeps = (tune, draws) if tune is not None and draws is not None else None
    try:
        request = reproduction.Request(
            reproduction.chosen(items or []), out, replications, cores, sweeps,
            reproduction.by_ending(data or []), outline, scheduler,
        )  # fmt: skip
        written = reproduction.reproduce(request, lambda line: typer.echo(line, err=True))
    except InputError as error:
        _refuse(str(error))
    except KeyboardInterrupt:
        typer.echo(f"stopped; finished fits are kept in {out}/, the same command goes on", err=True)
        raise typer.Exit(130) from None
    for path in written:
        typer.echo(str(path))


@app.command(
    short_help="Speed and errors beside the alternatives, here.",
    epilog=examples("bench", "bench --quick --out try"),
)
def bench(
    out: Annotated[Path, typer.Option(help="Folder for the page and its picture.")] = Path(
        "ncbayes-bench"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny problems, to see that it runs.")
    ] = False,
) -> None:
    """Compare with NUTS, the paper's samplers, score matching and KDE, as ratios in one run.

    Takes about a quarter of an hour; NUTS needs the extra: pip install 'ncbayes[bench]'.
    """
    import matplotlib

    matplotlib.use("agg")
    from ncbayes_bench import compare

    try:
        written = compare.run(out, quick, lambda line: typer.echo(line, err=True))
    except OSError as error:
        _refuse(f"--out {str(out)!r} can't be written ({error.strerror}); name a folder that can")
    for path in written:
        typer.echo(str(path))


def _refuse(words: str) -> NoReturn:
    """One line for a user's mistake, and exit code 2."""
    note(words)
    raise typer.Exit(MISTAKE)
