"""The public checks accept what is right; each rejects broken twins."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import testing
from ncbayes.base import Draw, Precision
from ncbayes.contrast import Contrast, Target
from ncbayes.engines import gibbs
from ncbayes.linalg import gaussian
from ncbayes.linalg.designs import Dense
from ncbayes.preparation import check_sweep

MODELS = [
    (ncb.models.VonMises(), [1.0, -0.5]),
    (ncb.models.Gaussian(2), [0.3, -1.0, 1.5, 1.0, 0.4]),
    (ncb.models.Exponential(), [2.0]),
    (ncb.models.Gamma(), [2.5, 1.5]),
]
LSHAPE = ncb.spaces.Region.of([[0, 0], [4, 0], [4, 1], [1, 1], [1, 3], [0, 3]])
NOISES = [
    (ncb.noise.Uniform(ncb.spaces.Torus(2)), ncb.spaces.Torus(2)),
    (ncb.noise.Uniform(ncb.spaces.Box([0, 1], [2, 5])), ncb.spaces.Box([0, 1], [2, 5])),
    (ncb.noise.Uniform(LSHAPE), LSHAPE),
    (
        ncb.noise.Restricted.to(ncb.noise.Normal([1.0, 1.0], [[1.0, 0.3], [0.3, 1.0]]), LSHAPE),
        LSHAPE,
    ),
    (ncb.noise.Normal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]), ncb.spaces.Reals(2)),
    (ncb.noise.StudentT([1.0], [[2.0]], df=3.0), ncb.spaces.Reals(1)),
    (ncb.noise.VonMises([1.0, 4.0], [0.5, 3.0]), ncb.spaces.Torus(2)),
    (ncb.noise.Gamma([2.0, 0.7], [1.0, 3.0]), ncb.spaces.Orthant(2)),
    (ncb.noise.Bernoulli([0.2, 0.7, 0.5]), ncb.spaces.Binary(3)),
    (
        ncb.noise.Product([ncb.noise.VonMises([0.0], [1.0]), ncb.noise.VonMises([3.0], [2.0])]),
        ncb.spaces.Torus(2),
    ),
    (
        ncb.noise.Mixture(
            [ncb.noise.Normal([0.0], [[1.0]]), ncb.noise.Normal([4.0], [[0.3]])], [0.3, 0.7]
        ),
        ncb.spaces.Reals(1),
    ),
]
PRIORS = [
    ncb.priors.Normal(0.7, mean=0.4),
    ncb.priors.Normal(3.0),
    ncb.priors.HalfCauchyNormal(0.8),
    ncb.priors.RandomWalk(2.0, 1.0, initial="walk"),
]


@pytest.mark.parametrize(("model", "theta"), MODELS, ids=repr)
def test_models_pass(model, theta, seed):
    testing.check_model(model, np.array(theta), seed=seed)
    testing.check_model(model, seed=seed)


@dataclass(frozen=True)
class BrokenVonMises:
    fault: str
    space = ncb.spaces.Torus(1)

    @property
    def groups(self):
        return {"mean": ("cos", "cos" if self.fault == "names" else "sin")}

    def statistics(self, x):
        if self.fault == "writes":
            x[0] = 0.0
        values = np.column_stack([np.cos(x), np.sin(x)])
        if self.fault == "columns":
            return values[:, :1]
        if self.fault == "neighbours":
            return values - values.mean(axis=0)
        if self.fault == "infinite":
            return np.where(values > 0.5, np.inf, values)
        return values

    def log_base(self, x):
        return np.zeros((len(x), 1) if self.fault == "base" else len(x))

    def sample(self, theta, size, rng):
        wrong = {"sampler": 1.1, "outside": 1.0}.get(self.fault, 1.0)
        x = ncb.models.VonMises().sample(np.asarray(theta) * wrong, size, rng)
        return x[:, 0] if self.fault == "sample shape" else x

    def log_partition(self, theta):
        return ncb.models.VonMises().log_partition(theta)

    def __getattr__(self, name):
        if name == "design" and self.fault == "design":
            return lambda x: Dense(2 * self.statistics(x))
        raise AttributeError(name)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("writes", "writes into the points"),
        ("columns", "one column a name"),
        ("neighbours", "among other points"),
        ("infinite", "not finite inside"),
        ("base", "log_base has shape"),
        ("names", "same name"),
        ("sampler", "do not belong together"),
        ("sample shape", "sample.* has shape"),
        ("design", "design's dense.* differs"),
    ],
)
def test_check_model_rejects(fault, sentence, seed):
    with pytest.raises(AssertionError, match=sentence):
        testing.check_model(BrokenVonMises(fault), np.array([1.0, -0.5]), seed=seed)


def test_check_model_accepts_the_twin_without_its_fault(seed):
    testing.check_model(BrokenVonMises("none"), np.array([1.0, -0.5]), seed=seed)


@dataclass(frozen=True)
class FewCounts:
    """Two counts that add up to at most ``most``: without mass beyond."""

    most: int
    fault: str = ""
    space = ncb.spaces.Counts(2)

    @property
    def groups(self):
        return {"rate": ("a", "b")}

    def statistics(self, x):
        mass = x.sum(axis=1, keepdims=True) <= self.most
        # As fit does, the check asks for no statistics where there is no mass.
        return np.where(mass, x + np.inf if self.fault == "statistics" else x, np.nan)

    def log_base(self, x):
        mass = x.sum(axis=1) <= (-1 if self.fault == "no mass" else self.most)
        return np.where(mass, 0.0, np.nan if self.fault == "nan" else -np.inf)

    def sample(self, theta, size, rng):
        x = rng.integers(0, self.most + 1, (20 * size, 2)).astype(float)
        kept = x if self.fault == "sample" else x[x.sum(axis=1) <= self.most]
        return kept[:size]


def test_a_model_may_have_no_mass_somewhere(seed):
    testing.check_model(FewCounts(4), seed=seed)
    # Few of the points that are tried have mass.
    testing.check_model(FewCounts(0), seed=seed)
    testing.check_model(FewCounts(4), np.zeros(2), seed=seed)
    x = FewCounts(4).sample(None, 60, np.random.default_rng(seed))
    with pytest.warns(ncb.FitWarning) as caught:
        ncb.fit(
            FewCounts(4), x, noise="matched", seed=seed, draws=5, tune=5, chains=1, progress=False
        )
    assert any("effective draws" in str(each.message) for each in caught)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("no mass", r"FewCounts.* has no mass \(log_base is -inf\) at any of the points"),
        ("nan", "not finite inside its space, where only a log_base of -inf"),
        ("statistics", "not finite inside its space, where only a log_base of -inf"),
    ],
)
def test_check_model_rejects_what_is_not_finite_where_there_is_mass(fault, sentence, seed):
    with pytest.raises(AssertionError, match=sentence):
        testing.check_model(FewCounts(4, fault), seed=seed)


def test_check_model_rejects_draws_without_mass(seed):
    with pytest.raises(AssertionError, match="sample draws points where log_base is -inf"):
        testing.check_model(FewCounts(4, "sample"), np.zeros(2), seed=seed)


@dataclass(frozen=True)
class WrongSlope(ncb.models.Gamma):
    fault: str = ""

    def score_statistics(self, x, j):
        first, second = super().score_statistics(x, j)
        if self.fault == "writes":
            x[0] = 1.0
        if self.fault == "columns":
            return first[:, :2], second[:, :2]
        if self.fault == "first":
            first[:, 1] *= -1
        if self.fault == "second":
            second[:, 0] *= -1
        if self.fault == "base":
            first[:, 2] = second[:, 2] = 0
        return first, second


@dataclass(frozen=True)
class WrongCoordinate(ncb.models.Gaussian):
    def score_statistics(self, x, j):
        return super().score_statistics(x, 0)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (WrongSlope("writes"), "writes into the points"),
        (WrongSlope("columns"), r"score_statistics returns shape \(\d+, 2\), not \(\d+, 3\)"),
        (WrongSlope("first"), r"score_statistics\(x, 0\) has a first derivative of '-x' that"),
        (WrongSlope("second"), r"\(x, 0\) has a second derivative of 'log\(x\)' that differs"),
        (WrongSlope("base"), r"\(x, 0\) has a first derivative of 'log_base' that differs"),
        (WrongCoordinate(2), r"\(x, 1\) has a first derivative of 'x1', 'x2', "),
    ],
    ids=repr,
)
def test_check_model_rejects_wrong_derivatives(model, sentence, seed):
    with pytest.raises(AssertionError, match=sentence):
        testing.check_model(model, seed=seed)


def test_check_model_accepts_right_derivatives(seed):
    testing.check_model(WrongSlope("none"), seed=seed)
    testing.check_model(ncb.models.TorusGraph(3, edges=[(0, 2)]), seed=seed)
    # Most of these draws are too close to zero for differences.
    testing.check_model(ncb.models.Gamma(), np.array([0.05, 1.0]), seed=seed)


@pytest.mark.parametrize(("noise", "space"), NOISES, ids=lambda value: type(value).__name__)
def test_noise_passes(noise, space, seed):
    testing.check_noise(noise, space, seed=seed)


@dataclass(frozen=True)
class BrokenNormal:
    fault: str

    def sample(self, size, rng):
        x = (1.1 if self.fault == "draws" else 1.0) * rng.standard_normal((size, 1))
        return x[:, 0] if self.fault == "shape" else x

    def log_density(self, x):
        values = -0.5 * x[:, 0] ** 2 - 0.5 * np.log(2 * np.pi)
        if self.fault == "normalization":
            return values + 0.1
        if self.fault == "support":
            return np.where(np.abs(x[:, 0]) < 1, values, -np.inf)
        if self.fault == "nan":
            return np.where(x[:, 0] < 2.5, values, np.nan)
        return values[:, None] if self.fault == "density shape" else values


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("draws", "do not follow its log_density"),
        ("normalization", r"not normalized: it integrates to 1\.(0[5-9]|1)"),
        ("support", "no finite log density"),
        ("nan", "no finite log density"),
        ("shape", "sample.* has shape"),
        ("density shape", "log_density has shape"),
    ],
)
def test_check_noise_rejects(fault, sentence, seed):
    with pytest.raises(AssertionError, match=sentence):
        testing.check_noise(BrokenNormal(fault), ncb.spaces.Reals(1), seed=seed)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_priors_pass(prior, seed):
    testing.check_prior(prior, seed=seed)


@dataclass(frozen=True)
class BrokenScale:
    """HalfCauchyNormal with one degree of freedom too few in the update of its scale."""

    fault: str = "update"
    right = ncb.priors.HalfCauchyNormal()

    def draw(self, shape, rng):
        return self.right.draw(shape, rng)

    def gaussian(self, state, shape):
        precision, shift = self.right.gaussian(state, shape)
        if self.fault == "precision":
            return Precision(-precision.within), shift
        return precision, shift[:1] if self.fault == "shift" else shift

    def update(self, state, theta, rng):
        if self.fault == "names":
            return {"size": state["scale"]}
        auxiliary = (1 + state["scale"] ** -2) / rng.standard_gamma(1.0, 1)
        rate = 1 / auxiliary + np.sum(theta**2) / 2
        return {"scale": np.sqrt(rate / rng.standard_gamma((theta.size - 1) / 2, 1))}


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("update", "do not leave the law of its state"),
        ("precision", "not positive definite"),
        ("shift", "shift of shape"),
        ("names", "other names or shapes"),
    ],
)
def test_check_prior_rejects(fault, sentence, seed):
    with pytest.raises(AssertionError, match=sentence):
        testing.check_prior(BrokenScale(fault), seed=seed)


SWEEPS = ncb.engines.Gibbs()


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("engine", [SWEEPS, ncb.engines.Joint()], ids=repr)
def test_engines_pass_the_label_test(engine, prior, groups, seed):
    testing.check_engine(engine, prior, groups=groups, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["woodbury", "block_tridiagonal", "conjugate_gradients"])
def test_gibbs_passes_the_label_test_by_every_method(method, seed):
    testing.check_engine(ncb.engines.Gibbs(method), groups=2, seed=seed)


class DroppedOffset:
    def step(self, target, draw, rng):
        contrasts = tuple(
            Contrast(each.design, np.zeros_like(each.offset), each.is_data)
            for each in target.contrasts
        )
        return SWEEPS.step(Target(contrasts, target.prior), draw, rng)


def rejected(engine, seed, prior=None, groups=1):
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        testing.check_engine(engine, prior, groups=groups, seed=seed)


def test_label_test_rejects_a_dropped_offset(seed):
    rejected(DroppedOffset(), seed)


def test_label_test_rejects_a_wrong_polya_gamma_parameter(seed, monkeypatch):
    right = gibbs.polya_gamma
    monkeypatch.setattr(gibbs, "polya_gamma", lambda log_odds, rng: right(2 * log_odds, rng))
    rejected(SWEEPS, seed)


def test_label_test_rejects_a_draw_without_gaussian_noise(seed, monkeypatch):
    def mean(conditional, rng, start, method):
        return gaussian.cholesky(conditional, np.zeros_like(conditional.shift)), {}

    monkeypatch.setattr(gaussian, "draw", mean)
    rejected(SWEEPS, seed)


@pytest.mark.parametrize("groups", [1, 2])
def test_label_test_rejects_a_wrong_scale_update(groups, seed):
    rejected(gibbs.Gibbs(), seed, BrokenScale(), groups)


def test_label_test_rejects_groups_that_are_not_drawn_jointly(seed, monkeypatch):
    """A draw that forgets what couples the groups."""

    def apart(conditional, rng, start, method):
        alone = replace(conditional, prior=Precision(conditional.prior.within))
        return gaussian.cholesky(alone, rng.standard_normal(start.shape)), {}

    monkeypatch.setattr(gaussian, "draw", apart)
    rejected(SWEEPS, seed, ncb.priors.RandomWalk(2.0, 1.0, initial="walk"), 2)


def test_an_engine_that_stands_still_is_invariant(seed):
    class Still:
        def step(self, target, draw, rng):
            return Draw(draw.coef, draw.scales)

    testing.check_engine(Still(), seed=seed)


@dataclass(frozen=True)
class BrokenSweep:
    """An Ising model whose sweep is that of another theta, or writes, or changes the shape."""

    fault: str
    inner: ncb.models.Ising = field(default_factory=lambda: ncb.models.Ising(3))

    @property
    def space(self):
        return self.inner.space

    @property
    def groups(self):
        return self.inner.groups

    def statistics(self, x):
        return self.inner.statistics(x)

    def log_base(self, x):
        return self.inner.log_base(x)

    def sweep(self, theta, x, rng):
        if self.fault == "writes":
            x[0] = 1 - x[0]
        share = {"theta": 0.6, "flat": 0.0}.get(self.fault, 1.0)
        moved = self.inner.sweep(share * theta, x, rng)
        return moved[1:] if self.fault == "shape" else moved


ISING = np.array([0.3, -0.5, 0.2, 0.8, -0.6, 0.5])


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("theta", "does not leave the model at theta invariant"),
        ("writes", "writes into the points"),
        ("shape", "must return as many points"),
    ],
)
def test_check_model_rejects_a_broken_sweep(fault, sentence, seed):
    testing.check_model(BrokenSweep(""), ISING, seed=seed)
    with pytest.raises(AssertionError, match=sentence):
        testing.check_model(BrokenSweep(fault), ISING, seed=seed)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_noise_of_a_broken_sweep_is_refused_before_it_is_used(seed):
    data = ncb.models.Ising(3).sample(2 * ISING, 500, np.random.default_rng(seed))
    options = {"seed": seed, "draws": 10, "tune": 50, "chains": 1, "progress": False}
    problem = ncb.fit(BrokenSweep(""), data, noise="matched", **options).run.problem
    tempering = ncb.noise.Tempering(2 * ISING, 1.0, 0.0, 0.0, 1.0, 10)
    check_sweep(problem.against((ncb.noise.Annealed(BrokenSweep(""), tempering),)))
    broken = problem.against((ncb.noise.Annealed(BrokenSweep("flat"), tempering),))
    sentence = "sweep.*do not follow its log_density.*must leave the model at theta invariant"
    with pytest.raises(ncb.InputError, match=sentence):
        check_sweep(broken)
