"""NUTS against exact answers, against Gibbs, and broken off."""

import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats as laws
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes import testing, worlds
from ncbayes.autodiff import double_precision
from ncbayes.base import Draw, InputError
from ncbayes.contrast import Contrast, Target, label_probability, relabelled
from ncbayes.curved import Curved
from ncbayes.diagnostics import convergence, monte_carlo_error
from ncbayes.engines import Nuts, nuts
from ncbayes.priors import (
    HalfCauchyNormal,
    Hierarchical,
    Horseshoe,
    MultivariateNormal,
    Normal,
    RandomWalk,
)
from ncbayes.priors.blocks import Blocks, Part
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


@dataclass(frozen=True, eq=False)
class Untold:
    """A prior that does not tell its coordinates."""

    inner: Any

    def bound(self, model, start, stop):
        return Untold(self.inner.bound(model, start, stop))

    def draw(self, shape, rng):
        return self.inner.draw(shape, rng)

    def gaussian(self, state, shape):
        return self.inner.gaussian(state, shape)

    def update(self, state, theta, rng):
        return self.inner.update(state, theta, rng)


@pytest.mark.slow
def test_the_engine_leaves_the_posterior_of_families_invariant(seed):
    check_engine(Nuts(), ncb.priors.HalfCauchyNormal(0.7), groups=2, seed=seed)


WALK = RandomWalk(2.0, 1.0, initial="walk")
TOLD = {
    "horseshoe": Horseshoe(),
    "slab as likelihood": Horseshoe(slab=0.5, slab_form="likelihood"),
    "no slab, fixed tau": Horseshoe(slab=None, tau=0.5),
    "known pairs": replace(
        Horseshoe(slab=0.7, slab_form="likelihood"), runs=(1, 2), relative=np.array([np.inf, 2.0])
    ),
    "half-Cauchy": HalfCauchyNormal(0.8),
    "walk": replace(WALK, times=(1.0, 2.0, 5.0)),
    "separate walk": replace(WALK, initial="separate"),
    "separate walks": replace(WALK, initial="separate", per_statistic=True),
    "population": Hierarchical(0.5, (1.0, 2.0, 0.5), "diagonal"),
    "full covariance": Hierarchical(
        0.5, 1.0, df=6.0, scale=np.array([[3.0, 2, 0.5], [2, 2, -0.3], [0.5, -0.3, 2]])
    ),
    "normal": Normal(0.7, mean=0.4),
    "mapping": Blocks(
        (
            Part("a", Normal(0.7, mean=0.4), 0, 1),
            Part("b", Horseshoe(slab_form="likelihood"), 1, 3),
            Part("c", MultivariateNormal(np.array([[3.0, 2.2], [2.2, 2.0]]), 0.3), 3, 5),
            Part("d", WALK, 5, 7),
            Part("e", Hierarchical(0.5, 1.0), 7, 9),
            Part("f", HalfCauchyNormal(0.8), 9, 11),
        )
    ),
}


def parts(prior, scales):
    """Every prior with its own scales."""
    if not isinstance(prior, Blocks):
        return [(prior, scales)]
    own = {part.name: {} for part in prior.parts}
    for key, value in scales.items():
        name, _, rest = key.partition(".")
        own[name][rest] = value
    return [(part.prior, own[part.name]) for part in prior.parts]


def log_scales_prior(prior, scales):
    """Log density of zeta and of what else is in the scales, by the prior's docstring."""
    if isinstance(prior, Horseshoe):
        return log_horseshoe(prior, scales)
    if isinstance(prior, HalfCauchyNormal):
        return log_half_cauchy(scales["scale"], prior.scale)
    found = 0.0
    if "mean" in scales:
        found += laws.norm.logpdf(scales["mean"], prior.mean, prior.mean_scale).sum()
    if "covariance" in scales:
        return found + log_wishart(prior, scales)
    for name in scales.keys() & {"variance", "initial_variance"}:
        shape, rate = (prior.shape or 1.5, prior.rate or 0.5)
        law = laws.invgamma(shape, scale=rate)
        found += (law.logpdf(scales[name]) + np.log(scales[name])).sum()
    return found


def log_half_cauchy(values, scale=1.0):
    """Of their logarithms."""
    return (laws.halfcauchy.logpdf(values, scale=scale) + np.log(values)).sum()


def log_horseshoe(prior, scales):
    found, tau = log_half_cauchy(scales["local"]), prior.tau
    if tau is None:
        tau = scales["tau"][0]
        found += log_half_cauchy(tau, prior.scale)
    if prior.slab_form == "likelihood":
        # What an observation of zero leaves of N(0, (u tau s)^2): its density there.
        count = scales["local"].shape[1]
        relative = np.ones(count) if prior.relative is None else prior.relative
        acts, sizes = np.isfinite(relative), np.array(prior.runs or (1,) * count)
        ratio = scales["local"][:, acts] * tau * relative[acts] / prior.slab
        found -= (sizes[acts] / 2 * np.log1p(ratio**2)).sum()
    return found


def log_wishart(prior, scales, step=1e-5):
    """Of the covariance, and the Jacobian of that by zeta, from differences."""
    size = len(scales["mean"])
    zeta, lower = prior.log_scales(scales), np.tril_indices(size)

    def entries(zeta):
        return prior.at_log_scales(zeta, scales["mean"], (3, size))["covariance"][lower]

    units = step * np.eye(len(zeta))
    columns = [(entries(zeta + unit) - entries(zeta - unit)) / (2 * step) for unit in units]
    df = size + 2 if prior.df is None else prior.df
    law = laws.invwishart(df, np.eye(size) if prior.scale is None else prior.scale)
    return law.logpdf(scales["covariance"]) + np.linalg.slogdet(np.array(columns))[1]


def small_target(prior, groups, rng):
    columns = prior.parts[-1].stop if isinstance(prior, Blocks) else 3
    target = worlds.labelled_target(prior, columns, groups, rng)
    return relabelled(target, tuple(rng.random(len(e.offset)) < 0.5 for e in target.contrasts))


def density_of(target):
    """NUTS's own: from a position to its log density and gradient, coef and y.

    And the derivatives of coef and the hidden rows by z and the free columns.
    """
    import jax

    posed = nuts._posed(target)
    size = posed.structure.size - posed.structure.scale_begins[-1]

    def value(position, arrays, free_prior):
        coef, y, log_prior = nuts._placed(posed.layout, arrays, free_prior, position)
        likelihood, _ = nuts._log_likelihood(posed.functions, coef, arrays["groups"])
        return likelihood + log_prior, (coef, y)

    def mapped(*given):
        coef, y = value(*given)[1]
        return jax.numpy.concatenate([coef.ravel(), y[posed.structure.hidden]])

    def everything(*given):
        (found, (coef, y)), slope = jax.value_and_grad(value, has_aux=True)(*given)
        return found, slope, coef, y, jax.jacfwd(mapped)(*given)[:, :size]

    compiled = jax.jit(everything)

    def density(position):
        with double_precision():
            found = compiled(position, posed.arrays, posed.gaussian({}))
            return [np.asarray(each) for each in found]

    return density


@pytest.mark.parametrize("name", TOLD)
def test_the_density_of_a_position_is_likelihood_prior_and_jacobian(name, seed):
    rng = np.random.default_rng(seed)
    prior = TOLD[name]
    target = small_target(prior, 3, rng)
    posed, density, off = nuts._posed(target), density_of(target), []
    assert posed.together
    for _ in range(4):
        position = rng.standard_normal(posed.structure.size)
        found, slope, coef, y, jacobian = density(position)
        scales = posed.scales(position, y)
        assert set(scales) == set(prior.draw(target.shape, rng))
        pairs = zip(target.contrasts, coef, strict=True)
        wanted = sum(each.log_likelihood(each.log_odds(row)) for each, row in pairs)
        precision, shift = prior.gaussian(scales, target.shape)
        full = worlds.dense_precision(precision)
        gap = coef.ravel() - np.linalg.solve(full, shift.ravel())
        wanted += np.linalg.slogdet(full)[1] / 2 - gap @ full @ gap / 2
        wanted += sum(log_scales_prior(own, state) for own, state in parts(prior, scales))
        off.append(found - wanted - np.linalg.slogdet(jacobian)[1])
        assert np.allclose(posed.position(Draw(coef, scales)), position)
        assert np.isfinite(slope).all()
    assert np.ptp(off) < 1e-6, off
    # However far out: a gradient that is not a number would end a chain.
    for far in (-320.0, 320.0):
        scales = np.flatnonzero(posed.cells["kinds"] != 2) - len(posed.cells["kinds"])
        position[scales] = far
        assert np.isfinite(density(position)[1]).all()


CHECKED = {
    "horseshoe": Horseshoe(),
    "slab as likelihood": Horseshoe(slab=0.5, slab_form="likelihood"),
    "separate walks": replace(WALK, per_statistic=True, initial="separate"),
    "population": Hierarchical(1.0, 0.5, "diagonal"),
    "mapping": {"first": Horseshoe(tau=0.5), "second": HalfCauchyNormal(0.8)},
    "full covariance": Hierarchical(0.5, 1.0),
    "untold": Untold(HalfCauchyNormal(0.8)),
}
# What of the cells a careless engine gets wrong: the mass that a slab leaves for a scale left out,
# or counted where it is not; a mean; a scale's prior.
WRONG = {
    "slab as likelihood": ("fictitious", np.zeros_like),
    "horseshoe": ("fictitious", np.ones_like),
    "population": ("mean", np.zeros_like),
    "mapping": ("prior_a", lambda values: values + 1.5),
}


@pytest.fixture
def few_rounds(monkeypatch):
    monkeypatch.setattr(testing, "ENGINE_LOOKS", {250: 1.0})


@pytest.mark.parametrize("name", CHECKED)
def test_scales_and_coefficients_keep_their_law(name, seed, few_rounds):
    check_engine(Nuts(), CHECKED[name], groups=2, seed=seed)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_law_of_the_scales_is_seen(name, seed, few_rounds, monkeypatch):
    right, (field, change) = nuts._laid_out, WRONG[name]

    def wrong(structure):
        layout, cells = right(structure)
        return layout, {**cells, field: change(cells[field])}

    monkeypatch.setattr(nuts, "_laid_out", wrong)
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        check_engine(Nuts(), CHECKED[name], groups=2, seed=seed)


def test_without_a_memory_step_and_metric_are_those_of_the_target(seed):
    rng = np.random.default_rng(seed)
    target = small_target(TOLD["mapping"], 2, rng)
    one, other = (Nuts().step(target, worlds.prior_draw(target, rng), rng) for _ in range(2))
    for name in ("step_size", "inverse_mass"):
        assert np.array_equal(one.memory[name], other.memory[name])
    inverse, structure = one.memory["inverse_mass"], nuts._posed(target).structure
    assert inverse.shape == (structure.size, structure.size)
    free = np.arange(structure.size) - structure.begins[-1]
    free = (free >= 0) & (free < 2 * len(structure.free))
    assert np.array_equal(inverse[~free][:, ~free], np.eye(np.sum(~free)))
    assert not np.any(inverse[free][:, ~free])
    # With sweeps to adapt in, a chain without a memory begins to.
    begun = Nuts(tune=30).step(target, worlds.prior_draw(target, rng), rng)
    assert begun.memory["sweep"] == 1


@pytest.mark.parametrize("name", ["horseshoe", "population", "untold"])
def test_a_draw_holds_all_that_the_next_sweep_depends_on(name, seed):
    rng = np.random.default_rng(seed)
    target, engine = small_target(CHECKED[name], 2, rng), Nuts(tune=25)
    draw = again = engine.start(target, rng)
    for _ in range(40):
        state = rng.bit_generator.state
        draw = engine.step(target, draw, rng)
        rng.bit_generator.state = state
        copied = [{k: np.array(v) for k, v in e.items()} for e in (again.scales, again.memory)]
        again = Draw(np.array(again.coef), copied[0], {}, copied[1])
        again = engine.step(replace(target), again, rng)
        assert np.array_equal(again.coef, draw.coef)
        for ours, theirs in ((again.scales, draw.scales), (again.memory, draw.memory)):
            assert ours.keys() == theirs.keys()
            assert all(np.array_equal(ours[key], theirs[key]) for key in ours)
    assert set(draw.memory) - {"position"} == {"step_size", "inverse_mass"}
    assert ("position" in draw.memory) == (name != "untold")


def effective(posterior, of):
    """Effective draws of each column of (chain, draw, ...) values."""
    values = of(posterior)
    values = values.reshape(*values.shape[:2], -1)
    sets = np.zeros(values.shape[1])
    return np.array([convergence(values[..., k], sets)[0] for k in range(values.shape[2])])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_scales_of_a_horseshoe_mix_with_their_coefficients(seed):
    made = ncb.datasets.torus_chain(100, nodes=5, seed=1)

    def mixed(prior):
        options = {"noise": ncb.noise.Uniform(made.model.space), "noise_ratio": 1, "cores": 1}
        options |= {"draws": 200, "tune": 300, "chains": 2, "seed": seed, "progress": False}
        posterior = ncb.fit(made.model, made.data, prior=prior, engine="nuts", **options)
        tau = effective(posterior, lambda p: np.log(p.data["posterior"]["theta.tau"].to_numpy()))
        return tau[0], effective(posterior, lambda p: p.theta.to_numpy()).min()

    # Of 400 draws.
    tau, theta = mixed(Horseshoe())
    assert tau > 80
    assert theta > 80
    # The broken twin: coefficients given scales, then scales given coefficients.
    assert mixed(Untold(Horseshoe()))[0] < 60


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


def log_normal(squares):
    """Log density of Normal(0.8) where the squares of coef add up to this."""
    return -squares / (2 * 0.8**2)


def exact_means(target, log_prior=log_normal, lowest=-4.2, highest=4.2, points=61):
    """Means of the features of coef by quadrature, with its own NumPy formula of the log odds."""
    each, axis = target.curves[0], np.linspace(lowest, highest, points)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    x = each.points[:, 0]
    f = -np.exp(grid[:, :1]) * x**2 / 2 + np.sin(grid[:, 1:2]) * x
    log_odds = f - (f @ each.anchor)[:, None] + grid[:, 2:] + each.offset
    log = log_odds[:, each.is_data].sum(axis=1) - np.logaddexp(0, log_odds).sum(axis=1)
    log += log_prior((grid**2).sum(axis=1))
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


def test_the_posterior_of_a_curve_whose_prior_has_a_scale_is_that_of_quadrature(seed):
    rng = np.random.default_rng(seed)
    # One group of a walk: coef ~ N(0, variance I), variance ~ IG(5, 0.5), is a multivariate t.
    target = bent_target(rng, RandomWalk(5.0, 0.5, initial="walk"))
    rows = chain_means(Nuts(tune=40), target, rng)
    exact = exact_means(target, lambda squares: -(5 + 3 / 2) * np.log(0.5 + squares / 2))
    z = t_scores(rows, exact)
    assert np.all(np.abs(z) < LIMIT), z
    assert np.any(np.abs(t_scores(rows, exact_means(target))) > LIMIT)


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


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_all_moments_of_a_family_are_those_of_gibbs(angles, seed):
    prior = ncb.priors.HalfCauchyNormal()
    nuts = moments(fits(angles, seed, engine="nuts", prior=prior))

    def z(gibbs):
        return (nuts[:, 0] - gibbs[:, 0]) / np.hypot(nuts[:, 1], gibbs[:, 1])

    limit = -ndtri(1e-6 / 2 / len(nuts))
    assert np.all(np.abs(z(moments(fits(angles, seed, engine="gibbs", prior=prior)))) < limit)
    # The broken twin: a prior that pulls theta to zero.
    narrow = fits(angles, seed, engine="gibbs", prior=ncb.priors.Normal(0.2))
    assert np.any(np.abs(z(moments(narrow))) > limit)


def short(angles, **changed):
    return fits(angles, 4, engine="nuts", **{"draws": 12, "tune": 30, **changed})


@pytest.mark.parametrize("prior", [None, Horseshoe()], ids=["normal", "horseshoe"])
@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_run_that_was_broken_off_goes_on_bit_for_bit(prior, angles, resumed, monkeypatch):
    monkeypatch.setattr(ncb.chains, "BLOCK_SECONDS", 0.0)
    whole = short(angles, chains=1, prior=prior)
    # Among the first files are those of the warm-up: 30 sweeps of 42 adapt.
    run = partial(short, angles, chains=1, prior=prior)
    for again in resumed(run, (2, 9, 31, 50)):
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
