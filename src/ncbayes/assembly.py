"""The tree of a result: draws, data and noise as an ArviZ-schema ``xarray.DataTree``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ncbayes import diagnostics
from ncbayes.base import FloatArray, InputError, NoiseSet, NoiseState
from ncbayes.chains import Chain
from ncbayes.contrast import has_mass, statistic_names
from ncbayes.couplings import graph_of
from ncbayes.fields import Field
from ncbayes.normalizers import Normalizer, normalizer
from ncbayes.problem import Problem
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import xarray as xr


# log Z that is worked out less well than this, or not at more than this share of the draws, is not
# better than the contrast's own.
LARGEST_ERROR, MOST_LOST = 0.25, 0.01
# What is stored of how log Z was worked out.
OF_LOG_Z = ("way", "error", "typical_gap", "typical_error")
# Draws at which the information that noise keeps is looked at.
LOOKED_AT = 8


class Records(Protocol):
    """What was noted besides draws: updates of noise and candidates by name, a density's field.

    ``columns`` are the names of the data's columns, where they have some.
    """

    @property
    def adaptation(self) -> Mapping[str, NDArray[Any]]: ...

    @property
    def candidates(self) -> Mapping[str, float]: ...

    @property
    def rounds(self) -> Mapping[str, NDArray[Any]]: ...

    @property
    def field(self) -> Field | None: ...

    @property
    def columns(self) -> tuple[str, ...]: ...


def assembled(
    problem: Problem,
    chains: Sequence[Chain],
    kept: int,
    records: Records,
    facts: Mapping[str, Any],
    known: dict[int, Normalizer],
) -> xr.DataTree:
    """The tree of the first ``kept`` draws of every chain; ``facts`` become its attributes.

    What is worked out of log Z is left in ``known``, by group.
    """
    import xarray as xr

    stacked = {
        name: np.stack([chain.draws[name][:kept] for chain in chains]) for name in chains[0].draws
    }
    states = _noise_states(problem, stacked["stats/noise_set"], chains)
    groups = {
        "posterior": _posterior(problem, stacked),
        "sample_stats": _sample_stats(stacked),
        "observed_data": _observed(problem, records.columns),
    }
    if problem.losses:
        groups["sample_stats"] = groups["sample_stats"].drop_vars("noise_set")
    else:
        groups["noise"] = _noise(problem, states, stacked)
        if records.field is None:  # densities are normalized where they are read
            _normalize(problem, stacked, groups, known)
    groups |= _recorded(problem, records)
    graph = graph_of(problem.model)
    if graph is not None:
        groups["graph"] = graph.dataset()
    if records.field is not None:
        groups["field"] = records.field.dataset()
    # An interrupted fit may have kept chain 1 and not chain 0.
    indices = [chain.index for chain in chains]
    for name in {"posterior", "sample_stats", "normalizer"} & set(groups):
        groups[name] = groups[name].assign_coords(chain=indices)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = _attributes(facts)
    for child in tree.children.values():
        child.attrs = {key: tree.attrs[key] for key in _ARVIZ_ATTRIBUTES}
    return tree


_ARVIZ_ATTRIBUTES = ("created_at", "inference_library", "inference_library_version")


def _attributes(facts: Mapping[str, Any]) -> dict[str, Any]:
    from ncbayes import __version__

    return {
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "inference_library": "ncbayes",
        "inference_library_version": __version__,
        "ncbayes_version": __version__,
        **facts,
    }


def _recorded(problem: Problem, records: Records) -> dict[str, xr.Dataset]:
    """How the noise was made, where it was made before the chains."""
    import xarray as xr

    groups = {}
    if records.adaptation:
        updates = len(records.adaptation["made"])
        groups["adaptation"] = xr.Dataset(
            {name: (("update", "group"), values) for name, values in records.adaptation.items()},
            coords={"update": np.arange(1, updates + 1), "group": list(problem.labels)},
        )
    if records.candidates:
        groups["candidates"] = xr.Dataset(
            {"kept": ("candidate", list(records.candidates.values()))},
            coords={"candidate": list(records.candidates)},
        )
    if records.rounds:
        labels = [
            each for each, rows in zip(problem.labels, problem.data, strict=True) if len(rows)
        ]
        groups["rounds"] = xr.Dataset(
            {name: (("round", "group"), values) for name, values in records.rounds.items()},
            coords={"round": np.arange(1, len(records.rounds["passed"]) + 1), "group": labels},
        )
    return groups


def _sampled(stacked: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, tuple[Any, Any]]:
    found = {}
    for key, values in stacked.items():
        if key.startswith(prefix):
            name = key.removeprefix(prefix)
            dims = [f"{name}_dim_{k}" for k in range(values.ndim - 2)]
            found[name] = (("chain", "draw", *dims), values)
    return found


def _posterior(problem: Problem, stacked: Mapping[str, NDArray[Any]]) -> xr.Dataset:
    import xarray as xr

    coef, dims = stacked["coef"], ("chain", "draw", "group", "statistic")
    named = getattr(problem.model, "variables", None)
    if named is not None:
        return xr.Dataset(
            {**named(coef, problem.data), **_sampled(stacked, "scales/")},
            coords={
                "chain": np.arange(coef.shape[0]),
                "draw": np.arange(coef.shape[1]),
                "group": list(problem.labels),
            },
        )
    return xr.Dataset(
        {
            **{name: (dims[: each.ndim], each) for name, each in problem.parameters(coef).items()},
            **_sampled(stacked, "scales/"),
        },
        coords={
            "chain": np.arange(coef.shape[0]),
            "draw": np.arange(coef.shape[1]),
            "group": list(problem.labels),
            "statistic": statistic_names(problem.model),
            "block": ("statistic", _block_names(problem)),
        },
    )


def _normalize(
    problem: Problem,
    stacked: Mapping[str, NDArray[Any]],
    groups: dict[str, xr.Dataset],
    known: dict[int, Normalizer],
) -> None:
    """Put log Z worked out at the draws into the posterior, and the contrast's own beside it.

    Where it can't be worked out well enough, log_z stays the contrast's own, -c; ``typical_gap``
    is then how far -c is from log Z at the typical draw, where that is known.
    """
    import xarray as xr

    posterior = groups["posterior"]
    own = posterior["log_z"]
    log_z, facts = own.to_numpy().copy(), []
    for g in range(len(problem.labels)):
        rng = problem.normalizer_rng(g)
        found = _normalizer(problem, stacked, g, rng)
        if found is not None:
            known[g] = found
        if found is not None and found.error <= LARGEST_ERROR and found.lost <= MOST_LOST:
            log_z[..., g] = found.drawn(rng)[1:].reshape(log_z.shape[:2])
            facts.append((found.way, found.error, np.nan, np.nan))
        else:
            # The typical draw of an energy is not the mean that -c is compared at.
            typical = None if hasattr(problem.model, "curve") else found
            facts.append(("contrast", np.nan, *_typical_gap(own[..., g].to_numpy(), typical)))
    groups["posterior"] = posterior.assign(log_z=own.copy(data=log_z))
    groups["normalizer"] = xr.Dataset(
        {
            **{name: ("group", [each[k] for each in facts]) for k, name in enumerate(OF_LOG_Z)},
            "contrast_log_z": own,
        }
    )


def _typical_gap(own: FloatArray, found: Normalizer | None) -> tuple[float, float]:
    """The contrast's own normalizer less log Z at the typical draw, and the error of that."""
    if found is None or not found.reference_error <= LARGEST_ERROR:
        return np.nan, np.nan
    return float(own.mean() - found.log_z[0]), found.reference_error


def _normalizer(
    problem: Problem, stacked: Mapping[str, NDArray[Any]], group: int, rng: np.random.Generator
) -> Normalizer | None:
    """log Z at a typical draw and at every draw of a group; None if it can't be worked out."""
    if not len(problem.data[group]):
        return None
    coef = stacked["coef"][:, :, group]
    typical = typical_coef(problem, {**stacked, "coef": stacked["coef"][:, :, group : group + 1]})
    params = np.concatenate([typical[:, :-1], coef.reshape(-1, coef.shape[-1])[:, :-1]])
    noise = problem.source.noises[group]
    try:
        with single_threaded(), np.errstate(all="ignore"):
            return normalizer(problem.model, params, 0, noise, rng)
    except (InputError, FloatingPointError, np.linalg.LinAlgError, KeyboardInterrupt):
        return None  # with Ctrl-C too: the draws are there


def _block_names(problem: Problem) -> list[str]:
    return [block for block, names in problem.model.groups.items() for _ in names]


def _sample_stats(stacked: Mapping[str, NDArray[Any]]) -> xr.Dataset:
    import xarray as xr

    chains, draws = stacked["coef"].shape[:2]
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    return xr.Dataset(_sampled(stacked, "stats/"), coords=coords)


def _observed(problem: Problem, columns: tuple[str, ...]) -> xr.Dataset:
    import xarray as xr

    coords: dict[str, Any] = {
        "group": ("row", np.repeat(problem.labels, [len(each) for each in problem.data]))
    }
    if columns:
        coords["axis"] = list(columns)
    return xr.Dataset({"points": (("row", "axis"), np.concatenate(problem.data))}, coords=coords)


def _noise_states(
    problem: Problem, sets: NDArray[Any], chains: Sequence[Chain]
) -> dict[int, NoiseState]:
    """The noise behind the draws, by set; where every sweep had its own, that of the last sweep."""
    last = chains[0].state.noise
    if last.index < 0:
        return {0: last}
    return {int(k): problem.source.fixed(int(k)) for k in np.unique(sets)}


def _noise(
    problem: Problem, states: Mapping[int, NoiseState], stacked: Mapping[str, NDArray[Any]]
) -> xr.Dataset:
    """The noise behind the draws, and how well each set of it can be compared with the data."""
    import xarray as xr

    sets = stacked["stats/noise_set"][0]
    rows, facts = [], []
    for k, state in states.items():
        own = {name: stacked[name][:, sets == k] for name in stacked}
        coef, draws = typical_coef(problem, own), _some_draws(problem, own["coef"])
        for g, each in enumerate(state.sets):
            rows.append((k, problem.labels[g], each))
            facts.append(_facts(problem, g, each, coef[g], draws[:, g]))
    by_set = (len(states), len(problem.labels))
    names = diagnostics.NOISE_FACTS
    numbers = {n: np.array([fact[n] for fact in facts]).reshape(by_set) for n in names}
    arrays = {n: np.concatenate([getattr(each, n) for *_, each in rows]) for n in _OF_NOISE}
    at_data = [fact["data"] for fact in facts]
    return xr.Dataset(
        {
            **{name: (("noise_set", "group"), values) for name, values in numbers.items()},
            "points": (("noise_row", "axis"), arrays["points"]),
            "log_density": ("noise_row", arrays["log_density"]),
            "log_odds": ("noise_row", np.concatenate([fact["noise"] for fact in facts])),
            "log_density_at_data": (
                ("noise_set", "row"),
                arrays["log_density_at_data"].reshape(len(states), -1),
            ),
            "log_odds_at_data": (
                ("noise_set", "row"),
                np.concatenate(at_data).reshape(len(states), -1),
            ),
        },
        coords={
            "noise_set": list(states),
            "group": list(problem.labels),
            "row_group": ("noise_row", _repeated(rows, 1)),
            "row_noise_set": ("noise_row", _repeated(rows, 0)),
        },
    )


def typical_coef(problem: Problem, stacked: Mapping[str, NDArray[Any]]) -> FloatArray:
    """The mean coef; of an energy the likeliest, since a mean of several modes is like none."""
    coef = stacked["coef"]
    if not hasattr(problem.model, "curve"):
        return np.asarray(coef.mean(axis=(0, 1)))
    best = np.argmax(stacked["stats/log_likelihood"])
    return np.asarray(coef.reshape(-1, *coef.shape[2:])[best])


def _some_draws(problem: Problem, coef: FloatArray) -> FloatArray:
    """Draws (draw, group, coefficient) of all chains; none of an energy, which has modes."""
    flat = coef.reshape(-1, *coef.shape[2:])
    count = 0 if hasattr(problem.model, "curve") else min(LOOKED_AT, len(flat))
    return flat[np.arange(count) * len(flat) // max(count, 1)]


_OF_NOISE = ("points", "log_density", "log_density_at_data")


def _repeated(rows: list[tuple[int, str, NoiseSet]], position: int) -> NDArray[Any]:
    values = np.array([row[position] for row in rows])
    return np.repeat(values, [len(each.points) for *_, each in rows])


def _facts(
    problem: Problem, group: int, noise: NoiseSet, coef: FloatArray, draws: FloatArray
) -> dict[str, Any]:
    """Numbers about one noise set, and the log odds of its points and of the data."""
    each = problem.contrast_near(group, noise, coef)
    if not len(each.offset):  # a time without points has no noise either
        return {**dict.fromkeys(diagnostics.NOISE_FACTS, np.nan), "noise_points": 0.0,
                "data": np.zeros(0), "noise": np.zeros(0)}  # fmt: skip
    log_odds = each.log_odds(coef)
    data = int(np.sum(each.is_data))
    # Points where the model has no mass are noise for certain, and not in the contrast.
    of_noise = np.full(len(noise.points), -np.inf)
    of_noise[has_mass(problem.model, noise.points)] = log_odds[data:]
    tempering = getattr(problem.source.noises[group], "tempering", None)
    error = 0.0 if tempering is None else float(tempering.log_z_error)
    size = len(noise.points)
    at_draws = [each.log_odds(draw) for draw in draws]
    numbers = diagnostics.noise_facts(each.design, log_odds, each.is_data, size, error, at_draws)
    return {**numbers, "data": log_odds[:data], "noise": of_noise}
