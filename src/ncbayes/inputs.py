"""The boundary: what the user passes, checked once and said in the user's words."""

from __future__ import annotations

import math
import numbers
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncbayes.base import (
    FloatArray,
    InputError,
    Model,
    Noise,
    Schedule,
    Space,
    in_group,
    shown,
)
from ncbayes.contrast import model_name, statistic_names
from ncbayes.couplings import graph_of
from ncbayes.noise.adaptive import Adaptive
from ncbayes.noise.auto import Auto
from ncbayes.noise.consistency import complaint
from ncbayes.noise.crossfit import CrossFitted
from ncbayes.noise.distributions import matched
from ncbayes.noise.schedules import Fixed
from ncbayes.priors.blocks import NORMALIZER
from ncbayes.progress import Progress
from ncbayes.spaces import as_points, coordinate_names, default_names, named_columns

if TYPE_CHECKING:
    import xarray as xr

Seed = int | np.random.Generator | None
# xarray and netCDF take "/" for a path, "." parts a block's name from that of its scale.
FORBIDDEN = "./"
LOG_Z = "log_z"
# Draws that show an error of about a tenth in a density, and take milliseconds.
CHECKED_DRAWS = 16_000
# Noise points for each data point where nothing is said: intervals are then about 10 % wider than
# with the exact likelihood if the noise is good, where as many points as rows make them 40 % wider.
NOISE_RATIO = 5.0
# Engines that one row is enough for, and what they ask of a model.
OF_ONE_ROW = {
    "exact": "log_partition",
    "exchange": "sample",
    "pseudolikelihood": "change_statistics",
}
# The coordinate of stored data that names their columns.
COLUMN = "axis"
# Words for noise.
WORDS = ("auto", "matched")


def checked_count(name: str, value: object, least: int) -> int:
    """A whole number, ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, got {shown(value)}")
    return int(value)


def checked_model(model: Any) -> Model:
    """The model, if it has the four members of one."""
    if isinstance(model, type):
        raise InputError(
            f"model must be an instance, got {shown(model)}; make one, as in {model.__name__}(...)"
        )
    missing = [
        name for name in ("space", "groups", "statistics", "log_base") if not hasattr(model, name)
    ]
    if missing:
        raise InputError(
            "model must have space, groups, statistics(x) and log_base(x), got "
            f"{shown(model)}, which lacks {', '.join(missing)}; call fit(model, data)"
        )
    if not isinstance(model.space, Space):
        raise InputError(
            f"the space of {model_name(model)} must be one such as ncbayes.spaces.Reals(2), got "
            f"{shown(model.space)}"
        )
    if not _names_statistics(model.groups):
        raise InputError(
            f"groups of {model_name(model)} must map names of blocks to lists of names of "
            f"statistics, such as {{'linear': ['x1', 'x2']}}, got {shown(model.groups)}"
        )
    _check_names(model)
    graph_of(model)
    checked: Model = model
    return checked


def _check_names(model: Model) -> None:
    """Names must differ from each other and from ours, and be fit for a file."""
    names, owner = statistic_names(model), model_name(model)
    if not names:
        raise InputError(f"{owner} has no statistics; groups must name at least one")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InputError(
            f"{owner} names the statistic {shown(name)} {times} times; names must differ"
        )
    if LOG_Z in names:
        raise InputError(
            f"{owner} has a statistic called {LOG_Z!r}, the name of the log normalizing constant; "
            "call it something else"
        )
    for block in model.groups:
        if not isinstance(block, str) or block == NORMALIZER or set(block) & set(FORBIDDEN):
            raise InputError(
                f"{owner} has a block called {shown(block)}; a block's name is text without "
                f"'.' and '/', and not {NORMALIZER!r}; call it something else"
            )


def _names_statistics(groups: Any) -> bool:
    # A bare string would pass for a list of one-letter names.
    return isinstance(groups, Mapping) and all(
        isinstance(names, Iterable)
        and not isinstance(names, str)
        and all(isinstance(name, str) for name in names)
        for names in groups.values()
    )


def checked_data(model: Model, data: Any, least: int = 2) -> dict[str, FloatArray]:
    """Points by group: one group "all", or the labels of a mapping, in its order.

    ``least`` rows a group; columns stand in the order of ``fitted_columns``.
    """
    names = fitted_columns(model, data)
    tables = _tables(data)
    if not tables:
        raise InputError("data is an empty mapping; it must hold at least one group of points")
    groups = {}
    for label, table in tables.items():
        with in_group(label, 1 if tables is not data else 2):
            groups[str(label)] = _read_only(_points(model, table, names, least))
    if len(groups) < len(tables):
        raise InputError(
            "two groups of data have the same label when written as text; labels must differ"
        )
    return groups


def later_points(tree: xr.DataTree, model: Model, data: Any, least: int = 1) -> FloatArray:
    """Rows that come after a fit, such as held-out ones, their columns in the order of the fit's.

    ``tree`` is the posterior's, which knows what the columns were called.
    """
    stored = tree["observed_data"].to_dataset() if "observed_data" in tree.children else None
    known = stored is not None and COLUMN in stored.coords
    names = tuple(map(str, stored[COLUMN].to_numpy())) if stored is not None and known else ()
    return _points(model, data, names or fitted_columns(model, data), least)


def fitted_columns(model: Any, data: Any) -> tuple[str, ...]:
    """What the columns of the points are called, in order; empty if nothing is known of that.

    The nodes of a model with names. Where they are only numbered, x1, x2, ..., and in models
    without nodes: those names if the data have them, else those of the first table with names.
    """
    own = coordinate_names(model)
    if own and own != default_names(len(own)):
        return own
    named = [columns for columns in map(named_columns, _tables(data).values()) if columns]
    first: tuple[str, ...] = named[0] if named and len(named[0]) == model.space.dimension else ()
    return own if own and set(first) == set(own) else first


def _tables(data: Any) -> Mapping[Any, Any]:
    is_mapping = isinstance(data, Mapping) and not hasattr(data, "data_vars")  # xarray's Dataset
    return data if is_mapping else {"all": data}


def _points(model: Any, data: Any, names: tuple[str, ...], least: int) -> FloatArray:
    own = coordinate_names(model)
    binding = names == own and own != default_names(len(own))
    # The name of a single column says nothing about an order.
    names = names if binding or len(names) > 1 else ()
    points = as_points(data, model.space, model_name(model), 1, names, binding=binding)
    if len(points) < least:
        raise InputError(
            f"data must have at least {least} rows, one for each observation, got {len(points)}"
            f"{_other_engines(model)}"
        )
    return points


def _other_engines(model: Any) -> str:
    """Which engines can learn from one row, in words."""
    names = [name for name, power in OF_ONE_ROW.items() if hasattr(model, power)]
    if not names:
        return ""
    return f"; one row, such as one network, is enough for engine={' or '.join(map(repr, names))}"


def _read_only(points: FloatArray) -> FloatArray:
    """A model that writes into its points then fails, and not silently."""
    points.setflags(write=False)
    return points


def checked_sizes(noise_ratio: Any, data: Mapping[str, FloatArray]) -> tuple[int, ...]:
    """Noise points a group, ``noise_ratio`` times its rows; None, not chosen yet: as many."""
    if noise_ratio is None:
        return tuple(len(points) for points in data.values())
    number = isinstance(noise_ratio, numbers.Real) and not isinstance(noise_ratio, bool)
    if not number or not math.isfinite(noise_ratio) or noise_ratio <= 0:
        raise InputError(
            f"noise_ratio must be a positive number (noise points for each data point), "
            f"got {shown(noise_ratio)}"
        )
    # More than any memory holds is refused by its size, which must be a number first.
    ratio = min(float(noise_ratio), 1e15)
    sizes = tuple(round(ratio * len(points)) for points in data.values())
    rows = min(len(points) for points in data.values() if len(points))
    if round(ratio * rows) == 0:
        raise InputError(
            f"noise_ratio={noise_ratio} gives no noise points for {rows} rows of data; it must be "
            f"at least {1 / rows:.2g}"
        )
    return sizes


def settled_ratio(noise_ratio: float | None, making: Adaptive | Auto | None) -> float | None:
    """The noise ratio as given; where none is, 5 whatever the noise, and None if it is chosen.

    Only automatic noise chooses one. All fits go through here, so that passing the noise that a
    report recommends, or found, does not change how much of it there is.
    """
    if noise_ratio is None and not isinstance(making, Auto):
        return NOISE_RATIO
    return noise_ratio


def checked_schedule(noise: Any) -> tuple[Schedule, Adaptive | Auto | None]:
    """The noise schedule, and what makes its noise before the chains start, if anything does.

    A distribution, a mapping or "matched" is ``Fixed``; so is adapted and chosen noise, once made,
    unless it was given to a schedule, such as ``Fresh(Adaptive())`` or ``Pooled("auto")``.
    """
    if noise is None or isinstance(noise, str):
        if noise not in WORDS:
            raise InputError(
                'noise must be "auto" (chosen in short trials), "matched" (to the data), a '
                f"distribution, a mapping from groups to distributions or a schedule, got "
                f"{shown(noise)}"
            )
        if noise == "matched":
            return Fixed(), None
        noise = Auto()
    if isinstance(noise, Adaptive):
        return Fixed(noise.noise), noise
    if isinstance(noise, Auto):
        return Fixed(), noise
    if isinstance(noise, Schedule) and not isinstance(noise, type):
        inner: Any = noise
        if isinstance(inner.noise, Adaptive | Auto | str):
            fixed, making = checked_schedule(inner.noise)
            return replace(inner, noise=fixed.noise), making
        return noise, None
    return Fixed(noise), None


def check_no_noise(noise: Any, noise_ratio: Any, engine: object) -> None:
    """Refuse noise that was asked for with an engine that has no use for it."""
    asked = noise is not None and not (isinstance(noise, str) and noise == "auto")
    if asked or noise_ratio is not None:
        name, value = ("noise", noise) if asked else ("noise_ratio", noise_ratio)
        raise InputError(
            f"{model_name(engine)} uses no noise, got {name}={shown(value)}; leave {name} out, or "
            'choose engine="auto"'
        )


def checked_noises(noise: Any, model: Model, data: Mapping[str, FloatArray]) -> tuple[Noise, ...]:
    """One distribution a group; where none is given, one matched to the group's data."""
    if noise is None:
        if len(data) == 1:
            return tuple(_matched(model.space, points) for points in data.values())
        made = []
        for label, points in data.items():
            with in_group(label):
                made.append(_matched(model.space, points))
        return tuple(made)
    chosen = noise if isinstance(noise, Mapping) else dict.fromkeys(data, noise)
    if set(map(str, chosen)) != set(data):
        raise InputError(
            f"noise must name the groups of the data, {shown(list(data))}, got "
            f"{shown(list(map(str, chosen)))}"
        )
    by_label = {str(label): each for label, each in chosen.items()}
    for each in by_label.values():
        named = isinstance(each, str) and each == "auto"
        nested = isinstance(each, Adaptive | Auto | Schedule) and not isinstance(each, type)
        if isinstance(each, str) and each == "matched":
            raise InputError(
                'the word "matched" stands alone or in a schedule, as in noise="matched"; '
                "elsewhere leave it out, as in ncbayes.noise.Adaptive(), or pass "
                "ncbayes.noise.matched(space, data)"
            )
        if named or nested:
            raise InputError(
                "adaptive and automatic noise may stand inside a schedule, as in "
                "ncbayes.noise.Pooled(ncbayes.noise.Adaptive()), and nothing else of these inside "
                f"another or in a mapping, got {shown(each)} there; fit with it first, then pass "
                "the noise it made, as in noise=ncbayes.noise.Pooled(posterior.noises)"
            )
        if isinstance(each, type) or not isinstance(each, Noise):
            raise InputError(
                "noise must have sample(size, rng) and log_density(x), such as "
                f"ncbayes.noise.Uniform(space), or be a schedule such as ncbayes.noise.Pooled(), "
                f"got {shown(each)}"
            )
    return tuple(by_label[label] for label in data)


def _matched(space: Space, points: FloatArray) -> Noise:
    return CrossFitted.match(partial(matched, space), points)


def check_consistency(noises: Iterable[Noise], space: Space, entropy: int) -> None:
    """Refuse noise whose draws do not follow its density, or whose density is not normalized."""
    rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(3,)))
    # Groups often share one distribution.
    for noise in {id(each): each for each in noises}.values():
        if hasattr(noise, "tempering"):
            continue  # made by us, normalized only up to a known error, and guarded then
        draws = np.asarray(noise.sample(CHECKED_DRAWS, rng), dtype=float)
        if draws.shape != (CHECKED_DRAWS, space.dimension):
            raise InputError(
                f"{model_name(noise)}.sample must return points of dimension {space.dimension} "
                f"like the data, got shape {draws.shape} for {CHECKED_DRAWS} points"
            )
        if not space.contains(draws).all():
            continue  # noise beyond the space has no reference here
        wrong = complaint(noise, space, draws, rng)
        if wrong:
            raise InputError(
                f"the noise {model_name(noise)} {wrong}; sample and log_density must be those of "
                "one distribution, log_density normalized (ncbayes.testing.check_noise tells more)"
            )


def checked_entropy(seed: Seed, stored: int | None) -> int:
    """The number all random numbers come from; ``stored`` is that of a run to resume."""
    if seed is None:
        entropy = np.random.SeedSequence().entropy if stored is None else stored
        return int(entropy)  # type: ignore[arg-type]
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(
            "seed must be a whole number, 0 or more, or a generator such as "
            f"np.random.default_rng(1), got {shown(seed)}"
        )
    return int(seed)


def checked_folder(checkpoint: Any) -> Path | None:
    """The checkpoint folder's path."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, str | os.PathLike):
        raise InputError(f"checkpoint must be the path of a folder, got {shown(checkpoint)}")
    if "\0" in os.fspath(checkpoint):
        raise InputError(f"checkpoint must be a path without zero bytes, got {shown(checkpoint)}")
    return Path(checkpoint)


def checked_flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def checked_minutes(minutes: Any) -> float:
    """A number of minutes, 0 or more."""
    if isinstance(minutes, numbers.Real) and not isinstance(minutes, bool) and float(minutes) >= 0:
        return float(minutes)
    raise InputError(f"minutes must be a number, 0 or more, got {shown(minutes)}")


def checked_progress(progress: Any) -> Progress:
    """None, True, False or a function."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        return cast("Progress", progress)
    raise InputError(
        f"progress must be None, False or a function that takes a ProgressEvent, got "
        f"{shown(progress)}"
    )
