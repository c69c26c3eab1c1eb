import math
import pickle

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.base import InputError, Model
from ncbayes.models import ERGM, VaryingERGM, terms
from ncbayes.testing import check_model, check_noise

MODEL = VaryingERGM([4, 5], ["edges", "triangles"])
THETA = np.array([-0.5, 0.3, 0.7])


def two_sizes(count, theta, rng):
    """Adjacency matrices of graphs on 4 and on 5 nodes."""
    parts = [
        MODEL.models[k].space.adjacency(MODEL.models[k].sample(theta, count, rng)) for k in (0, 1)
    ]
    return [*parts[0], *parts[1]]


def test_a_point_holds_dyads_and_the_number_of_its_set():
    graphs = [np.ones((5, 5)) - np.eye(5), np.zeros((4, 4))]
    x = MODEL.space.points(graphs)
    assert x.tolist() == [[1] * 10 + [1], [0] * 10 + [0]]
    assert MODEL.statistics(x).tolist() == [[10, 10, 1], [0, 0, 0]]
    assert MODEL.groups == {
        "edges": ("edges",),
        "triangles": ("triangles",),
        "node_set": ("nodes=5",),
    }
    assert MODEL.at(4) == ERGM(4, ["edges", "triangles"]) == MODEL.models[0]
    assert repr(MODEL) == "VaryingERGM([4, 5], ['edges', 'triangles'])"
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL
    assert isinstance(MODEL, Model)


def test_sets_of_one_size_differ_by_their_names():
    term = terms.homophily({"a": 0, "b": 0, "c": 1, "d": 1})
    model = VaryingERGM([["a", "b", "c"], ["b", "c", "d"]], ["edges", term])
    assert model.groups["node_set"] == ("set2",)
    assert model.at(["b", "c", "d"]) is model.models[1]
    with pytest.raises(
        InputError, match=r"at\(nodes\) needs the size of one of the sets .* got 3$"
    ):
        model.at(3)
    full = np.array([[1.0, 1, 1, 0], [1.0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 1]])
    assert model.statistics(full)[:, 1].tolist() == [1, 1, 1, 0]


def test_the_contract_is_kept(seed):
    check_model(MODEL, THETA, seed=seed)


def test_the_partition_is_the_sum_over_all_graphs_of_both_sizes():
    count = sum(
        math.exp(THETA[2] * k) * np.mean(np.exp(MODEL.models[k]._enumerated @ THETA[:2]))
        for k in (0, 1)
    )
    assert MODEL.log_partition(THETA) == pytest.approx(math.log(count))


def test_paths_have_equal_shares_of_the_sets_at_both_ends(seed):
    large = VaryingERGM([9, 12], ["edges", "triangles"])
    for model, theta in ((MODEL, THETA), (large, np.array([-1.5, 0.15, 3.0]))):
        for end in model.path(theta, 0.6):
            x = model.sample(end, 4000, np.random.default_rng(seed))
            # The larger sets' shares are estimated from 200 particles.
            assert x[:, -1].mean() == pytest.approx(0.5, abs=0.03 if model is MODEL else 0.1)
    # Without the balance of gammas one set would have nearly all.
    end = np.append(large.path(np.array([-1.5, 0.15, 3.0]), 0.6)[1][:2], 1.8)
    x = large.sample(end, 1000, np.random.default_rng(seed))
    assert not 0.1 < x[:, -1].mean() < 0.9


def test_noise_on_several_sets_is_normalized_and_a_wrong_one_is_not(seed):
    noise = ncb.noise.BernoulliGraphs(MODEL.space, 0.3, (0.4, 0.6))
    check_noise(noise, MODEL.space, seed=seed)

    class Wrong:
        sample = noise.sample

        def log_density(self, x):
            return noise.log_density(x) - 0.5 * x[:, -1]

    with pytest.raises(AssertionError):
        check_noise(Wrong(), MODEL.space, seed=seed)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize("noise", ["matched", ncb.noise.Adaptive()], ids=["matched", "adaptive"])
def test_a_fit_of_two_sizes_has_the_normalizers_of_both(noise, seed):
    rng = np.random.default_rng(seed)
    graphs = two_sizes(600, THETA[:2], rng)
    posterior = ncb.fit(
        MODEL, graphs, noise=noise, seed=seed, draws=300, tune=200, chains=2, progress=False
    )
    theta, log_z = posterior.theta.values[:, :, 0], posterior.log_z.values[:, :, 0]
    found = MODEL.log_partitions(theta, log_z, MODEL.space.points(graphs)).reshape(-1, 2)
    flat = theta.reshape(-1, 3)[:, :2]
    z = (flat.mean(axis=0) - THETA[:2]) / flat.std(axis=0)
    assert np.abs(z).max() < 5
    exact = np.array([[MODEL.models[k].log_partition(each) for k in (0, 1)] for each in flat])
    error = found - exact
    assert np.all(np.abs(error.mean(axis=0)) < 5 * error.std(axis=0))
    # The broken twin: each size with the other's.
    assert np.all(np.abs((found - exact[:, ::-1]).mean(axis=0)) > 5 * error.std(axis=0))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([5], r"VaryingERGM\(node_sets\) needs two or more sizes .* got \[5\]; for one set use"),
        (5, r"VaryingERGM\(node_sets\) needs two or more sizes .* got 5; for one set use ERGM"),
        ([5, 5], r"VaryingERGM\(node_sets\) needs sets that differ, got \[5, 5\]$"),
    ],
)
def test_sets_that_cannot_be_are_refused(sets, message):
    with pytest.raises(InputError, match=message):
        VaryingERGM(sets, ["edges"])


def test_data_that_fit_no_set_are_refused():
    with pytest.raises(InputError, match=r"graph 0 .* has 3 nodes and fits none of the sets"):
        MODEL.space.points([np.zeros((3, 3))])
    with pytest.raises(InputError, match=r"row 1 .* is no graph of these sets: its last column"):
        ncb.fit(MODEL, np.eye(11)[[1, 6]] + np.eye(11)[[10, 0]] * [[0], [1]])
    with pytest.raises(InputError, match=r"theta must hold 3 numbers"):
        MODEL.log_partition(np.zeros(2))


def test_a_set_without_graphs_is_told(seed):
    x = MODEL.space.points([np.ones((4, 4)) - np.eye(4), np.zeros((4, 4))])
    assert MODEL.concerns(THETA, x) == ["no graph has nodes=5; leave this set out of node_sets"]
