"""What a fit saw of itself, as the group ``verification`` of its tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.assembly import typical_coef
from ncbayes.base import FloatArray, InputError
from ncbayes.checks.cells import cell_counts
from ncbayes.checks.verification import BARS, DRAWS, Fitted, Seen, seen
from ncbayes.normalizers import Normalizer, normalizer
from ncbayes.problem import Problem
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import xarray as xr

# Draws that stand for a posterior where theta is what it is looked at by.
SOME = 4 * DRAWS
# The longest name of a label that is kept.
LONGEST = 120


def verify(
    tree: xr.DataTree, problem: Problem, field: Any, known: Mapping[int, Normalizer]
) -> None:
    """Put the group ``verification`` into the tree, or say there why it can't be made."""
    import xarray as xr

    try:
        with single_threaded(), np.errstate(all="ignore"):
            found = (
                _by_group(tree, problem, known)
                if field is None
                else cell_counts(tree, field, problem.verification_rng(0))
            )
    except (InputError, FloatingPointError, np.linalg.LinAlgError) as impossible:
        # A model that can simulate itself, but not at its posterior mean, is none there.
        can = any(hasattr(problem.model, power) for power in ("sample", "sweep"))
        name = "no_distribution" if can and isinstance(impossible, InputError) else "not_verified"
        tree.attrs[name] = str(impossible).splitlines()[0]
        return
    except KeyboardInterrupt:
        tree.attrs["not_verified"] = "it was interrupted"
        return
    except Exception as mistake:  # whatever a model of the user's does: the draws are there
        tree.attrs["not_verified"] = f"{type(mistake).__name__}: {mistake}".splitlines()[0]
        return
    if not found:
        tree.attrs["not_verified"] = "there are no rows to compare with"
        return
    tree["verification"] = xr.DataTree(record(found))


def verify_again(tree: xr.DataTree, model: Any, field: Any, seed: int) -> xr.DataTree:
    """The tree with predictions looked at again, by other random numbers.

    Noise is not looked at: what was found about mass elsewhere stays as it was.
    """
    import xarray as xr

    groups = tree["posterior"]["group"].to_numpy().astype(str)
    rngs = np.random.default_rng(seed).spawn(len(groups))
    with single_threaded(), np.errstate(all="ignore"):
        if field is not None:
            found = cell_counts(tree, field, rngs[0])
        else:
            found = dict(_from_tree(tree, model, rngs))
    stored = record(found)
    if "verification" in tree.children:
        for name in ("strays", "strays_at_draws"):
            stored[name] = tree["verification"][name].reindex(group=stored["group"])
    again = tree.copy()
    again["verification"] = xr.DataTree(stored)
    again.attrs.pop("not_verified", None)
    return again


def _from_tree(
    tree: xr.DataTree, model: Any, rngs: Sequence[np.random.Generator]
) -> Iterator[tuple[str, Seen]]:
    """What each group's fit looks like, without its noise."""
    theta = tree["posterior"]["theta"].to_numpy()
    data = tree["observed_data"].to_dataset()
    points, owners = data["points"].to_numpy(), data["group"].to_numpy().astype(str)
    labels = tree["posterior"]["group"].to_numpy().astype(str)
    for g, (label, rng) in enumerate(zip(labels, rngs, strict=True)):
        rows = points[owners == label]
        if not len(rows):
            continue
        own = theta[:, :, g].reshape(-1, theta.shape[-1])
        typical, draws = own.mean(axis=0), _some(own)
        known = _simulated(model, typical, rng)
        yield str(label), seen(Fitted(model, rows, typical, draws, known, None, len(labels)), rng)


def _some(draws: FloatArray) -> FloatArray:
    count = min(SOME, len(draws))
    return draws[np.arange(count) * len(draws) // count]


def _by_group(
    tree: xr.DataTree, problem: Problem, known: Mapping[int, Normalizer]
) -> dict[str, Seen]:
    coef, stats = _draws(tree, problem)
    found = {}
    for g, label in enumerate(problem.labels):
        rows = problem.data[g]
        if not len(rows):
            continue
        own = coef[:, :, g : g + 1]
        typical = typical_coef(problem, {"coef": own, "stats/log_likelihood": stats})[0]
        draws = _some(own.reshape(-1, own.shape[-1]))
        if not problem.losses:
            typical, draws = typical[:-1], draws[:, :-1]
        rng = problem.verification_rng(g)
        noise = None
        if problem.source.noises:
            noise = problem.source.noises[g], problem.source.fixed_set(0, g)
        fit = Fitted(
            problem.model, rows, typical, draws,
            known.get(g) or _simulated(problem.model, typical, rng), noise,
            len(problem.labels),
        )  # fmt: skip
        found[label] = seen(fit, rng)
    return found


def _draws(tree: xr.DataTree, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Coefficients as chains have them, (chain, draw, group, column), and log likelihoods."""
    posterior = tree["posterior"].to_dataset()
    stats = tree["sample_stats"].to_dataset()
    likelihood = stats["log_likelihood"].to_numpy() if "log_likelihood" in stats else np.zeros(())
    model: Any = problem.model
    row = getattr(model, "row", None)
    if row is None:
        theta = posterior["theta"].to_numpy()
    else:
        names = [leaf.name for leaf in model.leaves]
        theta = row({name: posterior[name].to_numpy() for name in names})
    if problem.losses:
        return theta, likelihood
    return np.concatenate([theta, np.zeros((*theta.shape[:-1], 1))], axis=-1), likelihood


def _simulated(model: Any, typical: FloatArray, rng: np.random.Generator) -> Normalizer | None:
    """Particles of a model that was fitted without noise, and can move its points."""
    if not hasattr(model, "sweep") or not np.isfinite(model.space.log_volume):
        return None
    return normalizer(model, typical[None], 0, None, rng)


def record(found: Mapping[str, Seen]) -> xr.Dataset:
    """Numbers by group, by kind of statistic (``look``) and by statistic, and simulated rows."""
    import xarray as xr

    numbers = ("strays", "strays_at_draws", "near", "near_from_rows", "worth", "moments", "rows")
    looks = [(label, look, each) for label, own in found.items() for look, each in own.compared]
    tops = [each.worst for *_, each in looks]
    by_look = {
        "look_name": [look.name for _, look, _ in looks],
        "look_group": [label for label, *_ in looks],
        "says": [look.says for _, look, _ in looks],
        "p_value": [each.p_value for *_, each in looks],
        "worst_label": [
            look.labels[k][:LONGEST] for (_, look, _), k in zip(looks, tops, strict=True)
        ],
        "worst_z": [each.z[k] for (*_, each), k in zip(looks, tops, strict=True)],
        "observed_worst": [each.observed[k] for (*_, each), k in zip(looks, tops, strict=True)],
        "expected_worst": [each.expected[k] for (*_, each), k in zip(looks, tops, strict=True)],
    }
    sizes = [len(each.z) for *_, each in looks]
    by_statistic = {
        name: np.concatenate([getattr(each, name) for *_, each in looks] or [np.zeros(0)])
        for name in ("z", "observed", "expected")
    }
    pictures = [each for own in found.values() for each in own.pictures]
    bars = {
        "picture_name": ("look", [each.name[:LONGEST] for each in pictures]),
        "edges": (("look", "edge"), _padded([each.edges for each in pictures], BARS + 1)),
        "data_share": (("look", "bar"), _padded([each.data for each in pictures], BARS)),
        "simulated_share": (("look", "bar"), _padded([each.simulated for each in pictures], BARS)),
    }
    simulated = [own.simulated for own in found.values()]
    return xr.Dataset(
        {
            **{n: ("group", [float(getattr(own, n)) for own in found.values()]) for n in numbers},
            "worst_moment": ("group", [own.worst_moment for own in found.values()]),
            **{name: ("look", values) for name, values in by_look.items()},
            **bars,
            **{name: ("compared", values) for name, values in by_statistic.items()},
            "compared_look": ("compared", np.repeat(np.arange(len(looks)), sizes)),
            "label": (
                "compared",
                np.array([label[:LONGEST] for _, look, _ in looks for label in look.labels]),
            ),
            "simulated": (("simulated_row", "axis"), np.concatenate(simulated)),
        },
        coords={
            "group": list(found),
            "simulated_group": (
                "simulated_row",
                np.repeat(list(found), [len(each) for each in simulated]),
            ),
        },
    )


def _padded(rows: list[FloatArray], size: int) -> FloatArray:
    """Rows of different lengths as one table, with NaN where they end."""
    found = np.full((len(rows), size), np.nan)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found
