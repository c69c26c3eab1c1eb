"""Contrasts of real fits: the score test beside the draws, and what is expected to be false."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import chi2

import contrast_null
import ncbayes as ncb
from ncbayes import graphs, group_tests
from ncbayes.graphs import evidence
from ncbayes.graphs.differences import Selection

EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (0, 2), (1, 3), (2, 4)]
TORUS, ISING = ncb.models.TorusGraph(5, edges=EDGES), ncb.models.Ising(5, edges=EDGES)
COUPLED = [0, 3, 6]
SHORT = {"noise": "matched", "noise_ratio": 5, "draws": 200, "tune": 100, "chains": 1, "cores": 1}


def columns(model):
    return np.array(list(model.edge_columns.values())).T


def truth(model, coupling):
    theta = np.zeros(sum(len(names) for names in model.groups.values()))
    theta[columns(model)[COUPLED, 0]] = coupling
    if model is ISING:  # ones in half of the rows, where couplings are known best
        for ends in model.pairs:
            np.add.at(theta, ends, -theta[columns(model)[:, 0]] / 2)
    return theta


def quiet_fit(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, progress=False, **{**SHORT, **options})


def score_masses(model, first, second, rng):
    """The p values of the score test, by edge."""
    found = group_tests.difference(model, [first, second], columns(model).ravel(), rng)
    shape = columns(model).shape
    numbers = np.arange(found.change.size).reshape(shape)
    blocks = found.covariance[numbers[:, :, None], numbers[:, None, :]]
    return evidence.normal_mass(found.change.reshape(shape), blocks, found.rows - 1)


@pytest.mark.parametrize(
    ("model", "rows", "coupling", "sets"),
    [(TORUS, (55, 150), 0.7, 20), (ISING, (60, 200), 1.0, 60)],
)
def test_score_tests_keep_their_size_in_groups_of_unequal_size(model, rows, coupling, sets, seed):
    """Different margins are no different couplings; a difference of 2 in one edge is one.

    The broken twin treats the smaller group as if it were as large as the other.
    """
    rng = np.random.default_rng(seed)
    theta, hits, broken = truth(model, coupling), [], []
    moved, changed = theta.copy(), theta.copy()
    moved[: len(model.nodes)] += 0.5
    changed[columns(model)[1, 0]] += 2.0
    for _ in range(sets):
        first, second = (
            model.sample(each, n, rng) for each, n in zip((theta, moved), rows, strict=True)
        )
        hits.append(score_masses(model, first, second, rng) < 0.1)
        larger = np.tile(first, (4, 1))
        broken.append(score_masses(model, larger, second, rng) < 0.1)
    slack = 5 * math.sqrt(0.09 / np.size(hits))
    assert np.mean(hits) < 0.1 + slack
    assert np.mean(broken) > 0.1 + slack
    first, second = (model.sample(each, 400, rng) for each in (changed, theta))
    assert score_masses(model, first, second, rng).argmin() == 1


def test_p_values_are_the_larger_of_both_tests(seed):
    rng = np.random.default_rng(seed)
    data = {
        "a": TORUS.sample(truth(TORUS, 0.7), 55, rng),
        "b": TORUS.sample(truth(TORUS, 0.7), 200, rng),
    }
    posterior = quiet_fit(TORUS, data, seed=seed)
    table = graphs.contrast(posterior, groups=("a", "b"), control="edge")
    assert table.attrs["score_test"]
    found = table.set_index(["node1", "node2"]).loc[list(TORUS.edges), "p_value"].to_numpy()
    theta = posterior.theta.values[0][..., columns(TORUS)]
    draws = evidence.tail_mass(theta[:, 0] - theta[:, 1])
    tests = score_masses(TORUS, data["a"], data["b"], np.random.default_rng(0))
    assert found == pytest.approx(np.maximum(draws, tests))
    strengths = graphs.contrast(posterior, groups=("a", "b"), rule="strength")
    assert not np.allclose(np.sort(strengths["p_value"]), np.sort(found))


def test_a_posterior_from_a_file_needs_its_model_for_the_same_table(seed, tmp_path):
    rng = np.random.default_rng(seed)
    fits = [quiet_fit(ISING, ISING.sample(truth(ISING, 1.0), n, rng), seed=n) for n in (60, 90)]
    for number, fit in enumerate(fits):
        fit.save(tmp_path / f"{number}.nc")
    loaded = [ncb.load(tmp_path / f"{number}.nc") for number in range(2)]
    table = graphs.contrast(*fits)
    assert graphs.contrast(*loaded, model=ISING).equals(table)
    with pytest.warns(ncb.FitWarning, match=r"rest on the draws alone \(a posterior from a file"):
        alone = graphs.contrast(*loaded)
    assert not alone.attrs["score_test"]
    assert (np.sort(alone["p_value"]) <= np.sort(table["p_value"]) + 1e-12).all()


def test_a_real_difference_is_found_and_has_its_sign(seed):
    """Negative couplings are stronger where they are lower."""
    rng = np.random.default_rng(seed)
    theta = truth(ISING, 1.0)
    stronger = theta.copy()
    stronger[columns(ISING)[1, 0]] = -2.5
    theta[columns(ISING)[1, 0]] = -0.3
    # So many rows that 200 draws of a short chain leave no doubt, whatever the seed.
    data = {"a": ISING.sample(stronger, 2400, rng), "b": ISING.sample(theta, 2400, rng)}
    table = graphs.contrast(quiet_fit(ISING, data, seed=seed), groups=("a", "b"))
    first = table.iloc[0]
    assert (first["node1"], first["node2"]) == ISING.edges[1]
    assert first["selected"]
    assert first["probability_stronger"] > 0.99
    assert first["strength_difference_low"] > 0 > first["coupling_high"]
    assert table.attrs["expected_fdr"] <= 0.1


def test_what_is_expected_to_be_false_is_what_no_difference_gives(seed):
    """The broken twin: a mean of 1 - probability, near zero where the posterior is wide."""
    masses = np.random.default_rng(seed).uniform(size=20_000)
    each = Selection("region", 0.0, 0.9, "edge")
    assert each.expected_false(masses) == pytest.approx(2000)
    assert each.selected(masses).sum() == pytest.approx(2000, abs=5 * math.sqrt(1800))
    fdr = Selection("region", 0.0, 0.9, "fdr")
    real = np.concatenate([masses[:900], chi2.sf(np.full(100, 30.0), 1)])
    selected = fdr.selected(real)
    assert selected[900:].all()
    assert fdr.expected_false(real) / selected.sum() <= 0.1
    # Counted, the share of false ones is at most a tenth, up to the luck of one data set.
    assert selected[:900].sum() / selected.sum() < 0.1 + 5 * math.sqrt(0.09 / 100)


def test_in_shuffled_groups_of_many_edges_the_expected_share_of_false_ones_is_large(seed):
    """What was reported before: edges that differ, none of them expected to be false."""
    model = ncb.models.Ising(9)
    rows = model.sample(truth_of_pairs(model), 160, np.random.default_rng(seed))
    weak = ncb.priors.Normal(3.0)
    posterior = quiet_fit(model, {"a": rows[:55], "b": rows[55:]}, prior=weak, seed=seed)
    table = graphs.contrast(posterior, groups=("a", "b"), control="edge")
    assert table.attrs["expected_false"] == pytest.approx(3.6)
    count = table["selected"].sum()
    # P(Binomial(36, .1) > 14) is below 1e-5; edges hang together, and the rule is conservative.
    assert count <= 14
    assert table.attrs["expected_fdr"] == (min(1.0, 3.6 / count) if count else 0.0)
    theta = posterior.theta.values[0][..., columns(model)[:, 0]]
    old = np.mean(np.abs(theta[:, 0] - theta[:, 1]) > 0.1, axis=0)
    assert np.median(old) > 0.85


def truth_of_pairs(model):
    theta = np.zeros(sum(len(names) for names in model.groups.values()))
    theta[columns(model)[::5, 0]] = 0.8
    return theta


def test_the_study_of_contrasts_runs():
    cell = contrast_null.CELLS["ising-power"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        found = contrast_null.table(cell, 0, 20)
    assert found.shape == (8, 5)
    assert ((found >= 0) & (found <= 1)).all()
    # Selected for certain, by every rule; one edge of eight differs.
    sure = np.tile([0.0, 0.0, 0.0, 0.0, 1.0], (3, 8, 1))
    cells = contrast_null.line("x", cell, sure).split(" | ")
    assert cells[2:] == ["1.000"] * 6 + ["1.00"] * 4 + ["1.00 |"]
    first, second = contrast_null.truths(cell)
    assert np.flatnonzero(first[5:] != second[5:]).tolist() == [1]
