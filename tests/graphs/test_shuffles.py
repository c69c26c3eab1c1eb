"""The permutation check: exact where labels mean nothing, for every graphical model."""

import itertools
import math
import warnings

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import couplings, graphs
from ncbayes.graphs import shuffles
from ncbayes.graphs.differences import Selection

ISING = ncb.models.Ising(4)


def rows_of(model, size, rng):
    if isinstance(model, ncb.models.TruncatedGaussian):
        return rng.exponential(size=(size, 4))
    theta = np.zeros(sum(len(names) for names in model.groups.values()))
    return model.sample(theta, size, rng)


@pytest.mark.parametrize(
    "model",
    [
        ISING,
        ncb.models.TorusGraph(4),
        ncb.models.ConwayMaxwell(4, most=6, dispersion=False),
        ncb.models.TruncatedGaussian(4),
    ],
    ids=repr,
)
def test_evidence_has_the_mean_of_its_law_over_all_shuffles(model, seed):
    """Over all ways to deal eight rows, squared distances have a mean of the number of kinds."""
    rng = np.random.default_rng(seed)
    graph = couplings.graph_of(model)
    rows = rows_of(model, 8, rng)
    if model is ISING:  # no constant columns
        rows[:4, :] = [[0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0]]
    evidence = shuffles._quick(model, graph, rows, 3, Selection("region", 0.0, 0.9, "edge"), rng)
    found = []
    for chosen in itertools.combinations(range(8), 3):
        rest = [row for row in range(8) if row not in chosen]
        found.append(evidence(np.array([*chosen, *rest]))[0])
    ranks = np.mean(found, axis=0)
    assert ranks == pytest.approx(np.round(ranks), abs=1e-6)
    assert (ranks <= len(graph.kinds) + 1e-6).all()
    assert (ranks >= 1 - 1e-6).all()


def test_p_values_are_uniform_where_labels_mean_nothing(seed):
    """And small, as in the broken twin, where the rows of one group are of another kind."""
    rng = np.random.default_rng(seed)
    sets, small, broken, familywise = 60, 0, 0, 0
    theta = np.zeros(10)
    other = theta.copy()
    theta[4], other[4], other[:2] = 1.0, 4.0, -2.0
    for number in range(sets):
        data = {"a": ISING.sample(theta, 30, rng), "b": ISING.sample(theta, 90, rng)}
        check = graphs.permutation_check(ISING, data, shuffles=39, seed=number, progress=False)
        small += check.p_value <= 0.1
        familywise += check.table["p_familywise"].min() <= 0.1
        data["a"] = ISING.sample(other, 30, rng)
        check = graphs.permutation_check(ISING, data, shuffles=39, seed=number, progress=False)
        broken += check.p_value <= 0.1
    limit = 0.1 + 5 * math.sqrt(0.09 / sets)
    assert small / sets < limit
    assert familywise == small
    assert broken / sets > limit


def test_one_edge_that_differs_is_named(seed):
    rng = np.random.default_rng(seed)
    theta = np.zeros(10)
    changed = theta.copy()
    changed[list(ISING.edges).index(("x2", "x3")) + 4] = 2.0
    data = {
        "rest": ISING.sample(theta, 300, rng),
        "task": ISING.sample(changed, 200, rng),
        "other": ISING.sample(changed, 100, rng),
    }
    check = graphs.permutation_check(
        ISING, data, ("task", "rest"), shuffles=199, seed=seed, progress=False
    )
    top = check.table.iloc[0]
    assert (top["node1"], top["node2"], bool(top["selected"])) == ("x2", "x3", True)
    assert check.p_value == check.table["p_familywise"].min() == 1 / 200
    assert check.observed == check.table["selected"].sum() >= 1
    assert check.shuffled.shape == (199,)
    assert repr(check).startswith(f"<PermutationCheck: {check.observed} of 6 edges selected, ")
    again = graphs.permutation_check(
        ISING, data, ("task", "rest"), shuffles=199, seed=seed, progress=False
    )
    assert again.table.equals(check.table)


def test_fits_are_made_anew_for_every_shuffle(seed):
    rng = np.random.default_rng(seed)
    model, theta = ncb.models.Ising(3), np.zeros(6)
    changed = theta.copy()
    changed[:4] = -1.5, -1.5, 0.0, 3.0
    data = {"a": model.sample(changed, 200, rng), "b": model.sample(theta, 150, rng)}
    options = {"noise": "matched", "draws": 100, "tune": 40, "chains": 1, "cores": 1}
    events = []
    check = graphs.permutation_check(
        model, data, shuffles=4, control="fdr", refit=options, seed=seed, progress=events.append
    )
    assert check.shuffled.shape == (4,)
    assert check.p_value == 1 / 5
    assert check.table.iloc[0][["node1", "node2"]].tolist() == ["x1", "x2"]
    assert events[-1].stage == "shuffles"
    assert events[-1].sweep == events[-1].sweeps == 4


def test_shuffles_that_cannot_be_fitted_are_dealt_again(monkeypatch, seed):
    data = {label: rows_of(ISING, 20, np.random.default_rng(seed)) for label in "ab"}
    calls = itertools.count()

    def fail_now_and_then(*_):
        def evidence(order):
            if next(calls) % 2:
                raise ncb.InputError("a column is constant")
            return order[:6].astype(float), order[:6] > 3

        return evidence

    monkeypatch.setattr(shuffles, "_refitted", fail_now_and_then)
    check = graphs.permutation_check(ISING, data, shuffles=5, refit={}, seed=1, progress=False)
    assert check.shuffled.shape == (5,)

    def always_fails(*_):
        def evidence(order):
            if (np.diff(order) == 1).all():
                return np.zeros(6), np.zeros(6, dtype=bool)
            raise ncb.InputError("a column is constant")

        return evidence

    monkeypatch.setattr(shuffles, "_refitted", always_fails)
    with pytest.raises(
        ncb.InputError, match=r"6 shuffles can't be fitted, .* a column is constant"
    ):
        graphs.permutation_check(ISING, data, shuffles=5, refit={}, seed=1, progress=False)


ROWS = rows_of(ISING, 20, np.random.default_rng(1))
DATA = {"a": ROWS, "b": ROWS}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: graphs.permutation_check(ISING, ROWS), "map the labels of two groups"),
        (lambda: graphs.permutation_check(ISING, {"a": ROWS}), r"got the labels \['a'\]"),
        (lambda: graphs.permutation_check(ISING, DATA, ("a", "c")), r"two different labels of the"),
        (lambda: graphs.permutation_check(ISING, DATA, ("a", "a")), r"two different labels of the"),
        (lambda: graphs.permutation_check(ISING, DATA, "ab"), "groups must be the labels of two"),
        (lambda: graphs.permutation_check(ISING, DATA, shuffles=0), "shuffles must be a whole"),
        (lambda: graphs.permutation_check(ISING, DATA, level=2), "level must be between 0 and 1"),
        (lambda: graphs.permutation_check(ISING, DATA, control="all"), '"fdr" or "edge", got'),
        (lambda: graphs.permutation_check(ISING, DATA, refit=True), "refit must be None or a map"),
        (lambda: graphs.permutation_check(ISING, DATA, refit={"seed": 1}), "can't hold 'seed'"),
        (lambda: graphs.permutation_check(3, DATA), "model must have space"),
        (
            lambda: graphs.permutation_check(ncb.models.VonMises(), DATA),
            r"needs a graphical model with edges, .* got VonMises\(\)",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ncb.InputError, match=message), warnings.catch_warnings():
        call()
