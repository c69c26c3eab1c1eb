"""Joint trajectories: exact densities and gradients, label tests and their twins, warm-up."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import testing, worlds
from ncbayes.base import Draw
from ncbayes.contrast import Contrast, Target
from ncbayes.engines import Gibbs, Joint, joint
from ncbayes.linalg import joint as compiled
from ncbayes.linalg import likelihoods, whitening
from ncbayes.linalg.designs import Dense
from ncbayes.priors import (
    HalfCauchyNormal,
    Hierarchical,
    Horseshoe,
    MultivariateNormal,
    Normal,
    RandomWalk,
)
from ncbayes.priors.blocks import Blocks, Part

C = Normal(2.0, mean=0.3)
WALK = RandomWalk(2.0, 1.0, initial="walk")
ROOT = np.array([[1.0, 0, 0, 0], [0.4, 0.8, 0, 0], [-0.3, 0.2, 1.2, 0], [0.1, 0.5, -0.6, 0.9]])
SCALE = ROOT @ ROOT.T


def side_by_side(*parts):
    """Priors of neighbouring columns, (prior, columns) each."""
    ends = np.cumsum([0, *(width for _, width in parts)])
    return Blocks(
        tuple(
            Part(f"part{k}", prior, int(ends[k]), int(ends[k + 1]))
            for k, (prior, _) in enumerate(parts)
        )
    )


PRIORS = {
    "normal": side_by_side((C, 5)),
    "full normal": side_by_side(
        (MultivariateNormal(np.array([[3.0, 1.0], [1.0, 2.0]]), 0.4), 2), (C, 3)
    ),
    "half-Cauchy": side_by_side((HalfCauchyNormal(0.7), 4), (C, 1)),
    "horseshoe": side_by_side((Horseshoe(), 4), (C, 1)),
    "horseshoe of all": Horseshoe(),
    "no slab": side_by_side((Horseshoe(slab=None), 4), (C, 1)),
    "slab as likelihood": side_by_side((Horseshoe(slab=0.5, slab_form="likelihood"), 4), (C, 1)),
    "runs, one of them forced in": side_by_side(
        (Horseshoe(runs=(3, 1), relative=np.array([2.0, np.inf])), 4), (C, 1)
    ),
    "walk": side_by_side((WALK, 4), (C, 1)),
    "walk of unequal gaps": side_by_side((replace(WALK, times=(0.0, 1.0, 4.0)), 4), (C, 1)),
    "walk from elsewhere": side_by_side((replace(WALK, initial="separate"), 4), (C, 1)),
    "walks": side_by_side((replace(WALK, per_statistic=True, initial="separate"), 4), (C, 1)),
    "population": side_by_side((Hierarchical(0.5, 1.0, "diagonal"), 4), (C, 1)),
    "full population": side_by_side((Hierarchical(0.5, 1.0, df=7.0, scale=SCALE), 4), (C, 1)),
    "three kinds": side_by_side((Horseshoe(tau=0.3), 2), (HalfCauchyNormal(0.8), 2), (C, 1)),
    "walk and population": side_by_side((WALK, 2), (Hierarchical(0.0, 1.0, "diagonal"), 3)),
}


def random_target(prior, rng, groups=3, columns=5):
    contrasts = []
    for g in range(groups):
        rows = 50 + 15 * g
        design = np.column_stack([rng.standard_normal((rows, columns - 1)), np.ones(rows)])
        contrasts.append(
            Contrast(Dense(design), 0.5 + rng.standard_normal(rows), rng.random(rows) < 0.4)
        )
    return Target(tuple(contrasts), prior)


def warmed(target, rng, tune=60):
    """A kernel in the middle of its warm-up, with coordinates learned, and its memory."""
    kernel = Joint(tune).kernel(target)
    return kernel, kernel.sweeps(kernel.start(rng), rng, tune - 5).memory


@dataclass
class Place:
    """A position with what belongs to it, worked out by compiled code."""

    kernel: object
    memory: dict

    def __post_init__(self):
        self.chart = self.kernel._chart(self.memory)

    def parts(self, x):
        size = len(self.chart.g)
        y, q, coef = np.empty(size), np.empty(size), np.empty(self.kernel.structure.shape)
        bases = np.empty(len(self.chart.cell) + len(self.chart.kinds))
        whitening.place(self.chart, x, y, q, coef, bases)
        return y, q, coef, bases

    def log_density(self, x):
        _, q, coef, bases = self.parts(x)
        fit, _ = likelihoods.value(self.kernel.data, coef)
        return fit + whitening.log_prior(self.chart, x, q, coef, bases)

    def gradient(self, x):
        y, q, coef, bases = self.parts(x)
        pairs = zip(self.kernel.target.contrasts, coef, strict=True)
        slope = np.array(
            [each.design.rmatvec(each.is_data - expit(each.log_odds(row))) for each, row in pairs]
        )
        out = np.empty(len(x))
        whitening.chain(self.chart, x, y, q, coef, bases, slope, out)
        return out

    def outer(self, x):
        """coef, the prior's state, and all coordinates that the map is one to one in."""
        _, q, coef, _ = self.parts(x)
        structure = self.kernel.structure
        zeta = x[len(x) - structure.scale_begins[-1] :]
        hidden = q[structure.hidden]
        flat = np.concatenate([np.ravel(coef), hidden, zeta])
        return coef, structure.states(zeta, hidden), flat


def expit(x):
    return 1 / (1 + np.exp(-x))


def log_normal(coef, precision, shift):
    """Log density of coef under a prior's Gaussian, by a dense matrix."""
    full = worlds.dense_precision(precision)
    off = np.ravel(coef) - np.linalg.solve(full, np.ravel(shift))
    return np.linalg.slogdet(full)[1] / 2 - off @ full @ off / 2


def log_state_prior(target, coef, state):
    """Log density of coef and of the log scales, from what priors say in words of their own."""
    total = 0.0
    for part in getattr(target.prior, "parts", [Part("", target.prior, 0, coef.shape[1])]):
        prefix = f"{part.name}." if part.name else ""
        own = {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
        theta = coef[:, part.start : part.stop]
        total += log_part(part.prior, theta, own)
    return total


def log_part(prior, theta, state):
    if isinstance(prior, Horseshoe):
        value = np.sum(-np.logaddexp(np.log(state["local"]), -np.log(state["local"])))
        if prior.tau is None:
            value -= np.sum(
                np.logaddexp(*(s * np.log(state["tau"] / prior.scale) for s in (1, -1)))
            )
        if prior.slab_form == "likelihood":
            tau = state["tau"] if prior.tau is None else prior.tau
            scale = np.repeat(state["local"] * tau, theta.shape[1] // state["local"].shape[1], 1)
            normal = -np.log(scale) - (theta / scale) ** 2 / 2 - (theta / prior.slab) ** 2 / 2
            return value + np.sum(normal)
        return value + log_normal(theta, *prior.gaussian(state, theta.shape))
    value = log_normal(theta, *prior.gaussian(state, theta.shape))
    if isinstance(prior, HalfCauchyNormal):
        logs = np.log(state["scale"] / prior.scale)
        value -= np.sum(np.logaddexp(logs, -logs))
    if isinstance(prior, RandomWalk):
        for variance in state.values():
            value -= np.sum(prior.shape * np.log(variance) + prior.rate / variance)
    if isinstance(prior, Hierarchical) and prior.covariance == "full":
        size, log_det = theta.shape[1], np.linalg.slogdet(state["covariance"])[1]
        inverse = np.linalg.inv(state["covariance"])
        value -= (prior.df + size + 1) / 2 * log_det + np.trace(prior.scale @ inverse) / 2
        # By the measure of Sigma; what is asked for is that of phi and log v.
        roots = np.diagonal(np.linalg.cholesky(state["covariance"]))
        value += np.sum((size - np.arange(size)) * 2 * np.log(roots))
    elif isinstance(prior, Hierarchical):
        value -= np.sum(1.5 * np.log(state["variance"]) + 0.5 / state["variance"])
    if isinstance(prior, Hierarchical):
        value -= np.sum((state["mean"] - prior.mean) ** 2) / 2 / prior.mean_scale**2
    return value


def log_volume(place, x, step=1e-6):
    """Log determinant of the derivative of (coef, hidden, zeta) by x, by differences."""
    slopes = [
        (place.outer(x + step * unit)[2] - place.outer(x - step * unit)[2]) / (2 * step)
        for unit in np.eye(len(x))
    ]
    return np.linalg.slogdet(np.array(slopes))[1]


@pytest.mark.parametrize("name", PRIORS)
def test_the_density_of_a_position_is_that_of_coef_and_scales(name, seed):
    """Up to one constant; the volume of the map is found by differences."""
    rng = np.random.default_rng(seed)
    target = random_target(PRIORS[name], rng)
    place = Place(*warmed(target, rng))
    differences = []
    for _ in range(6):
        x = place.memory["position"] + 0.7 * rng.standard_normal(place.kernel.structure.size)
        coef, state, _ = place.outer(x)
        fit = sum(
            each.log_likelihood(each.log_odds(row))
            for each, row in zip(target.contrasts, coef, strict=True)
        )
        stated = fit + log_state_prior(target, coef, state) + log_volume(place, x)
        differences.append(place.log_density(x) - stated)
    assert np.ptp(differences) < 1e-4


def test_a_volume_left_out_is_seen(seed):
    rng = np.random.default_rng(seed)
    target = random_target(PRIORS["horseshoe"], rng)
    place = Place(*warmed(target, rng))
    volumes = [
        log_volume(place, place.memory["position"] + 0.7 * rng.standard_normal(
            place.kernel.structure.size)) for _ in range(6)
    ]  # fmt: skip
    assert np.ptp(volumes) > 0.1


@pytest.mark.parametrize("name", PRIORS)
def test_the_gradient_is_that_of_the_density(name, seed):
    rng = np.random.default_rng(seed)
    place = Place(*warmed(random_target(PRIORS[name], rng), rng))
    x = place.memory["position"] + 0.3 * rng.standard_normal(place.kernel.structure.size)
    step = 1e-5
    differences = np.array(
        [
            (place.log_density(x + step * unit) - place.log_density(x - step * unit)) / (2 * step)
            for unit in np.eye(len(x))
        ]
    )
    scale = 1 + np.abs(differences)
    assert np.max(np.abs(place.gradient(x) - differences) / scale) < 1e-6


@pytest.mark.parametrize("name", PRIORS)
def test_a_position_can_be_found_again_from_coef_and_scales(name, seed):
    rng = np.random.default_rng(seed)
    kernel, memory = warmed(random_target(PRIORS[name], rng), rng)
    coef, zeta, hidden = kernel._parts(memory)
    state = kernel.structure.states(zeta, hidden)
    given = kernel.structure.log_scales(state), kernel.structure.hidden_values(state)
    found = kernel._position(kernel._chart(memory), coef, *given)
    assert np.allclose(found, memory["position"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["horseshoe", "walks", "population", "normal"])
@pytest.mark.parametrize("cuts", [(1,) * 90, (7, 33, 50), (90,)], ids=["by one", "uneven", "one"])
def test_sweeps_do_not_depend_on_how_they_are_cut(name, cuts, seed):
    """Through all of warm-up, and 30 sweeps beyond."""
    rng = np.random.default_rng(seed)
    target = random_target(PRIORS[name], rng)
    kernel = Joint(60).kernel(target)
    whole = kernel.sweeps(kernel.start(np.random.default_rng(3)), np.random.default_rng(4), 90)
    draw, source, found = kernel.start(np.random.default_rng(3)), np.random.default_rng(4), []
    for count in cuts:
        # A kernel made anew, as after a resume.
        block = Joint(60).kernel(target).sweeps(draw, source, count)
        draw = block.last
        found.append(block.coef)
    assert np.array_equal(np.concatenate(found), whole.coef)
    for key, values in whole.scales.items():
        assert np.array_equal(draw.scales[key], values[-1])


def test_coordinates_and_step_size_stand_still_after_warm_up(seed):
    rng = np.random.default_rng(seed)
    kernel = Joint(60).kernel(random_target(PRIORS["horseshoe"], rng))
    first = kernel.sweeps(kernel.start(rng), rng, 60)
    later = kernel.sweeps(first.last, rng, 40)
    assert len(set(first.stats["step_size"])) > 10
    assert len(set(later.stats["step_size"])) == 1
    for key, values in first.memory.items():
        if key != "position":
            assert np.array_equal(values, later.memory[key])
    assert not [key for key in later.memory if key.startswith("sum.")]


@dataclass(frozen=True, eq=False)
class Warmed:
    """Joint trajectories in coordinates that were learned from other labels, then fixed."""

    memory: dict

    def step(self, target, draw, rng):
        kernel = Joint().kernel(target)
        position = draw.memory.get("position")
        if position is None:
            structure = kernel.structure
            given = structure.log_scales(draw.scales), structure.hidden_values(draw.scales)
            position = kernel._position(kernel._chart(self.memory), draw.coef, *given)
        memory = {**self.memory, "position": position}
        return kernel.sweeps(Draw(draw.coef, draw.scales, {}, memory), rng, 1).last

    def start(self, target, rng):
        raise NotImplementedError


def learned(prior, groups, seed):
    """Coordinates for the targets of check_engine, from labels that it does not use."""
    rng = np.random.default_rng(seed)
    target = worlds.labelled_target(*worlds.prior_of(prior, normalizer=True), groups, rng)
    other = np.random.default_rng(1000 + seed)
    draw = worlds.prior_draw(target, other)
    labelled = testing.relabelled(target, worlds.drawn_labels(target, draw.coef, other))
    kernel = Joint(40).kernel(labelled)
    memory = dict(kernel.sweeps(kernel.start(other), other, 40).memory)
    memory["step_size"] = np.array([0.4])
    del memory["position"]
    return memory


LABELLED = {
    "horseshoe": {"first": Horseshoe()},
    "two forms": {
        "first": Horseshoe(slab=0.5, slab_form="likelihood"),
        "second": Horseshoe(tau=0.5),
    },
    "walk": {"first": WALK},
    "walks": {"first": replace(WALK, per_statistic=True, initial="separate")},
    "population": {"first": Hierarchical(0.5, 1.0, "diagonal"), "second": HalfCauchyNormal(0.8)},
    "full population": {"first": Hierarchical(0.5, 1.0)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LABELLED)
def test_learned_coordinates_leave_the_posterior_invariant(name, seed):
    prior = LABELLED[name]
    testing.check_engine(Warmed(learned(prior, 2, seed)), prior, groups=2, seed=seed)


def rejected(engine, prior, seed):
    with pytest.raises(AssertionError, match="does not leave the contrastive posterior invariant"):
        testing.check_engine(engine, prior, groups=2, seed=seed)


@pytest.fixture
def interpreted(monkeypatch):
    """The loop over sweeps in Python, where parts of it can be broken."""
    monkeypatch.setattr(compiled, "sweeps", compiled.sweeps.py_func)
    monkeypatch.setattr(compiled, "proposal", compiled.proposal.py_func)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["horseshoe", "walk"])
def test_a_density_without_the_volume_of_its_cells_is_rejected(
    name, seed, interpreted, monkeypatch
):
    """The missing half log(g + lambda)."""
    right = compiled.log_prior

    def broken(chart, x, q, coef, bases):
        order = np.argsort(chart.cell)
        lam = chart.slab + bases[: len(chart.cell)]
        lam = np.concatenate([np.full(chart.size[e], lam[e]) for e in order])
        return right(chart, x, q, coef, bases) + np.sum(np.log(chart.g + lam)) / 2

    monkeypatch.setattr(compiled, "log_prior", broken)
    prior = LABELLED[name]
    rejected(Warmed(learned(prior, 2, seed)), prior, seed)


class Forgetful(Warmed):
    """The position is found again from coef and scales before every sweep."""

    def step(self, target, draw, rng):
        return super().step(target, Draw(draw.coef, draw.scales), rng)


@pytest.mark.slow
def test_a_shear_without_its_inverse_is_rejected(seed, monkeypatch):
    """The free coefficients follow the others on the way there, and once more on the way back."""
    right, prior = whitening.enter, {"first": HalfCauchyNormal(2.0)}
    engine = Forgetful(learned(prior, 2, seed))
    testing.check_engine(engine, prior, groups=2, seed=seed)

    def broken(chart, y, coef, zeta, x):
        right(chart._replace(shear=-chart.shear), y, coef, zeta, x)

    monkeypatch.setattr(whitening, "enter", broken)
    rejected(engine, prior, seed)


@dataclass(frozen=True, eq=False)
class Adapting(Warmed):
    """A metric that follows the chain after warm-up."""

    def step(self, target, draw, rng):
        size = float(np.abs(draw.coef).mean())
        sd = np.full_like(self.memory["sd"], 0.3 if size > 0.7 else 1.5)
        return Warmed.step(Warmed({**self.memory, "sd": sd}), target, draw, rng)


@pytest.mark.slow
def test_a_metric_that_changes_after_warm_up_is_rejected(seed):
    prior = LABELLED["horseshoe"]
    rejected(Adapting(learned(prior, 2, seed)), prior, seed)


def mean_and_error(values):
    from arviz_stats.base import array_stats

    error = array_stats.mcse(values[None], chain_axis=0, draw_axis=1, method="mean")
    return values.mean(axis=0), np.asarray(error)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A log likelihood ``shift . theta - theta' gram theta / 2``."""

    gram: np.ndarray
    shift: np.ndarray
    size: int = 3

    def curvature(self, theta):
        return self.gram


def known_normal(rng):
    """A target whose posterior is a known normal, with its mean and standard deviations."""
    root = rng.standard_normal((5, 3))
    loss = Quadratic(root.T @ root, 3 * rng.standard_normal(3))
    precision = loss.gram + np.eye(3)
    mean = np.linalg.solve(precision, loss.shift)
    target = Target((), Normal(1.0), losses=(loss,), normalizer=False)
    return target, mean, np.sqrt(np.diag(np.linalg.inv(precision)))


def normal_scores(target, mean, sd, rng, sweeps=4000):
    """Differences from a known normal's means and variances, in standard errors."""
    kernel = Joint().kernel(target)
    memory = kernel._entered(Draw(mean[None], {}))
    # Smaller steps than it needs, so that kicks have something to do.
    memory = {**memory, "sd": 0.6 * memory["sd"]}
    coef = kernel.sweeps(Draw(mean[None], {}, {}, memory), rng, sweeps).coef[:, 0]
    z = (coef - mean) / sd
    found = [mean_and_error(z), mean_and_error(z**2 - 1)]
    return np.concatenate([value / error for value, error in found])


@pytest.mark.slow
def test_a_known_normal_is_sampled(seed):
    rng = np.random.default_rng(seed)
    assert np.max(np.abs(normal_scores(*known_normal(rng), rng))) < 5.5


@pytest.mark.slow
def test_a_kick_that_is_not_a_function_of_the_position_is_rejected(seed, interpreted, monkeypatch):
    """One that goes by the step: forth and back at the end, which no trajectory turns around."""
    right, proposal, left = compiled.gradient, compiled.proposal, [0]
    rng = np.random.default_rng(seed)
    known = known_normal(rng)
    # Of the size of one in whitened coordinates.
    push = np.linalg.cholesky(known[0].losses[0].gram + np.eye(3)).sum(axis=1)

    def broken(data, coef, out, residual):
        right(data, coef, out, residual)
        left[0] -= 1
        out += {2: 6.0, 1: -6.0}.get(left[0], 0.0) * push

    def begun(*given):
        left[:] = [given[7]]
        return proposal(*given)

    monkeypatch.setattr(compiled, "proposal", begun)
    monkeypatch.setattr(compiled, "gradient", broken)
    assert np.max(np.abs(normal_scores(*known, rng))) > 8


@pytest.mark.slow
def test_a_coarse_but_deterministic_kick_is_not(seed, interpreted, monkeypatch):
    """Why kicks may be in single precision: any function of the position will do."""
    right = compiled.gradient

    def coarse(data, coef, out, residual):
        right(data, coef, out, residual)
        out[:] = np.round(out)

    monkeypatch.setattr(compiled, "gradient", coarse)
    prior = LABELLED["horseshoe"]
    testing.check_engine(Warmed(learned(prior, 2, seed)), prior, groups=2, seed=seed)


@dataclass(frozen=True)
class OwnScale:
    """A user's prior with a scale, which knows no more than it has to."""

    scale: float

    def draw(self, shape, rng):
        return {"scale": self.scale * np.abs(rng.standard_cauchy(1))}

    def gaussian(self, state, shape):
        return HalfCauchyNormal(self.scale).gaussian(state, shape)

    def update(self, state, theta, rng):
        return HalfCauchyNormal(self.scale).update(state, theta, rng)


def test_a_prior_that_can_not_tell_its_coordinates_is_refused(seed):
    target = random_target(OwnScale(0.5), np.random.default_rng(seed))
    assert not joint.usable(target)
    with pytest.raises(ncb.InputError, match=r"engine 'joint' needs a prior .* use engine='gibbs'"):
        Joint().kernel(target)


def test_chains_start_apart(seed):
    target = random_target(PRIORS["horseshoe"], np.random.default_rng(seed))
    kernel = Joint(100).kernel(target)
    coefs = [np.ravel(kernel.start(np.random.default_rng(k)).coef) for k in range(20)]
    settled = kernel.sweeps(kernel.start(np.random.default_rng(1)), np.random.default_rng(2), 600)
    # At least as wide as the posterior, for most coefficients.
    ratio = np.std(coefs, axis=0) / settled.coef[100:].reshape(500, -1).std(axis=0)
    assert np.median(ratio) > 0.7


def test_the_engine_is_chosen_by_noise_and_prior():
    angles = ncb.datasets.torus_chain(60, nodes=3, seed=1).data
    settings = {"draws": 20, "tune": 20, "chains": 1, "seed": 1, "progress": False}
    model, uniform = ncb.models.TorusGraph(3), ncb.noise.Uniform(ncb.spaces.Torus(3))

    def engine(**options):
        with pytest.warns(ncb.FitWarning):
            posterior = ncb.fit(model, angles, **settings, **options)
        return posterior.data.attrs["engine"]

    assert engine(noise=uniform).startswith("Joint")
    assert engine(noise=ncb.noise.Pooled(uniform, sets=2)).startswith("Joint")
    assert engine(noise=ncb.noise.Fresh(uniform)).startswith("Gibbs")
    assert engine(noise=uniform, engine="gibbs").startswith("Gibbs")


@pytest.mark.parametrize("tune", [0, 1, 7])
def test_short_warm_ups_do_not_fail(tune):
    model, rng = ncb.models.VonMises(), np.random.default_rng(1)
    data = model.sample(np.array([1.0, 0.5]), 100, rng)
    with pytest.warns(ncb.FitWarning):
        posterior = ncb.fit(
            model, data, noise="matched", draws=30, tune=tune, chains=2, seed=1, progress=False
        )
    assert np.isfinite(posterior.theta.to_numpy()).all()
    assert {"acceptance_rate", "step_size", "n_steps", "diverging"} <= set(
        posterior.data["sample_stats"].data_vars
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["horseshoe", "walk", "half-Cauchy", "population"])
def test_trajectories_agree_with_polya_gamma_sweeps(name, seed):
    """Means and squared deviations; trajectories near half a turn flatter means alone."""
    rng = np.random.default_rng(seed)
    target = random_target(PRIORS[name], rng)
    kernel = Joint(500).kernel(target)
    start = kernel.sweeps(kernel.start(rng), rng, 500).last
    ours = kernel.sweeps(start, rng, 8000).coef.reshape(8000, -1)
    engine = Gibbs("block_tridiagonal")
    draw, theirs = engine.start(target, rng), []
    for _ in range(6000):
        draw = engine.step(target, draw, rng)
        theirs.append(np.ravel(draw.coef))
    theirs = np.array(theirs[500:])
    center = np.median(theirs, axis=0)
    for power in (1, 2):
        one, other = (mean_and_error((each - center) ** power) for each in (ours, theirs))
        z = (one[0] - other[0]) / np.hypot(one[1], other[1])
        assert np.max(np.abs(z)) < 5.5


def test_labels_that_are_certain_have_no_negative_weight(seed):
    """The chance of a label, in single precision, may be just above one."""
    rng = np.random.default_rng(seed)
    design = Dense(np.column_stack([rng.standard_normal((400, 2)), np.ones(400)]))
    offset = np.where(np.arange(400) < 200, 40.0, -40.0) * rng.uniform(0.1, 1, 400)
    target = Target((Contrast(design, offset, np.arange(400) < 200),), Normal(0.1))
    kernel = Joint(60).kernel(target)
    draw = kernel.start(rng)
    block = kernel.sweeps(draw, rng, 2)
    weights = block.memory["sum.weights"]
    assert (weights >= 0).all()
    assert (weights < 1e-6).any()
    assert np.isfinite(kernel.sweeps(block.last, rng, 80).coef).all()
