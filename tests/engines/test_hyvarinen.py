"""H-Bayes against exact answers, and through the front door."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes import testing
from ncbayes.base import Draw, Precision
from ncbayes.contrast import Target
from ncbayes.engines import Hyvarinen
from ncbayes.linalg import given_grams
from ncbayes.priors.blocks import Blocks, Part
from ncbayes.resources import ScoreSize, sweep_seconds
from ncbayes.score import ScoreLoss, score_loss

MODEL = ncb.models.VonMises()
DATA = MODEL.sample(np.array([1.0, 0.5]), 60, np.random.default_rng(0))
GROUPS = {"one": DATA[:40], "two": DATA[40:]}


def losses(rng, groups=2, size=3):
    roots = rng.standard_normal((groups, 7, size))
    return tuple(ScoreLoss(r.T @ r, rng.standard_normal(size), 7) for r in roots)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
def test_known_grams_give_the_draw_of_a_dense_inverse(full, coupled, seed):
    rng = np.random.default_rng(seed)
    grams = [each.gram for each in losses(rng)]
    within = rng.uniform(1, 2, (2, 3))
    within = np.array([np.diag(row) + 0.2 for row in within]) if full else within
    prior = Precision(within, rng.uniform(-1, 0, (1, 3)) if coupled else None)
    dense = testing.dense_precision(prior)
    for g, gram in enumerate(grams):
        dense[3 * g : 3 * g + 3, 3 * g : 3 * g + 3] += gram
    shift = rng.standard_normal((2, 3))
    mean = given_grams(grams, prior, shift, np.zeros((2, 3)))
    np.testing.assert_allclose(mean.ravel(), np.linalg.solve(dense, shift.ravel()), rtol=1e-9)
    columns = [given_grams(grams, prior, 0 * shift, e.reshape(2, 3)).ravel() for e in np.eye(6)]
    root = np.array(columns).T
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(dense), rtol=1e-8, atol=1e-12)


def moments(draws, mean, covariance):
    """z-scores of the draws' means and products, as if the law were N(mean, covariance)."""
    off = draws - mean
    pairs = [(i, j) for i in range(len(mean)) for j in range(i + 1)]
    products = np.column_stack([off[:, i] * off[:, j] - covariance[i, j] for i, j in pairs])
    rows = np.column_stack([off, products])
    return rows.mean(axis=0) / (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


def draws_and_law(seed, rate):
    """Draws with the learning rate 0.3, and the law that they have if that is ``rate``."""
    rng = np.random.default_rng(seed)
    target = Target((), ncb.priors.Normal(0.8, mean=0.5), losses=losses(rng, groups=1))
    engine, draw = Hyvarinen(0.3), Draw(np.zeros((1, 3)), {})
    draws = np.array([engine.step(target, draw, rng).coef[0] for _ in range(20_000)])
    loss = target.losses[0]
    covariance = np.linalg.inv(rate * loss.gram + np.eye(3) / 0.64)
    return draws, covariance @ (rate * loss.shift + 0.5 / 0.64), covariance


def test_with_a_normal_prior_the_posterior_is_a_known_normal(seed):
    assert np.all(np.abs(moments(*draws_and_law(seed, 0.3))) < -ndtri(1e-6 / 2 / 9))


def test_the_known_normal_of_another_learning_rate_is_rejected(seed):
    assert np.any(np.abs(moments(*draws_and_law(seed, 0.36))) > -ndtri(1e-6 / 2 / 9))


PRIORS = [
    (None, 1),
    (ncb.priors.Normal(0.7, mean=0.4), 1),
    (ncb.priors.HalfCauchyNormal(0.8), 2),
    (ncb.priors.RandomWalk(2.0, 1.0, initial="walk"), 3),
]


@pytest.mark.parametrize(("prior", "groups"), PRIORS, ids=repr)
def test_the_generalized_posterior_is_left_invariant(prior, groups, seed):
    testing.check_engine(Hyvarinen(0.3), prior, groups=groups, seed=seed)


@dataclass(frozen=True)
class Broken(Hyvarinen):
    """A sweep with a fault."""

    fault: str = ""

    def step(self, target, draw, rng):
        if self.fault == "precision":
            target = Target((), target.prior, losses=tuple(map(doubled, target.losses)))
        if self.fault == "shift":
            target = Target((), target.prior, losses=tuple(map(negative, target.losses)))
        if self.fault == "rate":
            return Hyvarinen(2 * self.learning_rate).step(target, draw, rng)
        after = super().step(target, draw, rng)
        if self.fault == "scales":
            scales = {name: 0.9 * values for name, values in after.scales.items()}
            return Draw(after.coef, scales)
        return after


def doubled(loss):
    return ScoreLoss(1.5 * loss.gram, loss.shift, loss.rows)


def negative(loss):
    return ScoreLoss(loss.gram, 0 * loss.shift, loss.rows)


@pytest.mark.parametrize("fault", ["precision", "shift", "rate", "scales"])
def test_a_fault_in_the_sweep_is_seen(fault, seed):
    with pytest.raises(AssertionError, match="does not leave the generalized posterior invariant"):
        testing.check_engine(
            Broken(0.3, fault=fault), ncb.priors.HalfCauchyNormal(0.8), groups=2, seed=seed
        )


def of_theta(prior):
    """For the losses of check_engine: three statistics, no c."""
    return Blocks((Part("theta", prior, 0, 3),))


def test_the_posterior_under_a_horseshoe_is_left_invariant(seed):
    prior = replace(ncb.priors.Horseshoe(slab=0.5), runs=(2, 1))
    testing.check_engine(Hyvarinen(), of_theta(prior), groups=2, seed=seed)


class WrongForm(ncb.priors.Horseshoe):
    """Says that the slab is fictitious, and draws theta as if it were not."""

    def coordinates(self, shape):
        found = super().coordinates(shape)
        return replace(found, fictitious=~found.fictitious)


def test_the_other_form_of_the_slab_is_rejected(seed):
    prior = of_theta(WrongForm(slab=0.5, runs=(2, 1), relative=np.ones(2)))
    with pytest.raises(AssertionError, match="does not leave the generalized posterior invariant"):
        testing.check_engine(Hyvarinen(), prior, seed=seed)


def test_chains_start_wider_than_the_posterior(seed):
    rng = np.random.default_rng(seed)
    target = Target((), ncb.priors.Normal(0.8), losses=losses(rng, groups=1))
    engine = Hyvarinen()
    starts = np.array([engine.start(target, rng).coef[0] for _ in range(2000)])
    steps = np.array([engine.step(target, Draw(starts[:1], {}), rng).coef[0] for _ in range(2000)])
    assert np.all(starts.std(axis=0) / steps.std(axis=0) > 1.9)
    learned = Target((), ncb.priors.HalfCauchyNormal(0.8), losses=target.losses)
    assert engine.start(learned, rng).scales.keys() == {"scale"}


def fit(data=DATA, **options):
    settings = {"draws": 40, "tune": 10, "chains": 2, "seed": 5, "cores": 1, "progress": False}
    return ncb.fit(MODEL, data, engine="hyvarinen", **{**settings, **options})


quick = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")


def assert_same(one, other):
    for name in ("posterior", "sample_stats"):
        left, right = (each.data[name].to_dataset() for each in (one, other))
        for variable in left.data_vars.keys() - {"sweep_seconds"}:
            np.testing.assert_array_equal(left[variable], right[variable], err_msg=variable)


@quick
def test_a_fit_without_noise_speaks_of_no_noise(tmp_path):
    posterior = fit()
    posterior.save(tmp_path / "posterior.nc")
    for each in (posterior, ncb.load(tmp_path / "posterior.nc")):
        assert list(each.summary().index) == ["cos", "sin"]
        parts = ["posterior", "sample_stats", "observed_data", "verification"]
        assert list(each.data.children) == parts
        assert not [key for key in each.data.attrs if "noise" in key]
        assert set(each.data["sample_stats"].data_vars) == {"score_loss", "sweep_seconds"}
        assert each.data.attrs["engine"] == "Hyvarinen(learning_rate=0.2)"
        assert each.data.attrs["learning_rate"] == 0.2
        report = each.noise_report()
        assert repr(report) == report.verdict
        assert report.verdict.startswith("There is no noise: the fit used the Hyvarinen score")
        with pytest.raises(ncb.InputError, match="there is no log_z: the Hyvarinen score does not"):
            _ = each.log_z
        with pytest.raises(ncb.InputError, match="spread between noise sets needs a fit"):
            each.between_set_spread()
    assert posterior.noises == {}
    with pytest.raises(ncb.InputError, match="theory of contrasts with noise, and this fit used n"):
        ncb.asymptotics.efficiency(posterior)
    assert_same(posterior, ncb.load(tmp_path / "posterior.nc"))


@quick
def test_pictures_do_without_noise():
    posterior = fit()
    figure = ncb.plots.density(posterior, MODEL)
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert not [label for label in labels if "noise" in label]
    with pytest.raises(ncb.InputError, match=r"plots\.noise needs a fit against noise, and this"):
        ncb.plots.noise(posterior)


def test_the_default_prior_is_that_of_other_fits():
    """The posterior mean against the closed form with theta ~ N(0, 100 Cov^-1)."""
    posterior = ncb.fit(MODEL, DATA, engine=Hyvarinen(0.5), draws=4000, tune=0, chains=2, seed=1,
                        cores=1, progress=False)  # fmt: skip
    loss = score_loss(MODEL, DATA)
    covariance = np.cov(MODEL.statistics(DATA), rowvar=False)
    precision = 0.5 * loss.gram + covariance / 100
    mean, inverse = np.linalg.solve(precision, 0.5 * loss.shift), np.linalg.inv(precision)
    draws = posterior.theta.to_numpy().reshape(-1, 2)
    assert np.all(np.abs(moments(draws, mean, inverse)) < -ndtri(1e-6 / 2 / 5))


@quick
def test_cores_and_extension_do_not_change_the_draws():
    options = {"data": GROUPS, "prior": ncb.priors.RandomWalk(rate=1.0, initial="walk")}
    whole = fit(**options)
    assert_same(fit(cores=2, **options), whole)
    assert_same(fit(draws=30, **options).extend(10), whole)
    assert whole.theta.dims == ("chain", "draw", "group", "statistic")
    assert whole.theta.shape == (2, 40, 2, 2)
    assert "cos[one]" in whole.summary().index


@quick
def test_a_resumed_run_equals_an_uninterrupted_one(resumed):
    options = {"data": GROUPS, "prior": ncb.priors.HalfCauchyNormal()}
    whole = fit(**options)
    for posterior in resumed(partial(fit, **options), [2, 3, 20, 47, 90]):
        assert_same(posterior, whole)


class Sharper(ncb.models.VonMises):
    """The same statistics with another derivative."""

    def score_statistics(self, x, j):
        first, second = super().score_statistics(x, j)
        return 2 * first, 2 * second


@quick
def test_a_checkpoint_of_another_run_is_refused_by_name(tmp_path):
    fit(checkpoint=tmp_path)
    settings = {"draws": 40, "tune": 10, "chains": 2, "seed": 5, "cores": 1, "progress": False}
    with pytest.raises(ncb.InputError, match=r"differs in: .*learning_rate \(was 0.2, now 0.5\)"):
        ncb.fit(MODEL, DATA, engine=Hyvarinen(0.5), checkpoint=tmp_path, **settings)
    with pytest.raises(ncb.InputError, match=r"differs in: .*engine \(was Hyvarinen.*now Joint"):
        ncb.fit(MODEL, DATA, checkpoint=tmp_path, **settings)
    with pytest.raises(ncb.InputError, match=r"differs in: .*statistics of the model"):
        ncb.fit(Sharper(), DATA, engine="hyvarinen", checkpoint=tmp_path, **settings)


@pytest.mark.parametrize("rate", [0, -1.0, np.inf, np.nan, True, "0.2", None])
def test_the_learning_rate_is_a_positive_number(rate):
    with pytest.raises(ncb.InputError, match=r"Hyvarinen\(learning_rate=...\) must be a positive"):
        Hyvarinen(rate)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": ncb.noise.Fixed()}, r"uses no noise, got noise=Fixed.*; leave noise out"),
        ({"noise": "other"}, r"noise must|uses no noise"),
        ({"noise_ratio": 5}, r"^Hyvarinen\(learning_rate=0.2\) uses no noise, got noise_ratio=5; "),
        (
            {"prior": {"normalizer": ncb.priors.Normal(1)}},
            "^prior has a block 'normalizer', but without noise there is no .* allowed are 'mean'$",
        ),
        ({"prior": {"edge": ncb.priors.Normal(1)}}, "unknown block 'edge'; allowed are 'mean'$"),
        ({"prior": ncb.priors.Normal([1.0, 2.0, 3.0])}, r"must be one number or 2 of them"),
    ],
    ids=["noise", "word", "noise_ratio", "normalizer", "block", "prior"],
)
def test_what_cannot_be_is_refused_in_one_sentence(options, message):
    with pytest.raises(ncb.InputError, match=message):
        fit(**options)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_statistic_without_derivatives_at_the_data_is_told_by_name():
    """The prior is proper, so that there is a posterior: the prior's."""
    lines = fit(data={"a": DATA, "b": np.zeros((5, 1))}).warning_lines()
    words = "in group 'b': the statistic 'cos' of VonMises() has no derivative at any of the data"
    assert any(line.startswith(words) and "posterior is the prior's" in line for line in lines)


def test_models_without_derivatives_are_refused_at_the_door():
    with pytest.raises(ncb.InputError, match=r"needs continuous points .* got Ising\(2\)"):
        ncb.fit(ncb.models.Ising(2), np.eye(2), engine="hyvarinen")


def test_a_fit_too_large_for_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("ncbayes.resources.available_bytes", lambda: 1000.0)
    with pytest.raises(ncb.InputError, match="lower draws, chains or cores, or use a model with f"):
        fit()


def test_the_time_of_a_sweep_grows_with_the_statistics():
    rng = np.random.default_rng(1)
    prior = ncb.priors.Normal(1.0)
    few, many = (Target((), prior, losses=losses(rng, 1, size)) for size in (3, 600))
    assert sweep_seconds(many) > 10 * sweep_seconds(few) > 0
    assert ScoreSize((10,), 600, 2).needed_bytes(1, 1) > ScoreSize((10,), 3, 2).needed_bytes(1, 1)


@quick
def test_recovery_on_a_torus_graph(seed):
    """A chain of four angles, a weak prior: the mean is the truth up to its sampling error."""
    model = ncb.models.TorusGraph(4, marginal=False, reflectional=False)
    names = list(model.groups["edge"])
    edges = [names.index(f"cos(x{j} - x{j + 1})") for j in (1, 2, 3)]
    truth = np.where(np.isin(np.arange(12), edges), 1.5, 0.0)
    data = model.sample(truth, 2000, np.random.default_rng(seed))
    weak = ncb.priors.Normal(100.0)
    settings = {"draws": 2000, "tune": 0, "chains": 2, "cores": 1, "progress": False}
    posterior = ncb.fit(model, data, engine=Hyvarinen(0.2), prior=weak, seed=seed, **settings)
    draws = posterior.theta.to_numpy().reshape(-1, 12)
    parts = [score_loss(model, row[None]) for row in data]
    meat = 2000 * np.cov(np.array([each.gram @ truth - each.shift for each in parts]).T)
    bread = np.linalg.inv(np.sum([each.gram for each in parts], axis=0))
    error = np.sqrt(np.diag(bread @ meat @ bread) + draws.var(axis=0) / len(draws))
    limit = -ndtri(1e-6 / 2 / 12)
    assert np.all(np.abs(draws.mean(axis=0) - truth) < limit * error)
    assert np.all(draws.mean(axis=0)[edges] > limit * error[edges])
