"""Engines without noise: against quadrature, against each other, and through the front door."""

import itertools
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.special import expit, logsumexp, ndtri

import ncbayes as ncb
from ncbayes import diagnostics, testing
from ncbayes.base import Draw
from ncbayes.contrast import Stepwise, Target
from ncbayes.engines import Exact, Exchange, Hyvarinen, Pseudolikelihood, posing
from ncbayes.engines import exact as exact_module
from ncbayes.engines import exchange as exchange_module
from ncbayes.exact import states_of
from ncbayes.models import Exponential, Gaussian, Ising, TorusGraph, VonMises
from ncbayes.pilots import _against_noise, pilot
from ncbayes.simulated import simulated_loss

quick = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
PRIOR = ncb.priors.Normal(0.8, mean=0.5)


@dataclass(frozen=True, init=False, repr=False)
class Drawn(Ising):
    """Rows drawn exactly, by their probabilities, and a base that is not flat."""

    def log_base(self, x):
        return 0.4 * x[:, 0] - 0.7 * x[:, -1] * x[:, 0]

    def sample(self, theta, size, rng):
        states = all_states(self)
        logs = self.statistics(states) @ theta + self.log_base(states)
        return states[rng.choice(len(states), size, p=np.exp(logs - logsumexp(logs)))]

    def log_partition(self, theta):
        states = all_states(self)
        return float(logsumexp(self.statistics(states) @ theta + self.log_base(states)))


def all_states(model):
    return STATES[:, 3 - len(model.nodes) :][: 2 ** len(model.nodes)]


STATES = np.array(list(itertools.product([0.0, 1.0], repeat=3)))


TRIANGLE = Drawn(3, fields=False)
TRUTH = np.array([0.8, -0.6, 0.3])
ROWS = TRIANGLE.sample(TRUTH, 40, np.random.default_rng(0))


def fit(engine, model=TRIANGLE, data=ROWS, **options):
    settings = {"draws": 40, "tune": 10, "chains": 2, "seed": 5, "cores": 1, "progress": False}
    return ncb.fit(model, data, engine=engine, **{"prior": PRIOR, **settings, **options})


def long_fit(engine, seed, model=TRIANGLE, data=ROWS, draws=2500, **options):
    return fit(engine, model, data, draws=draws, tune=200, seed=seed, **options)


def features(theta):
    """Means, squares and products, (..., statistic) -> (..., feature)."""
    one, other = np.triu_indices(theta.shape[-1])
    return np.concatenate([theta, theta[..., one] * theta[..., other]], axis=-1)


def by_quadrature(log_likelihood, axes, prior=PRIOR):
    """Posterior means of the features of theta, on a grid of thetas (theta, statistic)."""
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    logs = log_likelihood(theta)
    logs = logs - ((theta - prior.mean) ** 2).sum(axis=1) / prior.scale**2 / 2
    weights = np.exp(logs - logs.max())
    return weights @ features(theta) / weights.sum()


def scores(posterior, wanted, errors=0.0):
    """z-scores of the features' means in Monte Carlo standard errors."""
    values = features(posterior.theta.to_numpy()[:, :, 0])
    sets = np.zeros(values.shape[1], dtype=int)
    found = []
    for k in range(values.shape[-1]):
        effective = diagnostics.convergence(values[..., k], sets)[0]
        found.append(diagnostics.monte_carlo_error(values[..., k], sets, effective))
    return (values.mean(axis=(0, 1)) - wanted) / np.hypot(found, errors), np.array(found)


def agree(posterior, wanted, errors=0.0):
    z, _ = scores(posterior, wanted, errors)
    return bool(np.all(np.abs(z) < -ndtri(1e-6 / 2 / len(z))))


GRID = np.linspace(-3, 4, 41)


def log_likelihood(model, data, theta):
    """At many thetas, log Z by the sum over all states."""
    states = all_states(model)
    logs = theta @ model.statistics(states).T + model.log_base(states)
    return theta @ model.statistics(data).sum(axis=0) - len(data) * logsumexp(logs, axis=1)


@pytest.fixture(scope="module")
def triangle():
    return by_quadrature(partial(log_likelihood, TRIANGLE, ROWS), [GRID] * 3)


def test_exact_draws_have_the_moments_of_quadrature(triangle, seed):
    posterior = long_fit("exact", seed)
    assert agree(posterior, triangle)
    other = ncb.priors.Normal(0.8, mean=0.0)
    shifted = by_quadrature(partial(log_likelihood, TRIANGLE, ROWS), [GRID] * 3, other)
    assert not agree(posterior, shifted)
    theta, log_z = posterior.theta.to_numpy(), posterior.log_z.to_numpy()
    wanted = [TRIANGLE.log_partition(each) for each in theta[0, :50, 0]]
    np.testing.assert_allclose(log_z[0, :50, 0], wanted)


def test_exact_draws_stay_where_log_z_is_finite(seed):
    """Rates of an exponential law, few rows: the posterior leans on its end at zero."""
    data = np.array([[0.1], [3.0]])
    posterior = long_fit("exact", seed, Exponential(), data)
    grid = [np.linspace(1e-4, 12, 4001)]
    right, twin = (
        by_quadrature(lambda t, rows=rows: rows * np.log(t[:, 0]) - 3.1 * t[:, 0], grid)
        for rows in (2, 1)
    )
    assert agree(posterior, right)
    assert not agree(posterior, twin)
    assert float(posterior.theta.min()) > 0


class Mirrored(Drawn):
    """Rows of another base."""

    def log_base(self, x):
        return -super().log_base(x)


@quick
def test_exchange_has_the_moments_of_quadrature(triangle, seed):
    posterior = long_fit(Exchange(proposals=3), seed, draws=2000)
    assert agree(posterior, triangle)
    assert not agree(long_fit("exchange", seed, Mirrored(3, fields=False)), triangle)
    acceptance = posterior.data["sample_stats"]["acceptance"]
    assert 0.2 < float(acceptance.mean()) < 0.7


def test_sweeps_from_the_data_come_close(seed):
    """Five sweeps forget the data nearly: means within a tenth of a posterior sd."""
    model = Ising(3, fields=False)
    posterior = long_fit(Exchange(sweeps=5, proposals=2), seed, model)
    wanted = by_quadrature(partial(log_likelihood, model, ROWS), [GRID] * 3)
    z, errors = scores(posterior, wanted)
    spread = posterior.theta.std(("chain", "draw")).to_numpy()[0]
    assert np.all(np.abs(z[:3] * errors[:3]) < 0.1 * spread + 5 * errors[:3])


def log_conditionals(model, data, theta):
    """The product of full conditionals, written out, at many thetas."""
    total = np.zeros(len(theta))
    for row in data:
        for j in range(len(row)):
            ends = np.array([row, row])
            ends[:, j] = [0.0, 1.0]
            low, high = model.statistics(ends) @ theta.T + model.log_base(ends)[:, None]
            total += (high if row[j] else low) - np.logaddexp(low, high)
    return total


@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (1, 2)]], ids=len)
def test_pseudolikelihood_is_the_product_of_full_conditionals(edges, seed):
    model = Drawn(3, fields=False, edges=edges)
    posterior = long_fit("pseudolikelihood", seed, model)
    axes = [GRID] * len(edges)
    assert agree(posterior, by_quadrature(partial(log_conditionals, model, ROWS), axes))
    # The twin is what a dropped log_base would give.
    plain = partial(log_conditionals, Ising(3, fields=False, edges=edges), ROWS)
    assert not agree(posterior, by_quadrature(plain, axes))


def test_without_interactions_pseudolikelihood_is_exact(seed):
    """Bernoulli columns: the posterior of each field by quadrature, and by the exact engine."""
    model = Ising(2, edges=[])
    data = np.array([[1, 0], [1, 1], [1, 0], [0, 0], [1, 0], [1, 1]], dtype=float)
    ones = data.sum(axis=0)
    wanted = by_quadrature(
        lambda theta: theta @ ones + len(data) * np.log(expit(-theta)).sum(axis=1),
        [np.linspace(-6, 7, 151)] * 2,
    )
    for engine in ("pseudolikelihood", "exact"):
        assert agree(long_fit(engine, seed, model, data), wanted)


@quick
def test_the_horseshoe_shrinks_conditionals_as_it_should(seed):
    """No column is a normalizer: trajectories against Polya-Gamma sweeps on the same posterior."""
    data = Ising(4).sample(np.zeros(10), 60, np.random.default_rng(seed))
    one = fit("pseudolikelihood", Ising(4), data, prior=ncb.priors.Horseshoe(), draws=1000,
              tune=200, seed=seed)  # fmt: skip
    plain = fit(Plain(), Ising(4), data, prior=ncb.priors.Horseshoe(), draws=2000,
                tune=200, seed=seed)  # fmt: skip
    assert_agree(one, plain)


def assert_agree(one, other):
    """Means of bounded functions of every theta, up to their Monte Carlo errors."""
    shrunk = [np.tanh(3 * each.theta.to_numpy()) for each in (one, other)]
    sets = [np.zeros(each.shape[1], dtype=int) for each in shrunk]
    for g, k in np.ndindex(shrunk[0].shape[2:]):
        means, errors = [], []
        for values, own in zip(shrunk, sets, strict=True):
            effective = diagnostics.convergence(values[:, :, g, k], own)[0]
            means.append(values[:, :, g, k].mean())
            errors.append(diagnostics.monte_carlo_error(values[:, :, g, k], own, effective))
        assert abs(means[0] - means[1]) < -ndtri(1e-6 / 20) * np.hypot(*errors)


def test_states_with_equal_statistics_are_one():
    """Graphs of five nodes: 1024 of them, few by edges and triangles; moments by differences."""
    model = ncb.models.ERGM(5, ["edges", "triangles"])
    states = states_of(model)
    assert len(states.statistics) < 30
    assert np.exp(states.log_weights).sum() == pytest.approx(1024)
    theta, unit = np.array([-0.4, 0.3]), 1e-4 * np.eye(2)
    assert states.log_partitions(theta) == pytest.approx(model.log_partition(theta))
    mean, covariance = states.moments(theta)
    for k in range(2):
        up, down = theta + unit[k], theta - unit[k]
        slope = (states.log_partitions(up) - states.log_partitions(down)) / 2e-4
        assert slope == pytest.approx(mean[k], rel=1e-6)
        bend = (states.moments(up)[0] - states.moments(down)[0]) / 2e-4
        np.testing.assert_allclose(bend, covariance[k], rtol=1e-5)


def test_models_with_many_states_or_none_are_not_listed():
    for model in (Ising(17), TorusGraph(2), Gaussian(1), ncb.models.ERGM(7, ["edges"])):
        assert states_of(model) is None
    with pytest.raises(ncb.InputError, match="needs a model with at most 65536 states"):
        fit(Exact("joint"), VonMises(), np.linspace(0, 1, 9)[:, None], prior=ncb.priors.Normal(1.0))
    with pytest.raises(ncb.InputError, match="must be one of 'auto', 'joint', 'slices'"):
        Exact("gibbs")


@quick
@pytest.mark.parametrize("prior", [None, ncb.priors.Horseshoe()], ids=["default", "horseshoe"])
def test_trajectories_agree_with_slices(prior, seed):
    """Two groups of different size, bounded functions of theta and log Z."""
    model = Ising(4)
    rng = np.random.default_rng(seed)
    data = {"few": model.sample(np.zeros(10), 25, rng), "many": model.sample(np.zeros(10), 90, rng)}
    both = [
        fit(Exact(method), model, data, prior=prior, draws=draws, tune=300, seed=seed)
        for method, draws in (("joint", 1000), ("slices", 1200))
    ]
    assert_agree(*both)


class Plain(Pseudolikelihood):
    """The paper's Algorithm 1 on conditionals."""

    def kernel(self, target):
        contrasts = tuple(each.contrast for each in target.losses)
        labelled = Target(contrasts, target.prior, normalizer=False)
        return Stepwise(ncb.engines.Gibbs(method="cholesky"), labelled)


PRIORS = [
    (Exact(), ncb.priors.RandomWalk(2.0, 1.0, initial="walk"), 2),
    (Exact("slices"), ncb.priors.RandomWalk(2.0, 1.0, initial="walk"), 2),
    (Exchange(), ncb.priors.RandomWalk(2.0, 1.0, initial="walk"), 2),
    (Pseudolikelihood(), ncb.priors.Normal(0.7, mean=0.4), 1),
]


@pytest.mark.parametrize(("engine", "prior", "groups"), PRIORS, ids=repr)
def test_the_posterior_is_left_invariant(engine, prior, groups, seed):
    testing.check_engine(engine, prior, groups=groups, seed=seed)


def without_prior(target, scales, theta, group, share, rng):
    loss = target.losses[group]
    factor = np.linalg.cholesky(loss.gram)
    mean = np.linalg.solve(loss.gram, loss.shift)
    return mean, mean + np.linalg.solve(factor.T, rng.standard_normal(len(mean)))


def twice_the_rows(losses):
    right = of_states(losses)
    return right._replace(counts=2 * right.counts)


def another_base(losses):
    right = of_states(losses)
    return right._replace(offset=np.zeros_like(right.offset))


of_states = posing._of_states
FAULTS = [
    (Exact("slices"), exact_module, "_residual", lambda loss, coef, share: 0.0),
    (Exact(), posing, "_of_states", twice_the_rows),
    (Exact(), posing, "_of_states", another_base),
    (Exchange(), exchange_module, "conditional", without_prior),
]


@pytest.mark.parametrize(("engine", "module", "name", "fault"), FAULTS, ids=range(4))
def test_a_fault_in_the_sweep_is_seen(engine, module, name, fault, seed, monkeypatch):
    monkeypatch.setattr(module, name, fault)
    with pytest.raises(AssertionError, match="does not leave the generalized posterior invariant"):
        testing.check_engine(engine, ncb.priors.Normal(0.7, mean=0.4), seed=seed)


ENGINES = [Exact(), Exact("slices"), Exchange(), Pseudolikelihood()]
EACH = pytest.mark.parametrize("engine", ENGINES, ids=repr)
GROUPS = {"one": ROWS[:25], "two": ROWS[25:]}


def assert_same(one, other):
    for name in ("posterior", "sample_stats"):
        left, right = (each.data[name].to_dataset() for each in (one, other))
        for variable in left.data_vars.keys() - {"sweep_seconds"}:
            np.testing.assert_array_equal(left[variable], right[variable], err_msg=variable)


@quick
@EACH
def test_cores_extension_and_groups_do_not_change_the_draws(engine):
    options = {"data": GROUPS, "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk")}
    whole = fit(engine, **options)
    assert_same(fit(engine, draws=30, **options).extend(10), whole)
    assert whole.theta.shape == (2, 40, 2, 3)
    if isinstance(engine, Exchange):
        assert_same(fit(engine, cores=2, **options), whole)


@quick
@EACH
def test_a_resumed_run_equals_an_uninterrupted_one(engine, resumed):
    options = {"data": GROUPS, "prior": ncb.priors.HalfCauchyNormal(), "draws": 15}
    whole = fit(engine, **options)
    for posterior in resumed(partial(fit, engine, **options), [3, 20, 47]):
        assert_same(posterior, whole)


@quick
@EACH
def test_a_posterior_says_what_it_used(engine, tmp_path):
    posterior = fit(engine)
    posterior.save(tmp_path / "posterior.nc")
    words = {
        "Exact": "the exact likelihood",
        "Exchange": "the likelihood by exchange",
        "Pseudolikelihood": "the pseudolikelihood",
    }[type(engine).__name__]
    for each in (posterior, ncb.load(tmp_path / "posterior.nc")):
        assert each.noise_report().verdict == (
            f"There is no noise: the fit used {words} of the data alone."
        )
        if isinstance(engine, Exact):
            assert list(each.summary().index)[-1] == "log_z"
        else:
            with pytest.raises(ncb.InputError, match=f"there is no log_z: {words} does not know"):
                _ = each.log_z


@quick
def test_a_checkpoint_of_another_engine_is_refused(tmp_path):
    fit("exact", checkpoint=tmp_path)
    with pytest.raises(ncb.InputError, match=r"differs in: .*engine \(was Exact\(\), now Exchange"):
        fit("exchange", checkpoint=tmp_path)


@quick
def test_chains_start_wider_than_the_posterior():
    problem = fit("exact").run.problem
    target, rng = problem.target(problem.source.fixed(0)), np.random.default_rng(1)
    for engine in (Exact("slices"), Exchange()):
        starts = np.array([engine.start(target_of(engine), rng).coef[0, :3] for _ in range(300)])
        draw = engine.start(target_of(engine), rng)
        steps = []
        for _ in range(600):
            draw = engine.step(target_of(engine), draw, rng)
            steps.append(draw.coef[0, :3])
        assert np.all(starts.std(axis=0) > 1.5 * np.std(steps, axis=0))
    assert Exact().step(target, Draw(np.zeros((1, 3)), {}), rng).coef.shape == (1, 4)


@quick
@pytest.mark.parametrize("engine", [Exact("slices"), Exchange()], ids=["exact", "exchange"])
def test_chains_start_near_the_data_under_a_population(engine, monkeypatch):
    """From a prior that may put the population anywhere; the twin takes its scales from there."""
    rng = np.random.default_rng(1)
    losses = target_of(engine).losses * 3
    target = Target((), ncb.priors.Hierarchical(), losses=losses)
    mode = np.linalg.solve(losses[0].gram, losses[0].shift)
    roots = np.sqrt(np.diag(losses[0].gram))

    def distance():
        starts = np.array([engine.start(target, rng).coef[:, :3] for _ in range(20)])
        return np.median(np.abs((starts - mode) * roots).max(axis=(1, 2)))

    near = distance()
    module = exact_module if isinstance(engine, Exact) else exchange_module
    monkeypatch.setattr(module, "approached", lambda t, r: t.prior.draw(t.shape, r))
    assert near < 8 < distance()


_TARGETS = {}


def target_of(engine):
    if engine not in _TARGETS:
        problem = fit(engine).run.problem
        _TARGETS[engine] = problem.target(problem.source.fixed(0))
    return _TARGETS[engine]


class Bare:
    """A family with the four members that a model must have."""

    space, groups = Ising(2).space, Ising(2).groups

    def statistics(self, x):
        return Ising(2).statistics(x)

    def log_base(self, x):
        return np.zeros(len(x))


class Odd(Bare):
    def change_statistics(self, x, j):
        return np.zeros((len(x), 2))

    def sample(self, theta, size, rng):
        return self.space.uniform(size, rng)

    def log_partition(self, theta):
        return float("inf")


class Still(Odd):
    def change_statistics(self, x, j):
        return np.hstack([np.ones((len(x), 2)), np.zeros((len(x), 1))])


PAIRS = np.array([[0, 1], [1, 0], [1, 1], [0, 0.0]])


@pytest.mark.parametrize(
    ("engine", "model", "message"),
    [
        ("exact", Bare(), r"^Bare has no log_partition\(theta\), which .*; write it, or fit aga"),
        ("exact", Odd(), r"log_partition of Odd is not finite at a rough estimate of theta \("),
        ("exchange", Bare(), r"^Bare has no sample\(theta, size, rng\), which the exchange"),
        (Exchange(sweeps=3), Odd(), r"^Odd has no sweep\(theta, x, rng\), which Exchange\(sweeps"),
        ("pseudolikelihood", Bare(), r"^Bare has no change_statistics\(x, j\), which the pseudo"),
        ("pseudolikelihood", Odd(), r"must return finite numbers of shape \(4, 3\), .* \(4, 2\)$"),
    ],
)
def test_what_a_model_lacks_is_said_in_one_sentence(engine, model, message):
    with pytest.raises(ncb.InputError, match=message):
        fit(engine, model, PAIRS)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_statistic_that_never_changes_is_told_by_name():
    """The prior is proper, so that there is a posterior: the prior's."""
    lines = fit("pseudolikelihood", Still(), PAIRS).warning_lines()
    words = "the statistic 'x1*x2' of Still does not change with any coordinate"
    assert any(line.startswith(words) and "posterior is the prior's" in line for line in lines)


def test_what_is_too_large_or_of_another_kind_is_refused():
    many = np.random.default_rng(1).integers(0, 2, (30, 21)).astype(float)
    with pytest.raises(ncb.InputError, match=r"out of reach, fit with engine=.auto.: log_parti"):
        fit("exact", Ising(21, edges=[(0, 1)]), many)
    with pytest.raises(ncb.InputError, match="for at most 80 statistics, got 153 of Ising"):
        fit("exact", Ising(17), many[:, :17])
    with pytest.raises(ncb.InputError, match=r"VonMises\(\) has no change_statistics"):
        fit("pseudolikelihood", VonMises(), np.ones((3, 1)))
    with pytest.raises(ncb.InputError, match=r"uses no noise, got noise_ratio=3; leave"):
        fit("exact", noise_ratio=3)
    with pytest.raises(ncb.InputError, match="engine must be one of 'auto', 'exact', 'exchange', "):
        fit("nuts-and-bolts")
    with pytest.raises(ncb.InputError, match=r"likelihood of the engine Odd.* must be one of 'sco"):
        fit(OddEngine())
    with pytest.raises(ncb.InputError, match="pseudolikelihood is for data of 0 and 1, got"):
        fit("pseudolikelihood", Counted(), 2 * PAIRS)


class OddEngine(Hyvarinen):
    likelihood = "odd"


class Counted(Still):
    space = ncb.spaces.Orthant(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sweeps": 0}, r"Exchange\(sweeps=...\) must be None, or a whole number, 1 or more, got"),
        ({"sweeps": 2.5}, r"Exchange\(sweeps=...\) must be None"),
        ({"proposals": None}, r"Exchange\(proposals=...\) must be a whole number, 1 or more, got"),
        ({"proposals": True}, r"Exchange\(proposals=...\) must be a whole number"),
    ],
)
def test_settings_of_the_exchange_are_whole_numbers(options, message):
    with pytest.raises(ncb.InputError, match=message):
        Exchange(**options)


@quick
@pytest.mark.parametrize(
    ("model", "data"),
    [
        (TorusGraph(2), np.random.default_rng(3).vonmises(0, 2, (30, 2)) % (2 * np.pi)),
        (Gaussian(2), np.random.default_rng(3).normal(50, 4, (30, 2))),
        (Ising(3), np.vstack([1 - np.eye(3), np.ones((3, 3))])),
    ],
    ids=["weak", "far", "few"],
)
def test_exact_runs_on_awkward_data(model, data):
    """Weak data, data far from zero, states never seen: chains move and stay finite."""
    posterior = ncb.fit(
        model, data, engine="exact", draws=300, tune=100, chains=2, seed=1, cores=1, progress=False
    )
    assert np.isfinite(posterior.log_z).all()
    assert posterior.summary()["ess_bulk"].min() > 10


@quick
def test_the_pilot_of_a_grid_is_near_where_a_contrast_is_not(seed):
    model = Ising(
        49, fields=False, edges=ncb.models.grid_edges(7, 7), coding="spins", coupling="common"
    )
    rng = np.random.default_rng(seed)
    data = model.sample(np.array([0.4]), 400, rng)
    found = pilot(model, data, rng)
    assert abs(found.theta[0] - 0.4) < 0.05
    assert abs(_against_noise(model, data, found.penalty, rng)[0] - 0.4) > 0.05
    assert found.total.tolist() == model.statistics(data).sum(axis=0).tolist()


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning", "ignore:degenerate")
def test_exchange_of_a_statistic_that_is_never_there_rests_on_the_prior():
    model = ncb.models.ERGM(5, ["edges", "triangles"])
    posterior = fit("exchange", model, np.zeros((5, 10)), draws=20, tune=20)
    assert np.isfinite(posterior.theta).all()


@quick
def test_what_a_model_says_of_a_proposal_is_not_said_of_the_fit(seed):
    model = ncb.models.ERGM(5, ["edges", "triangles"])
    rng = np.random.default_rng(seed)
    with pytest.warns(ncb.models.DegenerateWarning):
        model.sample(np.array([3.0, 3.0]), 50, rng)
    loss = simulated_loss(model, model.sample(np.array([-0.5, 0.1]), 20, rng), rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss.simulated(np.array([3.0, 3.0]), None, rng).shape == (2,)


def test_exchange_needs_a_model_that_exists_near_the_data():
    class Nowhere(Drawn):
        def sample(self, theta, size, rng):
            raise ncb.InputError("theta must be another")

    data = np.random.default_rng(1).integers(0, 2, (30, 3)).astype(float)
    with pytest.raises(ncb.InputError, match=r"can't be simulated at a rough estimate of theta"):
        ncb.fit(Nowhere(3), data, engine="exchange", progress=False)
