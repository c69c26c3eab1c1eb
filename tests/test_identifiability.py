"""What data and noise do not tell apart: a warning where the prior does, a refusal where not."""

import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import identifiability
from ncbayes.base import Precision
from ncbayes.identifiability import couples_groups, is_proper
from ncbayes.priors import Hierarchical, Horseshoe, Normal, RandomWalk

X = np.random.default_rng(1).normal(size=(30, 1))
SHORT = {"draws": 20, "tune": 10, "chains": 1, "seed": 1, "progress": False}


@dataclass(frozen=True)
class Family:
    functions: dict = field(repr=False)
    space: object = field(default=ncb.spaces.Reals(1), repr=False)

    @property
    def groups(self):
        return {"all": tuple(self.functions)}

    def statistics(self, x):
        return np.column_stack([function(x) for function in self.functions.values()])

    def log_base(self, x):
        return -0.5 * (x**2).sum(axis=1)


@dataclass(frozen=True)
class Flat:
    """A prior without a scale for the columns named."""

    columns: tuple = ()

    def draw(self, shape, rng):
        return {}

    def gaussian(self, state, shape):
        precision = np.ones(shape)
        precision[:, list(self.columns)] = 0.0
        return Precision(precision), np.zeros(shape)

    def update(self, state, theta, rng):
        return state


ONE = Family({"x": lambda x: x[:, 0], "two": lambda x: np.full(len(x), 2.0)})
TWICE = Family(
    {"x": lambda x: x[:, 0], "sin": lambda x: np.sin(x[:, 0]), "2x": lambda x: 2 * x[:, 0]}
)
MANY = Family(
    {f"x{i}": lambda x, i=i: x[:, i] for i in range(9)} | {"sum": lambda x: x.sum(axis=1)},
    ncb.spaces.Reals(9),
)


def fitted(model, data, **options):
    """A short fit, and what it warns of besides its shortness."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = ncb.fit(model, data, **{"noise": "matched", **SHORT, **options})
    lines = [str(each.message) for each in caught]
    return posterior, [line for line in lines if "statistic" in line and "constant" in line]


def test_a_constant_statistic_is_told_and_has_the_posterior_of_its_prior():
    for prior in (None, Normal(3.0)):
        posterior, (line,) = fitted(ONE, X, prior=prior, draws=300, tune=50)
        assert line.startswith(
            "the statistic 'two' of Family() is constant over data and noise, so that the "
            "normalizing constant can't be told from it; "
        )
        assert "more noise does not help: pass a prior of known scale" in line
        assert line in posterior.warning_lines()
    draws = posterior.theta.sel(statistic="two").to_numpy()
    assert 2.4 < draws.std() < 3.6
    # log Z moves with it.
    total = posterior.log_z.to_numpy() - 2 * draws[..., 0:1]
    assert total.std() < 1


def test_collinear_statistics_are_named_in_one_sentence():
    _, (line,) = fitted(TWICE, X)
    named, partner = line.split(" is a linear combination of ")
    assert {"'x'" in named, "'2x'" in named} == {True, False}
    assert partner.startswith(("'2x' (and a constant)", "'x' (and a constant)"))
    _, (line,) = fitted(MANY, np.random.default_rng(0).normal(size=(50, 9)))
    assert " is a linear combination of '" in line
    assert "and 4 others (and a constant) over data and noise" in line


def test_a_prior_of_the_user_s_is_taken_at_its_word():
    assert fitted(TWICE, X, prior=Normal(1.0))[1] == []
    assert fitted(TWICE, X, prior={"all": Normal(1.0)})[1] == []
    assert len(fitted(TWICE, X, prior={"normalizer": Normal(1.0)})[1]) == 1


def test_statistics_that_differ_are_not_told_of():
    assert fitted(ncb.models.Gaussian(1), X)[1] == []
    assert fitted(ncb.models.Gaussian(1), 1e-3 * (X + 100))[1] == []


def rare(seed, rows):
    """Seven binary columns of which few are ever one together."""
    rng = np.random.default_rng(seed)
    pool = (rng.random((16, 7)) < 0.25).astype(float)
    pool[:7] = np.eye(7)
    pool[7] = 0.0
    return pool[np.append(np.arange(16), rng.integers(0, 16, rows - 16))]


@pytest.mark.parametrize("number", range(3))
def test_two_groups_of_binary_columns_are_fitted(number):
    """The issue's case: 55 rows, 16 of them different; refused whatever the seed before."""
    data = {"many": rare(number, 200), "few": rare(number + 50, 55)}
    posterior, lines = fitted(ncb.models.Ising(7), data, noise="auto", seed=number)
    assert posterior.data.attrs["noise_ratio"] > 1
    assert np.isfinite(posterior.theta.to_numpy()).all()
    assert all("in group" in line for line in lines)


def test_more_noise_is_the_cure_where_it_is_one():
    """Over as many noise points as rows two columns are never one together; over more they are."""
    data = np.tile([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]], (2, 1))
    model = ncb.models.Ising(["a", "b", "c"])
    sparse = [
        fitted(
            model,
            data.astype(float),
            noise=ncb.noise.Bernoulli([0.35, 0.3, 0.35]),
            noise_ratio=1,
            seed=seed,
        )[1]
        for seed in range(6)
    ]
    told = [line for lines in sparse for line in lines]
    assert told
    assert all("pass more noise, such as noise_ratio=10, which tells them apart" in line
               for line in told)  # fmt: skip
    assert fitted(model, data.astype(float), noise_ratio=50)[1] == []


def test_many_features_of_full_rank_are_fitted_with_one_warning():
    rng = np.random.default_rng(0)
    weights, shifts = rng.normal(size=(2, 200)), rng.normal(size=200)
    model = Family(
        {f"t{k}": lambda x, k=k: np.tanh(x @ weights[:, k] + shifts[k]) for k in range(200)},
        ncb.spaces.Box((-1, -1), (1, 1)),
    )
    data = np.clip(rng.normal(0, 0.3, (300, 2)), -1, 1)
    posterior, lines = fitted(model, data, draws=4, tune=2)
    assert len(lines) == 1
    assert "and more noise does not help: pass a prior of known scale" in lines[0]
    assert len(lines[0]) < 600
    posterior, lines = fitted(model, data, draws=30, tune=10, prior=Normal(1.0))
    assert lines == []
    assert float(posterior.theta.std()) < 2


@pytest.mark.parametrize(
    ("model", "prior", "refused"),
    [
        (TWICE, Flat((0, 2)), True),
        (TWICE, Flat((0, 1, 2)), True),
        (TWICE, Flat((1,)), False),
        # One of two that can't be told apart has a scale, and so has their sum.
        (TWICE, Flat((0,)), False),
        (ONE, Flat((1,)), True),
        (ONE, Flat((0,)), False),
        (ncb.models.Gaussian(1), Flat((0, 1)), False),
    ],
)
def test_what_has_no_posterior_is_refused(model, prior, refused):
    if not refused:
        assert np.isfinite(fitted(model, X, prior=prior)[0].theta.to_numpy()).all()
        return
    with pytest.raises(ncb.InputError, match="and the prior is flat there, so that there is no po"):
        ncb.fit(model, X, prior=prior, noise="matched", **SHORT)
    with pytest.raises(ncb.InputError, match=r"^in group 'a': the statistic"):
        ncb.fit(model, {"a": X, "b": X}, prior=prior, noise="matched", **SHORT)


def test_a_prior_is_proper_if_every_direction_has_a_scale():
    assert is_proper(Precision(np.ones((2, 3))))
    assert not is_proper(Precision(np.array([[1.0, 0.0]])))
    assert is_proper(Precision(np.array([[[2.0, 1.0], [1.0, 2.0]]])))
    assert not is_proper(Precision(np.array([[[1.0, 1.0], [1.0, 1.0]]])))
    # Steps alone leave the level open; with a little of its own it has a scale.
    steps = np.array([[1.0], [2.0], [1.0]]), np.full((2, 1), -1.0)
    assert not is_proper(Precision(*steps))
    assert is_proper(Precision(steps[0] + 0.1, steps[1]))
    full = steps[0][:, :, None]
    assert not is_proper(Precision(full, steps[1]))
    assert is_proper(Precision(full + 0.1, steps[1]))


def test_steps_without_a_level_are_refused_where_data_do_not_see():
    @dataclass(frozen=True)
    class Steps(Flat):
        def gaussian(self, state, shape):
            within = np.full(shape, 2.0)
            within[[0, -1]] = 1.0
            return Precision(within, np.full((shape[0] - 1, shape[1]), -1.0)), np.zeros(shape)

    groups = {"a": X, "b": X + 0.1, "c": X - 0.1}
    with pytest.raises(ncb.InputError, match=r"^the statistic 'two' .* the prior is flat there"):
        ncb.fit(ONE, groups, prior=Steps(), noise="matched", **SHORT)
    assert fitted(ONE, groups, prior=RandomWalk(rate=1.0, initial="walk"))[0].complete


def test_large_designs_are_not_looked_at(monkeypatch):
    assert len(fitted(TWICE, X)[1]) == 1
    monkeypatch.setattr(identifiability, "MOST_CHECKED_ENTRIES", 60 * 3 - 1)
    assert fitted(TWICE, X)[1] == []


def test_engines_without_noise_follow_the_same_rule():
    class Two(ncb.models.VonMises):
        @property
        def groups(self):
            return {"mean": ("cos", "sin"), "none": ("two",)}

        def statistics(self, x):
            return np.column_stack([super().statistics(x), np.full(len(x), 2.0)])

        def score_statistics(self, x, j):
            first, second = super().score_statistics(x, j)
            return tuple(np.insert(each, 2, 0.0, axis=1) for each in (first, second))

    angles = np.random.default_rng(1).vonmises(0, 2, (40, 1)) % (2 * np.pi)
    options = {**SHORT, "engine": "hyvarinen"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ncb.fit(Two(), angles, **options)
    (line,) = [str(each.message) for each in caught if "'two'" in str(each.message)]
    assert " has no derivative at any of the data, " in line
    assert line.endswith("; until then its posterior is the prior's")
    with pytest.raises(ncb.InputError, match=r"'two' of .* has no derivative at any of the data"):
        ncb.fit(Two(), angles, prior=Flat((2,)), **options)


# One rule for one and for many groups.

CONSTANT = {
    "ising": (ncb.models.Ising(["a", "b"]), [[0, 1], [1, 1], [0, 1]], [[0, 1], [1, 0], [1, 1]]),
    "truncated": (ncb.models.TruncatedGaussian(["a", "b"]), [[0.5, 1], [1, 1], [2, 1]],
                  [[0.5, 1], [1, 2], [3, 1]]),
    "counts": (ncb.models.ConwayMaxwell(["a", "b"], most=5), [[0, 1], [2, 1], [0, 1]],
               [[0, 1], [1, 3], [1, 1]]),
    "torus": (ncb.models.TorusGraph(["a", "b"]), [[0.5, 1], [1, 1], [2, 1]],
              [[0.5, 1], [1, 2], [3, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONSTANT)
@pytest.mark.parametrize("engine", ["gibbs", "exact"])
def test_a_constant_column_is_refused_alone_and_in_a_group(kind, engine):
    model, still, moving = CONSTANT[kind]
    still, moving = (np.array(rows, dtype=float) for rows in (still, moving))
    message = r"the node 'b' \(column 1, counted from 0\) is 1 in all rows"
    with pytest.raises(ncb.InputError, match=f"^{message}"):
        ncb.fit(model, still, engine=engine, **SHORT)
    with pytest.raises(
        ncb.InputError, match=rf"^in group 'one': {message}.*, or tie the groups together, as by"
    ):
        ncb.fit(model, {"two": moving, "one": still}, engine=engine, **SHORT)


def test_groups_that_a_prior_ties_together_inform_each_other():
    model, still, moving = CONSTANT["ising"]
    groups = {"two": np.array(moving * 5, dtype=float), "one": np.array(still * 5, dtype=float)}
    for prior in (Hierarchical(), RandomWalk(rate=1.0, initial="walk")):
        posterior, _ = fitted(model, groups, prior=prior)
        assert np.isfinite(posterior.theta.to_numpy()).all()
    with pytest.raises(ncb.InputError, match=r"^the node 'b' .* is 1 in all rows"):
        ncb.fit(model, {"x": groups["one"], "y": groups["one"]}, prior=Hierarchical(), **SHORT)


@pytest.mark.parametrize(
    ("prior", "coupled"),
    [
        (None, False),
        (Normal(1.0), False),
        (Horseshoe(), False),
        (RandomWalk(rate=1.0, initial="walk"), True),
        (Hierarchical(), True),
        ({"field": Hierarchical(), "edge": RandomWalk(rate=1.0, initial="walk")}, True),
        ({"edge": Hierarchical()}, False),
        ({"field": Hierarchical(), "edge": Normal(1.0)}, False),
    ],
    ids=str,
)
def test_which_priors_tie_groups_together(prior, coupled):
    model = ncb.models.Ising(3)
    assert couples_groups(model, prior, 3) == coupled
    assert not couples_groups(model, prior, 1)
