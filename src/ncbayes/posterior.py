"""The result of a fit: an ArviZ-schema ``xarray.DataTree``, its summary, saving and going on."""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncbayes import chains as chains_module
from ncbayes import diagnosis, diagnostics, several_sets
from ncbayes.assembly import assembled
from ncbayes.base import FloatArray, InputError, Noise, Segment, shown
from ncbayes.chains import Chain, longest_rectangle
from ncbayes.checkpoints import RunFolder
from ncbayes.checks.records import verify
from ncbayes.concerns import Verdict, alarms
from ncbayes.fields import Field
from ncbayes.mixing import r_hat_limit
from ncbayes.normalizers import Normalizer
from ncbayes.notebooks import posterior_html
from ncbayes.problem import Problem
from ncbayes.progress import Progress
from ncbayes.reports import NoiseReport, likelihood_of, noise_report
from ncbayes.resources import ScoreSize, Size, is_affordable, worthwhile_processes
from ncbayes.tails import is_unbounded, log_density_of, tail_concern
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Draws of each chain among which some are asked whether the model has an integral.
LOOKED_AT = 6
# Effective draws a chain that are enough; the name of the noise set of each draw.
ENOUGH, SETS = 100, "stats/noise_set"


@dataclass(frozen=True)
class Limits:
    """How far chains go on that do not agree: draws of a chain, and seconds of all."""

    draws: int
    seconds: float


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
    adaptation: Mapping[str, NDArray[Any]] = dataclasses.field(default_factory=dict)
    candidates: Mapping[str, float] = dataclasses.field(default_factory=dict)
    rounds: Mapping[str, NDArray[Any]] = dataclasses.field(default_factory=dict)
    field: Field | None = None
    columns: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    verify: bool = True
    limits: Limits | None = None
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

    def settled(self) -> Run:
        """This run finished, and gone on with until its chains agree, within its limits."""
        run, first = self.finished(), sum(segment.draws for segment in self.plan)
        asked = first
        while run.limits is not None and run._is_whole(asked) and not run._agrees():
            took = (run.seconds - self.seconds) * (asked + first) / asked
            if asked + first > run.limits.draws or took > run.limits.seconds:
                break
            if not is_affordable(run.size, asked + first, run.chain_count, run.cores):
                break
            more = run.problem.schedule.plan(first, run.tune, extends=True)
            run = dataclasses.replace(run, plan=run.plan + more).finished()
            asked += first
        return run

    def _is_whole(self, asked: int) -> bool:
        return all(chain.kept == asked for chain in self.chains) and (
            len(self.chains) == self.chain_count
        )

    def _agrees(self) -> bool:
        """Whether R-hat and effective draws of all coefficients are as they should be."""
        draws = {key: [chain.draws[key] for chain in self.chains] for key in ("coef", SETS)}
        coef, sets = np.stack(draws["coef"]), np.stack(draws[SETS])[0]
        for place in np.ndindex(coef.shape[2:]):
            bulk, tail, r_hat = diagnostics.convergence(coef[(..., *place)], sets)
            limit = r_hat_limit(diagnostics.effective_draws(bulk, tail), len(self.chains))
            if r_hat > limit or min(bulk, tail) < ENOUGH * len(self.chains):
                return False
        return True


@dataclass(frozen=True, repr=False)
class Posterior:
    """Draws from the contrastive posterior.

    ``data`` is an ``xarray.DataTree`` in ArviZ's schema, to hand to ArviZ as it is: groups
    ``posterior`` (theta (chain, draw, group, statistic), log_z (chain, draw, group), the prior's
    scales), ``sample_stats``, ``normalizer`` (how log_z was worked out, its standard error, and the
    contrast's own -c, ``contrast_log_z``), ``observed_data``, ``noise``, and for noise that was
    made before the chains ``adaptation`` (its updates) or ``candidates`` (what automatic noise
    tried); for graphical models ``graph`` (nodes, edges, and which statistics belong to an edge),
    and for densities ``field`` (basis, space, times and map). Of an ``Energy`` each parameter is a
    variable of its own name, (chain, draw, group, its own dimensions), instead of theta. Engines
    without noise leave no ``noise``, and of them only "exact" knows log_z.
    """

    data: xr.DataTree
    run: Run | None = None

    @property
    def theta(self) -> xr.DataArray:
        """Natural parameters, (chain, draw, group, statistic)."""
        if "theta" not in self.data["posterior"]:
            names = ", ".join(map(repr, self.data["posterior"].data_vars))
            raise InputError(
                "there is no theta: the parameters of an Energy have names of their own, as in "
                f"posterior.data['posterior'][name], with {names}"
            )
        return self.data["posterior"].to_dataset()["theta"]

    @property
    def log_z(self) -> xr.DataArray:
        """The log normalizing constant at each draw, (chain, draw, group).

        Worked out for the draw's theta, with its error in the spread of the draws
        (``data["normalizer"]`` tells how, and the error); where it can't be, the contrast's own -c.
        """
        if "log_z" not in self.data["posterior"]:
            raise InputError(
                f"there is no log_z: {likelihood_of(self.data)} does not know the normalizing "
                'constant; fit against noise with engine="auto"'
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
        return several_sets.spread(self.data)

    def recentred(self) -> Posterior:
        """With ``Pooled`` noise: the draws freed from the accident of each noise set.

        Draws given each set are moved to the mean of all sets and narrowed around it, as if there
        had been one set of all noise points: the same accuracy for the time of a part of them.
        Right where posteriors are close to normal (docs/which_noise.md says how it was measured).
        ``theta`` and ``log_z`` are moved; scales of priors and ``verdict()`` stay as they were.
        """
        return Posterior(several_sets.recentred(self.data))

    def noise_report(self) -> NoiseReport:
        """How good the noise is: overlap with the data, what it is worth, what it costs."""
        spread = None
        if len(np.unique(diagnostics.noise_sets(self.data))) > 1:
            spread = self.between_set_spread()
        found = [each for each in diagnosis.verification(self.data) if each.grade == "failed"]
        return noise_report(self.data, spread, [each.sentence for each in found])

    def verdict(self) -> Verdict:
        """Whether the answer can be used, how sure that is, and the one thing to do next.

        Print it for the words; ``grade``, ``usable``, ``next_step`` and ``concerns`` are data.
        """
        return diagnosis.verdict(self.data)

    def warning_lines(self) -> list[str]:
        """What needs attention, the worst first, one line each, with what to do."""
        return [each.sentence for each in alarms(self.verdict().concerns)]

    def extend(self, draws: int) -> Posterior:
        """Go on for ``draws`` more draws a chain; the result is that of one longer fit.

        With ``Pooled`` noise the chains visit every set once more. ``draws=0`` finishes an
        interrupted fit.
        """
        if self.run is None:
            raise InputError(
                "a posterior that was loaded from a file can't be extended, since a file holds no "
                "code; load it with the checkpoint that fit had, load(path, checkpoint=folder), or "
                "call fit again with that checkpoint, and extend what it returns"
            )
        if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 0:
            raise InputError(f"draws must be a whole number, 0 or more, got {shown(draws)}")
        more: tuple[Segment, ...] = ()
        if draws > 0:
            more = self.run.problem.schedule.plan(int(draws), self.run.tune, extends=True)
        return finish(dataclasses.replace(self.run, plan=self.run.plan + more, limits=None))

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
        verdict = str(self.data.attrs.get("verdict", ""))
        return f"{verdict}\n<{self._described()}>" if verdict else f"<{self._described()}>"

    def _described(self) -> str:
        sizes, attributes = self.data["posterior"].sizes, self.data.attrs
        counted = f"variables {len(self.data['posterior'].data_vars)}"
        if "statistic" in sizes:
            counted = f"statistics {sizes['statistic']}"
        return (
            f"Posterior of {attributes['model']}: {sizes['chain']} chains x {sizes['draw']} "
            f"draws, groups {sizes['group']}, {counted}, "
            f"{'complete' if self.complete else 'incomplete'}"
        )

    def _repr_html_(self) -> str:
        return posterior_html(self.data, self._described())


def load(path: str | Path, checkpoint: str | os.PathLike[str] | None = None) -> Posterior:
    """The posterior that ``save`` wrote.

    With the ``checkpoint`` that its fit had it can be extended. That runs code from this folder:
    pass no folder that you do not trust.
    """
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
    if checkpoint is None:
        return Posterior(tree)
    folder = RunFolder(_path(checkpoint))
    run = dataclasses.replace(folder.fit(), folder=folder, chains=())
    for name in ("model", "seed"):
        here, there = tree.attrs.get(name), run.settings.get(name)
        if here != there:
            raise InputError(
                f"checkpoint={str(folder.path)!r} is of another fit than {str(path)!r}: {name} "
                f"{there}, not {here}; pass the checkpoint that this fit had"
            )
    return Posterior(tree, run)


def _path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the name of a file, got {shown(path)}")
    if "\0" in os.fspath(path):
        raise InputError(f"path must be a name without zero bytes, got {shown(path)}")
    return Path(path)


def _concerns(problem: Problem, chains: Sequence[Chain], kept: int) -> list[str]:
    """What the model itself has to say about each group's fit, and whether it has an integral."""
    concerns = getattr(problem.model, "concerns", None)
    unbounded = is_unbounded(problem.model.space)
    if concerns is None and not unbounded:
        return []
    # A few draws of each chain: all of them may fill the memory.
    chosen = np.linspace(0, kept - 1, min(kept, LOOKED_AT)).astype(int)
    theta = problem.parameters(np.concatenate([chain.draws["coef"][chosen] for chain in chains]))[
        "theta"
    ]
    mean = np.mean([chain.draws["coef"][:kept].mean(axis=0) for chain in chains], axis=0)
    means, lines = problem.parameters(mean)["theta"], []
    for g, (label, points) in enumerate(zip(problem.labels, problem.data, strict=True)):
        found = [] if concerns is None else list(concerns(means[g], points))
        if unbounded and len(points) > 1:
            found += _tails(problem, theta[:, g], points)
        where = f"in group {label}: " if len(problem.labels) > 1 else ""
        lines += [where + line for line in found]
    return lines


def _tails(problem: Problem, theta: FloatArray, points: FloatArray) -> list[str]:
    model = problem.model
    name = "log_density" if hasattr(model, "curve") else "theta . statistics + log_base"
    with single_threaded():
        line = tail_concern(log_density_of(model), theta, points, model.space, name)
    return [] if line is None else [line]


def finish(run: Run, calls: int = 1) -> Posterior:
    """Run to the end of the plan, assemble the result, and warn of what needs attention.

    So many ``calls`` lie between this one and the user's line, which warnings point at.
    """
    run = run.settled()
    chains, kept = longest_rectangle(run.chains)
    if kept == 0:
        where = " (the checkpoint holds what was done)" if run.folder else ""
        raise KeyboardInterrupt(f"interrupted before the first kept draw{where}")
    asked = sum(segment.draws for segment in run.plan)
    facts = {
        "complete": int(len(chains) == run.chain_count and kept == asked),
        "wall_seconds": run.seconds,
        **run.settings,
        "draws": asked,
    }
    concerns = [*run.seen, *_concerns(run.problem, chains, kept)]
    facts |= {"concerns": "\n".join(concerns)} if concerns else {}
    known: dict[int, Normalizer] = {}
    began = time.monotonic()
    tree = assembled(run.problem, chains, kept, run, facts, known)
    tree.attrs["log_z_seconds"] = time.monotonic() - began
    began = time.monotonic()
    if run.verify:
        verify(tree, run.problem, run.field, known)
        if "verification" in tree.children:
            tree["verification"].attrs = dict(tree["posterior"].attrs)
    else:
        tree.attrs["not_verified"] = "verify=False was asked for"
    tree.attrs["verification_seconds"] = time.monotonic() - began
    if run.folder is not None:
        run.folder.keep_fit(dataclasses.replace(run, chains=(), progress=None, limits=None))
    posterior = Posterior(tree, run)
    verdict = posterior.verdict()
    tree.attrs["verdict"], tree.attrs["grade"] = verdict.line, verdict.grade
    for each in alarms(verdict.concerns):
        warnings.warn(each.sentence, diagnostics.FitWarning, stacklevel=calls + 2)
    return posterior
