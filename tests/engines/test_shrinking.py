"""Sweeps by run under a horseshoe: the law they leave invariant, and the routes they take."""

import re
from dataclasses import replace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.base import Draw
from ncbayes.contrast import Target, contrast
from ncbayes.engines import Gibbs, Hyvarinen, hyvarinen, layout, shrinking
from ncbayes.engines.layout import layout_of
from ncbayes.linalg.designs import Dense
from ncbayes.priors import Horseshoe, Normal
from ncbayes.priors.blocks import Blocks, Part, blocks
from ncbayes.problem import noise_set
from ncbayes.testing import check_engine


def of_coef(prior):
    """For the targets of check_engine: two statistics and c."""
    return Blocks((Part("theta", prior, 0, 2), Part("normalizer", Normal(1.0), 2, 3)))


GROUPED = replace(Horseshoe(), runs=(2,))
VARIANTS = {
    "grouped, two groups": (GROUPED, 2),
    "slab as likelihood": (replace(GROUPED, slab_form="likelihood"), 1),
    "fixed tau, one not shrunk": (
        replace(Horseshoe(tau=0.4), runs=(1, 1), relative=np.array([2.0, np.inf])),
        1,
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("shared_pilots")
@pytest.mark.parametrize(("prior", "groups"), VARIANTS.values(), ids=VARIANTS)
def test_sweeps_leave_the_posterior_invariant(prior, groups, seed):
    check_engine(Gibbs(method="runs"), of_coef(prior), groups=groups, seed=seed)


class WrongForm(Horseshoe):
    """Says that the slab is fictitious, and draws theta as if it were not."""

    def clusters(self, state, shape):
        found = super().clusters(state, shape)
        return replace(found, fictitious=~found.fictitious)


@pytest.mark.slow
@pytest.mark.usefixtures("shared_pilots")
def test_the_other_form_of_the_slab_is_rejected(seed):
    prior = WrongForm(slab=0.5, runs=(2,), relative=np.ones(1))
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        check_engine(Gibbs(), of_coef(prior), seed=seed)


def of_theta(prior):
    """For the losses of check_engine: three statistics, no c."""
    return Blocks((Part("theta", prior, 0, 3),))


@pytest.mark.parametrize("joint", [300, 1], ids=["every sweep", "a third of sweeps"])
def test_h_bayes_leaves_its_posterior_invariant(joint, seed, monkeypatch):
    """With joint draws of the three coefficients in every sweep, and in some of them."""
    monkeypatch.setattr(hyvarinen, "JOINT", joint)
    prior = replace(Horseshoe(slab=0.5), runs=(2, 1))
    check_engine(Hyvarinen(), of_theta(prior), groups=2, seed=seed)


@pytest.mark.parametrize("joint", [300, 1])
def test_h_bayes_with_the_other_form_of_the_slab_is_rejected(joint, seed, monkeypatch):
    monkeypatch.setattr(hyvarinen, "JOINT", joint)
    prior = WrongForm(slab=0.5, runs=(2, 1), relative=np.ones(2))
    with pytest.raises(AssertionError, match="does not leave the generalized posterior invariant"):
        check_engine(Hyvarinen(), of_theta(prior), seed=seed)


def test_a_target_that_the_data_say_nothing_about():
    """No coefficient leaps then."""
    prior = Horseshoe(tau=1e-8)
    draw = stepped(torus_target(prior=prior), 12)
    assert np.abs(draw.coef[0, :-1]).max() < 1e-3


def torus_target(nodes=4, rows=60, prior=None):
    rng = np.random.default_rng(5)
    model = ncb.models.TorusGraph(nodes)
    x = rng.uniform(0, 2 * np.pi, (rows, nodes))
    x[:, 1] = (x[:, 0] + 0.5 * rng.standard_normal(rows)) % (2 * np.pi)
    noise = noise_set(ncb.noise.Uniform(model.space), x, 2 * rows, rng)
    full = blocks(prior or Horseshoe(), model.groups, None, model)
    return Target((contrast(model, x, noise),), full)


def stepped(target, steps=3, **settings):
    engine, rng = Gibbs(**settings), np.random.default_rng(2)
    draw = engine.start(target, rng)
    for _ in range(steps):
        draw = engine.step(target, draw, rng)
    return draw


def test_columns_that_are_not_kept_give_the_same_draws(monkeypatch):
    """The structured design is never formed then, neither whole nor in part that stays."""
    kept = stepped(torus_target())
    monkeypatch.setattr(layout, "KEPT_ENTRIES", 0)
    monkeypatch.setattr(layout, "BLOCK_ENTRIES", 1000)
    streamed = stepped(torus_target())
    np.testing.assert_allclose(streamed.coef, kept.coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        streamed.scales["theta.local"], kept.scales["theta.local"], rtol=1e-6
    )


def test_columns_that_are_used_once_are_not_kept():
    """Noise that is new in every sweep makes a target that does not last."""
    target = torus_target()
    once = replace(target, lasting=False)
    scales = target.prior.draw(target.shape, np.random.default_rng(1))
    assert layout_of(target, scales).rows[0] is not None
    assert layout_of(once, scales).rows == (None,)


def test_blocks_of_runs_cover_all_of_them_once():
    target = torus_target(nodes=6)
    state = target.prior.draw(target.shape, np.random.default_rng(0))
    clusters = target.prior.clusters(state, target.shape)
    blocks_ = layout.blocks_of(clusters, points=20_000)
    assert [first for first, _ in blocks_[1:]] == [last for _, last in blocks_[:-1]]
    assert (blocks_[0][0], blocks_[-1][1]) == (0, len(clusters.starts))
    widths = [clusters.sizes[first:last].sum() for first, last in blocks_]
    assert max(widths) <= layout.BLOCK_ENTRIES // 20_000
    assert len(blocks_) > 3


def test_the_stretch_moves_log_odds_with_the_coefficients():
    target = torus_target()
    draw = stepped(target)
    rng, contrasted = np.random.default_rng(1), target.contrasts[0]
    laid = layout_of(target, draw.scales)
    sweep = shrinking._swept(target, laid, draw, rng)
    draw = sweep.draw(target)
    draw = Draw(np.array(draw.coef), draw.scales)
    shrinking._stretch(laid, sweep, np.array([1.5]), rng)
    moved = sweep.draw(target)
    assert not np.array_equal(moved.coef, draw.coef)
    np.testing.assert_allclose(sweep.psi, contrasted.log_odds(moved.coef[0]), atol=1e-10)
    precision, _ = target.prior.gaussian(moved.scales, target.shape)
    np.testing.assert_allclose(sweep.precision_now(), precision.within)
    factor = moved.scales["theta.tau"] / draw.scales["theta.tau"]
    np.testing.assert_allclose(moved.coef[0, :-1], factor * draw.coef[0, :-1])
    np.testing.assert_allclose(
        moved.coef[0, -1] - draw.coef[0, -1], -1.5 * np.log(factor[0]), atol=1e-12
    )


@pytest.mark.parametrize(
    "prior",
    [
        Horseshoe(),
        Horseshoe(slab_form="likelihood", slab=0.6),
        Horseshoe(tau=0.3),
        Horseshoe(slab=None),
    ],
    ids=["conditional", "likelihood", "fixed tau", "no slab"],
)
def test_the_density_along_a_stretch(prior):
    """Against log likelihood plus log prior of the stretched state, written out, plus p t."""
    from ncbayes.linalg import clusters as compiled

    target = torus_target(nodes=3, prior=prior)
    draw = stepped(target)
    found = target.prior.clusters(draw.scales, target.shape)
    each, slope, c = target.contrasts[0], 1.5, draw.coef[0, -1]
    linear = each.log_odds(draw.coef[0]) - each.offset - c
    squares = np.array([[np.sum(draw.coef[0, s : s + k] ** 2) for s, k in zip(
        found.starts, found.sizes, strict=True)]])  # fmt: skip

    def ours(t):
        return compiled._along(
            t, each.offset + c, linear, np.full(len(linear), slope), each.is_data,
            np.array([[c, slope]]), np.array([1e-3]), np.zeros(1), squares, found.log_local,
            (found.sizes, found.multiplier, found.slab, found.fictitious, found.heads,
             found.headed),
        )  # fmt: skip

    def written_out(t):
        theta, c_now = np.exp(t) * draw.coef[0, :-1], c - slope * t
        u, tau = draw.scales["theta.local"][0], draw.scales.get("theta.tau", np.array([prior.tau]))
        free = prior.tau is None
        u, tau = (u, tau * np.exp(t)) if free else (u * np.exp(t), tau)
        base = np.repeat((u * tau) ** -2, found.sizes)
        slab = 0.0 if prior.slab is None else prior.slab**-2
        normalizer = base if prior.slab_form == "likelihood" else base + slab
        log_prior = np.sum(np.log(normalizer) - (base + slab) * theta**2) / 2
        # Densities of log tau and log u; of those, only what is stretched changes.
        log_prior += np.sum(np.log(tau / (1 + tau**2))) if free else np.sum(np.log(u / (1 + u**2)))
        log_odds = each.log_odds(np.append(theta, c_now))
        return each.log_likelihood(log_odds) + log_prior - 0.5e-3 * c_now**2 + len(theta) * t

    at = [-0.4, 0.0, 0.1, 0.7]
    np.testing.assert_allclose(
        np.diff([ours(t) for t in at]), np.diff([written_out(t) for t in at]), rtol=1e-9
    )


def test_the_leap_moves_log_odds_with_the_coefficients():
    target = torus_target()
    draw = stepped(target)
    laid = layout_of(target, draw.scales)
    pilot, rng = shrinking._pilot(target, laid), np.random.default_rng(1)
    sweep = shrinking._swept(target, laid, draw, rng)
    before = np.array(sweep.coef)
    for _ in range(10):
        assert shrinking._leap(target, laid, sweep, pilot, rng) in (0.0, 1.0)
    assert not np.array_equal(sweep.coef, before)
    np.testing.assert_allclose(sweep.psi, target.contrasts[0].log_odds(sweep.coef[0]), atol=1e-9)


def test_what_a_target_needs_is_made_once_and_without_the_chain():
    first, second = torus_target(), torus_target()
    one, other = stepped(first, 1), stepped(second, 5)
    pilots = [shrinking._PILOTS[each] for each in (first, second)]
    np.testing.assert_array_equal(pilots[0].slope, pilots[1].slope)
    np.testing.assert_array_equal(pilots[0].curvature, pilots[1].curvature)
    assert not np.array_equal(one.coef, other.coef)


def test_a_normalizer_in_a_run_is_stretched_once():
    """It does not follow theta besides; the density along a stretch would be another one."""
    prior = blocks({"edge": Horseshoe(), "normalizer": Horseshoe()}, {"edge": ("a", "b")}, None)
    target = replace(torus_target(nodes=2, rows=20), prior=prior)
    few = Dense(target.contrasts[0].design.dense()[:, -3:])
    target = replace(target, contrasts=(replace(target.contrasts[0], design=few),))
    scales = prior.draw((1, 3), np.random.default_rng(1))
    assert shrinking._pilot(target, layout_of(target, scales)).slope.tolist() == [0.0]


def test_a_pair_that_is_forced_out_stays_out():
    target = torus_target(prior=Horseshoe(edge_scales={("x1", "x2"): 0}))
    assert np.abs(stepped(target).coef[0, 8:12]).max() < 1e-4
    free = stepped(torus_target()).coef[0, 8:12]
    assert np.abs(free).max() > 0.1


def test_runs_need_a_prior_that_has_them():
    with pytest.raises(ncb.InputError, match=re.escape("method 'runs' needs a prior with local")):
        stepped(torus_target(prior=Normal(1.0)), method="runs")


def test_joint_draws_and_sweeps_by_run_agree(seed):
    """Two kernels that share neither the draw of coef nor that of the scales; z-scores of means."""
    from arviz_stats.base import array_stats

    found = []
    for settings in ({"method": "cholesky"}, {"method": "runs"}):
        engine, rng = Gibbs(**settings), np.random.default_rng(seed)
        target = torus_target(nodes=2, rows=40)
        draw = engine.start(target, rng)
        draws = []
        for k in range(3500):
            draw = engine.step(target, draw, rng)
            if k >= 500:
                draws.append(np.append(draw.coef[0], np.log(draw.scales["theta.tau"])))
        found.append(np.array(draws))
    means, errors = [], []
    for each in found:
        sizes = [
            array_stats.ess(each[None, :, k], chain_axis=0, draw_axis=1)
            for k in range(each.shape[1])
        ]
        means.append(each.mean(axis=0))
        errors.append(each.var(axis=0) / np.array(sizes))
    z = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
    assert np.abs(z).max() < 5.5
    shifted = found[1].mean(axis=0) + 0.5 * found[1].std(axis=0)
    assert (np.abs(means[0] - shifted) / np.sqrt(errors[0] + errors[1])).max() > 5.5


def test_facts_of_a_sweep():
    draw = stepped(torus_target(), 8)
    assert isinstance(draw, Draw)
    assert set(draw.stats) == {
        "log_likelihood",
        "largest_log_odds",
        "cg_iterations",
        "leap_acceptance",
    }
