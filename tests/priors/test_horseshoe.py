"""Horseshoe priors: their laws, their updates, and what users may say about edges."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import ncbayes as ncb
from ncbayes import testing
from ncbayes.priors import Horseshoe, global_scale
from ncbayes.priors.slices import slice_sample
from ncbayes.testing import check_prior

RUNS = replace(Horseshoe(), runs=(1, 2, 1), relative=np.array([2.0, np.inf, 0.5]))
VARIANTS = {
    "element by element": Horseshoe(grouped=False),
    "grouped": replace(Horseshoe(), runs=(2, 2)),
    "without a slab": Horseshoe(slab=None),
    "slab as likelihood": replace(Horseshoe(slab_form="likelihood"), runs=(2, 2)),
    "slab as likelihood, fixed tau": Horseshoe(slab_form="likelihood", tau=0.5),
    "fixed tau": Horseshoe(tau=0.3, slab=2.0),
    "edge scales": RUNS,
}


@pytest.fixture(autouse=True)
def _short_checks_of_priors(monkeypatch):
    """Enough for the twins of this file; NCBAYES_TEST_FULL=1 runs them as users do."""
    if "NCBAYES_TEST_FULL" not in os.environ:
        monkeypatch.setattr(testing, "PRIOR_LOOKS", {500: 0.2, 1500: 0.8})


@pytest.mark.slow
@pytest.mark.parametrize("prior", VARIANTS.values(), ids=VARIANTS)
def test_updates_leave_the_prior_invariant(prior, seed):
    check_prior(prior, (1, 4), seed=seed)


class Mistaken(Horseshoe):
    """Updates the scales of the prior with the other form of the slab."""

    def update(self, state, theta, rng):
        other = {"conditional": "likelihood", "likelihood": "conditional"}[self.slab_form]
        return Horseshoe(slab_form=other, slab=self.slab).update(state, theta, rng)


@pytest.mark.parametrize("form", ["conditional", "likelihood"])
def test_the_update_of_the_other_slab_form_is_rejected(form, seed):
    with pytest.raises(AssertionError, match="do not leave the law of its state"):
        check_prior(Mistaken(slab_form=form, slab=0.5), (1, 4), seed=seed)


def test_draws_from_the_prior_with_a_fictitious_slab(seed):
    """Against plain rejection from half-Cauchy scales, which is feasible for two runs."""
    prior = replace(Horseshoe(slab=0.7, slab_form="likelihood"), runs=(2, 1))
    rng = np.random.default_rng(seed)
    ours = np.array(
        [
            np.concatenate([state["tau"], state["local"][0]])
            for state in (prior.draw((1, 3), rng) for _ in range(4000))
        ]
    )
    tau, u, v = np.abs(rng.standard_cauchy((3, 400_000)))
    log_kept = -np.log1p((u * tau / 0.7) ** 2) - np.log1p((v * tau / 0.7) ** 2) / 2
    kept = np.log(rng.random(len(tau))) < log_kept
    for mine, theirs, prior_only in zip(
        ours.T, (tau[kept], u[kept], v[kept]), (tau, u, v), strict=True
    ):
        assert stats.ks_2samp(mine, theirs[:20_000]).pvalue > 1e-6
        assert stats.ks_2samp(mine, prior_only[:20_000]).pvalue < 1e-6


def test_precision_of_every_run():
    state = {"local": np.array([[0.5, 7.0, 2.0]]), "tau": np.array([0.3])}
    precision, shift = RUNS.gaussian(state, (1, 4))
    own = [1 + (0.5 * 0.3 * 2) ** -2, 1.0, 1.0, 1 + (2.0 * 0.3 * 0.5) ** -2]
    np.testing.assert_allclose(precision.within[0], own)
    assert not shift.any()


def test_slices_have_the_density_they_are_given(seed):
    """Exact cases side by side: a normal, a logistic; starts are exact draws, so ends are too."""
    rng = np.random.default_rng(seed)
    x = np.stack([rng.standard_normal(20_000), rng.logistic(size=20_000)])

    def log_density(y):
        return np.stack([-(y[0] ** 2) / 2, -2 * np.log(np.cosh(y[1] / 2))])

    moved = slice_sample(log_density, x, 3.0, rng)
    assert stats.kstest(moved[0], "norm").pvalue > 1e-6
    assert stats.kstest(moved[1], "logistic").pvalue > 1e-6
    wrong = slice_sample(lambda y: 1.3 * log_density(y), x, 3.0, rng)
    assert stats.kstest(wrong[0], "norm").pvalue < 1e-6


def test_runs_are_those_of_the_model():
    model = ncb.models.TorusGraph(3)
    assert Horseshoe().bound(model, 0, 18).runs == (1,) * 6 + (4,) * 3
    assert Horseshoe(grouped=False).bound(model, 0, 18).runs == (1,) * 18
    assert Horseshoe().bound(model, 6, 18).runs == (4,) * 3
    rotational = ncb.models.TorusGraph(3, marginal=False, reflectional=False)
    assert Horseshoe().bound(rotational, 0, 6).runs == (2,) * 3
    assert Horseshoe().bound(ncb.models.VonMises(), 0, 2).runs == (1, 1)


@pytest.mark.parametrize(
    "scales",
    [
        {("a", "b"): 0, ("c", "b"): np.inf},
        {(0, 1): 0.0, (2, 1): np.inf},
        [[1, 0, 1], [0, 1, np.inf], [1, np.inf, 1]],
    ],
    ids=["names", "numbers", "matrix"],
)
def test_knowledge_about_pairs(scales):
    model = ncb.models.TorusGraph(["a", "b", "c"])
    prior = Horseshoe(edge_scales=scales).bound(model, 0, 18)
    np.testing.assert_array_equal(prior.relative, [1.0] * 6 + [0.0, 1.0, np.inf])
    state = {"local": np.full((1, 9), 1e9), "tau": np.ones(1)}
    precision, _ = prior.gaussian(state, (1, 18))
    np.testing.assert_allclose(precision.within[0, 6:10], 1e12)
    np.testing.assert_allclose(precision.within[0, 14:], 1.0)


class EdgesFirst:
    """The documented members only: edges before fields, two kinds of them, one kind at the end."""

    nodes = ("a", "b", "c")
    edges = (("b", "c"), ("a", "b"))
    groups = {  # noqa: RUF012
        "pair": ("bc", "ab"),
        "field": ("a", "b", "c"),
        "late": ("bc later", "ab later"),
    }
    edge_columns = {"coupling": [0, 1], "lag": [5, 6]}  # noqa: RUF012
    space = ncb.spaces.Box((0.0,) * 3, (1.0,) * 3)

    def statistics(self, x):
        a, b, c = x.T
        return np.column_stack([b * c, a * b, a, b, c, b * c**2, a * b**2])

    def log_base(self, x):
        return np.zeros(len(x))


FORCED = {("a", "b"): 0.0, ("c", "b"): 7.0}


@pytest.mark.parametrize("scales", [FORCED, [[1, 0, 9], [0, 1, 7], [9, 7, 1]]], ids=type)
def test_scales_are_those_of_the_edge_columns(scales):
    prior, model = Horseshoe(edge_scales=scales), EdgesFirst()
    np.testing.assert_array_equal(prior.bound(model, 0, 7).relative, [7, 0, 1, 1, 1, 7, 0])
    np.testing.assert_array_equal(prior.bound(model, 0, 2).relative, [7, 0])
    np.testing.assert_array_equal(prior.bound(model, 5, 7).relative, [7, 0])


def test_edges_side_by_side_share_their_local_scale():
    model = EdgesFirst()
    model.edge_columns = {"coupling": [0, 2], "lag": [1, 3]}
    model.clusters = (0, 0, 1, 1, 2, 3, 4)
    prior = Horseshoe(edge_scales=FORCED).bound(model, 0, 7)
    assert prior.runs == (2, 2, 1, 1, 1)
    np.testing.assert_array_equal(prior.relative, [7, 0, 1, 1, 1])
    model.edge_columns = {"coupling": [0, 1]}
    with pytest.raises(ncb.InputError, match=r"different scales to statistics of one run .*False$"):
        Horseshoe(edge_scales=FORCED).bound(model, 0, 7)
    alone = Horseshoe(edge_scales=FORCED, grouped=False).bound(model, 0, 7)
    np.testing.assert_array_equal(alone.relative, [7, 0, 1, 1, 1, 1, 1])


@pytest.mark.parametrize("clusters", [(0, 1, 0, 1, 2, 3, 4), (0, 0, 1), (0.5,) * 7])
def test_runs_that_are_none_are_refused(clusters):
    model = EdgesFirst()
    model.clusters = clusters
    message = r"clusters of .* each of the 7 statistics, .* side by side, got \(.*grouped=False\)$"
    with pytest.raises(ncb.InputError, match=message):
        Horseshoe().bound(model, 0, 7)
    assert Horseshoe(grouped=False).bound(model, 0, 7).runs == (1,) * 7


NOISE = ncb.noise.Uniform(EdgesFirst.space)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_fit_forces_out_the_edge_that_was_named():
    x = np.random.default_rng(1).random((80, 3))
    posterior = ncb.fit(
        EdgesFirst(), x, prior={"pair": Horseshoe(edge_scales={("a", "b"): 0})}, noise=NOISE,
        seed=1, draws=20, tune=20, chains=1, cores=1, progress=False,
    )  # fmt: skip
    largest = np.abs(posterior.theta.to_numpy()).max(axis=(0, 1, 2))
    assert largest[1] < 1e-4
    assert largest[3] > 1e-3


def test_the_rule_for_tau():
    """The paper's: p0 / (sqrt(n + m) (2 d^2 - p0))."""
    assert global_scale(490, 1152, 5040) == pytest.approx(490 / (5040**0.5 * 662))


MODEL = ncb.models.TorusGraph(["a", "b", "c"])
WRONG = {
    "slab": (lambda: Horseshoe(slab=0), "Horseshoe(slab=...) must be positive"),
    "tau": (lambda: Horseshoe(tau=-1.0), "Horseshoe(tau=...) must be positive"),
    "scale": (lambda: Horseshoe(scale="a"), "Horseshoe(scale=...) must be one positive"),
    "form": (
        lambda: Horseshoe(slab_form="both"),
        'Horseshoe(slab_form=...) must be "conditional" or "likelihood", got \'both\'',
    ),
    "grouped": (lambda: Horseshoe(grouped=2), "Horseshoe(grouped=...) must be True or False"),
    "no graph": (
        lambda: Horseshoe(edge_scales={}).bound(ncb.models.VonMises(), 0, 2),
        "is for models of graphs, such as TorusGraph, or your own with nodes, edges and "
        "edge_columns, got VonMises()",
    ),
    "no edges": (
        lambda: Horseshoe(edge_scales={}).bound(ncb.models.Ising(3, edges=[]), 0, 3),
        "is for models with edges, got Ising(3, edges=[]), which has none; leave edge_scales out",
    ),
    "block without edges": (
        lambda: Horseshoe(edge_scales={("a", "b"): 0}).bound(MODEL, 0, 6),
        "but it is the prior of a block of TorusGraph(['a', 'b', 'c']) without any; pass it for "
        "the block of the edges",
    ),
    "shared": (
        lambda: Horseshoe(edge_scales={}).bound(ncb.models.Ising(3, coupling="common"), 0, 4),
        "Horseshoe(edge_scales=...) is for edges with coefficients of their own, got",
    ),
    "shape": (
        lambda: Horseshoe(edge_scales=np.ones((2, 2))).bound(MODEL, 0, 18),
        "Horseshoe(edge_scales=...) must be a 3 x 3 matrix of numbers",
    ),
    "symmetry": (
        lambda: Horseshoe(edge_scales=np.arange(9.0).reshape(3, 3)).bound(MODEL, 0, 18),
        "Horseshoe(edge_scales=...) must be a symmetric matrix",
    ),
    "negative": (
        lambda: Horseshoe(edge_scales=np.full((3, 3), -1.0)).bound(MODEL, 0, 18),
        "must hold numbers from 0 (forced out) to inf (not shrunk), got -1.0",
    ),
    "pair": (
        lambda: Horseshoe(edge_scales={("a", "x"): 1}).bound(MODEL, 0, 18),
        "must name pairs of nodes that are edges of the model, such as ('a', 'b'), got ('a', 'x')",
    ),
    "value": (
        lambda: Horseshoe(edge_scales={("a", "b"): "much"}).bound(MODEL, 0, 18),
        "got 'much' for ('a', 'b')",
    ),
    "unshrunk without slab": (
        lambda: Horseshoe(slab=None, edge_scales={("a", "b"): np.inf}).bound(MODEL, 0, 18),
        "has inf, which leaves a pair to the slab alone, but slab=None; give a slab",
    ),
    "rule": (
        lambda: global_scale(10, 5, 100),
        "global_scale(nonzero, statistics, points) needs 0 < nonzero < statistics",
    ),
    "other columns": (
        lambda: RUNS.gaussian({"local": np.ones((1, 3)), "tau": np.ones(1)}, (1, 5)),
        "this Horseshoe was bound to 4 statistics, got 5",
    ),
}


@pytest.mark.parametrize(("make", "message"), WRONG.values(), ids=WRONG)
def test_what_is_refused(make, message):
    with pytest.raises(ncb.InputError, match=re.escape(message)):
        make()
