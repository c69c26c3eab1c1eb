"""The diagnosis of a posterior: every concern about its chains, noise, model and data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncbayes import diagnostics
from ncbayes.base import FloatArray
from ncbayes.concerns import Concern, Grade, Verdict
from ncbayes.mixing import convergence
from ncbayes.reports import WIDER, grade_of_noise, noise_words

if TYPE_CHECKING:
    import xarray as xr

# log Z of the contrast may be off by this many nats, besides the curvature of log Z, which makes
# (parameters) / 2n, and this many standard deviations.
NATS, DEVIATIONS = 0.3, 3.0
# With a standard deviation beyond this, log Z may be anything.
HARDLY_KNOWN = 3.0
# Shares of the model's mass that lie where there are neither data nor noise.
STRAYS: dict[Grade, float] = {"failed": 0.5, "poor": 0.2, "fair": 0.05}
# Standard errors by which the model's own means may be off.
FAR_OFF = 5.0
# The chance that a model that is right is called wrong, over all comparisons of a fit.
FALSE_ALARM = 0.01
# What all times of a density together are called (checks/cells.py).
ALL_TIMES = "all times"
# Below this a p-value is as small as any.
HOPELESS = 1e-12
# Parameters for each row of the data above which a prior that shrinks is named.
MANY_PARAMETERS = 0.2


def verdict(tree: xr.DataTree) -> Verdict:
    """What can be said of a posterior, in one line and in all its parts."""
    return Verdict(tuple(concerns(tree)))


def concerns(tree: xr.DataTree, mixing: Iterable[Concern] | None = None) -> Iterator[Concern]:
    """All concerns; where nothing is wrong on a side, a good one says what was found.

    ``mixing``: those about R-hat and effective draws, if they are there already.
    """
    yield from _interrupted(tree)
    yield from convergence(tree) if mixing is None else mixing
    yield from _trajectories(tree)
    if "noise" in tree.children:
        yield from _noise(tree)
    yield from verification(tree)
    for name in ("unseen", "concerns"):
        for line in str(tree.attrs.get(name, "")).splitlines():
            yield Concern(name, "data", "poor", line)


def verification(tree: xr.DataTree) -> Iterator[Concern]:
    """What the fit saw when it looked at itself: log Z, mass elsewhere, predictions."""
    yield from _normalizer(tree)
    yield from _verified(tree)


def _interrupted(tree: xr.DataTree) -> Iterator[Concern]:
    if tree.attrs["complete"]:
        return
    sizes = tree["posterior"].sizes
    yield Concern(
        "interrupted",
        "convergence",
        "poor",
        f"the fit was interrupted: {sizes['chain']} chains of {sizes['draw']} draws were kept of "
        f"{tree.attrs['chains']} of {tree.attrs['draws']}",
        "posterior.extend(draws=0) finishes it",
        {"chains": sizes["chain"], "draws": sizes["draw"]},
    )


def _trajectories(tree: xr.DataTree) -> Iterator[Concern]:
    for kind, line in diagnostics.trajectory_lines(tree):
        words, _, remedy = line.rpartition("; ")
        yield Concern(kind, "convergence", "poor", words, remedy)


def _noise(tree: xr.DataTree) -> Iterator[Concern]:
    apart = diagnostics.separation(tree)
    if apart is not None:
        line, _, remedy = apart.partition("; ")
        yield Concern("separation", "noise", "poor", line, remedy)
    table = tree["noise"].to_dataset()[list(diagnostics.NOISE_FACTS)].to_dataframe()
    known = table["widening"].dropna()
    if not len(known):
        return
    noise_set, group = known.idxmax()
    row = table.loc[(noise_set, group)]
    grade = grade_of_noise(float(row["widening"]))
    line, remedy = noise_words(tree, row, str(group), grade, too_many_parameters(tree))
    facts = {name: float(value) for name, value in row.items()}
    short = f"intervals are {100 * min(row['widening'], 10):.0f} % wider than exact ones"
    yield Concern("noise", "noise", grade, line, remedy, {**facts, "group": str(group)}, short)


def too_many_parameters(tree: xr.DataTree) -> bool:
    """Whether parameters are not few against rows, and the prior does not shrink them."""
    if "theta" not in tree["posterior"] or "observed_data" not in tree.children:
        return False
    rows = tree["observed_data"].sizes["row"] / tree["posterior"].sizes["group"]
    shrinks = any(str(name).endswith((".local", ".tau")) for name in tree["posterior"].data_vars)
    return not shrinks and tree["posterior"].sizes["statistic"] > MANY_PARAMETERS * rows


def _normalizer(tree: xr.DataTree) -> Iterator[Concern]:
    """Whether the contrast's own normalizer is log Z."""
    if "normalizer" not in tree.children:
        return
    stored, draws = tree["normalizer"].to_dataset(), ("chain", "draw")
    own = stored["contrast_log_z"]
    gap = (own - tree["posterior"]["log_z"]).mean(draws).to_series()
    sds = own.std(draws).to_series()
    errors, ways = stored["error"].to_series(), stored["way"].to_series()
    counts = _rows_by_group(tree)
    found = []
    for group, way in ways.items():
        where = f" of group {group}" if len(ways) > 1 else ""
        off, error = float(gap[group]), float(errors[group])
        if way == "contrast" and "typical_gap" in stored:
            off, error = (float(stored[f"typical_{n}"].sel(group=group)) for n in ("gap", "error"))
        deviation = max(float(np.hypot(sds[group], error)), 1e-12)
        allowed = NATS + _parameters(tree) / (2 * max(counts[str(group)], 1))
        allowed += DEVIATIONS * deviation
        if way != "contrast":
            found.append((abs(off) / allowed, str(group), off, deviation, f"{where} at the draws"))
        # Above log Z at the mean of the draws their spread may put it; below it does not.
        elif off < -allowed:
            line = f"{where} at the posterior mean"
            found.append((-off / allowed, str(group), off, deviation, line))
        else:
            yield Concern(
                "normalizer", "verification", "fair",
                f"log_z{where} is the contrast's own, -c: log Z could not be worked out at the "
                "draws", "", {"group": str(group)},
            )  # fmt: skip
    if found:
        yield _compared_normalizers(tree, *max(found))


def _compared_normalizers(
    tree: xr.DataTree, share: float, group: str, off: float, deviation: float, where: str
) -> Concern:
    """The group whose normalizers differ most, of what is allowed."""
    facts = {"group": group, "gap": off, "sd": deviation, "allowed": abs(off) / max(share, 1e-300)}
    of, place = where.rsplit(" at ", 1)
    if share <= 1 and deviation > HARDLY_KNOWN:
        line = f"log Z{of} is hardly known: its standard deviation is {deviation:.0f}"
        return Concern("normalizer", "verification", "fair", line, "", facts)
    if share <= 1:
        line = f"the contrast's normalizer{of} agrees with log Z as worked out at {place}"
        return Concern(
            "normalizer", "verification", "good", f"{line} ({off:+.2f})", "", facts, "log Z agrees"
        )
    side = "below" if off < 0 else "above"
    return Concern(
        "normalizer",
        "verification",
        "failed",
        f"the contrast's normalizer{of} lies {abs(off):.1f} {side} log Z as worked out at "
        f"{place}, {abs(off) / deviation:.0f} standard deviations: the fitted model has mass where "
        "there are neither data nor noise, or is far from the data",
        _other_noise(tree),
        facts,
        f"log Z is off by {abs(off):.1f}, {abs(off) / deviation:.0f} standard deviations",
    )


def _other_noise(tree: xr.DataTree) -> str:
    """What to do where noise does not cover the model."""
    if "theta" not in tree["posterior"]:
        return "use noise that is wider than the data, or narrower priors"
    if too_many_parameters(tree):
        return "use a prior that shrinks, such as prior=ncbayes.priors.Horseshoe()"
    if str(tree.attrs.get("noise", "")).startswith("Uniform"):
        return "look at the predictions: another model, or rows that do not belong to the data"
    return "use noise that covers the whole space, such as noise=ncbayes.noise.Uniform(model.space)"


def _parameters(tree: xr.DataTree) -> int:
    if "theta" in tree["posterior"]:
        return int(tree["posterior"].sizes["statistic"])
    arrays = [each for each in tree["posterior"].data_vars.values() if "group" in each.dims]
    return sum(int(np.prod(each.shape[3:])) for each in arrays)


def _rows_by_group(tree: xr.DataTree) -> dict[str, int]:
    labels = tree["observed_data"]["group"].to_numpy().astype(str)
    names, counts = np.unique(labels, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _verified(tree: xr.DataTree) -> Iterator[Concern]:
    if "verification" not in tree.children:
        why = str(tree.attrs.get("not_verified", ""))
        if "no_distribution" in tree.attrs:
            yield Concern(
                "improper", "verification", "failed",
                "the fitted model is no distribution at the posterior mean: "
                f"{tree.attrs['no_distribution']}",
                "look for rows that are far from the others, or use a prior that shrinks", {},
                "the fitted model is no distribution",
            )  # fmt: skip
        elif why:
            yield Concern(
                "unverified", "verification", "fair", f"the fit was not verified: {why}", "",
                {}, f"it was not verified: {why}",
            )  # fmt: skip
        return
    stored = tree["verification"].to_dataset()
    yield from _elsewhere(tree, stored)
    yield from _moments(tree, stored)
    yield from _predictions(tree, stored)


def _elsewhere(tree: xr.DataTree, stored: xr.Dataset) -> Iterator[Concern]:
    strays = stored["strays"].to_series().dropna()
    if not len(strays):
        return
    rows, group = _rows_by_group(tree), str(strays.idxmax())
    share = float(strays.max())
    where = f" of group {group}" if len(strays) > 1 else ""
    # The share beyond the largest of n rows is by chance at most this, but for one in a thousand.
    chance = 1 - 0.001 ** (1 / max(rows.get(group, 1), 1))
    facts = {"share": share, "by_chance": chance, "group": group}
    for grade, limit in STRAYS.items():
        if share > max(limit, chance):
            yield Concern(
                "elsewhere", "verification", grade,
                f"{100 * share:.0f} % of the fitted model's mass{where} lies where there are "
                "neither data nor noise, which a contrast can't see",
                _other_noise(tree) if grade != "fair" else "", facts,
                f"{100 * share:.0f} % of its mass lies where there are neither data nor noise",
            )  # fmt: skip
            return
    yield Concern(
        "elsewhere", "verification", "good",
        f"the fitted model's mass{where} is where data and noise are (but for {100 * share:.1f} %)",
        "", facts, "the model's mass is where data and noise are",
    )  # fmt: skip


def _moments(tree: xr.DataTree, stored: xr.Dataset) -> Iterator[Concern]:
    off = stored["moments"].to_series().dropna()
    if not len(off) or float(off.max()) <= FAR_OFF:
        return
    group = off.idxmax()
    name = str(stored["worst_moment"].sel(group=group).item())
    where = f" in group {group}" if len(off) > 1 else ""
    yield Concern(
        "moments", "verification", "poor",
        f"the fitted model does not reproduce what it was fitted to: the mean of {name}{where} is "
        f"off by {_capped(float(off.max()))} standard errors",
        _other_noise(tree), {"off": float(off.max()), "name": name, "group": str(group)},
        "it does not reproduce what it was fitted to",
    )  # fmt: skip


def _predictions(tree: xr.DataTree, stored: xr.Dataset) -> Iterator[Concern]:
    if "p_value" not in stored or not stored.sizes["look"]:
        return
    p_values = stored["p_value"].to_numpy()
    count, at = len(p_values), int(most_different(p_values)[0])
    worst = stored.isel(look=at)
    limit = FALSE_ALARM / count
    facts = {
        "p_value": float(p_values[at]),
        "limit": limit,
        "comparisons": count,
        **{
            key: worst[key].item()
            for key in ("look_name", "look_group", "worst_label", "worst_z", "observed_worst")
        },
        "expected_worst": worst["expected_worst"].item(),
    }
    several = len(np.unique(stored["look_group"].to_numpy())) > 1
    where = f" in group {facts['look_group']}" if several else ""
    if facts["look_group"] == ALL_TIMES:
        where = " over all times"
    if facts["p_value"] >= limit:
        line = (
            f"data simulated from the fit look like the data: of {count} comparisons the smallest "
            f"p is {facts['p_value']:.2g} ({facts['look_name']}{where}), not below {limit:.2g}"
        )
        short = "simulated data look like the data"
        yield Concern("predictions", "predictions", "good", line, "", facts, short)
        return
    failing = int((p_values < limit).sum())
    more = f", and {failing - 1} of {count - 1} other comparisons differ" if failing > 1 else ""
    line = (
        f"data simulated from the fit do not look like the data{where}: {worst['says'].item()}, "
        f"most of all {facts['worst_label']} ({facts['observed_worst']:.3g} in the data, "
        f"{facts['expected_worst']:.3g} simulated, {_power(facts['p_value'])}){more}"
    )
    short = f"simulated data do not look like the data{where} ({worst['says'].item()})"
    remedy = "look at plots.predictions(posterior), and try a model that can follow this"
    if "noise" in tree.children and float(tree["noise"]["widening"].max()) > WIDER["poor"]:
        remedy = "mend the noise first: a fit that knows so little need not be where the data are"
    yield Concern("predictions", "predictions", "poor", line, remedy, facts, short)


def most_different(p_values: FloatArray) -> NDArray[np.intp]:
    """The order in which looks are told: by p, and among hopeless ones the plainest first."""
    return np.argsort(np.maximum(p_values, HOPELESS), kind="stable")


def _capped(number: float) -> str:
    return f"{number:.0f}" if number < 1000 else "more than 1000"


def _power(p_value: float) -> str:
    return f"p = {p_value:.1g}" if p_value > 1e-12 else "p < 1e-12"
