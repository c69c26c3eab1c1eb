"""Posterior predictive checks: would data from the fitted model look like the data?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import FloatArray, InputError, Model, shown
from ncbayes.contrast import model_name, statistic_names
from ncbayes.couplings import check_level, check_space, group_label, of_group
from ncbayes.inputs import Seed, checked_count, checked_entropy, later_points
from ncbayes.posterior import Posterior
from ncbayes.spaces import is_periodic
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = ("phase_locking", "resultant", "difference", "sum")
# What to do about a model without a power.
POWERS = {
    "sample": ", so data can't be replicated; give it sample(theta, size, rng)",
    "sweep": ", so data can't be replicated by sweeps; give it sweep(theta, x, rng), or leave "
    "sweeps out",
    "score_statistics": "(x, j), the derivatives that Stein's discrepancy needs; write it, or use "
    "predictive.check",
}
# Those that are directions.
CIRCULAR = ("difference",)


@dataclass(frozen=True, eq=False)
class PredictiveCheck:
    """How observed data compare with replicated ones.

    ``table`` has a row for each statistic and its component, or node or pair: ``observed``;
    ``replicated``, the mean over the replications; the ends ``low`` and ``high`` of the interval
    that holds ``level`` of them; and ``p_value``. For R replications T_r of a statistic T it is
    two-sided, ``2 min(1 + #{T_r >= T}, 1 + #{T_r <= T}) / (R + 1)``, at most 1. Directions (of
    angles: "difference") are ``circular``: they have circular means, and their p-value is the share
    of the R + 1 data sets that are at least as far from the mean of all as the observed one.
    ``replications`` (replication, row) are the T_r.
    """

    table: pd.DataFrame
    replications: FloatArray = field(repr=False)
    level: float
    circular: tuple[str, ...] = ()

    def summary(self) -> pd.DataFrame:
        """One row a statistic.

        ``count`` is how many components, nodes or pairs there are, ``outside`` the share of them
        that lie outside of their interval, ``smallest`` the smallest p-value among them.
        ``p_value`` is one for all: with z the deviations of a data set from the mean of all R + 1,
        in standard deviations, the share of the R + 1 data sets whose mean of z^2 is at least that
        observed.
        """
        import pandas as pd

        rows = {}
        for name, part in self.table.groupby("statistic", sort=False):
            ours = self.table["statistic"].to_numpy() == name
            observed, turns = part["observed"].to_numpy(), name in self.circular
            beyond = _beyond(observed, part["low"].to_numpy(), part["high"].to_numpy(), turns)
            rows[name] = {
                "count": len(part),
                "outside": float(beyond.mean()),
                "smallest": float(part["p_value"].min()),
                "p_value": _overall(observed, self.replications[:, ours], turns),
            }
        return pd.DataFrame.from_dict(rows, orient="index")


def check_angles(
    posterior: Posterior,
    model: Any,
    data: Any,
    draws: int = 100,
    seed: Seed = None,
    statistics: Sequence[str] = STATISTICS,
    group: str | None = None,
    level: float = 0.9,
    sweeps: int | None = None,
) -> PredictiveCheck:
    """Replicate the data at ``draws`` posterior draws, and compare what pairs of angles do.

    The statistics, over the rows of a data set:

    - "resultant": ``|mean exp(i xj)|``, the mean resultant length of a node;
    - "phase_locking": ``|mean exp(i (xj - xk))|`` of a pair, its phase-locking value;
    - "difference": the direction of ``mean exp(i (xj - xk))``, in (-pi, pi];
    - "sum": ``|mean exp(i (xj + xk))|``, the reflectional counterpart of phase locking.

    All pairs are looked at, those without an edge as well. What the model was fitted to it
    reproduces nearly by construction (phase locking along its rotational edges, say), and such
    p-values lie closer to 1 than to 0; the check has power where the model is silent: pairs
    without an edge, sums of angles in a rotational model.

    A replication is ``model.sample``, with as many rows as the data. ``sweeps=k`` is faster: one
    population of rows, made by ``model.sample`` at the first draw, is moved by k Gibbs sweeps at
    each next one. It starts nowhere near the data, so it can't hide a misfit; but what k sweeps
    don't forget makes replications alike, and p-values less certain than their number suggests.

    ``data`` are the rows that were fitted, or a mapping from groups to rows. Draws are evenly
    spread over the chains.
    """
    check_posterior("predictive.check_angles", posterior)
    if isinstance(model, type) or not is_periodic(getattr(model, "space", None)):
        raise InputError(
            "predictive.check_angles needs the model of angles that was fitted, such as "
            f"ncbayes.models.TorusGraph(12), got {shown(model)}"
        )
    names = _checked_statistics(statistics, model)
    if model.space.dimension == 1:
        names = ("resultant",)  # one angle has no pairs
    functions = {name: partial(_of_angles, name) for name in names}
    settings = (draws, seed, group, level, sweeps)
    observed, replicated = _replicated(posterior, model, data, functions, settings)
    pairs = list(combinations(_node_names(model), 2))
    ends = {name: [(node, "") for node in _node_names(model)] if name == "resultant" else pairs
            for name in names}  # fmt: skip
    labels = {
        name: {"node1": [one for one, _ in own], "node2": [other for _, other in own]}
        for name, own in ends.items()
    }
    return _compiled(observed, replicated, labels, float(level), CIRCULAR)


def check(
    posterior: Posterior,
    model: Any,
    statistics: Any = None,
    draws: int = 100,
    seed: Seed = None,
    group: str | None = None,
    level: float = 0.9,
    sweeps: int | None = None,
    data: Any = None,
) -> PredictiveCheck:
    """Replicate the data at ``draws`` posterior draws, and compare statistics of whole data sets.

    For any model with ``sample``. ``statistics``: a function of points (n, d) that returns a number
    or a vector, or a mapping from names to such; None: the means of the model's own statistics,
    which show whether the fit worked, and little of what the model leaves out. ``data``: other rows
    than those that were fitted. ``sweeps`` and the spread of draws are those of ``check_angles``.
    """
    check_posterior("predictive.check", posterior)
    functions = _checked_functions(statistics, model)
    settings = (draws, seed, group, level, sweeps)
    observed, replicated = _replicated(posterior, model, data, functions, settings)
    names = model.groups if statistics is None else {}
    labels = {
        name: {"component": list(names.get(name, _components(values)))}
        for name, values in observed.items()
    }
    return _compiled(observed, replicated, labels, float(level))


def _replicated(
    posterior: Posterior,
    model: Any,
    data: Any,
    functions: Mapping[str, Callable[[FloatArray], Any]],
    settings: tuple[Any, ...],
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Each statistic of the data, (component,), and of the replications, (replication, component).

    ``settings`` are draws, seed, group, level and sweeps.
    """
    draws, seed, group, level, sweeps = settings
    check_powers(posterior, model, ("sample",) if sweeps is None else ("sample", "sweep"))
    label = group_label(posterior.data, group)
    points = rows_of(posterior, model, data, label)
    count = checked_count("draws", draws, 1)
    if sweeps is not None:
        checked_count("sweeps", sweeps, 1)
    check_level(level)
    rng = np.random.default_rng(checked_entropy(seed, None))
    theta = spread_draws(posterior, label, count)
    observed = {name: _value(function, points, name) for name, function in functions.items()}
    by_name: dict[str, list[FloatArray]] = {name: [] for name in functions}
    with single_threaded():
        for each in _replications(model, theta, len(points), rng, sweeps):
            for name, function in functions.items():
                value = _value(function, each, name)
                if value.shape != observed[name].shape:
                    raise InputError(
                        f"the statistic {name!r} must have as many numbers for every data set, got "
                        f"{len(observed[name])} for the data and {len(value)} for a replication"
                    )
                by_name[name].append(value)
    return observed, {name: np.array(values) for name, values in by_name.items()}


def _value(function: Callable[[FloatArray], Any], points: FloatArray, name: str) -> FloatArray:
    """The statistic of a data set as finite numbers, (component,)."""
    found = function(points)
    try:
        value = np.atleast_1d(np.asarray(found, dtype=float))
    except (TypeError, ValueError):
        value = np.atleast_1d(np.asarray(found, dtype=object))
    if value.dtype == object or value.ndim != 1 or not value.size or not np.isfinite(value).all():
        raise InputError(
            f"the statistic {name!r} must return a finite number or vector for points (n, d), got "
            f"{shown(value)}"
        )
    return value


def _components(values: FloatArray) -> list[str]:
    return [""] if len(values) == 1 else [str(k) for k in range(len(values))]


def spread_draws(posterior: Posterior, label: str, count: int) -> FloatArray:
    """So many draws of theta, evenly spread over the chains, (draw, statistic)."""
    theta = of_group(posterior.data, label)
    return np.asarray(theta[np.arange(count) * len(theta) // count])


def rows_of(posterior: Posterior, model: Any, data: Any, label: str) -> FloatArray:
    """The rows of a group: what was passed, or else what the posterior was fitted to."""
    if data is not None:
        return later_points(posterior.data, model, _of_group(data, label))
    if "observed_data" not in posterior.data.children:
        raise InputError("the posterior holds no data; pass data=..., the rows that were fitted")
    stored = posterior.data["observed_data"].to_dataset()
    ours = stored["group"].to_numpy().astype(str) == label
    return np.asarray(stored["points"].to_numpy()[ours])


def replicated(model: Any, theta: FloatArray, rows: int, rng: np.random.Generator) -> FloatArray:
    """Rows from the model at a draw of the posterior, where the model must exist."""
    try:
        return np.asarray(model.sample(theta, rows, rng))
    except InputError as none:
        raise InputError(
            f"{model_name(model)} can't be simulated at a draw of the posterior ({none}): fit more "
            "data, better noise or a narrower prior, so that all draws are distributions"
        ) from none


def _replications(
    model: Any, theta: FloatArray, rows: int, rng: np.random.Generator, sweeps: int | None
) -> Iterator[FloatArray]:
    x: FloatArray | None = None
    for each in theta:
        if x is None or sweeps is None:
            x = replicated(model, each, rows, rng)
        else:
            for _ in range(sweeps):
                x = model.sweep(each, x, rng)
        yield np.asarray(x)


def _of_angles(name: str, x: FloatArray) -> FloatArray:
    """The named statistic of the rows x, one number a node or a pair j < k, row by row."""
    waves = np.exp(1j * x)
    if name == "resultant":
        return np.asarray(np.abs(waves.mean(axis=0)))
    one, other = np.triu_indices(x.shape[1], 1)
    mean = (waves.T @ (waves if name == "sum" else waves.conj()) / len(x))[one, other]
    return np.asarray(np.angle(mean) if name == "difference" else np.abs(mean))


def _compiled(
    observed: Mapping[str, FloatArray],
    replicated: Mapping[str, FloatArray],
    labels: Mapping[str, Mapping[str, Sequence[str]]],
    level: float,
    circular: tuple[str, ...] = (),
) -> PredictiveCheck:
    """The table, with these columns of labels for each statistic."""
    import pandas as pd

    parts = []
    for name, values in observed.items():
        mean, low, high, p_value = _compared(values, replicated[name], name in circular, level)
        part = {
            "statistic": name,
            **labels[name],
            "observed": values,
            "replicated": mean,
            "low": low,
            "high": high,
            "p_value": p_value,
        }
        parts.append(pd.DataFrame(part))
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return PredictiveCheck(table, np.hstack(list(replicated.values())), level, circular)


def _compared(
    observed: FloatArray, replicated: FloatArray, circular: bool, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean, interval and p-value by column."""
    mean = _mean(replicated, circular)
    deviations, ours = (
        _deviations(replicated, mean, circular),
        _deviations(observed, mean, circular),
    )
    tail = (1 - level) / 2
    low, high = mean + np.quantile(deviations, [tail, 1 - tail], axis=0)
    if circular:
        everything = np.vstack([observed, replicated])
        sizes = np.abs(_deviations(everything, _mean(everything, circular), circular))
        extreme = (sizes >= sizes[0]).sum(axis=0)
    else:
        above, below = (deviations >= ours).sum(axis=0), (deviations <= ours).sum(axis=0)
        extreme = 2 * (1 + np.minimum(above, below))
    return mean, low, high, np.minimum(1.0, extreme / (len(replicated) + 1))


def _overall(observed: FloatArray, replicated: FloatArray, circular: bool) -> float:
    """The rank of the observed mean of z^2 among all data sets, as a p-value."""
    everything = np.vstack([observed, replicated])
    deviations = _deviations(everything, _mean(everything, circular), circular)
    squares = deviations**2
    variance = squares.mean(axis=0)
    score = (squares / np.where(variance > 0, variance, 1.0)).mean(axis=1)
    return float((score >= score[0]).mean())


def _beyond(observed: FloatArray, low: FloatArray, high: FloatArray, circular: bool) -> Any:
    middle, half = (low + high) / 2, (high - low) / 2
    return np.abs(_deviations(observed, middle, circular)) > half


def _mean(values: FloatArray, circular: bool) -> FloatArray:
    if circular:
        return np.asarray(np.angle(np.exp(1j * values).mean(axis=0)))
    return np.asarray(values.mean(axis=0))


def _deviations(values: FloatArray, mean: FloatArray, circular: bool) -> FloatArray:
    if circular:
        return np.asarray(np.angle(np.exp(1j * (values - mean))))
    return values - mean


def _node_names(model: Any) -> list[str]:
    names = getattr(model, "nodes", None) or [f"x{j + 1}" for j in range(model.space.dimension)]
    return [str(name) for name in names]


def _of_group(data: Any, label: str) -> Any:
    if not isinstance(data, Mapping):
        return data
    by_label = {str(each): points for each, points in data.items()}
    if label not in by_label:
        raise InputError(f"data must hold the group {label!r}, got {shown(list(by_label))}")
    return by_label[label]


def check_posterior(caller: str, posterior: object) -> None:
    """Refuse what is no posterior; ``caller`` is the function that asks."""
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"{caller} needs the posterior that ncbayes.fit or ncbayes.load returns, got "
            f"{shown(posterior)}"
        )


def check_powers(posterior: Posterior, model: Any, powers: Sequence[str]) -> None:
    """Refuse another model than the one that was fitted, and one without these powers."""
    if isinstance(model, type) or not isinstance(model, Model):
        raise InputError(f"model must be the one that was fitted, got {shown(model)}")
    missing = [name for name in powers if not hasattr(model, name)]
    if missing:
        raise InputError(f"{model_name(model)} has no {missing[0]}{POWERS[missing[0]]}")
    fitted = posterior.theta["statistic"].to_numpy().tolist()
    if statistic_names(model) != fitted:
        raise InputError(
            f"model must be the one that was fitted, with the statistics {shown(fitted)}, got "
            f"{model_name(model)} with {shown(statistic_names(model))}"
        )
    check_space(posterior.data, model.space, model_name(model))


def _checked_functions(statistics: Any, model: Any) -> dict[str, Callable[[FloatArray], Any]]:
    """Functions of points by name; of the model's own statistics one a block."""
    if statistics is None and isinstance(model, Model) and not isinstance(model, type):
        found: dict[str, Callable[[FloatArray], Any]] = {}
        start = 0
        for block, names in model.groups.items():
            found[block] = partial(_own_means, model, slice(start, start + len(names)))
            start += len(names)
        return found
    if callable(statistics):
        return {getattr(statistics, "__name__", "statistic"): statistics}
    named = dict(statistics) if isinstance(statistics, Mapping) else {}
    if statistics is not None and (not named or not all(map(callable, named.values()))):
        raise InputError(
            "statistics must be a function of points (n, d), or a mapping from names to such, got "
            f"{shown(statistics)}"
        )
    return {str(name): function for name, function in named.items()}


def _own_means(model: Any, columns: slice, x: FloatArray) -> FloatArray:
    return np.asarray(model.statistics(x)[:, columns].mean(axis=0))


def _checked_statistics(statistics: Any, model: Any) -> tuple[str, ...]:
    named = [] if isinstance(statistics, str) else list(statistics)
    if not named or len(set(named)) < len(named) or not set(named) <= set(STATISTICS):
        raise InputError(
            f"statistics must be some of {list(STATISTICS)}, each once, got {shown(statistics)}"
        )
    if model.space.dimension == 1 and "resultant" not in named:
        raise InputError(
            f"{model_name(model)} has one angle and no pairs, so statistics must hold "
            f"'resultant', got {shown(statistics)}"
        )
    return tuple(named)
