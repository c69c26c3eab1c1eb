"""The front door: validate -> contrast -> target -> chains -> Posterior."""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ncbayes import engines, inputs
from ncbayes.base import (
    FloatArray,
    InputError,
    Model,
    Noise,
    NoiseState,
    Prior,
    Schedule,
    shown,
)
from ncbayes.checkpoints import RunFolder
from ncbayes.choice import noise_points
from ncbayes.conditioning import data_mean, default_prior, units
from ncbayes.contrast import Engine, Target, model_name, statistic_names, uses_noise
from ncbayes.diagnostics import FitWarning
from ncbayes.energies import Energy
from ncbayes.energy_fit import energy_run
from ncbayes.engines import Gibbs, Joint, Nuts, joint
from ncbayes.fields import Field, field_of
from ncbayes.fingerprints import asked_of, identity, noise_digest
from ncbayes.identifiability import (
    check_informative,
    check_posterior_exists,
    couples_groups,
    unseen_lines,
)
from ncbayes.noise.adaptive import Adaptive
from ncbayes.noise.auto import Auto
from ncbayes.noiseless import least_rows, noiseless_run
from ncbayes.posterior import Limits, Posterior, Run, finish
from ncbayes.preparation import prepare
from ncbayes.priors.blocks import Blocks, blocks
from ncbayes.problem import Problem, Source
from ncbayes.progress import Progress
from ncbayes.resources import Size, affordable_processes, is_affordable
from ncbayes.thinness import thin_lines
from ncbayes.threads import single_threaded

# The file of a checkpoint that tells which noise was made.
MADE = "made.npz"
# Draws a chain if none are asked for, and the most to which chains then go on.
DRAWS, MOST_DRAWS, MINUTES = 1000, 5000, 30.0


def fit(
    model: Model | Energy,
    data: Any,
    *,
    noise: Noise | Mapping[str, Noise] | Schedule | Adaptive | Auto | str = "auto",
    prior: Prior | Mapping[str, Prior] | None = None,
    noise_ratio: float | None = None,
    engine: str | Engine = "auto",
    draws: int | None = None,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    seed: inputs.Seed = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = None,
    verify: bool = True,
    minutes: float = MINUTES,
) -> Posterior:
    """Fit an exponential family or an energy by contrast with noise: the paper's NC-Bayes.

    Parameters
    ----------
    model
        An object with ``space``, ``groups``, ``statistics(x)`` and ``log_base(x)``; or an
        ``Energy``, whose priors are its own, and for which "auto" means matched noise, and NUTS
        unless it is linear in its parameters.
    data
        Points as rows: an array, list, pandas or polars frame, Arrow table or xarray array; or a
        mapping from group labels to such, for one fit of several groups. Columns with names are
        matched by name with the nodes of a model that has names. Two rows a group, or one with an
        engine without noise (but for "hyvarinen").
    noise
        "auto" (or ``noise.Auto()``) tries several kinds in short trials and takes the best, with
        the noise ratio if none is given; "matched" is fixed noise matched to the data. Else a
        distribution, a mapping from group labels to distributions, a schedule (``noise.Fixed``,
        ``Fresh``, ``Pooled``), or ``noise.Adaptive()``, which moves toward the fitted model before
        the chains start.
    prior
        A prior of theta, or a mapping from blocks of statistics (the keys of ``model.groups``, and
        "normalizer") to priors. What is left out gets a weak prior on the data's own scale,
        ``theta ~ N(0, 100 Cov(statistics)^-1)``, or, in a model whose statistics come in runs
        (``TorusGraph``), ``priors.Horseshoe()``; and the normalizer N(0, 1000).
    noise_ratio
        Noise points for each data point; more noise, narrower posteriors, slower sweeps. None:
        what ``noise="auto"`` chooses, and 5 with any other noise.
    engine
        "auto" takes "joint", coefficients and scales in one Hamiltonian trajectory, or "gibbs",
        the paper's Polya-Gamma sweeps, for noise that is new in every sweep and for priors that
        "joint" does not take. Or an engine such as ``engines.Gibbs(method="cholesky")``; "nuts" or
        ``engines.Nuts(target_acceptance=0.9)``: the no-U-turn sampler. Without noise: "exact" for
        small models that know log Z, "exchange" for those with a sampler, "pseudolikelihood" for
        binary ones with ``change_statistics``, "hyvarinen" or
        ``engines.Hyvarinen(learning_rate=0.2)`` for generalized Bayes with derivatives.
    draws, tune, chains
        Kept and discarded sweeps a chain, and the number of chains. ``draws=None``: 1000, and
        1000 more as long as R-hat of some coefficient is above 1.01 or it has fewer than 100
        effective draws a chain, up to 5000, or to what ``minutes`` allow.
    cores
        Processes; None: as many as there are chains and cores, or one for a short run. The draws
        do not depend on it.
    seed
        A whole number or a NumPy Generator. The same seed gives the same draws.
    checkpoint
        A folder; the same call resumes a run that was killed, with the same draws.
    progress
        None: bars on a terminal, a line every ten seconds elsewhere; False: silence; or a
        function that is called with a ``ProgressEvent``.
    verify
        Whether the fit looks at itself: rows are simulated from it and set beside the data
        (``posterior.verdict()``).
    minutes
        How long chains may take to which no number of draws was given, the first 1000 apart.
    """
    if not isinstance(model, Energy):
        model = inputs.checked_model(model)
    groups = inputs.checked_data(model, data, least_rows(_named_engine(engine, model)))
    options = (engine, draws, tune, chains, cores, seed, checkpoint, progress, verify, minutes)
    columns = inputs.fitted_columns(model, data)
    seen = tuple(thin_lines(model.space, groups, columns))
    for line in seen:  # before hours of sampling; the result says it too
        warnings.warn(line, FitWarning, stacklevel=2)
    with single_threaded():  # once: to look for the libraries whose threads there are takes time
        return fitted(
            model, groups, noise, prior, noise_ratio, options, field_of(model), columns=columns,
            seen=seen,
        )  # fmt: skip


def fitted(
    model: Model,
    groups: Mapping[str, FloatArray],
    noise: Any,
    prior: Any,
    noise_ratio: Any,
    options: tuple[Any, ...],
    field: Field | None,
    calls: int = 2,
    columns: tuple[str, ...] = (),
    seen: tuple[str, ...] = (),
) -> Posterior:
    """The fit of points by group, which are checked; ``options`` are those of ``fit``, in order.

    Warnings point at a line that is so many ``calls`` above the end of this one. ``columns`` are
    the names of the columns of the points, where they have some, and ``seen`` what there is to say
    about the points.
    """
    engine, given_draws, tune, chains, cores, seed, checkpoint, progress, verify, minutes = options
    draws = DRAWS if given_draws is None else given_draws
    most = Limits(MOST_DRAWS, 60 * inputs.checked_minutes(minutes))
    limits = most if given_draws is None else None
    inputs.checked_flag("verify", verify)
    inputs.checked_count("chains", chains, 1)
    inputs.checked_count("tune", tune, 0)
    if cores is not None:
        inputs.checked_count("cores", cores, 1)
    as_given, (schedule, making) = noise_ratio, inputs.checked_schedule(noise)
    noise_ratio = inputs.settled_ratio(as_given, making)
    sizes = inputs.checked_sizes(noise_ratio, groups)
    plan = schedule.plan(inputs.checked_count("draws", draws, 1), tune)
    progress = inputs.checked_progress(progress)
    path = inputs.checked_folder(checkpoint)
    folder = RunFolder(path) if path is not None else None
    chosen = _engine(engine, model, tune)
    if hasattr(model, "check_data"):
        coupled = couples_groups(model, prior, len(groups), normalizer=uses_noise(chosen))
        check_informative(model, groups, coupled)
    if not uses_noise(chosen):
        inputs.check_no_noise(noise, as_given, chosen)
        entropy = inputs.checked_entropy(seed, _stored_seed(folder))
        counts = {"draws": draws, "tune": tune, "chains": chains}
        run = noiseless_run(model, groups, prior, chosen, entropy, counts, cores, folder, progress)
        return finish(
            dataclasses.replace(run, columns=columns, seen=seen, verify=verify, limits=limits),
            calls=2,
        )
    if isinstance(model, Energy):
        entropy = inputs.checked_entropy(seed, _stored_seed(folder))
        counts = {"draws": draws, "tune": tune, "chains": chains}
        wanted = None if isinstance(engine, str) and engine == "auto" else chosen
        run = energy_run(
            model, groups, schedule, making, prior, noise_ratio, wanted, entropy, counts, cores,
            folder, progress,
        )  # fmt: skip
        run = run if making is None else _prepared(run, making, noise_ratio)
        return finish(
            dataclasses.replace(run, columns=columns, seen=seen, verify=verify, limits=limits),
            calls=2,
        )
    size = _size(model, groups.values(), sizes)
    affordable_processes(size, draws, chains, cores)
    entropy = inputs.checked_entropy(seed, _stored_seed(folder))
    with single_threaded():
        noises = inputs.checked_noises(schedule.noise, model, groups)
        source = Source(tuple(groups), noises, tuple(groups.values()), sizes, entropy)
        automatic = isinstance(engine, str) and engine == "auto"
        given_engine = None if automatic else chosen
        problem, first, target = _problem(model, source, schedule, prior, given_engine, tune)
        given = noises if schedule.noise is not None else ()
        inputs.check_consistency([*given, *_bases(making)], model.space, entropy)
        settings = {
            "model": model_name(model),
            "engine": model_name(problem.engine),
            "noise": ", ".join(dict.fromkeys(map(model_name, noises))),
            "schedule": type(making or schedule).__name__,
            "noise_ratio": 1.0 if noise_ratio is None else float(noise_ratio),
            "seed": str(entropy),
            "draws": draws,
            "tune": tune,
            "chains": chains,
            **({} if field is None else field.settings),
        }
        if folder is not None:
            asked = {} if making is None else asked_of(making, noise_ratio)
            folder.claim({**settings, **asked, **identity(problem, first, target, plan)})
    run = Run(
        problem, plan, chains, tune, cores, size, folder, progress, settings, field=field,
        columns=columns, seen=seen, verify=verify, limits=limits,
    )  # fmt: skip
    run = run if making is None else _prepared(run, making, noise_ratio)
    return finish(_with_unseen(run, prior), calls=calls)


def _with_unseen(run: Run, prior: Any) -> Run:
    """The run with what its data and noise do not tell apart, of which it will warn."""
    with single_threaded():
        lines = unseen_lines(run.problem, float(run.settings["noise_ratio"]), prior)
    settings = {**run.settings, **({"unseen": "\n".join(lines)} if lines else {})}
    return dataclasses.replace(run, settings=settings)


def _bases(making: Adaptive | Auto | None) -> list[Noise]:
    """Distributions among the settings of noise to be made."""
    base = getattr(making, "base", None)
    return [base] if isinstance(base, Noise) else []


def _prepared(run: Run, making: Adaptive | Auto, noise_ratio: float | None) -> Run:
    """The run with its noise made."""
    sweeps = (run.tune, run.settings["draws"])
    began = time.monotonic()
    allowed = partial(_is_affordable, run)
    made = prepare(run.problem, making, noise_ratio, sweeps, allowed, run.folder, run.progress)
    problem = made.problem
    if run.folder is not None:
        _claim_noise(run.folder, problem)
    size = _size(problem.model, problem.data, problem.source.sizes)
    affordable_processes(size, run.settings["draws"], run.chain_count, run.cores)
    noise = ", ".join(dict.fromkeys(map(model_name, problem.source.noises)))
    return dataclasses.replace(
        run,
        problem=problem,
        size=size,
        settings={
            **run.settings,
            **made.settings,
            "noise": noise,
            "noise_ratio": made.noise_ratio,
        },
        adaptation=made.record,
        candidates=made.candidates,
        rounds=made.rounds,
        seconds=time.monotonic() - began,
    )


def _is_affordable(run: Run, noise_ratio: float) -> bool:
    """Whether memory holds the run with this noise ratio."""
    data = run.problem.data
    size = _size(run.problem.model, data, noise_points(data, noise_ratio))
    return is_affordable(size, run.settings["draws"], run.chain_count, run.cores)


def _claim_noise(folder: RunFolder, problem: Problem) -> None:
    """Refuse to go on against other noise than the checkpoint's chains were run on."""
    now = np.frombuffer(noise_digest(problem.source.fixed(0)).encode(), dtype=np.uint8)
    stored = folder.kept(MADE)
    if stored is None:
        folder.keep(MADE, {"digest": now})
    elif not np.array_equal(stored["digest"], now):
        raise InputError(
            f"checkpoint={str(folder.path)!r} holds a run against other noise, so the model's "
            "sweep, the noise it starts from or a library has changed; name another folder"
        )


def _size(model: Model, data: Iterable[FloatArray], noise_points: Iterable[int]) -> Size:
    rows = tuple(len(points) + m for points, m in zip(data, noise_points, strict=True))
    structured = hasattr(model, "design")
    return Size(rows, len(statistic_names(model)), model.space.dimension, structured)


def _problem(
    model: Model, source: Source, schedule: Schedule, prior: Any, engine: Engine | None, tune: int
) -> tuple[Problem, NoiseState, Target]:
    """The problem with its first noise set and target, once they have passed every check."""
    first = source.fixed(0)
    raw = Problem(model, source, schedule, Blocks(()), Gibbs()).target(first).contrasts
    full = blocks(
        prior,
        model.groups,
        partial(default_prior, model, raw),
        model,
        units=partial(units, model, raw),
    )
    full.check(len(raw))
    if engine is None:
        engine = _automatic_engine(Target(raw, full), schedule, tune)
    # A structured design is used as it is; its statistics are products of cosines and the like.
    as_it_is = hasattr(model, "design") or getattr(engine, "uncentred", False)
    center = None if as_it_is else data_mean(raw)
    problem = Problem(model, source, schedule, full, engine, center)
    check_posterior_exists(problem, raw)
    return problem, first, problem.target(first)


def _engine(engine: Any, model: Model, tune: int) -> Engine:
    """The engine that was asked for, told how many sweeps it may adapt in."""
    chosen: Any = _named_engine(engine, model)
    if isinstance(model, Energy) and not isinstance(chosen, Nuts | Joint):
        raise InputError(
            'an Energy is fitted by engine="nuts", or by "joint" if it is linear in its '
            f"parameters, got {shown(engine)}; leave engine out, or write the model as an "
            "exponential family"
        )
    adapting: Engine = chosen.adapting(tune) if hasattr(chosen, "adapting") else chosen
    return adapting


def _automatic_engine(target: Target, schedule: Schedule, tune: int) -> Engine:
    """Joint trajectories, or Polya-Gamma sweeps where noise does not last or the prior is not for.

    A trajectory's coordinates are learned, and there is nothing to learn about noise that is new in
    every sweep.
    """
    lasts = getattr(schedule, "lasting", False)
    return Joint(tune) if lasts and joint.usable(target) else Gibbs()


def _named_engine(engine: Any, model: Model) -> Engine:
    by_name = {name.lower(): getattr(engines, name) for name in engines.__all__}
    if isinstance(engine, str):
        if engine == "auto":
            return Nuts() if isinstance(model, Energy) else Gibbs()
        if engine in by_name:
            made: Engine = by_name[engine]()
            return made
    elif isinstance(engine, Engine) and not isinstance(engine, type):
        return engine
    allowed = ", ".join(repr(name) for name in ["auto", *by_name])
    raise InputError(
        f"engine must be one of {allowed} or an engine such as ncbayes.engines.Gibbs(), got "
        f"{shown(engine)}"
    )


def _stored_seed(folder: RunFolder | None) -> int | None:
    stored = folder.stored() if folder is not None else None
    return int(stored["seed"]) if stored is not None else None
