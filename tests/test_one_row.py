"""One network, one lattice: engines without noise learn from a single row, as the sums say."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp

import ncbayes as ncb
from ncbayes import simulated
from ncbayes.diagnostics import convergence

ERGM = ncb.models.ERGM(5, ["edges", "triangles"])
# A triangle with a tail, and a node by itself.
GRAPH = ERGM.space.points([[[0, 1, 1, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 1, 0, 0],
                            [0, 0, 0, 0, 0]]])  # fmt: skip
LATTICE = ncb.models.Ising(
    6, edges=ncb.models.grid_edges(2, 3), fields="common", coupling="common", coding="spins"
)
SPINS = np.array([[1, 1, -1, 1, -1, -1.0]])
SIZES = {"draws": 700, "tune": 150, "chains": 2, "cores": 1, "progress": False}
PRIOR = ncb.priors.Normal(1.0)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def all_points(model):
    low = getattr(model.space, "lower", 0.0)
    return np.array(list(itertools.product([low, 1.0], repeat=model.space.dimension)))


def exact(model, x, theta):
    """The log likelihood, by the sum over all points."""
    values, counts = np.unique(model.statistics(all_points(model)), axis=0, return_counts=True)
    return theta @ model.statistics(x)[0] - logsumexp(theta @ values.T, b=counts, axis=1)


def conditionals(model, x, theta):
    """The log pseudolikelihood."""
    total = np.zeros(len(theta))
    for j in range(x.shape[1]):
        psi = theta @ model.change_statistics(x, j)[0]
        total += np.log(expit(psi if x[0, j] == 1 else -psi))
    return total


def moments(log_likelihood, model, x):
    """Posterior means and sds of both parameters under the normal prior, by a fine grid."""
    axis = np.linspace(-5, 5, 201)
    theta = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log = log_likelihood(model, x, theta) - (theta**2).sum(axis=1) / 2
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ theta
    return mean, np.sqrt(weight @ (theta - mean) ** 2)


def z_scores(posterior, mean, sd):
    """How far posterior means are off, in Monte Carlo standard errors."""
    theta = posterior.theta.to_numpy()[:, :, 0]
    sets = np.zeros(theta.shape[1], dtype=int)
    effective = np.array([convergence(theta[..., k], sets)[0] for k in range(2)])
    return (theta.mean(axis=(0, 1)) - mean) / (sd / np.sqrt(effective))


@pytest.mark.parametrize(
    ("engine", "likelihood"),
    [("exact", exact), ("exchange", exact), ("pseudolikelihood", conditionals)],
)
@pytest.mark.parametrize(("model", "x"), [(ERGM, GRAPH), (LATTICE, SPINS)], ids=["graph", "spins"])
def test_one_row_gives_the_posterior_of_the_sum_over_all_points(engine, likelihood, model, x, seed):
    posterior = ncb.fit(model, x, engine=engine, prior=PRIOR, seed=seed, **SIZES)
    assert np.abs(z_scores(posterior, *moments(likelihood, model, x))).max() < 5
    # The posterior of another row is told from it.
    other = 1.0 - GRAPH if model is ERGM else np.ones((1, 6))
    assert np.abs(z_scores(posterior, *moments(likelihood, model, other))).max() > 5


def test_groups_of_one_row_are_fitted_each():
    groups = {"a": GRAPH, "b": np.repeat(GRAPH, 3, axis=0)}
    posterior = ncb.fit(ERGM, groups, engine="pseudolikelihood", prior=PRIOR, seed=1, **SIZES)
    means = posterior.theta.mean(("chain", "draw"))
    exact_means = moments(conditionals, ERGM, GRAPH)[0]
    np.testing.assert_allclose(means.sel(group="a"), exact_means, atol=0.2)


def test_one_matrix_is_one_network():
    matrix = ERGM.space.adjacency(GRAPH)[0]
    for one in (matrix, pd.DataFrame(matrix)):
        assert ERGM.space.from_objects(one).tolist() == GRAPH.tolist()
    posterior = ncb.fit(ERGM, matrix, engine="pseudolikelihood", prior=PRIOR, seed=1, **SIZES)
    assert posterior.data["observed_data"]["points"].shape == (1, 10)


@pytest.mark.parametrize("engine", ["auto", "gibbs", "nuts", "hyvarinen"])
def test_other_engines_say_who_can_use_one_row(engine):
    with pytest.raises(
        ncb.InputError,
        match=r"at least 2 rows, .* got 1; one row, such as one network, is enough for "
        r"engine='exact' or 'exchange' or 'pseudolikelihood'$",
    ):
        ncb.fit(ERGM, GRAPH, engine=engine, **SIZES)


def test_a_single_row_of_nodes_with_fields_of_their_own_is_refused():
    with pytest.raises(ncb.InputError, match="is 1 in all rows: no finite field makes it so"):
        ncb.fit(ncb.models.Ising(3), [[1, 0, 1]], engine="exact", **SIZES)


def test_moments_do_not_lead_the_pilot_astray(seed, monkeypatch):
    """Near where all graphs are alike, Newton's steps went to (-4300, -7500) for this network."""
    monkeypatch.setattr(simulated, "MOMENT_ROWS", 200)
    model = ncb.models.ERGM(14, ["edges", ncb.models.terms.gwesp(0.5)])
    some = model.sample(np.array([-4.0, 2.0]), 60, np.random.default_rng(0))
    network = some[np.argsort(some.mean(axis=1))[30]][None]
    loss = simulated.simulated_loss(model, network, np.random.default_rng(seed))
    pilot = np.linalg.solve(loss.gram + 0.01 * np.eye(2), loss.shift)
    assert np.abs(pilot).max() < 20
