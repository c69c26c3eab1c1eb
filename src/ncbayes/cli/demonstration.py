"""The command ``demo``: a torus graph and a density over time, from simulated data to a report."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from ncbayes import datasets, densities, webreport
from ncbayes.base import InputError
from ncbayes.cli import folders, jobs, readouts
from ncbayes.cli.specs import Job
from ncbayes.posterior import load

ANGLES, EVENTS, OUTLINE, REPORT = "angles.csv", "events.csv", "city.geojson", "report.html"
GRAPH, DENSITY = "graph", "density"
OURS = (ANGLES, EVENTS, OUTLINE, REPORT, GRAPH, DENSITY)
NODES, MONTHS = 6, 3
TITLES = {
    GRAPH: "Six angles: which are coupled directly?",
    DENSITY: "Incidents in a city: where did they rise?",
}
LEVEL = 0.9


def run(out: Path, seed: int, draws: int, overwrite: bool) -> None:
    """Simulate, fit, draw, and write all of it to a folder, which is there when all is done."""
    _check_folder(out, overwrite)
    with _new_folder(out) as folder:
        began = time.monotonic()
        truth = _simulated(folder, seed)
        _stage(2, f"Fitting a torus graph to {ANGLES}: which angles are coupled directly?")
        typer.echo("      (the first fit after an installation also compiles its loops)")
        _fitted(_graph_job(folder, seed, draws), folder / GRAPH)
        _show_edges(folder / GRAPH, truth)
        _stage(3, f"Fitting a density over time to {EVENTS}: where did incidents rise?")
        _fitted(_density_job(folder, seed, draws), folder / DENSITY)
        _show_change(folder / DENSITY)
        _stage(4, "Writing one page with both fits")
        _write_report(folder, out)
        seconds = time.monotonic() - began
    typer.echo(f"\nDone in {seconds:.0f} s. Open {out / REPORT} in a browser.")
    typer.echo(f"Beside it: pictures, tables and draws in {GRAPH}/ and {DENSITY}/,")
    typer.echo(f"and the data, {ANGLES} and {EVENTS}. With these angles or yours:")
    typer.echo(f"  ncbayes fit torus {folders.quoted(out / ANGLES)}")


def _stage(number: int, words: str) -> None:
    typer.echo(f"\n[{number}/4] {words}")


def _simulated(folder: Path, seed: int) -> frozenset[tuple[str, str]]:
    """Write the files of data; the edges of the true graph."""
    import pandas as pd

    chain = datasets.torus_chain(nodes=NODES, seed=seed)
    city = datasets.incidents(months=MONTHS, seed=seed)
    names = list(chain.model.nodes)
    pd.DataFrame(chain.data, columns=names).to_csv(folder / ANGLES, index=False)
    city.save(folder / EVENTS)
    (folder / OUTLINE).write_text(json.dumps(city.outline), encoding="utf-8")
    _stage(1, f"Simulated {len(chain.data)} rows of {NODES} angles, each coupled to the next,")
    typer.echo(f"      and {len(city.points)} incidents of {MONTHS} months in a made-up city")
    return frozenset(chain.edges)


def _graph_job(folder: Path, seed: int, draws: int) -> Job:
    return Job(
        folder,
        {"file": ANGLES, "units": "radians"},
        model={"name": "TorusGraph"},
        fit={"draws": draws, "tune": draws, "seed": seed},
    )


def _density_job(folder: Path, seed: int, draws: int) -> Job:
    return Job(
        folder,
        {"file": EVENTS, "columns": ["LONGITUDE", "LATITUDE"], "time": "REPORT_DAT"},
        density={"domain": OUTLINE, "every": "month"},
        fit={"draws": draws, "tune": draws, "seed": seed},
    )


def _fitted(job: Job, run: Path) -> None:
    """Fit, as ``ncbayes fit`` does, into the folder of a run; says how long the chains took."""
    made = jobs.ready(job)
    run.mkdir()
    (run / folders.RUN).write_text(made.job.moved(run).text(), encoding="utf-8")
    found = jobs.fitted(made, run, keep=False, quiet=False)
    typer.echo(
        f"      {found['chains']} chains of {found['draws']} draws in {found['seconds']:.0f} s"
    )


def _show_edges(run: Path, truth: frozenset[tuple[str, str]]) -> None:
    table = readouts.edge_table(load(run / folders.POSTERIOR), rule="interval", level=LEVEL)
    chosen = table[table["selected"]]
    pairs = list(zip(chosen["node1"], chosen["node2"], strict=True))
    hits = sum(pair in truth or pair[::-1] in truth for pair in pairs)
    typer.echo(f"      edges whose {100 * LEVEL:g} % interval excludes zero: {_listed(pairs)}")
    typer.echo(f"      {hits} of the {len(truth)} true edges, {len(pairs) - hits} false")


def _listed(pairs: list[tuple[str, str]]) -> str:
    return ", ".join("-".join(pair) for pair in sorted(pairs)) or "none"


def _show_change(run: Path) -> None:
    """Where the density rose most surely from the first to the last month, and how sure that is."""
    posterior = load(run / folders.POSTERIOR)
    first, *_, last = readouts.groups_of(posterior)
    sure = _shares(densities.change(posterior, first, last))
    typer.echo(
        f"      from {first} to {last} it rose in {100 * sure['rose']:.0f} % of the city and fell "
        f"in {100 * sure['fell']:.0f} %,"
    )
    typer.echo("      each with a probability above 95 %; elsewhere nobody can tell")


def _shares(change: Any) -> dict[str, float]:
    """Which share of the cells inside the city rose, and fell, with a probability above 0.95."""
    probability = change["probability"].to_numpy()
    inside = probability[probability == probability]
    return {"rose": float((inside > 0.95).mean()), "fell": float((inside < 0.05).mean())}


def _write_report(folder: Path, out: Path) -> None:
    runs = {GRAPH: TITLES[GRAPH], DENSITY: TITLES[DENSITY]}
    webreport.write(
        {title: load(folder / name / folders.POSTERIOR) for name, title in runs.items()},
        folder / REPORT,
        title="ncbayes demo",
        repeat={
            title: f"ncbayes fit {folders.quoted(out / name / folders.RUN)}"
            for name, title in runs.items()
        },
    )


def _check_folder(out: Path, overwrite: bool) -> None:
    """Refuse a folder with files of others, and one with a demo unless it may be replaced."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{str(out)!r} is a file; --out must be the name of a folder")
    held = sorted(each.name for each in out.iterdir()) if out.is_dir() else []
    other = [name for name in held if name not in OURS]
    if other:
        raise InputError(
            f"{str(out)!r} holds {other[0]!r}, which is not the demo's; name another folder by "
            "--out"
        )
    if held and not overwrite:
        raise InputError(
            f"{str(out)!r} holds a demo; name another folder by --out, or pass --overwrite"
        )


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """A hidden folder beside ``out``; what it holds takes its place if the block ends well."""
    place = out.resolve()
    folder = place.with_name(f".{place.name}.part")
    missing = [each for each in (place, *place.parents) if not each.exists()]
    shutil.rmtree(folder, ignore_errors=True)  # of a demo that was killed
    try:
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise InputError(f"can't write to {str(out)!r}: {error.strerror}") from error
        yield folder
        place.mkdir(exist_ok=True)
        for each in list(place.iterdir()):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        for each in list(folder.iterdir()):
            each.rename(place / each.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for each in missing:
            with suppress(OSError):  # of folders that hold something: all, if it went well
                each.rmdir()
