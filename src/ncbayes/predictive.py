"""Posterior predictive checks: would data from the fitted model look like the data?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.contrast import model_name, statistic_names
from ncbayes.couplings import check_level, group_label, of_group
from ncbayes.inputs import Seed, checked_count, checked_entropy
from ncbayes.posterior import Posterior
from ncbayes.spaces import Torus, as_points
from ncbayes.threads import single_threaded

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = ("phase_locking", "resultant", "difference", "sum")


@dataclass(frozen=True, eq=False)
class AngleCheck:
    """How observed angles compare with replicated ones.

    ``table`` has a row for each statistic and node or pair: ``observed``; ``replicated``, the mean
    over the replications; the ends ``low`` and ``high`` of the interval that holds ``level`` of
    them; and ``p_value``. For R replications T_r of a statistic T it is two-sided,
    ``2 min(1 + #{T_r >= T}, 1 + #{T_r <= T}) / (R + 1)``, at most 1. Directions ("difference") have
    circular means, and their p-value is the share of the R + 1 data sets that are at least as
    far from the mean of all as the observed one. ``replications`` (replication, row) are the T_r.
    """

    table: pd.DataFrame
    replications: FloatArray = field(repr=False)
    level: float

    def summary(self) -> pd.DataFrame:
        """One row a statistic.

        ``count`` is how many nodes or pairs there are, ``outside`` the share of them that lie
        outside of their interval, ``smallest`` the smallest p-value among them. ``p_value`` is one
        for all: with z the deviations of a data set from the mean of all R + 1, in standard
        deviations, the share of the R + 1 data sets whose mean of z^2 is at least that observed.
        """
        import pandas as pd

        rows = {}
        for name, part in self.table.groupby("statistic", sort=False):
            ours = self.table["statistic"].to_numpy() == name
            observed = part["observed"].to_numpy()
            beyond = _beyond(observed, part["low"].to_numpy(), part["high"].to_numpy(), name)
            rows[name] = {
                "count": len(part),
                "outside": float(beyond.mean()),
                "smallest": float(part["p_value"].min()),
                "p_value": _overall(observed, self.replications[:, ours], name),
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
) -> AngleCheck:
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
    if not isinstance(posterior, Posterior):
        raise InputError(
            "predictive.check_angles needs the posterior that ncbayes.fit or ncbayes.load returns, "
            f"got {shown(posterior)}"
        )
    _check_model(posterior, model, sweeps)
    names = _checked_statistics(statistics, model)
    label = group_label(posterior.data, group)
    points = as_points(_of_group(data, label), model.space, model_name(model))
    count = checked_count("draws", draws, 1)
    if sweeps is not None:
        checked_count("sweeps", sweeps, 1)
    check_level(level)
    rng = np.random.default_rng(checked_entropy(seed, None))
    theta = of_group(posterior.data, label)
    theta = theta[np.arange(count) * len(theta) // count]
    observed = _statistics(points, names)
    with single_threaded():
        made = _replications(model, theta, len(points), rng, sweeps)
        replicated = [_statistics(each, names) for each in made]
    by_name = {name: np.array([each[name] for each in replicated]) for name in names}
    table = _table(_node_names(model), observed, by_name, float(level))
    return AngleCheck(table, np.hstack(list(by_name.values())), float(level))


def _replications(
    model: Any, theta: FloatArray, rows: int, rng: np.random.Generator, sweeps: int | None
) -> Iterator[FloatArray]:
    x: FloatArray | None = None
    for each in theta:
        if x is None or sweeps is None:
            x = model.sample(each, rows, rng)
        else:
            for _ in range(sweeps):
                x = model.sweep(each, x, rng)
        yield np.asarray(x)


def _statistics(x: FloatArray, names: Sequence[str]) -> dict[str, FloatArray]:
    """The named statistics of the rows x, one number a node or a pair j < k, row by row."""
    waves = np.exp(1j * x)
    one, other = np.triu_indices(x.shape[1], 1)
    minus, plus = ((waves.T @ each / len(x))[one, other] for each in (waves.conj(), waves))
    known = {
        "resultant": np.abs(waves.mean(axis=0)),
        "phase_locking": np.abs(minus),
        "difference": np.angle(minus),
        "sum": np.abs(plus),
    }
    return {name: known[name] for name in names}


def _table(
    nodes: Sequence[str],
    observed: Mapping[str, FloatArray],
    replicated: Mapping[str, FloatArray],
    level: float,
) -> pd.DataFrame:
    import pandas as pd

    pairs = list(combinations(nodes, 2))
    parts = []
    for name, values in observed.items():
        mean, low, high, p_value = _compared(values, replicated[name], name, level)
        single = name == "resultant"
        part = {
            "statistic": name,
            "node1": list(nodes) if single else [one for one, _ in pairs],
            "node2": "" if single else [other for _, other in pairs],
            "observed": values,
            "replicated": mean,
            "low": low,
            "high": high,
            "p_value": p_value,
        }
        parts.append(pd.DataFrame(part))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _compared(
    observed: FloatArray, replicated: FloatArray, name: Any, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean, interval and p-value by column."""
    mean = _mean(replicated, name)
    deviations, ours = _deviations(replicated, mean, name), _deviations(observed, mean, name)
    tail = (1 - level) / 2
    low, high = mean + np.quantile(deviations, [tail, 1 - tail], axis=0)
    if name == "difference":
        everything = np.vstack([observed, replicated])
        sizes = np.abs(_deviations(everything, _mean(everything, name), name))
        extreme = (sizes >= sizes[0]).sum(axis=0)
    else:
        above, below = (deviations >= ours).sum(axis=0), (deviations <= ours).sum(axis=0)
        extreme = 2 * (1 + np.minimum(above, below))
    return mean, low, high, np.minimum(1.0, extreme / (len(replicated) + 1))


def _overall(observed: FloatArray, replicated: FloatArray, name: Any) -> float:
    """The rank of the observed mean of z^2 among all data sets, as a p-value."""
    everything = np.vstack([observed, replicated])
    deviations = _deviations(everything, _mean(everything, name), name)
    squares = deviations**2
    variance = squares.mean(axis=0)
    score = (squares / np.where(variance > 0, variance, 1.0)).mean(axis=1)
    return float((score >= score[0]).mean())


def _beyond(observed: FloatArray, low: FloatArray, high: FloatArray, name: Any) -> Any:
    middle, half = (low + high) / 2, (high - low) / 2
    return np.abs(_deviations(observed, middle, name)) > half


def _mean(values: FloatArray, name: Any) -> FloatArray:
    if name == "difference":
        return np.asarray(np.angle(np.exp(1j * values).mean(axis=0)))
    return np.asarray(values.mean(axis=0))


def _deviations(values: FloatArray, mean: FloatArray, name: Any) -> FloatArray:
    if name == "difference":
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


def _check_model(posterior: Posterior, model: Any, sweeps: object) -> None:
    powers = ["sample"] if sweeps is None else ["sample", "sweep"]
    if isinstance(model, type) or not isinstance(getattr(model, "space", None), Torus):
        raise InputError(
            "predictive.check_angles needs the model of angles that was fitted, such as "
            f"ncbayes.models.TorusGraph(12), got {shown(model)}"
        )
    missing = [name for name in powers if not hasattr(model, name)]
    if missing:
        raise InputError(
            f"{model_name(model)} has no {missing[0]}, so data can't be replicated; give it "
            "sample(theta, size, rng), and sweep(theta, x, rng) if sweeps are asked for"
        )
    fitted = posterior.theta["statistic"].to_numpy().tolist()
    if statistic_names(model) != fitted:
        raise InputError(
            f"model must be the one that was fitted, with the statistics {shown(fitted)}, got "
            f"{model_name(model)} with {shown(statistic_names(model))}"
        )


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
