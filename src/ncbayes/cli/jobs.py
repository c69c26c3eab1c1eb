"""From a Job to a posterior in a folder: data read, objects made, the fit run, results written."""

from __future__ import annotations

import dataclasses
import inspect
import secrets
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ncbayes as ncb
from ncbayes import inputs, over_time
from ncbayes.base import InputError
from ncbayes.cli import folders, objects, readouts, specs, tables
from ncbayes.cli.folders import CHECKPOINT, RUN
from ncbayes.cli.mistakes import in_the_users_words, with_rows_of_the_file
from ncbayes.cli.specs import Job
from ncbayes.cli.terminal import note, spoken
from ncbayes.events import Events, events
from ncbayes.fitting import DRAWS
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

# What fit and fit_density_over_time call the same, and where they are written down.
COUNTS = ("draws", "tune", "chains")
# What the table [density] says of the basis; all else there says how points and times are read.
FIELD = ("basis", "bandwidth", "kernel")
LEAST = {"draws": 1, "tune": 0, "chains": 1, "cores": 1, "seed": 0}


class Stopped(KeyboardInterrupt):
    """Ctrl-C, when there is something with which resume goes on."""


@dataclass(frozen=True)
class Ready:
    """A fit that is ready to run: ``call(**options)``, with what was filled in and what to say."""

    job: Job
    call: Callable[..., Posterior]
    model: Any
    rows: int
    notes: tuple[str, ...]
    # The number in the file of each row, counted from 1, by group; None: all of them.
    numbers: Mapping[str | None, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def say(self, quiet: bool) -> None:
        """Print what was read and, also if ``quiet``, what looks like a mistake in it."""
        for line in () if quiet else self.notes:
            note(line)
        for line in self.warnings:
            note(f"warning: {line}")


def ready(job: Job) -> Ready:
    """The fit, once everything that it names was found and read."""
    job.checked_files()
    made = _density(job) if job.density is not None else _model(job)
    defaults = inspect.signature(ncb.fit).parameters
    # Without draws of its own a run goes on until its chains agree.
    counts = {name: defaults[name].default for name in COUNTS if defaults[name].default is not None}
    seed = {"seed": secrets.randbelow(2**31)}
    full = {**counts, **seed, **made.job.fit}
    for name, least in LEAST.items():
        if name in full:
            inputs.checked_count(name, full[name], least)
    for draws in full.get("extended", ()):
        inputs.checked_count("each of extended", draws, 1)
    ours = ("cores", "extended")
    call = partial(made.call, **{name: value for name, value in full.items() if name not in ours})
    notes = made.notes
    if job.version is not None and job.version != ncb.__version__:
        notes = (
            f"written by ncbayes {job.version}, this is {ncb.__version__}: draws may differ",
            *notes,
        )
    complete = dataclasses.replace(made.job, fit=full).with_digests()
    return dataclasses.replace(made, job=complete, call=call, notes=notes)


def _model(job: Job) -> Ready:
    import pandas as pd

    file, notes = Path(job.data["file"]).name, []
    if "time" in job.data:
        raise InputError("time is for densities over time; use group for groups of other models")
    read = _points(job)
    points, labels, columns = read.points, read.labels, read.columns
    known: dict[str, Callable[[], Any]] = {
        "nodes": lambda: list(columns),
        "dimension": lambda: len(columns),
        "data": lambda: points,
        "points": lambda: points,
    }
    model = objects.named("model", job.model, job, known)
    data = dict(job.data)
    if ncb.spaces.is_periodic(getattr(model, "space", None)):
        tables.check_angles(points, columns, file)
        points, data["units"], why = tables.radians(points, job.data.get("units"), file)
        notes.append(why)
    elif "units" in data:
        raise InputError(f"units are for models of angles, and {_name(job)} is none; leave it out")
    if points.ndim == 2:
        data["columns"] = list(columns)
    known["space"] = lambda: model.space
    # A frame, whose columns errors name and the model matches by name.
    names = _names(columns, model)
    grouped: Any = pd.DataFrame(points, columns=names) if points.ndim == 2 else points
    if labels is not None:
        grouped = {label: grouped[labels == label] for label in dict.fromkeys(labels)}
    call = partial(ncb.fit, model, grouped, **_others(job, known, inputs.WORDS))
    groups = "" if labels is None else f" in {_counted(len(grouped), 'group')}"
    size = f"{len(points)} rows of {_counted(points.shape[1], 'column')}"
    notes.insert(0, f"{file}: {size}{groups}{_gaps(read.left_out)}")
    numbers: dict[str | None, Any] = {None: read.rows}
    if labels is not None:
        numbers |= {label: read.rows[labels == label] for label in grouped}
        # Errors of all groups together count through one group after the other.
        numbers[None] = np.concatenate([numbers[label] for label in grouped])
    complete = dataclasses.replace(job, data=data)
    return Ready(complete, call, model, len(points), tuple(notes), numbers)


def _names(columns: list[str], model: Any) -> list[str]:
    """The names of the columns; those of the nodes for columns of a file that has no names."""
    nodes = list(ncb.spaces.coordinate_names(model)) if hasattr(model, "space") else []
    made_up = all(tables.MADE_UP.fullmatch(name) for name in columns)
    return (
        nodes if made_up and len(nodes) == len(columns) and not {*nodes} & {*columns} else columns
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _gaps(left_out: int) -> str:
    return f", {left_out} left out for gaps" if left_out else ""


def model_of(job: Job) -> Any:
    """The model of a run, from its run.toml; None for a density over time."""
    if job.density is not None:
        return None
    job.checked_files()
    names = job.data.get("columns")
    known: dict[str, Callable[[], Any]] = {
        "nodes": lambda: names or _points(job).columns,
        "dimension": lambda: len(names or _points(job).columns),
        "data": lambda: _points(job).points,
        "points": lambda: _points(job).points,
    }
    return objects.named("model", job.model, job, known)


def _name(job: Job) -> str:
    return str(job.model.get("name"))


@dataclass(frozen=True)
class _Read:
    """The data as an array, the label and the number of each row, and the names of the columns."""

    points: Any
    labels: Any
    columns: list[str]
    rows: Any
    left_out: int = 0


def _points(job: Job) -> _Read:
    path = job.path(job.data["file"])
    if path.suffix.lower() == ".npy":
        array = tables.numpy_array(path)
        if array.ndim == 3:  # graphs, as (graph, node, node)
            return _graphs(job, array)
    group = job.data.get("group")
    frame = _rows(job)
    columns = list(job.data.get("columns") or ())
    if not columns:
        taken = [*([] if group is None else [group]), *job.data.get("where", {})]
        columns = tables.other_columns(frame, taken, path.name)
    needed = [*([] if group is None else [group]), *columns]
    kept = tables.complete_rows(frame, needed, job.data.get("missing", "error"), path.name)
    labels = None if group is None else tables.as_labels(kept[group]).to_numpy()
    points = tables.numbers(kept, columns, path.name)
    return _Read(points, labels, columns, kept.index.to_numpy() + 1, len(frame) - len(kept))


def _graphs(job: Job, array: Any) -> _Read:
    for key in ("group", "columns", "where"):
        if key in job.data:
            raise InputError(
                f"{Path(job.data['file']).name} holds graphs (an array of 3 axes), of which no "
                f"rows or columns can be chosen; leave {key} out"
            )
    names = [str(k + 1) for k in range(array.shape[1])]
    return _Read(array, None, names, np.arange(len(array)) + 1)


def _rows(job: Job) -> pd.DataFrame:
    """The rows that are meant."""
    data, path = job.data, job.path(job.data["file"])
    where = data.get("where", {})
    labels = {data.get("group"), *where} - {None, data.get("time")}
    frame = tables.read(path, data.get("variable"), data.get("names"), labels)
    return tables.chosen_rows(frame, where, path.name)


def _density(job: Job) -> Ready:
    import pandas as pd

    assert job.density is not None
    for key in ("group", "units"):
        if key in job.data:
            raise InputError(
                f"a density over time has no {key}; it has columns, time, and coordinates in "
                "[density]"
            )
    file, columns, time = Path(job.data["file"]).name, job.data["columns"], job.data["time"]
    if len({*columns, time}) <= len(columns):
        raise InputError(
            "the axes and the time of a density must be different columns, got "
            f"{', '.join(columns)} and {time}; name others by --x, --y and --time"
        )
    all_rows = _rows(job)
    frame = tables.complete_rows(all_rows, [*columns, time], job.data.get("missing", "error"), file)
    points = pd.DataFrame(tables.numbers(frame, columns, file), columns=columns)
    numbers: dict[str | None, Any] = {None: frame.index.to_numpy() + 1}
    with in_the_users_words(job, numbers):
        found = _events(job, points, frame[time].reset_index(drop=True))
    fit = {name: job.density[name] for name in FIELD if name in job.density}
    call = partial(over_time.fit_events, found, **fit, **_others(job, {}, over_time.WORDS))
    outside = f", {found.dropped} left out outside the outline" if found.dropped else ""
    gaps = _gaps(len(all_rows) - len(frame))
    said = f"{file}: {found.rows} rows of {', '.join(columns)} by {time}{gaps}{outside}"
    lines = [with_rows_of_the_file(line, numbers) for line in found.notes]
    looks = tuple(spoken(with_rows_of_the_file(line, numbers)) for line in found.warnings)
    taken = {"coordinates": found.coordinates, "day_first": found.style.day_first}
    complete = {
        **job.density, **{name: value for name, value in taken.items() if value is not None}
    }  # fmt: skip
    return Ready(
        dataclasses.replace(job, density=complete), call, None, found.rows,
        (said, *map(spoken, lines)), numbers, looks,
    )  # fmt: skip


def _events(job: Job, points: pd.DataFrame, times: pd.Series) -> Events:
    """Points and times, as the table [density] has them read."""
    assert job.density is not None
    given = {name: value for name, value in job.density.items() if name not in FIELD}
    if "domain" in given:
        path = job.path(given["domain"])
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}; domain is that of a GeoJSON file")
        given["domain"] = str(path)
    names = ("domain", "every", "coordinates", "day_first", "tz")
    options = {**dict.fromkeys(names), "outside": "error", **given}
    return events("fit_density_over_time", points, times, **options)


def _others(job: Job, known: objects.Known, words: tuple[str, ...]) -> dict[str, Any]:
    """Noise, prior and engine, where they are given."""
    found: dict[str, Any] = {}
    if job.noise:
        word = job.noise.get("name") if len(job.noise) == 1 else None
        is_word = isinstance(word, str) and word in words
        found["noise"] = word if is_word else objects.by_label("noise", job.noise, job, known)
    if job.prior:
        found["prior"] = objects.by_label("prior", job.prior, job, known)
    if job.engine:
        auto = dict(job.engine) == {"name": "auto"}
        found["engine"] = "auto" if auto else objects.named("engine", job.engine, job, known)
    return found


def run(job: Job, out: Path, overwrite: bool, keep: bool, quiet: bool) -> dict[str, Any]:
    """Fit, and write a run's folder; what was written, and what there is to say about it."""
    folders.check_folder(out, overwrite)
    made = ready(job)
    try:
        text = made.job.moved(out).text().encode()
    except UnicodeEncodeError as wrong:
        near = wrong.object[max(0, wrong.start - 20) : wrong.end + 20]
        raise InputError(
            f"names of files and columns must be text in UTF-8, got {near!r}; rename it"
        ) from wrong
    made.say(quiet)
    with folders.new_folder(out, overwrite):
        _write_run(out, text)
        return fitted(made, out, keep, quiet)


def extended(out: Path, draws: int, keep: bool, quiet: bool, **options: Any) -> dict[str, Any]:
    """Go on with a finished run for more draws a chain, and write its results anew."""
    inputs.checked_count("draws", draws, 1)
    job = specs.read(out / RUN)
    longer = [*job.fit.get("extended", ()), draws]
    made = ready(dataclasses.replace(job, fit={**job.fit, "extended": longer}))
    keep = keep or (out / CHECKPOINT).is_dir()
    if not (out / CHECKPOINT).is_dir() and not quiet:
        note(
            "no checkpoint was kept, so the run is repeated from its seed; with --keep-checkpoint "
            "it need not be the next time"
        )
    before = (out / RUN).read_bytes()
    _write_run(out, made.job.text().encode())
    try:
        return fitted(made, out, keep, quiet, **options)
    except InputError:  # this run can't be extended so: it is what it was
        _write_run(out, before)
        raise


def _write_run(out: Path, text: bytes) -> None:
    """Write run.toml, whole or not at all."""
    part = out / f".{RUN}.part"
    try:
        part.write_bytes(text)
        part.replace(out / RUN)
    except OSError as error:
        raise InputError(f"can't write to {str(out)!r}: {error.strerror}") from error


def fitted(made: Ready, out: Path, keep: bool, quiet: bool, **options: Any) -> dict[str, Any]:
    """Run or go on with a fit whose folder has its run.toml, and write its results."""
    try:
        return _fitted(made, out, keep, quiet, options)
    except KeyboardInterrupt as stop:
        raise Stopped from stop


def _fitted(
    made: Ready, out: Path, keep: bool, quiet: bool, options: Mapping[str, Any]
) -> dict[str, Any]:
    posterior, said = _posterior(made, out / CHECKPOINT, quiet, options)
    if posterior is None or not posterior.complete:
        raise KeyboardInterrupt
    draws = int(posterior.data["posterior"].sizes["draw"])
    if not {"draws", "extended"} & {*made.job.fit} and draws > DRAWS and not quiet:
        note(f"chains went on from {DRAWS} to {draws} draws, since they did not agree before")
    said = [spoken(line, folders.quoted(out)) for line in said]
    for line in said:
        note(f"warning: {line}")
    if not quiet:
        note(f"writing draws, tables and pictures to {out.name}/")
    files = [RUN, *readouts.write(posterior, out)]
    if not keep:
        shutil.rmtree(out / CHECKPOINT, ignore_errors=True)
    shutil.rmtree(folders.before(out), ignore_errors=True)
    attributes = posterior.data.attrs
    return {
        "run": str(out),
        "files": files,
        "model": str(attributes["model"]),
        "rows": made.rows,
        "chains": int(posterior.data["posterior"].sizes["chain"]),
        "draws": draws,
        "seed": made.job.fit["seed"],
        "seconds": round(float(attributes["wall_seconds"]), 2),
        "notes": list(made.notes),
        "grade": posterior.data.attrs["grade"],
        "verdict": spoken(str(posterior.data.attrs["verdict"])),
        "warnings": [*made.warnings, *said],
    }


def _posterior(
    made: Ready, checkpoint: Path, quiet: bool, options: Mapping[str, Any]
) -> tuple[Posterior | None, list[str]]:
    """The posterior, None if it was stopped before the first draw, and its warnings."""
    cores = {name: made.job.fit[name] for name in ("cores",) if name in made.job.fit}
    progress = False if quiet else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with in_the_users_words(made.job, made.numbers):
                posterior = made.call(
                    checkpoint=checkpoint, progress=progress, **{**cores, **options}
                )
                for draws in made.job.fit.get("extended", ()) if posterior.complete else ():
                    caught.clear()  # of a fit that goes on
                    posterior = posterior.extend(draws)
        except KeyboardInterrupt:
            posterior = None
    ours = [each for each in caught if issubclass(each.category, UserWarning)]
    said = [with_rows_of_the_file(str(each.message), made.numbers) for each in ours]
    return posterior, list(dict.fromkeys(said))
