"""Conformance checks for models, noise, priors and engines, ours and yours.

Each check raises an AssertionError with a sentence that says what is wrong. The statistical ones
are z-tests on independent replications with a false-alarm rate of one in a million a check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ncbayes.base import BoolArray, Draw, FloatArray, Model, Noise, Precision, Prior, Space
from ncbayes.contrast import (
    Engine,
    Target,
    has_mass,
    model_name,
    relabelled,
    statistic_names,
)
from ncbayes.noise.consistency import FALSE_ALARM, complaint
from ncbayes.worlds import (
    dense_precision,
    drawn_labels,
    gaussian_draw,
    labelled_target,
    listed_loss,
    normal_loss,
    posed,
    prior_draw,
    prior_of,
    spread_points,
)

# Rounds after which a check looks at what it has, and each look's share of the false alarms. A
# clear fault shows in the first few hundred; the last look finds most of the others.
PRIOR_LOOKS = {500: 0.1, 1500: 0.1, 4000: 0.8}
ENGINE_LOOKS = {500: 0.1, 1500: 0.1, 3000: 0.8}


def check_model(model: Model, theta: FloatArray | None = None, *, seed: int = 0) -> None:
    """Check an exponential family: shapes, rows, purity, and its optional powers.

    ``log_base`` may be -inf where the model has no mass, if there is mass somewhere; ``statistics``
    must be finite where there is. With ``sample``: draws lie in the space, where there is mass.
    With ``sample`` and ``log_partition``: ``E statistics = d log_partition / d theta``, at
    ``theta`` (needed for this part).
    With ``design``: its products against the dense matrix of ``statistics``. With ``sweep``:
    it leaves the model at ``theta`` invariant, which is tested on uniform points weighted by the
    model's density, so theta should be small enough for some of them to count. With
    ``score_statistics``: its derivatives against differences of ``statistics`` and ``log_base``.
    """
    rng = np.random.default_rng(seed)
    x = _check_rows(model, _points(model, theta, rng))
    if hasattr(model, "design"):
        _check_design(model.design(x), model.statistics(x), rng)
    if hasattr(model, "score_statistics"):
        _check_scores(model, x)
    if theta is not None and hasattr(model, "sample") and hasattr(model, "log_partition"):
        _check_partition(model, np.asarray(theta, dtype=float), rng)
    if theta is not None and hasattr(model, "sweep") and np.isfinite(model.space.log_volume):
        _check_sweep(model, np.asarray(theta, dtype=float), rng)


def _points(model: Model, theta: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    """Points to evaluate the model at: its own draws, uniform ones, or heavy-tailed ones."""
    space, name = model.space, model_name(model)
    if theta is not None and hasattr(model, "sample"):
        x = np.asarray(model.sample(np.asarray(theta, dtype=float), 50, rng))
        _require(x.shape == (50, space.dimension), f"{name}.sample(theta, 50, rng) has shape "
                 f"{x.shape}, not (50, {space.dimension})")  # fmt: skip
        _require(space.contains(x).all(), f"{name}.sample draws points outside its space")
        _require(bool(np.all(np.ravel(model.log_base(x)) > -np.inf)),
                 f"{name}.sample draws points where log_base is -inf")  # fmt: skip
        return x
    return spread_points(model, rng)


def _check_rows(model: Model, x: FloatArray) -> FloatArray:
    """Check what the model makes of points; those of them where it has mass."""
    name, names, before = model_name(model), statistic_names(model), x.copy()
    statistics, log_base = model.statistics(x), model.log_base(x)
    _require(np.array_equal(x, before), f"{name} writes into the points it receives")
    shape = (len(x), len(names))
    _require(statistics.shape == shape, f"{name}.statistics has shape {statistics.shape}, not "
             f"{shape}: one row a point, one column a name in groups")  # fmt: skip
    _require(log_base.shape == (len(x),), f"{name}.log_base has shape {log_base.shape}, not "
             f"({len(x)},)")  # fmt: skip
    _require(len(set(names)) == len(names), f"{name} gives two statistics the same name")
    mass = log_base > -np.inf
    _require(bool(mass.any() or np.isnan(log_base).any()), f"{name} has no mass (log_base is "
             "-inf) at any of the points that were tried")  # fmt: skip
    _require(
        bool(np.isfinite(statistics[mass]).all() and np.isfinite(log_base[mass]).all())
        and not np.isnan(log_base).any(),
        f"{name} has statistics or a log_base that are not finite inside its space, where only a "
        "log_base of -inf, no mass, is allowed",
    )
    one_by_one = np.concatenate([model.statistics(row[None]) for row in x])
    base_by_one = np.concatenate([model.log_base(row[None]) for row in x])
    _require(
        np.allclose(one_by_one[mass], statistics[mass]) and np.allclose(base_by_one, log_base),
        f"{name} gives a point other values when it stands among other points",
    )
    return x[mass]


def _check_design(design: Any, dense: FloatArray, rng: np.random.Generator) -> None:
    coef, values = rng.standard_normal(dense.shape[1]), rng.standard_normal(len(dense))
    weights, middle = rng.random(len(dense)), dense.shape[1] // 3
    products = {
        "dense()": (design.dense(), dense),
        "matvec": (design.matvec(coef), dense @ coef),
        "rmatvec": (design.rmatvec(values), values @ dense),
        "gram": (design.gram(weights), (dense.T * weights) @ dense),
        "gram_diagonal": (design.gram_diagonal(weights), weights @ dense**2),
    }
    if hasattr(design, "rows"):
        products["rows"] = design.rows(middle, dense.shape[1]), dense.T[middle:]
    for name, (got, wanted) in products.items():
        _require(
            got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-8, atol=1e-8),
            f"the design's {name} differs from that of the matrix of statistics",
        )


def _check_scores(model: Any, x: FloatArray) -> None:
    """First derivatives against differences of the statistics, second ones against the first's."""
    columns = [*statistic_names(model), "log_base"]
    step = 1e-5 * max(float(np.median(np.abs(x))), 1e-100)
    for j, unit in enumerate(np.eye(x.shape[1])):
        # Near an end of the space a difference says little about a derivative.
        inside = has_mass(model, x + 1e3 * step * unit) & has_mass(model, x - 1e3 * step * unit)
        points, before = x[inside], x[inside].copy()
        if not len(points):
            continue
        first, second = _score_arrays(model, points, j, len(columns))
        _require(np.array_equal(points, before), f"{model_name(model)} writes into the points it "
                 "receives")  # fmt: skip
        ends = [points - step * unit, points + step * unit]
        low, high = (np.column_stack([model.statistics(u), model.log_base(u)]) for u in ends)
        low_slope, high_slope = (_score_arrays(model, u, j, len(columns))[0] for u in ends)
        for order, got, wanted, size in (
            ("first", first, (high - low) / (2 * step), np.abs(low)),
            ("second", second, (high_slope - low_slope) / (2 * step), np.abs(low_slope)),
        ):
            allowed = 1e-4 * np.abs(wanted).max(axis=0) + 1e-9 * size.max(axis=0) / step
            wrong = np.flatnonzero(np.abs(got - wanted).max(axis=0) > allowed + 1e-12)
            names = ", ".join(repr(columns[k]) for k in wrong[:3])
            _require(
                len(wrong) == 0,
                f"{model_name(model)}.score_statistics(x, {j}) has a {order} derivative of {names} "
                "that differs from what differences give",
            )


def _score_arrays(
    model: Any, points: FloatArray, j: int, size: int
) -> tuple[FloatArray, FloatArray]:
    first, second = model.score_statistics(points, j)
    for each in (first, second):
        _require(each.shape == (len(points), size), f"{model_name(model)}.score_statistics returns "
                 f"shape {each.shape}, not {(len(points), size)}: one column a statistic and a "
                 "last one for log_base")  # fmt: skip
    return first, second


def _check_partition(model: Any, theta: FloatArray, rng: np.random.Generator) -> None:
    step = 1e-5
    units = step * np.eye(len(theta))
    gradient = np.array(
        [model.log_partition(theta + e) - model.log_partition(theta - e) for e in units]
    ) / (2 * step)
    errors = model.statistics(model.sample(theta, 40_000, rng)) - gradient
    _require_zero_mean(
        errors,
        [f"the mean of {name!r}" for name in statistic_names(model)],
        f"sample and log_partition of {model_name(model)} do not belong together",
    )


def _check_sweep(model: Any, theta: FloatArray, rng: np.random.Generator) -> None:
    name, x = model_name(model), model.space.uniform(40_000, rng)
    x = x[has_mass(model, x)]
    _require(len(x) > 1, f"{name} has mass at {len(x)} of 40,000 uniform points, too few to check "
             "its sweep; give it a smaller space")  # fmt: skip
    before = x.copy()
    y = np.asarray(model.sweep(theta, x, rng))
    _require(np.array_equal(x, before), f"{name}.sweep writes into the points it receives")
    _require(y.shape == x.shape and bool(model.space.contains(y).all()),
             f"{name}.sweep must return as many points, in its space")  # fmt: skip
    statistics = model.statistics(x)
    log_weight = statistics @ theta + model.log_base(x)
    weight = np.exp(log_weight - log_weight.max())
    change = (model.statistics(y) - statistics) * (weight / weight.mean())[:, None]
    _require_zero_mean(
        change,
        [f"the mean of {each!r}" for each in statistic_names(model)],
        f"sweep of {name} does not leave the model at theta invariant",
    )


def check_noise(noise: Noise, space: Space, *, seed: int = 0) -> None:
    """Check noise: shapes, support, and that its draws follow its normalized density.

    Its draws are mixed with points of a known density: given a point, the odds that it is one of
    the noise's own must be the ratio of the two densities.
    """
    rng = np.random.default_rng(seed)
    name, size = model_name(noise), 80_000
    draws = np.asarray(noise.sample(size, rng))
    _require(draws.shape == (size, space.dimension), f"{name}.sample({size}, rng) has shape "
             f"{draws.shape}, not ({size}, {space.dimension})")  # fmt: skip
    log_density = np.asarray(noise.log_density(draws[:100]))
    _require(log_density.shape == (100,), f"{name}.log_density has shape {log_density.shape}, "
             "not one number a point, (100,)")  # fmt: skip
    wrong = complaint(noise, space, draws, rng)
    _require(not wrong, f"{name} {wrong}")


def check_prior(prior: Prior, shape: tuple[int, int] = (3, 4), *, seed: int = 0) -> None:
    """Check a prior: a proper precision, and updates that leave state given theta invariant.

    ``state ~ draw``, ``theta ~ gaussian(state)``, then three updates: (state, theta) must have the
    law it began with, tested on paired differences over independent replications.
    """
    rng = np.random.default_rng(seed)
    name = model_name(prior)
    for _ in range(20):
        _check_precision(*prior.gaussian(prior.draw(shape, rng), shape), shape, name)

    def difference() -> FloatArray:
        state = prior.draw(shape, rng)
        theta = gaussian_draw(*prior.gaussian(state, shape), rng)
        later = prior.update(state, theta, rng)
        _require(
            {key: np.shape(value) for key, value in later.items()}
            == {key: np.shape(value) for key, value in state.items()},
            f"{name}.update returns a state of other names or shapes than draw",
        )
        for _ in range(2):
            later = prior.update(later, theta, rng)
        return _features(later, theta) - _features(state, theta)

    words = f"the updates of {name} do not leave the law of its state given theta invariant"
    _require_zero_differences(difference, PRIOR_LOOKS, "the state", words)


def _check_precision(
    precision: Precision, shift: FloatArray, shape: tuple[int, int], name: str
) -> None:
    _require(shift.shape == shape, f"{name}.gaussian returns a shift of shape {shift.shape}, not "
             f"{shape}")  # fmt: skip
    smallest = np.linalg.eigvalsh(dense_precision(precision))[0]
    _require(smallest > 0, f"{name}.gaussian returns a precision that is not positive definite")


def _features(state: Mapping[str, FloatArray], theta: FloatArray) -> FloatArray:
    """Bounded functions of the state, and of how far it lies from the size of each column of theta.

    Bounded, because scales may have no moments; by column, because a state may rule only some.
    """
    sizes = np.log(np.mean(theta**2, axis=0) + 1e-300) / 2
    found = [np.zeros(1)]
    for key in sorted(state):
        logs = np.log(np.abs(state[key]) + 1e-300)
        log = float(np.mean(logs))
        found += [np.tanh([log, log / 3]), np.tanh(log - sizes), np.tanh((log - sizes) ** 2)]
        if logs.shape[-1:] == sizes.shape:
            own = (logs - sizes).reshape(-1, len(sizes))
            found += [np.tanh(own).mean(axis=0), np.tanh(own**2).mean(axis=0)]
    return np.concatenate(found)


def check_engine(
    engine: Engine,
    prior: Prior | Mapping[str, Prior] | None = None,
    *,
    groups: int = 1,
    seed: int = 0,
) -> None:
    """Geweke's check on the labels: coef from the prior -> labels -> step -> labels -> step ...

    The contrastive likelihood is a true likelihood of the labels, so after any number of rounds
    coef, scales and labels must have the law they began with. The mean of the offsets is kept away
    from zero, or a dropped offset would go unseen.

    ``prior``: one of all of coef, or a mapping as in ``fit``, for the blocks "first" and "second"
    of two statistics each and for "normalizer"; a block that is left out has a prior with a full
    matrix. An engine has to pass with both: its scales may be right in one case only.

    Without noise, the shift of the loss or the sum of statistics takes the place of the labels:
    ``total ~ N(gram theta, gram / learning_rate)`` has the generalized posterior for its posterior.
    """
    rng = np.random.default_rng(seed)
    if getattr(engine, "likelihood", "conditionals") != "conditionals":
        _check_loss_engine(engine, *prior_of(prior, normalizer=False), groups, rng)
        return
    target = labelled_target(*prior_of(prior, normalizer=True), groups, rng)

    def difference() -> FloatArray:
        draw = prior_draw(target, rng)
        labels = drawn_labels(target, draw.coef, rng)
        before = _joint_features(target, draw, labels)
        for _ in range(4):
            labels = drawn_labels(target, draw.coef, rng)
            draw = engine.step(posed(engine, relabelled(target, labels)), draw, rng)
        return _joint_features(target, draw, labels) - before

    words = f"{model_name(engine)} does not leave the contrastive posterior invariant"
    _require_zero_differences(difference, ENGINE_LOOKS, "coef, scales and labels", words)


def _check_loss_engine(
    engine: Any, prior: Prior, columns: int, groups: int, rng: np.random.Generator
) -> None:
    roots = [rng.standard_normal((3 + columns + group, columns)) for group in range(groups)]
    rate = float(getattr(engine, "learning_rate", 1.0))

    def simulated(theta: FloatArray) -> tuple[Target, list[FloatArray]]:
        if getattr(engine, "method", "slices") != "slices":  # trajectories, on listed states
            made = [listed_loss(roots[0], row, rng) for row in theta]
        else:
            made = [normal_loss(engine, *each, rng) for each in zip(roots, theta, strict=True)]
        losses, totals = zip(*made, strict=True)
        return Target((), prior, losses=losses), list(totals)

    def difference() -> FloatArray:
        draw = prior_draw(simulated(np.zeros((groups, columns)))[0], rng)
        before = _loss_features(roots, simulated(draw.coef)[1], draw, rate)
        for _ in range(4):
            target, totals = simulated(draw.coef[:, :columns])
            draw = engine.step(target, draw, rng)
        draw = Draw(draw.coef[:, :columns], draw.scales)
        return _loss_features(roots, totals, draw, rate) - before

    words = f"{model_name(engine)} does not leave the generalized posterior invariant"
    _require_zero_differences(difference, ENGINE_LOOKS, "theta, scales and shifts", words)


def _loss_features(
    roots: list[FloatArray], totals: list[FloatArray], draw: Draw, rate: float
) -> FloatArray:
    scores, misfits = [], []
    for root, total, theta in zip(roots, totals, draw.coef, strict=True):
        gram = root.T @ root
        off = total - gram @ theta
        scores.append(np.tanh(total / np.diag(gram)))
        # Chi-squared if the learning rate is the one that was used.
        misfits.append(np.tanh(rate * off @ np.linalg.solve(gram, off) / len(off)))
    return np.append(_products(draw, np.array(scores)), misfits)


def _joint_features(target: Target, draw: Draw, labels: tuple[BoolArray, ...]) -> FloatArray:
    scores = np.array(
        [
            each.design.rmatvec(np.where(label, 0.5, -0.5)) / np.sqrt(len(label))
            for each, label in zip(target.contrasts, labels, strict=True)
        ]
    )
    return _products(draw, scores)


def _products(draw: Draw, scores: FloatArray) -> FloatArray:
    # Bounded, because a prior with heavy-tailed scales leaves coef without moments.
    coef = np.tanh(draw.coef)
    neighbours = coef[1:] * coef[:-1]
    pairs = coef[:, 1:] * coef[:, :-1]
    parts = [coef, coef**2, pairs, coef * scores, neighbours]
    scales = _features(draw.scales, draw.coef)
    return np.concatenate([*(part.ravel() for part in parts), scales])


def _require(condition: bool | np.bool_, sentence: str) -> None:
    if not condition:
        raise AssertionError(sentence)


def _require_zero_differences(
    difference: Callable[[], FloatArray], looks: Mapping[int, float], of: str, words: str
) -> None:
    """Independent differences between two states of one law have mean zero."""
    rows: list[FloatArray] = []
    for look, share in looks.items():
        rows += [difference() for _ in range(look - len(rows))]
        names = [f"feature {k} of {of}" for k in range(len(rows[0]))]
        _require_zero_mean(np.array(rows), names, words, share * FALSE_ALARM)


def _require_zero_mean(
    values: FloatArray, names: list[str], sentence: str, rate: float = FALSE_ALARM
) -> None:
    """Each column of independent rows has mean zero, at this false-alarm rate."""
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    # A column without spread has no z-score: its mean is zero, or it is wrong for certain.
    exact = np.where(np.abs(mean) <= 1e-12, 0.0, np.inf)
    z = np.divide(mean, error, out=exact, where=error > 1e-14)
    worst = int(np.argmax(np.abs(z)))
    limit = -stdtrit(len(values) - 1, rate / 2 / len(z))  # of Student's t: rounds may be few
    _require(
        bool(abs(z[worst]) <= limit),
        f"{sentence}: {names[worst]} is off by {z[worst]:.1f} standard errors (limit {limit:.1f})",
    )
