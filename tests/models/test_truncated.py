import math
import pickle

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.base import InputError, Model
from ncbayes.models import TruncatedGaussian
from ncbayes.models.segments import inverse_cdf, log_mass
from ncbayes.testing import check_model

# linear, precision, low, high of a density on a segment
SEGMENTS = [
    *((1.0, 2.0, 0.0, math.inf), (-50.0, 1.0, 0.0, math.inf), (-1e4, 1.0, 0.0, math.inf)),
    *((0.0, 1.0, 0.0, math.inf), (300.0, 1.0, 0.0, math.inf), (1.0, 1.0, -2.0, 3.0)),
    *((30.0, 1.0, -2.0, 3.0), (-30.0, 1.0, -2.0, 3.0), (1.0, 0.0, -1.0, 2.0)),
    *((0.0, 0.0, -1.0, 2.0), (-200.0, 0.0, -1.0, 2.0), (1.0, -1.0, -1.0, 2.0)),
    *((0.0, -3.0, -1.0, 1.0), (-20.0, -1.0, -1.0, 2.0), (5.0, -80.0, -1.0, 1.0)),
    *((1.0, 1e-11, -1.0, 1.0), (1.0, -1e-11, -1.0, 1.0), (1.0, 1e-13, 999.0, 1000.0)),
    *((0.3, -1e-6, 999.0, 1000.0), (-1.0, 1e-6, 999.0, 1000.0)),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("linear", "precision", "low", "high"), SEGMENTS)
def test_mass_and_shares_of_a_segment_are_integrals(linear, precision, low, high):
    candidates = [low, high if math.isfinite(high) else low]
    candidates += [min(max(linear / precision, low), high)] if precision > 0 else []
    top = max(candidates, key=lambda x: linear * x - precision * x**2 / 2)
    width = 1 / max(abs(linear - precision * top), math.sqrt(abs(precision)), 1e-9)
    ends = (low, high) if precision <= 0 else (max(low, top - 60 * width), top + 60 * width)
    ends = (ends[0], min(ends[1], high))

    def density(x):
        return math.exp((x - top) * (linear - precision * (x + top) / 2))

    def integral(start, stop):
        inner = [top] if start < top < stop else None
        return integrate.quad(density, start, stop, points=inner, limit=500, epsabs=0)[0]

    whole = integral(*ends)
    log_z = math.log(whole) + linear * top - precision * top**2 / 2
    assert log_mass(np.array([linear]), precision, low, high)[0] == pytest.approx(log_z, rel=1e-12)
    shares = np.array([0.0, 1e-9, 0.1, 0.5, 0.9, 0.999999])
    x = inverse_cdf(shares, np.full(6, linear), precision, low, high)
    assert [integral(ends[0], each) / whole for each in x] == pytest.approx(shares, abs=1e-9)
    assert np.all((x >= low) & (x <= high))


ORTHANT = TruncatedGaussian(2)
BOX = TruncatedGaussian(2, ((-1.0, 0.0), 2.5))
# h, K_11, K_22, K_12
PAIRS = {
    "plain": (ORTHANT, [0.5, -0.3, 1.2, 0.8, -0.6]),
    "no edge": (TruncatedGaussian(2, edges=[]), [0.5, -0.3, 1.2, 0.8]),
    "copositive only": (ORTHANT, [1.5, 1.0, 1.0, 0.8, 3.0]),
    "nearly flat": (ORTHANT, [-0.5, -0.3, 1.0, 1.0, -0.97]),
    "far out": (ORTHANT, [-20.0, 8.0, 1.0, 2.0, -0.5]),
    "box": (BOX, [0.3, 0.5, 1.0, 0.6, -0.7]),
    "box, rising": (BOX, [0.3, -0.5, -0.8, 0.0, 0.7]),
}
PAIR = pytest.mark.parametrize(("model", "theta"), PAIRS.values(), ids=PAIRS)


def plain_statistics(model, row):
    value = dict(zip(model.nodes, row, strict=True))
    pairs = [-value[one] * value[other] for one, other in model.edges]
    return [*row, *(-each * each / 2 for each in row), *pairs]


@PAIR
def test_the_partition_is_the_integral(model, theta):
    bounded = model.bounds is not None
    low, high = model.space.bounds if bounded else (np.zeros(2), np.full(2, 30.0))

    def density(y, x):
        return math.exp(np.dot(plain_statistics(model, (x, y)), theta))

    limits = (low[0], high[0], low[1], high[1])
    value = integrate.dblquad(density, *limits, epsabs=1e-9, epsrel=1e-9)[0]
    assert model.log_partition(theta) == pytest.approx(math.log(value), abs=1e-7)


@pytest.mark.parametrize("theta", [[0.7, 2.0], [-3.0, 0.5], [40.0, 1.0]])
def test_the_partition_of_one_node_is_that_of_scipy(theta):
    h, k = theta
    normal = stats.norm(h / k, k**-0.5)
    log_z = normal.logsf(0) + h * h / k / 2 + math.log(2 * math.pi / k) / 2
    assert TruncatedGaussian(1).log_partition(theta) == pytest.approx(log_z, rel=1e-12)
    cut = normal.logcdf(3) + math.log1p(-math.exp(normal.logcdf(1) - normal.logcdf(3)))
    box = TruncatedGaussian(1, (1, 3)).log_partition(theta)
    assert box == pytest.approx(log_z - normal.logsf(0) + cut, rel=1e-9)


def test_the_partition_is_infinite_where_there_is_no_distribution():
    assert TruncatedGaussian(1).log_partition([1.0, 0.0]) == math.inf
    assert ORTHANT.log_partition([0.0, 0.0, 1.0, -1.0, 5.0]) == math.inf
    assert ORTHANT.log_partition([0.0, 0.0, 1.0, 4.0, -2.0]) == math.inf
    assert ORTHANT.log_partition([0.0, 0.0, 1.0, 4.0, -1.99]) < math.inf
    assert BOX.log_partition([0.0, 0.0, -1.0, -1.0, -5.0]) < math.inf


MODELS = [
    *(TruncatedGaussian(1), TruncatedGaussian(4), TruncatedGaussian(3, (0, [1.0, 2.0, 3.0]))),
    TruncatedGaussian(list("abcd"), edges=[("d", "a"), ("b", "c")]),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_statistics_are_the_formulas(model, seed):
    x = np.random.default_rng(seed).random((20, len(model.nodes)))
    expected = np.array([plain_statistics(model, row) for row in x])
    assert model.statistics(x) == pytest.approx(expected, rel=1e-14)
    assert not model.log_base(x).any()
    assert isinstance(model, Model)


def test_names_columns_repr_and_pickle():
    model = TruncatedGaussian(["a", "b", "c"], (0, 9), [("c", "a")])
    assert model.groups == {
        "linear": ("a", "b", "c"),
        "precision": ("-a^2/2", "-b^2/2", "-c^2/2"),
        "edge": ("-a*c",),
    }
    assert model.edge_columns["precision"].tolist() == [6]
    text = "TruncatedGaussian(['a', 'b', 'c'], bounds=(0.0, 9.0), edges=[('a', 'c')])"
    assert repr(model) == text
    assert pickle.loads(pickle.dumps(model)) == model
    assert (
        repr(TruncatedGaussian(2, (0, [1, 2]))) == "TruncatedGaussian(2, bounds=(0.0, (1.0, 2.0)))"
    )
    assert TruncatedGaussian(2, edges=[]).groups.keys() == {"linear", "precision"}


class Recorder:
    """A random source whose uniforms are given."""

    def __init__(self, uniforms):
        self.uniforms = uniforms

    def random(self, shape):
        assert shape == self.uniforms.shape
        return self.uniforms


@pytest.mark.parametrize("bounds", [None, (0.5, [2.0, 3.0, 9.0])])
def test_a_sweep_draws_each_node_from_its_conditional(bounds, seed):
    rng = np.random.default_rng(seed)
    model = TruncatedGaussian(3, bounds)
    theta = np.array([0.5, -1.0, 0.3, 1.0, 2.0, 0.7, 0.4, -0.3, 0.2])
    h, k = model.linear_and_precision(theta)
    x, uniforms = 0.5 + rng.random((50, 3)), rng.random((3, 50))
    before, expected = x.copy(), x.copy()
    low = np.full(3, 0.0 if bounds is None else 0.5)
    high = np.full(3, np.inf) if bounds is None else np.array(bounds[1])
    for j in range(3):
        others = [each for each in range(3) if each != j]
        mean = (h[j] - expected[:, others] @ k[j, others]) / k[j, j]
        sd = k[j, j] ** -0.5
        cut = stats.truncnorm((low[j] - mean) / sd, (high[j] - mean) / sd, mean, sd)
        expected[:, j] = cut.ppf(uniforms[j])
    assert model.sweep(theta, x, Recorder(uniforms)) == pytest.approx(expected, rel=1e-8, abs=1e-9)
    assert np.array_equal(x, before)


THETA_3 = np.array([0.5, -0.4, 0.3, 1.0, 1.5, 0.8, 0.5, -0.4, 0.3])


def exact_draws(model, theta, count, rng):
    """Normal draws, kept where they are positive."""
    h, k = model.linear_and_precision(theta)
    covariance = np.linalg.inv(k)
    x = np.zeros((0, len(h)))
    while len(x) < count:
        new = rng.multivariate_normal(covariance @ h, covariance, 4 * count)
        x = np.concatenate([x, new[(new >= 0).all(axis=1)]])
    return x[:count]


def flipped(model, theta, x, rng):
    """A sweep with the other sign of the couplings."""
    return model.sweep(theta * np.repeat([1, -1], [6, 3]), x, rng)


def parallel(model, theta, x, rng):
    """A sweep that draws every node given the old values of the others."""
    h, k = model.linear_and_precision(theta)
    columns = []
    for j, diagonal in enumerate(np.diag(k)):
        slope = h[j] - x @ k[j] + diagonal * x[:, j]
        columns.append(inverse_cdf(rng.random(len(x)), slope, diagonal, 0.0, math.inf))
    return np.column_stack(columns)


def untruncated(model, theta, x, rng):
    """A sweep whose draws are folded at zero."""
    h, k = model.linear_and_precision(theta)
    y = x.copy()
    for j, diagonal in enumerate(np.diag(k)):
        mean = (h[j] - y @ k[j]) / diagonal + y[:, j]
        y[:, j] = np.abs(mean + rng.standard_normal(len(x)) / math.sqrt(diagonal))
    return y


def largest_z(before, after):
    """The largest z-score of the mean change, and its limit at a false-alarm rate of 1e-6."""
    change = after - before
    z = change.mean(axis=0) / change.std(axis=0) * math.sqrt(len(change))
    return np.abs(z).max(), -ndtri(1e-6 / 2 / len(z))


def test_a_sweep_leaves_the_model_invariant_and_broken_ones_do_not(seed):
    model, rng = TruncatedGaussian(3), np.random.default_rng(seed)
    x = exact_draws(model, THETA_3, 60_000, rng)
    before = model.statistics(x)
    worst, limit = largest_z(before, model.statistics(model.sweep(THETA_3, x, rng)))
    assert worst < limit
    for broken in (flipped, parallel, untruncated):
        worst, limit = largest_z(before, model.statistics(broken(model, THETA_3, x, rng)))
        assert worst > limit


def test_samples_are_like_exact_ones_and_those_of_a_neighbour_are_not(seed):
    model, rng = TruncatedGaussian(3), np.random.default_rng(seed)
    exact = model.statistics(exact_draws(model, THETA_3, 10_000, rng))
    worst, limit = largest_z(exact, model.statistics(model.sample(THETA_3, 10_000, rng)))
    assert worst < limit
    worst, limit = largest_z(exact, model.statistics(model.sample(1.3 * THETA_3, 10_000, rng)))
    assert worst > limit


@pytest.mark.parametrize(
    ("model", "theta"),
    [
        PAIRS["no edge"],
        PAIRS["plain"],
        PAIRS["box, rising"],
        (TruncatedGaussian(3), None),
    ],
    ids=["no edge", "orthant", "box", "no theta"],
)
def test_the_models_keep_the_contract(model, theta, seed, monkeypatch):
    from ncbayes.models import truncated

    monkeypatch.setattr(truncated, "SWEEPS", 40)  # these couplings are weak
    check_model(model, theta, seed=seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 0}, r"TruncatedGaussian\(nodes\) needs a whole number of at least 1, .* got 0$"),
        ({"nodes": 2, "bounds": 3}, r"\(bounds=...\) must be \(low, high\), two finite .* got 3$"),
        ({"nodes": 2, "bounds": (1, 0)}, r"of the 2 nodes, with low < high, got \(1, 0\)$"),
        ({"nodes": 2, "bounds": (0, math.inf)}, r"with low < high, got \(0, inf\)$"),
        (
            {"nodes": 2, "bounds": ([0, 0, 0], 1)},
            r"must be \(low, high\), .* got \(\[0, 0, 0\], 1\)$",
        ),
        ({"nodes": 2, "edges": [(0, 2)]}, r"\(edges=...\) must hold pairs .* got \(0, 2\)"),
    ],
)
def test_models_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        TruncatedGaussian(**arguments)


def test_thetas_that_cannot_be_are_refused(seed):
    rng = np.random.default_rng(seed)
    with pytest.raises(InputError, match=r"no distribution of TruncatedGaussian\(2\): K must have"):
        ORTHANT.sample([0.0, 0.0, 1.0, 1.0, -1.0], 3, rng)
    with pytest.raises(InputError, match=r"positive K_jj for each node .* got -1 for 'x2'"):
        ORTHANT.sweep([0.0, 0.0, 1.0, -1.0, 0.0], np.ones((3, 2)), rng)
    with pytest.raises(InputError, match=r"at most 2 nodes, got TruncatedGaussian\(3\): take it"):
        TruncatedGaussian(3).log_partition(THETA_3)
    with pytest.raises(InputError, match=r"5 numbers, .* got shape \(4,\)$"):
        ORTHANT.log_partition(np.ones(4))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[1.0, -1.0], [0.5, 2.0]], "data must be zero or positive, got 1 such value in row 0"),
        ([[1.0, 3.0], [0.5, 3.0]], r"the node 'x2' \(column 1, .* is 3 in all rows: no finite"),
    ],
)
def test_data_that_cannot_be_are_refused(data, message):
    with pytest.raises(InputError, match=message):
        ncb.fit(ORTHANT, data, progress=False)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize(
    ("bounds", "noise"),
    [(None, "auto"), (None, ncb.noise.Adaptive()), ((0, 4), ncb.noise.Adaptive())],
    ids=["orthant", "orthant, adaptive", "box, adaptive"],
)
def test_a_fit_finds_the_precisions(bounds, noise, seed):
    model = TruncatedGaussian(3, bounds)
    truth = np.array([1.0, 1.0, 1.0, 1.5, 1.5, 1.5, 0.8, 0.0, -0.6])
    data = model.sample(truth, 600, np.random.default_rng(seed))
    posterior = ncb.fit(
        model, data, noise=noise, seed=seed, draws=200, tune=200, chains=2, progress=False
    )
    theta = posterior.theta.values.reshape(400, 9)
    assert np.abs((theta.mean(axis=0) - truth) / theta.std(axis=0)).max() < 5
    table = ncb.graphs.edges(posterior, rule="interval", level=0.99)
    assert set(table.columns) >= {"precision", "precision_low", "precision_high"}
