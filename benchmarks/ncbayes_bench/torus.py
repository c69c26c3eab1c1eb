"""Tables 1 and 2 of the comparison: torus graphs.

1. Effective draws a second: ncbayes, NumPyro's NUTS, the paper's sampler in dense NumPy.
2. Errors of theta: posterior means and the minimizer of the Hyvarinen score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ncbayes as ncb
from ncbayes.score import score_loss
from ncbayes_bench.nuts import Measured, ours, theirs
from ncbayes_bench.nuts_horseshoe import effective, z_scores
from ncbayes_bench.page import (
    FEWEST_EFFECTIVE,
    SEED,
    Part,
    Say,
    Sizes,
    clock,
    digits,
    table,
    with_error,
)
from ncbayes_bench.paper_gibbs import torus_start, torus_sweep
from ncbayes_bench.pooled import Pooled, pooled
from ncbayes_bench.torus_size import bordered

# The prior that the paper states, and the one that its algorithm samples.
FORMS = {"stated": "conditional", "sampled": "likelihood"}
QUANTITIES = ("theta, worst", "theta, median", "log Z")


@dataclass(frozen=True, eq=False)
class Chain:
    """A sampler's draws, with the seconds of its whole run and with those of kept draws."""

    ratio: float
    sampler: str
    prior: str
    whole: Measured
    kept: Measured


def dense(contrast: Pooled, tune: int, draws: int) -> tuple[Measured, Measured]:
    """The paper's sampler from zero, with all of its time and with that of the kept sweeps."""
    design, rng = bordered(contrast), np.random.default_rng(SEED)
    state, found = torus_start(contrast.runs), np.empty((draws, design.shape[1] + 1))
    began = middle = clock()
    with threadpool_limits(1):
        for k in range(-tune, draws):
            if k == 0:
                middle = clock()
            state = torus_sweep(
                design, contrast.offset, contrast.is_data, contrast.runs, state, rng
            )
            if k >= 0:
                found[k] = *state.gamma[:-1], -state.gamma[-1], np.log(state.tau) / 2
    ended = clock()
    return Measured(found[None], ended - began), Measured(found[None], ended - middle)


def chains(sizes: Sizes, ratio: float, nuts: bool, say: Say) -> tuple[list[Chain], list[str]]:
    """All samplers of one problem, and whether those of the same posterior agree."""
    simulated = ncb.datasets.torus_chain(sizes.rows, nodes=sizes.nodes, seed=SEED)
    found, notes = [], []
    for prior, form in FORMS.items():
        say(f"torus, nu = {ratio:g}, the {prior} prior: ncbayes")
        posterior, whole, kept = ours(simulated, ratio, *sizes.sweeps, clock, form)
        found.append(Chain(ratio, "ncbayes", prior, whole, kept))
        contrast, other = pooled(posterior, simulated.model), ""
        if prior == "stated" and nuts:
            say(f"torus, nu = {ratio:g}: NUTS")
            *measured, bad = theirs(contrast, sizes.nuts_draws, sizes.nuts_draws, clock)
            other, more = "NumPyro NUTS", f"; {bad} divergences of NUTS"
        elif prior == "sampled":
            say(f"torus, nu = {ratio:g}: dense NumPy")
            measured = list(dense(contrast, *sizes.sweeps))
            other, more = "dense NumPy Gibbs", ""
        if other:
            found.append(Chain(ratio, other, prior, *measured))
            differences = _differences(whole, measured[0])
            notes.append(f"- nu = {ratio:g}, ncbayes and {other}: {differences}{more}.")
    return found, notes


def _differences(one: Measured, other: Measured) -> str:
    z = np.abs(z_scores(one.draws, other.draws))
    text = f"largest difference of {len(z)} means {z.max():.1f} standard errors"
    least = effective(other.draws).min()
    if least < FEWEST_EFFECTIVE:
        text += (
            f" (the latter has only {least:.0f} effective draws of its worst parameter, too few "
            "for standard errors to be trusted)"
        )
    return text


def samplers(sizes: Sizes, nuts: bool, say: Say) -> Part:
    """Table 1."""
    found: list[Chain] = []
    notes: list[str] = []
    for ratio in sizes.ratios:
        more, said = chains(sizes, ratio, nuts, say)
        found, notes = found + more, notes + said
    rows: dict[str, list[list[str]]] = {"whole": [], "kept": []}
    ratios: dict[str, float] = {}
    for each in found:
        own = next(c for c in found if (c.ratio, c.prior) == (each.ratio, each.prior))
        for kind in rows:
            rates, base = (getattr(c, kind).rates[:3] for c in (each, own))
            cells = [digits(value) for value in rates]
            factors = [""] * 3 if each is own else [digits(value) for value in base / rates]
            worst = effective(getattr(each, kind).draws)[:-2].min()
            rows[kind].append(
                [f"{each.ratio:g}", each.sampler, each.prior, digits(worst)]
                + [digits(getattr(each, kind).seconds)]
                + [cell for pair in zip(cells, factors, strict=True) for cell in pair]
            )
            if each is not own:
                words = {"whole": "whole run", "kept": "kept draws"}[kind]
                for name, value in zip(QUANTITIES, base / rates, strict=True):
                    ratios[f"torus nu = {each.ratio:g}, {name}, {words}, {each.sampler}"] = value
    return Part("1. Torus graph: effective draws a second", _text(sizes, rows, notes), ratios,
                _reading(found))  # fmt: skip


def _text(sizes: Sizes, rows: dict[str, list[list[str]]], notes: list[str]) -> str:
    header = ["nu", "sampler", "prior", "effective, worst theta", "seconds"]
    header += [cell for name in QUANTITIES for cell in (name, "ratio")]
    tune, draws = sizes.sweeps
    intro = (
        f"A chain of {sizes.nodes} angles, n = {sizes.rows}, uniform noise, grouped horseshoe with "
        f"slab 1; one chain each. ncbayes and dense NumPy {tune} + {draws} sweeps, NUTS "
        f"{sizes.nuts_draws} + {sizes.nuts_draws}. The paper states one prior and its algorithm "
        'samples another (`slab_form="conditional"` and `"likelihood"`): NUTS has the stated one, '
        "dense NumPy the sampled one, and each is compared with ncbayes on its own posterior. "
        "Columns: effective draws a second of the worst and the median theta and of log Z, and "
        "how many times as many ncbayes has."
    )
    return "\n\n".join([
        intro, "Whole run, with tuning, and for NUTS its compilation:",
        table(header, rows["whole"]),
        "Kept draws alone, NUTS compiled before its clock starts:",
        table(header, rows["kept"]), "\n".join(notes),
    ])  # fmt: skip


def _reading(found: list[Chain]) -> list[str]:
    sentences = []
    for each in found:
        own = next(c for c in found if (c.ratio, c.prior) == (each.ratio, each.prior))
        if each is own:
            continue
        whole = own.whole.rates[:3] / each.whole.rates[:3]
        kept = own.kept.rates[:3] / each.kept.rates[:3]
        sentences.append(
            f"Torus graph, nu = {each.ratio:g}, against {each.sampler}: ncbayes has "
            f"{digits(whole[0])} times as many effective draws a second of the worst theta and "
            f"{digits(whole[2])} times of log Z over the whole run, {digits(kept[0])} and "
            f"{digits(kept[2])} times of kept draws alone."
        )
    return sentences


def score_matching(model: Any, data: np.ndarray) -> tuple[np.ndarray, bool]:
    """The minimizer of the Hyvarinen score, and whether it needed a ridge to exist."""
    loss = score_loss(model, data)
    with threadpool_limits(1):
        try:
            factor, ridged = np.linalg.cholesky(loss.gram), False
        except np.linalg.LinAlgError:
            ridge = 1e-8 * np.trace(loss.gram) / loss.size
            factor, ridged = np.linalg.cholesky(loss.gram + ridge * np.eye(loss.size)), True
        return np.linalg.solve(factor.T, np.linalg.solve(factor, loss.shift)), ridged


def posterior_mean(simulated: Any, sizes: Sizes, seed: int, **settings: Any) -> np.ndarray:
    """Of theta, by one chain."""
    tune, draws = sizes.torus_sweeps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            simulated.model, simulated.data, tune=tune, draws=draws, chains=1, cores=1,
            seed=seed, progress=False, **settings,
        )  # fmt: skip
    return posterior.theta.to_numpy()[0, :, 0].mean(axis=0)


def _estimators(sizes: Sizes, space: Any) -> dict[str, Callable[[Any, int], np.ndarray]]:
    noise = {"noise": ncb.noise.Uniform(space), "noise_ratio": 5.0}
    score = {"engine": ncb.engines.Hyvarinen(0.2), "prior": ncb.priors.Horseshoe(slab=None)}
    return {
        "ncbayes, NC-Bayes, nu = 5": lambda simulated, seed: posterior_mean(
            simulated, sizes, seed, prior=ncb.priors.Horseshoe(), **noise
        ),
        "ncbayes, H-Bayes, w = 0.2": lambda simulated, seed: posterior_mean(
            simulated, sizes, seed, **score
        ),
        "score matching": lambda simulated, seed: score_matching(simulated.model, simulated.data)[
            0
        ],
    }


def estimates(sizes: Sizes, say: Say) -> Part:
    """Table 2."""
    errors: dict[str, list[tuple[float, float, float]]] = {}
    ridged = 0
    for seed in range(1, sizes.data_sets + 1):
        say(f"torus, errors of theta: data set {seed} of {sizes.data_sets}")
        simulated = ncb.datasets.torus_chain(sizes.rows, nodes=sizes.nodes, seed=seed)
        for name, estimate in _estimators(sizes, simulated.model.space).items():
            began = clock()
            off = estimate(simulated, seed) - simulated.theta
            seconds = clock() - began
            large = simulated.theta != 0
            both = [float(np.sqrt(np.mean(part**2))) for part in (off, off[large])]
            errors.setdefault(name, []).append((*both, seconds))
        ridged += score_matching(simulated.model, simulated.data)[1]
    found = {name: np.array(rows) for name, rows in errors.items()}
    base = next(iter(found.values()))
    header = ["estimate", "error of theta", "ratio", "error where theta is not 0", "ratio",
              "seconds", "ratio"]  # fmt: skip
    rows, ratios = [], {}
    for name, each in found.items():
        factors = each.mean(axis=0) / base.mean(axis=0)
        cells = [with_error(each[:, k]) for k in range(2)] + [digits(each[:, 2].mean())]
        marks = [""] * 3 if each is base else [digits(value) for value in factors]
        rows.append([name, *(cell for pair in zip(cells, marks, strict=True) for cell in pair)])
        if each is not base:
            labels = ("error of theta", "error where theta is not 0", "seconds")
            ratios |= {
                f"torus, {label}, {name}": value
                for label, value in zip(labels, factors, strict=True)
            }
    text = "\n\n".join([_estimates_intro(sizes), table(header, rows),
                        f"A ridge of 1e-8 of the mean diagonal was needed in {ridged} of "
                        f"{sizes.data_sets} data sets."])  # fmt: skip
    return Part("2. Torus graph: point estimates", text, ratios, _estimates_reading(found))


def _estimates_intro(sizes: Sizes) -> str:
    tune, draws = sizes.torus_sweeps
    return (
        f"The same chain of angles, {sizes.data_sets} data sets (seeds 1 to {sizes.data_sets}): "
        "root mean squared error over all of theta, and over those of it that are not zero; means "
        "and standard errors. Posterior means from one chain of "
        f"{tune} + {draws} sweeps; score matching is the minimizer of the Hyvarinen score without "
        "a penalty. It is a point estimate: it has no intervals, and it does not know that most "
        "of theta is zero, which the horseshoe expects. Ratios are by the first row, above 1 where "
        "the first row is better."
    )


def _estimates_reading(found: dict[str, np.ndarray]) -> list[str]:
    base, other = found["ncbayes, NC-Bayes, nu = 5"], found["score matching"]
    best = min(found, key=lambda name: found[name][:, 0].mean())
    return [
        f"Point estimates of a torus graph: the smallest error of theta has {best}. Score matching "
        f"has {digits(other[:, 0].mean() / base[:, 0].mean())} times the error of NC-Bayes, larger "
        f"in {np.sum(other[:, 0] > base[:, 0])} of {len(base)} data sets, in "
        f"{digits(other[:, 2].mean())} s instead of {digits(base[:, 2].mean())} s."
    ]
