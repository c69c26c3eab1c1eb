import math
import pickle
import time
import warnings

import numpy as np
import pytest
from scipy.special import expit, logsumexp, ndtri

import ncbayes as ncb
from ncbayes.base import InputError, Model
from ncbayes.models import ERGM, DegenerateWarning, terms
from ncbayes.models.ergm import logistic_regression
from ncbayes.testing import check_model

CLASSES = list("aabbb")
SMALL = ERGM(5, ["edges", "triangles", terms.homophily(CLASSES)])
THETA = np.array([-0.6, 0.35, 0.5])
WAYS = ERGM(4, ["edges", "reciprocity", terms.gwesp(0.5), terms.gwdegree(0.5, "in")], directed=True)
WAYS_THETA = np.array([-0.7, 0.6, 0.3, -0.2])


class Squares:
    """A term of one's own, with nothing but a count."""

    name = "squares of edges"

    def count(self, adjacency):
        return adjacency.sum(axis=(1, 2)) ** 2 / 10


OWN = ERGM(4, ["edges", Squares()])
EVERY = [
    ERGM(6, ["edges", "two_stars", "isolates", terms.gwesp(0.4), terms.gwdegree(0.7)]),
    ERGM(6, ["triangles", terms.difference(range(6)), terms.degree(2)]),
    ERGM(6, ["edges", "triangles", terms.gwesp(0.4)]),
    ERGM(5, ["edges", "triangles", "reciprocity", terms.degree(3)], directed=True),
    ERGM(5, ["edges", "two_stars", terms.gwesp(0.4), terms.gwdegree(1.0, "out")], directed=True),
    *(SMALL, WAYS, OWN),
]


def everything(model):
    """All graphs, and their statistics."""
    count = model.space.dimension
    x = (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(float)
    return x, model.statistics(x)


def exact_mean(model, theta):
    _, statistics = everything(model)
    log_weight = statistics @ theta
    return np.exp(log_weight - logsumexp(log_weight)) @ statistics


def exact_draws(model, theta, size, rng):
    x, statistics = everything(model)
    weight = np.exp(statistics @ theta)
    return rng.choice(x, size, p=weight / weight.sum())


def largest_z(model, theta, x):
    """The largest z-score of the mean statistics, and its limit at a false-alarm rate of 1e-6."""
    values = model.statistics(x)
    z = (values.mean(axis=0) - exact_mean(model, theta)) / values.std(axis=0) * math.sqrt(len(x))
    return np.abs(z).max(), -ndtri(1e-6 / 2 / len(z))


class Recorder:
    """A random source whose uniforms are given."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        assert shape == self.uniforms.shape
        return self.uniforms


@pytest.mark.parametrize("model", EVERY, ids=repr)
def test_a_sweep_draws_each_dyad_from_its_conditional(model, seed):
    rng = np.random.default_rng(seed)
    theta = 0.3 * rng.normal(size=len(model.terms))
    x, uniforms = model.space.uniform(40, rng), rng.random((40, model.space.dimension))
    before, expected = x.copy(), x.copy()
    for j in range(x.shape[1]):
        one, zero = expected.copy(), expected.copy()
        one[:, j], zero[:, j] = 1, 0
        log_odds = (model.statistics(one) - model.statistics(zero)) @ theta
        expected[:, j] = uniforms[:, j] < expit(log_odds)
    assert np.array_equal(model.sweep(theta, x, Recorder(uniforms)), expected)
    assert np.array_equal(x, before)


def test_a_sweep_leaves_the_model_invariant_and_broken_ones_do_not(seed):
    rng = np.random.default_rng(seed)
    x = exact_draws(SMALL, THETA, 60_000, rng)
    for fine in (x, SMALL.sweep(THETA, x, rng)):
        worst, limit = largest_z(SMALL, THETA, fine)
        assert worst < limit

    def parallel(theta, x, rng):
        """Every dyad given the old values of the others."""
        log_odds = [SMALL.change_statistics(x, j) @ theta for j in range(x.shape[1])]
        return (rng.random(x.shape) < expit(np.transpose(log_odds))).astype(float)

    flipped = np.array([1, -1, 1]) * THETA
    for broken in (parallel(THETA, x, rng), SMALL.sweep(flipped, x, rng)):
        worst, limit = largest_z(SMALL, THETA, broken)
        assert worst > limit


def test_samples_follow_the_model_and_those_of_another_theta_do_not(seed):
    rng = np.random.default_rng(seed)
    worst, limit = largest_z(WAYS, WAYS_THETA, WAYS.sample(WAYS_THETA, 6000, rng))
    assert worst < limit
    worst, limit = largest_z(WAYS, WAYS_THETA, WAYS.sample(0.5 * WAYS_THETA, 6000, rng))
    assert worst > limit


@pytest.mark.parametrize(
    ("model", "theta"),
    [(SMALL, THETA), (WAYS, WAYS_THETA), (ERGM(20, ["edges", "triangles"]), None)],
    ids=["undirected", "directed", "20 nodes"],
)
def test_the_models_keep_the_contract(model, theta, seed):
    assert isinstance(model, Model)
    check_model(model, theta, seed=seed)


@pytest.mark.parametrize("model", [SMALL, WAYS, OWN, ERGM(6, ["edges", "triangles"])], ids=repr)
def test_the_partition_is_the_sum_over_graphs(model, seed):
    theta = np.random.default_rng(seed).normal(size=len(model.terms))
    _, statistics = everything(model)
    assert model.log_partition(theta) == pytest.approx(logsumexp(statistics @ theta), rel=1e-12)


def test_where_dyads_are_independent_the_partition_and_draws_are_exact(seed):
    theta = np.array([-1.0, 0.0, 0.8])
    _, statistics = everything(SMALL)
    assert SMALL.log_partition(theta) == pytest.approx(logsumexp(statistics @ theta), rel=1e-12)
    rng = np.random.default_rng(seed)
    worst, limit = largest_z(SMALL, theta, SMALL.sample(theta, 40_000, rng))
    assert worst < limit
    large = ERGM(40, ["edges", "triangles"])
    assert large.log_partition([0.5, 0]) == pytest.approx(780 * math.log1p(math.exp(0.5)))


def test_annealing_starts_at_bernoulli_graphs_of_the_models_density(seed):
    model = ERGM(12, ["edges", terms.gwesp(0.5), terms.homophily([0] * 6 + [1] * 6)])
    theta = np.array([-2.5, 0.8, 0.7])
    start, end = model.path(theta, 0.5)
    assert start[1] == 0
    assert end == pytest.approx((start + theta) / 2)
    rng = np.random.default_rng(seed)
    wanted, got = (model.statistics(model.sample(each, 2000, rng)) for each in (theta, start))
    dyadic = [0, 2]
    spread = wanted.std(axis=0)[dyadic]
    # The pilot has 60 graphs.
    assert np.all(np.abs(wanted.mean(0) - got.mean(0))[dyadic] < 5 * spread / math.sqrt(60))
    # Without the triangles the edges alone are far from it.
    bare = model.statistics(model.sample(np.array([-2.5, 0, 0.7]), 2000, rng))
    assert np.any(np.abs(wanted.mean(0) - bare.mean(0))[dyadic] > 5 * spread / math.sqrt(60))
    assert np.array_equal(model.path(theta, 0.0)[1], start)
    assert ERGM(5, ["triangles"]).path(np.array([0.2]), 1.0)[0].tolist() == [0]


def test_the_regression_matches_the_moments(seed):
    rng = np.random.default_rng(seed)
    weights, share = np.column_stack([np.ones(50), rng.normal(size=50)]), rng.random(50)
    b = logistic_regression(weights, share)
    assert weights.T @ (share - expit(weights @ b)) == pytest.approx([0, 0], abs=1e-2)
    # Two columns alike, and shares near the ends, still have a solution.
    assert np.isfinite(logistic_regression(np.ones((50, 2)), np.full(50, 1e-9))).all()


def test_annealed_noise_is_normalized_and_with_a_wrong_start_it_is_not(seed):
    from ncbayes.noise.tempered import anneal, log_mean

    start, end = SMALL.path(THETA, 0.9)
    for shift in (0.0, 0.3):
        _, path = anneal(SMALL, end, 10, 20_000, np.random.default_rng(seed), start)
        log_z, error = log_mean(path[-1] + shift)
        assert (abs(log_z - SMALL.log_partition(end)) < 4.9 * error) == (shift == 0)


def test_a_sweep_of_a_hundred_graphs_takes_milliseconds():
    model = ERGM(20, ["edges", terms.gwesp(0.5)])
    x, rng = np.zeros((100, 190)), np.random.default_rng(1)
    seconds = []
    for _ in range(6):
        began = time.perf_counter()
        x = model.sweep(np.array([-2.0, 0.3]), x, rng)
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.05  # 2 ms here


def test_models_compare_print_pickle_and_name_their_blocks():
    assert repr(SMALL) == "ERGM(5, ['edges', 'triangles', 'homophily'])"
    assert repr(ERGM(["a", "b"], ["edges"], directed=True)) == (
        "ERGM(['a', 'b'], ['edges'], directed=True)"
    )
    assert pickle.loads(pickle.dumps(SMALL)) == SMALL
    assert ERGM(5, ["edges"]) != ERGM(5, ["triangles"])
    several = ERGM(5, ["edges", terms.gwesp(0.5), terms.degree(1), terms.degree(2)])
    assert several.groups == {
        "edges": ("edges",),
        "gwesp": ("gwesp(0.5)",),
        "degree(1)": ("degree(1)",),
        "degree(2)": ("degree(2)",),
    }
    alike = ERGM(["a.b", "a_b", "c"], terms.sociality(["a.b", "a_b"]))
    assert alike.groups == {"term1": ("degree of a.b",), "term2": ("degree of a_b",)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, ["edges"]), r"ERGM\(nodes\) needs at least 2 nodes, got 1$"),
        ((3, []), r"ERGM\(terms\) needs a list of terms, such as .* got \[\]$"),
        ((3, "edges"), r"ERGM\(terms\) needs a list of terms, such as .* got 'edges'$"),
        ((3, ["stars"]), r"ERGM\(terms\) must hold some of .* got 'stars'$"),
        ((3, [Squares]), r"objects with a name and count\(adjacency\), got the class Squares$"),
        ((3, ["edges", "edges"]), r"needs terms of different names, got 'edges' more than once;"),
        ((3, ["edges"], 1), r"ERGM\(directed=...\) must be True or False, got 1$"),
    ],
)
def test_models_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        ERGM(*arguments)


def test_a_term_that_counts_wrongly_is_named():
    class Wrong(Squares):
        def count(self, adjacency):
            return adjacency.sum()

    with pytest.raises(InputError, match=r"of the term 'squares of edges' must return one number"):
        ERGM(4, [Wrong()]).statistics(np.zeros((3, 6)))


def test_the_partition_of_large_graphs_is_refused():
    with pytest.raises(InputError, match=r"at most 15 dyads, got 21 in ERGM\(7, .*: take it from"):
        ERGM(7, ["edges", "triangles"]).log_partition(np.ones(2))


@pytest.mark.parametrize("call", ["sweep", "sample", "log_partition", "path"])
def test_a_theta_that_does_not_fit_is_refused(call):
    model, rng = ERGM(3, ["edges", "triangles"]), np.random.default_rng(0)
    rest = {"sweep": (np.zeros((1, 3)), rng), "sample": (1, rng), "path": (0.5,)}.get(call, ())
    with pytest.raises(InputError, match=r"theta must hold 2 numbers, one for each statistic"):
        getattr(model, call)(np.zeros(3), *rest)


def test_a_degenerate_theta_is_named_and_a_mild_one_is_not():
    model, rng = ERGM(15, ["edges", "triangles"]), np.random.default_rng(1)
    began = time.perf_counter()
    with pytest.warns(DegenerateWarning, match=r"most graphs .* nearly complete, because of 'tri"):
        model.sample(np.array([-1.0, 1.0]), 20, rng)
    with pytest.warns(DegenerateWarning, match=r"nearly empty, because of 'edges'; look"):
        model.sample(np.array([-9.0, 0.1]), 20, rng)
    assert time.perf_counter() - began < 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.sample(np.array([-1.5, 0.1]), 20, rng)
        model.sample(np.array([-9.0, 0.0]), 20, rng)  # independent dyads mean what they say


def test_concerns_about_data_and_fit_are_one_line_each():
    model = ERGM(10, ["edges", "triangles"])
    empty, complete = np.zeros((4, 45)), np.ones((4, 45))
    star = np.zeros((3, 45))
    star[:, :9] = 1
    star[0, :2] = 0
    theta = np.array([-1.5, 0.1])
    assert model.concerns(theta, model.sample(theta, 30, np.random.default_rng(1))) == []
    assert model.concerns(theta, empty)[0].startswith("all graphs are empty: theta rests on its")
    assert model.concerns(theta, complete)[0].startswith("all graphs are complete: theta rests")
    (line,) = model.concerns(theta, star)
    assert line.startswith("the count of 'triangles' is 0 in every graph, so the data do not bound")
    usual = model.space.uniform(20, np.random.default_rng(1))
    (line,) = model.concerns(np.array([0.0, 1.0]), usual)
    assert "nearly complete, because of 'triangles'; replace it by a geometrically" in line


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize("noise", ["matched", "auto"])
def test_a_fit_finds_theta_and_log_z(noise, seed):
    data = exact_draws(SMALL, THETA, 1500, np.random.default_rng(seed))
    graphs = SMALL.space.adjacency(data)
    posterior = ncb.fit(
        SMALL, graphs, noise=noise, seed=seed, draws=200, tune=200, chains=2, progress=False
    )
    theta = posterior.theta.values.reshape(400, 3)
    z = (theta.mean(axis=0) - THETA) / theta.std(axis=0)
    assert np.abs(z).max() < 5
    assert np.abs(theta.mean(axis=0) / theta.std(axis=0)).min() > 2.5  # zero is no such truth
    error = posterior.log_z.values.ravel() - [SMALL.log_partition(each) for each in theta]
    assert abs(error.mean()) < 5 * error.std()


def test_a_fit_warns_of_what_the_data_cannot_tell():
    model = ERGM(8, ["edges", "triangles"])
    star = [0.0] * 28
    star[:7] = [1.0] * 7
    data = np.array([star] * 20)
    data[np.arange(20), np.arange(20) % 7] = 0
    data[:5, :2] = 0
    both = {
        "fine": model.sample(np.array([-1.0, 0.1]), 20, np.random.default_rng(1)),
        "stars": data,
    }
    settings = {"seed": 1, "draws": 400, "tune": 100, "chains": 2, "progress": False}
    prior = {"triangles": ncb.priors.Normal(1.0)}
    with pytest.warns(ncb.FitWarning) as caught:
        posterior = ncb.fit(model, both, noise="matched", prior=prior, **settings)
    said = [str(each.message) for each in caught]
    assert any("in group stars: the count of 'triangles' is 0 in ev" in line for line in said)
    assert any("do not look like the data in group stars: nodes with few" in line for line in said)
    assert sum("'triangles' is 0" in line for line in posterior.warning_lines()) == 1
    assert posterior.theta.sel(statistic="triangles", group="stars").std() < 1.3  # its prior's


@pytest.mark.parametrize("model", [SMALL, WAYS, OWN], ids=repr)
def test_the_guess_is_the_maximum_of_the_pseudolikelihood(model, seed):
    rng = np.random.default_rng(seed)
    x = (rng.random((150, model.space.dimension)) < 0.4).astype(float)
    theta = model.guess(x)
    slopes, curvature = np.zeros((2, len(theta)))
    for j in range(x.shape[1]):
        change = model.change_statistics(x, j)
        chance = expit(change @ theta)
        slopes += (x[:, j] - chance) @ change
        curvature += (chance * (1 - chance)) @ change**2
    # Distances from the maximum, in standard errors; a ridge keeps them from being 0.
    assert np.all(np.abs(slopes) / np.sqrt(curvature) < 0.05)


HUBS = [f"x{k}" for k in range(2, 11)]


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_where_matched_noise_is_far_from_the_data_the_guess_leads_there(seed):
    model = ERGM(10, ["edges", "triangles", *terms.sociality(HUBS)])
    truth = np.array([0.5, 0.1, *np.linspace(-2.5, 1.0, 9)])
    x = model.sample(truth, 80, np.random.default_rng(seed))
    settings = {"seed": seed, "draws": 200, "tune": 100, "chains": 2, "progress": False}
    kept = {}
    for noise in ("matched", "auto"):
        posterior = ncb.fit(model, x, noise=noise, noise_ratio=2.0, **settings)
        kept[noise] = float(posterior.data["noise"]["information_kept"].max())
    assert kept["auto"] > 0.3
    assert kept["matched"] < kept["auto"] / 2
    theta = posterior.theta.values.reshape(400, -1)
    assert np.abs((theta.mean(axis=0) - truth) / theta.std(axis=0)).max() < 5


def exact_fit(model, x):
    """Maximum and standard errors of the exact likelihood, by enumeration and Newton."""
    _, statistics = everything(model)
    observed, theta = model.statistics(x).mean(axis=0), np.zeros(len(model.terms))
    for _ in range(30):
        weight = np.exp(statistics @ theta - logsumexp(statistics @ theta))
        mean = weight @ statistics
        covariance = (statistics.T * weight) @ statistics - np.outer(mean, mean)
        theta = theta + np.linalg.solve(covariance, observed - mean)
    return theta, np.sqrt(np.diag(np.linalg.inv(covariance)) / len(x))


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_with_ample_noise_the_posterior_is_that_of_the_exact_likelihood(seed):
    ratio, rng = 10.0, np.random.default_rng(seed)
    x = exact_draws(SMALL, THETA, 250, rng)
    posterior = ncb.fit(
        SMALL,
        x,
        noise=ncb.noise.Adaptive(alpha=0.9),
        noise_ratio=ratio,
        seed=seed,
        draws=500,
        tune=200,
        chains=2,
        progress=False,
    )
    theta = posterior.theta.values.reshape(1000, 3)
    best, error = exact_fit(SMALL, x)
    # The noise draw adds 1 / ratio to the variance, and 1000 draws some Monte Carlo error.
    apart = (theta.mean(axis=0) - best) / error
    assert np.abs(apart).max() < 4.9 * math.sqrt(1 / ratio + 1 / 300)
    widening = theta.std(axis=0) / error
    assert np.all(np.abs(widening - math.sqrt(1 + 1 / ratio)) < 0.15)
    # The broken twins: the maximum for other graphs, and errors of half the data.
    other = (theta.mean(axis=0) - exact_fit(SMALL, SMALL.space.uniform(250, rng))[0]) / error
    assert np.abs(other).max() > 4.9 * math.sqrt(1 / ratio + 1 / 300)
    assert np.all(np.abs(widening / math.sqrt(2) - math.sqrt(1 + 1 / ratio)) > 0.15)


def named(choices, graphs=4, nodes=10, seed=1):
    """Directed graphs in which each node names so many others."""
    rng = np.random.default_rng(seed)
    found = np.zeros((graphs, nodes, nodes))
    for graph in found:
        for node, count in enumerate(np.broadcast_to(choices, (nodes,))):
            others = np.delete(np.arange(nodes), node)
            graph[node, rng.choice(others, count, replace=False)] = 1
    return found


def test_fixed_choices_are_told():
    model = ERGM(10, ["edges", terms.reciprocity()], directed=True)

    def told(matrices):
        points = ncb.spaces.as_points(matrices, model.space, "test")
        return [each for each in model.concerns(np.zeros(2), points) if "impossible" in each]

    (line,) = told(named(3))
    assert line.startswith("every node has 3 out-ties in every graph, as where people were asked")
    assert told(named(np.array([3] * 9 + [2]))) == []
    assert told(named(0)) == told(named(9)) == []
