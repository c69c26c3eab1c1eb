"""The result of a fit: an ArviZ-schema ``xarray.DataTree``, its summary, saving and going on."""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes import chains as chains_module
from ncbayes import diagnostics
from ncbayes.base import FloatArray, InputError, Noise, NoiseSet, NoiseState, Segment, shown
from ncbayes.chains import Chain, longest_rectangle
from ncbayes.checkpoints import RunFolder
from ncbayes.contrast import has_mass, statistic_names
from ncbayes.problem import Problem
from ncbayes.progress import Progress
from ncbayes.reports import NoiseReport, noise_report
from ncbayes.resources import ScoreSize, Size, worthwhile_processes

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Run:
    """What a posterior came from, kept so that it can be extended."""

    problem: Problem
    plan: tuple[Segment, ...]
    chain_count: int
    tune: int
    cores: int | None
    size: Size | ScoreSize
    folder: RunFolder | None
    progress: Progress
    settings: Mapping[str, Any]
    adaptation: Mapping[str, FloatArray] = field(default_factory=dict)
    candidates: Mapping[str, float] = field(default_factory=dict)
    chains: tuple[Chain, ...] = ()
    seconds: float = 0.0

    def finished(self) -> Run:
        """This run with its chains at the end of the plan, or as far as Ctrl-C let them come."""
        began = time.monotonic()
        target = self.problem.target(self.problem.source.fixed(0))
        processes = worthwhile_processes(self.size, target, self.plan, self.chain_count, self.cores)
        done = chains_module.run(
            self.problem,
            self.plan,
            self.chain_count,
            cores=processes,
            folder=self.folder,
            progress=self.progress,
            before=self.chains,
        )
        seconds = self.seconds + time.monotonic() - began
        return dataclasses.replace(self, chains=tuple(done), seconds=seconds)


@dataclass(frozen=True, repr=False)
class Posterior:
    """Draws from the contrastive posterior.

    ``data`` is an ``xarray.DataTree`` in ArviZ's schema, to hand to ArviZ as it is: groups
    ``posterior`` (theta (chain, draw, group, statistic), log_z (chain, draw, group), the prior's
    scales), ``sample_stats``, ``observed_data``, ``noise``, and for noise that was made before the
    chains ``adaptation`` (its updates) or ``candidates`` (what automatic noise tried). Without
    noise (``engine="hyvarinen"``) there is neither log_z nor ``noise``.
    """

    data: xr.DataTree
    run: Run | None = None

    @property
    def theta(self) -> xr.DataArray:
        """Natural parameters, (chain, draw, group, statistic)."""
        return self.data["posterior"].to_dataset()["theta"]

    @property
    def log_z(self) -> xr.DataArray:
        """The log normalizing constant, log Z = -c, (chain, draw, group)."""
        if "log_z" not in self.data["posterior"]:
            raise InputError(
                "there is no log_z: the Hyvarinen score does not know the normalizing constant; "
                'fit against noise with engine="gibbs"'
            )
        return self.data["posterior"].to_dataset()["log_z"]

    @property
    def noises(self) -> dict[str, Noise]:
        """The noise distribution of each group, matched, adapted or chosen, to use again."""
        if self.run is None:
            raise InputError(
                "a posterior that was loaded from a file holds no noise distributions, only their "
                "points (data['noise']); fit again, or keep the posterior that fit returned"
            )
        return self.run.problem.noises

    @property
    def complete(self) -> bool:
        """False if the fit was interrupted."""
        return bool(self.data.attrs["complete"])

    def summary(self, level: float = 0.9) -> pd.DataFrame:
        """One row a quantity: mean, sd, median, interval, Monte Carlo error, ESS, R-hat.

        The columns of the interval carry its kind (equal-tailed) and level: ``eti90_low``,
        ``eti90_high``.
        """
        if not (isinstance(level, int | float | np.number) and 0 < level < 1):
            raise InputError(f"level must be between 0 and 1, such as 0.9, got {shown(level)}")
        return diagnostics.summary(self.data, level)

    def between_set_spread(self) -> pd.DataFrame:
        """How much the noise draw matters: with ``Pooled`` noise, one row a quantity.

        ``between_sd`` is the standard deviation of the noise sets' posterior means,
        ``within_sd`` the typical posterior sd given one set, ``ratio`` the first by the second.
        """
        import pandas as pd

        sets = diagnostics.noise_sets(self.data)
        labels = np.unique(sets)
        if len(labels) < 2:
            raise InputError(
                "the spread between noise sets needs a fit with several of them; "
                "use fit(..., noise=ncbayes.noise.Pooled())"
            )
        rows = {}
        for name, values in diagnostics.quantities(self.data):
            parts = [values[:, sets == label] for label in labels]
            between = float(np.std([part.mean() for part in parts], ddof=1))
            within = float(np.sqrt(np.mean([part.var() for part in parts])))
            ratio = between / within if within > 0 else np.nan
            rows[name] = {"between_sd": between, "within_sd": within, "ratio": ratio}
        return pd.DataFrame.from_dict(rows, orient="index")

    def noise_report(self) -> NoiseReport:
        """How good the noise is: overlap with the data, what it is worth, what it costs."""
        spread = None
        if len(np.unique(diagnostics.noise_sets(self.data))) > 1:
            spread = self.between_set_spread()
        return noise_report(self.data, spread)

    def warning_lines(self) -> list[str]:
        """What needs attention (R-hat, effective draws, noise), one line each, with what to do."""
        return diagnostics.warning_lines(self.data)

    def extend(self, draws: int) -> Posterior:
        """Go on for ``draws`` more draws a chain; the result is that of one longer fit.

        With ``Pooled`` noise the chains visit every set once more. ``draws=0`` finishes an
        interrupted fit.
        """
        if self.run is None:
            raise InputError(
                "a posterior that was loaded from a file can't be extended, since a file holds no "
                "code; call fit again with its checkpoint=folder and extend what that returns"
            )
        if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 0:
            raise InputError(f"draws must be a whole number, 0 or more, got {shown(draws)}")
        more: tuple[Segment, ...] = ()
        if draws > 0:
            more = self.run.problem.schedule.plan(int(draws), self.run.tune, extends=True)
        return finish(dataclasses.replace(self.run, plan=self.run.plan + more))

    def save(self, path: str | Path) -> None:
        """Write a netCDF file that ``ncbayes.load``, ArviZ and xarray open."""
        path = _path(path)
        if not path.parent.is_dir() or path.is_dir():
            raise InputError(
                f"can't save to {str(path)!r}: it must be a file in a folder that exists"
            )
        part = path.with_name(f".{path.name}.part")
        try:
            self.data.to_netcdf(part, engine="h5netcdf")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def __repr__(self) -> str:
        sizes, attributes = self.data["posterior"].sizes, self.data.attrs
        return (
            f"<Posterior of {attributes['model']}: {sizes['chain']} chains x {sizes['draw']} "
            f"draws, groups {sizes['group']}, statistics {sizes['statistic']}, "
            f"{'complete' if self.complete else 'incomplete'}>"
        )


def load(path: str | Path) -> Posterior:
    """The posterior that ``save`` wrote."""
    import xarray as xr

    path = _path(path)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as file:
            tree = file.load()
    except OSError as error:
        raise InputError(f"{str(path)!r} is not a netCDF file") from error
    if "ncbayes_version" not in tree.attrs:
        raise InputError(f"{str(path)!r} was not written by ncbayes")
    return Posterior(tree)


def _path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the name of a file, got {shown(path)}")
    if "\0" in os.fspath(path):
        raise InputError(f"path must be a name without zero bytes, got {shown(path)}")
    return Path(path)


def finish(run: Run) -> Posterior:
    """Run to the end of the plan, assemble the result, and warn of what needs attention."""
    run = run.finished()
    chains, kept = longest_rectangle(run.chains)
    if kept == 0:
        where = " (the checkpoint holds what was done)" if run.folder else ""
        raise KeyboardInterrupt(f"interrupted before the first kept draw{where}")
    posterior = Posterior(_tree(run, chains, kept), run)
    for line in posterior.warning_lines():
        warnings.warn(line, diagnostics.FitWarning, stacklevel=3)
    return posterior


def _tree(run: Run, chains: list[Chain], kept: int) -> xr.DataTree:
    import xarray as xr

    stacked = {
        name: np.stack([chain.draws[name][:kept] for chain in chains]) for name in chains[0].draws
    }
    states = _noise_states(run, stacked["stats/noise_set"], chains)
    groups = {
        "posterior": _posterior(run.problem, stacked),
        "sample_stats": _sample_stats(stacked),
        "observed_data": _observed(run.problem),
    }
    if run.problem.losses:
        groups["sample_stats"] = groups["sample_stats"].drop_vars("noise_set")
    else:
        groups["noise"] = _noise(run.problem, states, stacked)
    if run.adaptation:
        updates = len(run.adaptation["made"])
        groups["adaptation"] = xr.Dataset(
            {name: (("update", "group"), values) for name, values in run.adaptation.items()},
            coords={"update": np.arange(1, updates + 1), "group": list(run.problem.labels)},
        )
    if run.candidates:
        groups["candidates"] = xr.Dataset(
            {"kept": ("candidate", list(run.candidates.values()))},
            coords={"candidate": list(run.candidates)},
        )
    # An interrupted fit may have kept chain 1 and not chain 0.
    indices = [chain.index for chain in chains]
    for name in ("posterior", "sample_stats"):
        groups[name] = groups[name].assign_coords(chain=indices)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = _attributes(run, chains, kept)
    for child in tree.children.values():
        child.attrs = {key: tree.attrs[key] for key in _ARVIZ_ATTRIBUTES}
    return tree


_ARVIZ_ATTRIBUTES = ("created_at", "inference_library", "inference_library_version")


def _attributes(run: Run, chains: list[Chain], kept: int) -> dict[str, Any]:
    from ncbayes import __version__

    asked = sum(segment.draws for segment in run.plan)
    return {
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "inference_library": "ncbayes",
        "inference_library_version": __version__,
        "ncbayes_version": __version__,
        "complete": int(len(chains) == run.chain_count and kept == asked),
        "wall_seconds": run.seconds,
        **run.settings,
        "draws": asked,
    }


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


def _block_names(problem: Problem) -> list[str]:
    return [block for block, names in problem.model.groups.items() for _ in names]


def _sample_stats(stacked: Mapping[str, NDArray[Any]]) -> xr.Dataset:
    import xarray as xr

    chains, draws = stacked["coef"].shape[:2]
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    return xr.Dataset(_sampled(stacked, "stats/"), coords=coords)


def _observed(problem: Problem) -> xr.Dataset:
    import xarray as xr

    return xr.Dataset(
        {"points": (("row", "axis"), np.concatenate(problem.data))},
        coords={"group": ("row", np.repeat(problem.labels, [len(each) for each in problem.data]))},
    )


def _noise_states(run: Run, sets: NDArray[Any], chains: list[Chain]) -> dict[int, NoiseState]:
    """The noise behind the draws, by set; where every sweep had its own, that of the last sweep."""
    last = chains[0].state.noise
    if last.index < 0:
        return {0: last}
    return {int(k): run.problem.source.fixed(int(k)) for k in np.unique(sets)}


def _noise(
    problem: Problem, states: Mapping[int, NoiseState], stacked: Mapping[str, NDArray[Any]]
) -> xr.Dataset:
    """The noise behind the draws, and how well each set of it can be compared with the data."""
    import xarray as xr

    sets = stacked["stats/noise_set"][0]
    rows, facts = [], []
    for k, state in states.items():
        coef = stacked["coef"][:, sets == k].mean(axis=(0, 1))
        for g, each in enumerate(state.sets):
            rows.append((k, problem.labels[g], each))
            facts.append(_facts(problem, g, each, coef[g]))
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


_OF_NOISE = ("points", "log_density", "log_density_at_data")


def _repeated(rows: list[tuple[int, str, NoiseSet]], position: int) -> NDArray[Any]:
    values = np.array([row[position] for row in rows])
    return np.repeat(values, [len(each.points) for *_, each in rows])


def _facts(problem: Problem, group: int, noise: NoiseSet, coef: FloatArray) -> dict[str, Any]:
    """Numbers about one noise set, and the log odds of its points and of the data."""
    each = problem.contrast(group, noise)
    log_odds = each.log_odds(coef)
    data = int(np.sum(each.is_data))
    # Points where the model has no mass are noise for certain, and not in the contrast.
    of_noise = np.full(len(noise.points), -np.inf)
    of_noise[has_mass(problem.model, noise.points)] = log_odds[data:]
    tempering = getattr(problem.source.noises[group], "tempering", None)
    error = 0.0 if tempering is None else float(tempering.log_z_error)
    size = len(noise.points)
    numbers = diagnostics.noise_facts(each.design, log_odds, each.is_data, size, error)
    return {**numbers, "data": log_odds[:data], "noise": of_noise}
