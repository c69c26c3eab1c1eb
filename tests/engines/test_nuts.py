"""NUTS against exact answers, against Gibbs, and broken off."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.base import Draw, InputError
from ncbayes.contrast import Contrast, Target, label_probability, relabelled
from ncbayes.curved import Curved
from ncbayes.engines import Nuts
from ncbayes.testing import check_engine


@dataclass(frozen=True)
class WithoutOffset:
    """A broken twin: NUTS on the posterior without the offsets."""

    engine: Nuts

    def start(self, target, rng):
        return self.engine.start(target, rng)

    def step(self, target, draw, rng):
        contrasts = tuple(Contrast(e.design, 0 * e.offset, e.is_data) for e in target.contrasts)
        curves = tuple(replace(each, offset=0 * each.offset) for each in target.curves)
        return self.engine.step(
            Target(contrasts, target.prior, target.lasting, curves=curves), draw, rng
        )


@pytest.mark.slow
def test_the_engine_leaves_the_posterior_of_families_invariant(seed):
    check_engine(Nuts(), ncb.priors.HalfCauchyNormal(0.7), groups=2, seed=seed)


def test_a_dropped_offset_is_seen(seed):
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        check_engine(WithoutOffset(Nuts()), seed=seed)


def bent(params, x):
    """A log density that is linear neither in its parameters nor in x."""
    from jax import numpy as jnp

    return -jnp.exp(params[0]) * x[:, 0] ** 2 / 2 + jnp.sin(params[1]) * x[:, 0]


def bent_target(rng, prior=None):
    x = rng.standard_normal((14, 1)) * 1.5
    anchor = (np.arange(14) < 6) / 6
    offset, labels = rng.normal(1.0, 1.0, 14), np.arange(14) < 6
    curve = Curved(bent, x, anchor, offset, labels, np.zeros(3), np.full(3, 0.3))
    return Target((), prior or ncb.priors.Normal(0.8), curves=(curve,))


def exact_means(target, lowest=-4.2, highest=4.2, points=61):
    """Means of the features of coef by quadrature, with its own NumPy formula of the log odds."""
    each, axis = target.curves[0], np.linspace(lowest, highest, points)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    x = each.points[:, 0]
    f = -np.exp(grid[:, :1]) * x**2 / 2 + np.sin(grid[:, 1:2]) * x
    log_odds = f - (f @ each.anchor)[:, None] + grid[:, 2:] + each.offset
    log = log_odds[:, each.is_data].sum(axis=1) - np.logaddexp(0, log_odds).sum(axis=1)
    log -= (grid**2).sum(axis=1) / (2 * 0.8**2)
    weights = np.exp(log - log.max())
    return features(grid).T @ weights / weights.sum()


def features(coef):
    a, b, c = coef.T
    return np.column_stack([a, b, c, a**2, b**2, c**2, a * b, a * c, b * c, np.exp(a / 2)])


def chain_means(engine, target, rng, chains=40, draws=60):
    rows = []
    for _ in range(chains):
        draw, kept = engine.start(target, rng), []
        for sweep in range(draws + 40):
            draw = engine.step(target, draw, rng)
            if sweep >= 40:
                kept.append(draw.coef[0])
        rows.append(features(np.array(kept)).mean(axis=0))
    return np.array(rows)


def t_scores(rows, exact):
    return (rows.mean(axis=0) - exact) / (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


# 40 chains give t-scores; 7 is beyond their two-sided 1e-6 / 10 point at 39 degrees of freedom.
LIMIT = 7.0


@pytest.mark.parametrize("metric", ["dense", "diagonal"])
def test_the_posterior_of_a_curve_is_that_of_quadrature(metric, seed):
    rng = np.random.default_rng(seed)
    target = bent_target(rng)
    z = t_scores(chain_means(Nuts(metric=metric, tune=40), target, rng), exact_means(target))
    assert np.all(np.abs(z) < LIMIT), z


def test_quadrature_rejects_a_dropped_offset(seed):
    rng = np.random.default_rng(seed)
    target = bent_target(rng)
    z = t_scores(chain_means(WithoutOffset(Nuts(tune=40)), target, rng), exact_means(target))
    assert np.any(np.abs(z) > LIMIT)


def curved_geweke(engine, seed, rounds=600):
    """check_engine's check for a curve: coef from the prior -> labels -> step -> labels -> ..."""
    rng = np.random.default_rng(seed)
    target, differences = bent_target(rng), []

    def labels(draw):
        log_odds = target.curves[0].log_odds(draw.coef[0])
        return rng.random(len(log_odds)) < label_probability(log_odds)

    def joint(draw, label):
        score = target.curves[0].tangent(np.zeros(3))[0].rmatvec(label - 0.5)
        coef = np.tanh(draw.coef[0])
        return np.concatenate([coef, coef**2, coef[1:] * coef[:-1], coef * score])

    for _ in range(rounds):
        draw = Draw(0.8 * rng.standard_normal((1, 3)), {})
        label = labels(draw)
        before = joint(draw, label)
        for _ in range(3):
            label = labels(draw)
            draw = engine.step(relabelled(target, (label,)), draw, rng)
        differences.append(joint(draw, label) - before)
    found = np.array(differences)
    return found.mean(axis=0) / (found.std(axis=0, ddof=1) / np.sqrt(rounds))


def test_relabelling_leaves_the_law_of_a_curve_and_sees_a_dropped_offset(seed, monkeypatch):
    tangent = Curved.tangent
    cached = {}  # the metric and the score are those at zero, whatever the labels

    def once(self, coef):
        key = (id(self.points), tuple(coef))
        if key not in cached:
            cached[key] = tangent(self, coef)
        return cached[key]

    monkeypatch.setattr(Curved, "tangent", once)
    limit = -ndtri(1e-6 / 2 / 11)
    assert np.all(np.abs(curved_geweke(Nuts(), seed)) < limit)
    assert np.any(np.abs(curved_geweke(WithoutOffset(Nuts()), seed)) > limit)


@pytest.fixture(scope="module")
def angles():
    return ncb.models.VonMises().sample(np.array([1.0, 0.5]), 150, np.random.default_rng(5))


def moments(posterior):
    """Means of coef and of all its products, with Monte Carlo errors."""
    from ncbayes.diagnostics import convergence, monte_carlo_error

    theta, log_z = posterior.theta.to_numpy()[:, :, 0], posterior.log_z.to_numpy()
    coef = np.concatenate([theta, log_z], axis=2) - np.array([1.0, 0.5, 2.1])
    rows, columns = np.triu_indices(3)
    values = np.concatenate([coef, coef[..., rows] * coef[..., columns]], axis=2)
    sets = np.zeros(values.shape[1])
    found = []
    for k in range(values.shape[2]):
        effective = convergence(values[..., k], sets)[0]
        found.append((values[..., k].mean(), monte_carlo_error(values[..., k], sets, effective)))
    return np.array(found)


def fits(angles, seed, **changed):
    options = {"noise": "matched", "seed": seed, "draws": 800, "tune": 200, "chains": 2}
    options |= {"cores": 1, "progress": False, **changed}
    return ncb.fit(ncb.models.VonMises(), angles, **options)


def test_all_moments_of_a_family_are_those_of_gibbs(angles, seed):
    prior = ncb.priors.HalfCauchyNormal()
    nuts = moments(fits(angles, seed, engine="nuts", prior=prior))

    def z(gibbs):
        return (nuts[:, 0] - gibbs[:, 0]) / np.hypot(nuts[:, 1], gibbs[:, 1])

    limit = -ndtri(1e-6 / 2 / len(nuts))
    assert np.all(np.abs(z(moments(fits(angles, seed, prior=prior)))) < limit)
    # The broken twin: a prior that pulls theta to zero.
    narrow = fits(angles, seed, prior=ncb.priors.Normal(0.2))
    assert np.any(np.abs(z(moments(narrow))) > limit)


def short(angles, **changed):
    return fits(angles, 4, engine="nuts", draws=12, tune=30, **changed)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_run_that_was_broken_off_goes_on_bit_for_bit(angles, resumed):
    whole = short(angles, chains=1)
    # Among the first files are those of the warm-up: 30 sweeps of 42 adapt.
    for again in resumed(lambda **options: short(angles, chains=1, **options), (2, 9, 31, 50)):
        assert np.array_equal(again.theta, whole.theta)
        assert np.array_equal(again.log_z, whole.log_z)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_extended_and_in_processes_the_draws_are_the_same(angles):
    whole = short(angles)
    assert np.array_equal(short(angles, cores=2).theta, whole.theta)
    part = fits(angles, 4, engine="nuts", draws=5, tune=30).extend(7)
    assert np.array_equal(part.theta, whole.theta)


def test_the_result_holds_divergences_and_no_trace_of_the_warm_up(angles):
    with pytest.warns(ncb.FitWarning):
        posterior = short(angles)
    assert list(posterior.data["posterior"].data_vars) == ["theta", "log_z"]
    stats = posterior.data["sample_stats"].to_dataset()
    assert stats["diverging"].dtype == bool
    assert {"acceptance_rate", "n_steps", "step_size", "log_likelihood"} <= set(stats.data_vars)
    # Adapted, then left alone.
    assert np.ptp(stats["step_size"].to_numpy(), axis=1).max() == 0.0
    assert not [line for line in posterior.warning_lines() if "diverged" in line]
    stats["diverging"][0, :3] = True
    posterior.data["sample_stats"] = _tree(stats)
    lines = [line for line in posterior.warning_lines() if "diverged" in line]
    assert len(lines) == 1
    assert lines[0].startswith("3 of 24 draws diverged")
    assert "target_acceptance=0.95" in lines[0]


def _tree(dataset):
    import xarray as xr

    return xr.DataTree(dataset)


def test_a_trajectory_that_leaves_the_posterior_diverges(seed):
    rng = np.random.default_rng(seed)
    target, metric = bent_target(rng), np.ones(3)
    for step_size, diverges in ((0.05, False), (50.0, True)):
        memory = {"step_size": np.array(step_size), "inverse_mass": metric}
        draw = Draw(np.zeros((1, 3)), {}, memory=memory)
        assert Nuts().step(target, draw, rng).stats["diverging"] == diverges


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_acceptance": 1.0}, "between 0 and 1, such as 0.8, got 1.0"),
        ({"target_acceptance": "high"}, "between 0 and 1"),
        ({"max_depth": 0}, "from 1 to 20, got 0"),
        ({"max_depth": 2.5}, "from 1 to 20"),
        ({"metric": "full"}, "one of 'auto', 'dense', 'diagonal', got 'full'"),
    ],
)
def test_settings_are_checked(options, words):
    with pytest.raises(InputError, match=words):
        Nuts(**options)


@pytest.mark.parametrize("missing", ["jax", "blackjax"])
def test_without_the_extra_the_error_names_the_install_line(missing, angles, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=f'{missing}, .*pip install "ncbayes.energy."'):
        fits(angles, 1, engine="nuts")
