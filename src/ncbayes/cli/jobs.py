"""From a Job to a posterior in a folder: data read, objects made, the fit run, results written."""

from __future__ import annotations

import dataclasses
import inspect
import secrets
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ncbayes as ncb
from ncbayes import inputs, over_time
from ncbayes.base import InputError
from ncbayes.cli import objects, readouts, tables
from ncbayes.cli.specs import Job
from ncbayes.cli.terminal import note, spoken
from ncbayes.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

RUN, CHECKPOINT = "run.toml", "checkpoint"
# What a run's folder may hold besides pictures and reports.
OURS = (RUN, CHECKPOINT, readouts.POSTERIOR, "summary.csv", "edges.csv")
PICTURES = (".png", ".pdf", ".svg", ".gif", ".html", ".jpg")
# What fit and fit_density_over_time call the same, and where they are written down.
COUNTS = ("draws", "tune", "chains")


@dataclass(frozen=True)
class Ready:
    """A fit that is ready to run: ``call(**options)``, with what was filled in and what to say."""

    job: Job
    call: Callable[..., Posterior]
    model: Any
    rows: int
    notes: tuple[str, ...]


def ready(job: Job) -> Ready:
    """The fit, once everything that it names was found and read."""
    job.checked_files()
    made = _density(job) if job.density is not None else _model(job)
    defaults = inspect.signature(ncb.fit).parameters
    counts = {name: defaults[name].default for name in COUNTS}
    seed = {"seed": secrets.randbelow(2**31)}
    full = {**counts, **seed, **made.job.fit}
    call = partial(made.call, **{name: value for name, value in full.items() if name != "cores"})
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
    points, labels, columns = _points(job)
    known: dict[str, Callable[[], Any]] = {
        "nodes": lambda: list(columns),
        "dimension": lambda: len(columns),
        "data": lambda: points,
        "points": lambda: points,
    }
    model = objects.named("model", job.model, job, known)
    data = dict(job.data)
    if isinstance(getattr(model, "space", None), ncb.spaces.Torus):
        points, data["units"], why = tables.radians(points, job.data.get("units"), file)
        notes.append(why)
    elif "units" in data:
        raise InputError(f"units are for models of angles, and {_name(job)} is none; leave it out")
    if points.ndim == 2:
        data["columns"] = list(columns)
    known["space"] = lambda: model.space
    # A frame, whose columns errors name.
    grouped: Any = pd.DataFrame(points, columns=columns) if points.ndim == 2 else points
    if labels is not None:
        grouped = {label: grouped[labels == label] for label in dict.fromkeys(labels)}
    call = partial(ncb.fit, model, grouped, **_others(job, known, inputs.WORDS))
    notes.insert(0, f"{file}: {len(points)} rows of {points.shape[1]} columns")
    if labels is not None:
        notes[0] += f" in {len(grouped)} groups"
    return Ready(dataclasses.replace(job, data=data), call, model, len(points), tuple(notes))


def model_of(job: Job) -> Any:
    """The model of a run, from its run.toml; None for a density over time."""
    if job.density is not None:
        return None
    names = job.data.get("columns")
    known: dict[str, Callable[[], Any]] = {
        "nodes": lambda: names or _points(job)[2],
        "dimension": lambda: len(names or _points(job)[2]),
        "data": lambda: _points(job)[0],
        "points": lambda: _points(job)[0],
    }
    return objects.named("model", job.model, job, known)


def _name(job: Job) -> str:
    return str(job.model.get("name"))


def _points(job: Job) -> tuple[Any, Any, list[str]]:
    """The data as an array, the label of each row or None, and the names of the columns."""
    path = job.path(job.data["file"])
    if path.suffix.lower() == ".npy":
        array = tables.numpy_array(path)
        if array.ndim == 3:  # graphs, as (graph, node, node)
            return array, None, [str(k + 1) for k in range(array.shape[1])]
    group = job.data.get("group")
    frame = _rows(job, [group] if group else [])
    columns = list(job.data.get("columns") or ())
    if not columns:
        other = {group, *job.data.get("where", {})}
        columns = [name for name in frame.columns if name not in other]
    file = path.name
    frame = tables.complete_rows(frame, columns, job.data.get("missing", "error"), file)
    labels = None if group is None else frame[group].astype(str).to_numpy()
    return tables.numbers(frame, columns, file), labels, columns


def _rows(job: Job, needed: list[str]) -> pd.DataFrame:
    """The rows that are meant, with values in the columns that all of them need."""
    data, path = job.data, job.path(job.data["file"])
    frame = tables.read(path, data.get("variable"), data.get("names"))
    frame = tables.chosen_rows(frame, data.get("where", {}), path.name)
    if needed:
        frame = tables.complete_rows(frame, needed, data.get("missing", "error"), path.name)
    return frame


def _density(job: Job) -> Ready:
    import pandas as pd

    assert job.density is not None
    for key in ("group", "units"):
        if key in job.data:
            raise InputError(
                f"a density over time has no {key}; it has columns, time, and degrees in [density]"
            )
    file, columns, time = Path(job.data["file"]).name, job.data["columns"], job.data["time"]
    all_rows = _rows(job, [])
    frame = tables.complete_rows(all_rows, [*columns, time], job.data.get("missing", "error"), file)
    points = pd.DataFrame(tables.numbers(frame, columns, file), columns=columns)
    options = dict(job.density)
    if "domain" in options:
        path = job.path(options["domain"])
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}; domain is that of a GeoJSON file")
        options["domain"] = str(path)
    options |= _others(job, {}, over_time.WORDS)
    times = frame[time].reset_index(drop=True)
    call = partial(ncb.fit_density_over_time, points, times, **options)
    left_out = len(all_rows) - len(frame)
    gaps = f", {left_out} left out for gaps" if left_out else ""
    notes = (f"{file}: {len(points)} rows of {', '.join(columns)} by {time}{gaps}",)
    return Ready(job, call, None, len(points), notes)


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
    check_folder(out, overwrite)
    made = ready(job)
    for line in made.notes if not quiet else ():
        note(line)
    with new_folder(out, overwrite):
        moved = made.job.moved(out)
        try:
            (out / RUN).write_text(moved.text(), encoding="utf-8")
        except OSError as error:
            raise InputError(f"can't write to {str(out)!r}: {error.strerror}") from error
        return fitted(made, out, keep, quiet)


def fitted(made: Ready, out: Path, keep: bool, quiet: bool, **options: Any) -> dict[str, Any]:
    """Run or go on with a fit whose folder has its run.toml, and write its results."""
    posterior, said = _posterior(made, out / CHECKPOINT, quiet, options)
    if posterior is None or not posterior.complete:
        raise KeyboardInterrupt
    draws = int(made.job.fit["draws"])
    said = [spoken(line, draws) for line in said]
    for line in said:
        note(f"warning: {line}")
    files = [RUN, *readouts.write(posterior, out)]
    if not keep:
        shutil.rmtree(out / CHECKPOINT, ignore_errors=True)
    shutil.rmtree(_before(out), ignore_errors=True)
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
        "warnings": said,
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
            posterior = made.call(checkpoint=checkpoint, progress=progress, **{**cores, **options})
        except KeyboardInterrupt:
            posterior = None
        except (InputError, OSError, MemoryError):
            raise
        except Exception as wrong:
            raise _theirs(made.job, wrong) from wrong
    ours = [each for each in caught if issubclass(each.category, UserWarning)]
    return posterior, list(dict.fromkeys(str(each.message) for each in ours))


def _theirs(job: Job, wrong: Exception) -> Exception:
    """An error that came up in a file of the user's, as their mistake; another one as it is."""
    frames = traceback.extract_tb(wrong.__traceback__)
    for name in job.files():
        lines = [
            frame.lineno for frame in frames if frame.filename == str(job.path(name).resolve())
        ]
        if lines:
            return InputError(
                f"{Path(name).name} failed in line {lines[-1]}: {type(wrong).__name__}: {wrong}"
            )
    return wrong


@contextmanager
def new_folder(out: Path, overwrite: bool) -> Iterator[None]:
    """A folder for a run; if the block refuses its input, all is again as it was before."""
    check_folder(out, overwrite)
    before = _before(out)
    if out.is_dir() and any(out.iterdir()):
        shutil.rmtree(before, ignore_errors=True)
        out.rename(before)
    was_there = out.is_dir()
    missing = [each for each in (out, *out.parents) if not each.exists()]
    try:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"can't make the folder {str(out)!r}: {error.strerror}") from error
        yield
    except InputError:
        if (out / readouts.POSTERIOR).exists():
            raise
        for each in out.iterdir() if was_there else ():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        if missing:
            shutil.rmtree(missing[-1], ignore_errors=True)
        if before.is_dir():
            before.rename(out)
        raise


def _before(out: Path) -> Path:
    """Where a run that is replaced waits until the new one is there."""
    return out.absolute().with_name(f".{out.absolute().name}.before")


def check_folder(out: Path, overwrite: bool) -> None:
    """Refuse a folder that holds something else than a run, or a run if it may not be replaced."""
    if not out.is_dir():
        if out.exists():
            raise InputError(f"{str(out)!r} is a file; --out must be the name of a folder")
        return
    held = sorted(each.name for each in out.iterdir())
    other = [name for name in held if name not in OURS and not name.endswith(PICTURES)]
    if other or (held and RUN not in held):
        raise InputError(
            f"{str(out)!r} holds {(other or held)[0]!r}, which is not a run's; name another folder "
            "by --out"
        )
    if held and not overwrite:
        unfinished = readouts.POSTERIOR not in held
        raise InputError(
            f"{str(out)!r} holds a run"
            + (f" that is not finished (ncbayes resume {out} goes on)" if unfinished else "")
            + "; name another folder by --out, or pass --overwrite"
        )
