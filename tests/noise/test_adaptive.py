"""Settings of adaptive and automatic noise, and the guard that lets no poor noise through."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import i0e

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.models import Exponential, Gaussian, Ising, TorusGraph, VonMises
from ncbayes.noise import Adaptive, Annealed, Auto, Normal, Resampled, StudentT, Uniform
from ncbayes.noise.adaptive import FEWEST_PARTICLES
from ncbayes.noise.auto import families
from ncbayes.noise.tempered import FEW_EFFECTIVE, UNCERTAIN, ZERO_WEIGHTS, Refused
from ncbayes.spaces import Binary, Box, Orthant, Reals, Region, Torus

COUNTS = {"batch": 2, "proposals": 1, "most_proposals": 1, "steps": 1, "most_steps": 1,
          "updates": 1}  # fmt: skip
NO_COUNTS = [0, -1, 2.5, 3.0, True, "10", [10], math.nan]
NO_NUMBERS = [-0.1, math.nan, "half", True, [0.5], np.array([0.5]), 1j]


def assert_refused(make, message):
    with pytest.raises(InputError) as raised:
        make()
    text = str(raised.value)
    assert "\n" not in text
    assert 20 < len(text) < 400
    assert message in text


@pytest.mark.parametrize("value", NO_COUNTS, ids=repr)
@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_whole_numbers(name, value):
    assert_refused(
        lambda: Adaptive(**{name: value}),
        f"Adaptive({name}=...) must be a whole number, at least {COUNTS[name]}, got ",
    )


def test_a_batch_has_two_halves():
    assert_refused(lambda: Adaptive(batch=1), "Adaptive(batch=...) must be a whole number, at")


RANGES = {
    "alpha": "must be a number, from 0 (the base) to 1 (the fitted model), got ",
    "least_effective": "must be a number, from 0 to 1, got ",
    "margin": "must be a number, 0 or more, got ",
    "largest_error": "must be a number, 0 or more, got ",
}


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", RANGES)
def test_shares_are_numbers_in_their_range(name, value):
    assert_refused(lambda: Adaptive(**{name: value}), f"Adaptive({name}=...) {RANGES[name]}")


@pytest.mark.parametrize("name", ["alpha", "least_effective"])
def test_a_share_is_at_most_one(name):
    assert_refused(lambda: Adaptive(**{name: 1.01}), f"Adaptive({name}=...) must be a number, from")


@pytest.mark.parametrize("value", ["gibbs", None, 1, "Annealed"], ids=repr)
def test_methods_are_named(value):
    assert_refused(
        lambda: Adaptive(method=value),
        'Adaptive(method=...) must be "auto", "resampling", "annealed" or "carried", got ',
    )


@pytest.mark.parametrize("value", ["uniform", 3, Normal, {"all": Normal(0.0, 1.0)}], ids=repr)
def test_a_base_is_a_distribution_or_named(value):
    assert_refused(
        lambda: Adaptive(base=value),
        'Adaptive(base=...) must be a distribution with sample and log_density, "box", "start" or',
    )


@pytest.mark.parametrize("base", ["box", "start", Normal(0.0, 1.0)], ids=repr)
def test_annealing_has_no_base(base):
    assert_refused(
        lambda: Adaptive(method="annealed", base=base),
        'Adaptive(base=...) is for methods "resampling" and "carried"; annealing starts at the ',
    )


@pytest.mark.parametrize("name", ["loss", "seconds", "most_ratio"])
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, "1", True, [1.0], None], ids=repr)
def test_auto_takes_positive_numbers(name, value):
    assert_refused(
        lambda: Auto(**{name: value}), f"Auto({name}=...) must be a positive number, got "
    )


@pytest.mark.parametrize(
    "value", [0.5, (0.0,), (0.5, 1.1), ("0.5",), (True,), (math.nan,), "auto", None], ids=repr
)
def test_auto_takes_several_alphas(value):
    assert_refused(
        lambda: Auto(alphas=value), "Auto(alphas=...) must be numbers above 0 and up to 1, such as"
    )


@pytest.mark.parametrize(("name", "least"), [("batch", 2), ("rounds", 0)])
@pytest.mark.parametrize("value", [-1, 2.5, True, "2", None], ids=repr)
def test_auto_takes_whole_numbers(name, least, value):
    assert_refused(
        lambda: Auto(**{name: value}),
        f"Auto({name}=...) must be a whole number, at least {least}, got ",
    )


def test_auto_counts_its_trials():
    assert Auto(rounds=2).trial_count(Torus(1)) == 1 + 2 + 4
    assert Auto(rounds=0).trial_count(Torus(3)) == 1 + 3
    assert Auto(alphas=[0.5], rounds=1).trial_count(Binary(3)) == 1 + 1 + 1


@dataclass(frozen=True)
class Elsewhere:
    dimension: int = 1


def test_families_by_space():
    """Fitted noise is normalized and has density at the data it was fitted to."""
    rng = np.random.default_rng(0)
    spaces = {
        Torus(1): 2, Torus(3): 3, Reals(1): 3, Reals(2): 4, Orthant(2): 2, Box([0.0], [2.0]): 1,
        Binary(3): 1,
        Region.of([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]): 1
    }  # fmt: skip
    for space, count in spaces.items():
        data = np.abs(rng.normal(size=(40, space.dimension))) % 1.9
        data = np.round(data % 1) if isinstance(space, Binary) else data
        made = families(space)
        assert len(made) == count
        for family in made.values():
            assert np.isfinite(family(data).log_density(data)).all()
    assert families(Elsewhere()) == {}


def test_update_count():
    assert Adaptive(batch=100).update_count(1000) == 10
    assert Adaptive(batch=100).update_count(0) == 1
    assert Adaptive(batch=100).update_count(199) == 1
    assert Adaptive(batch=100, updates=3).update_count(0) == 3


def test_models_with_conditionals_on_finite_spaces_are_annealed():
    assert Adaptive().is_annealed(TorusGraph(2))
    assert Adaptive(method="annealed").is_annealed(Ising(2))
    assert not Adaptive(method="resampling").is_annealed(TorusGraph(2))
    assert not Adaptive().is_annealed(VonMises())
    assert not Adaptive().is_annealed(Gaussian(2))


class Unbounded(Gaussian):
    def sweep(self, theta, x, rng):
        return x


@pytest.mark.parametrize("model", [VonMises(), Gaussian(1), Unbounded(1)], ids=repr)
def test_annealing_needs_conditionals_on_a_finite_space(model):
    assert not Adaptive().is_annealed(model)
    message = 'Adaptive(method="annealed") needs a model with sweep(theta, x, rng), one sweep of'
    assert_refused(lambda: Adaptive(method="annealed").is_annealed(model), message)
    settings = {"progress": False, "noise": Adaptive(method="annealed"), "seed": 1, "cores": 1}
    data = np.random.default_rng(0).random((30, 1))
    assert_refused(lambda: ncb.fit(model, data, **settings), message)


DATA = np.array([[1.0, 3.0], [2.0, 3.0], [1.5, 3.0]])
START = StudentT([0.0, 0.0], np.eye(2))


def test_a_box_covers_the_data_and_a_margin():
    box = Adaptive(base="box", margin=0.25).starting_base(Gaussian(2), START, DATA)
    assert isinstance(box, Uniform)
    # The second column is constant and gets a width of 1.
    assert box.space == Box([0.75, 2.75], [2.25, 3.25])
    assert np.isfinite(box.log_density(DATA)).all()


def test_a_box_without_a_margin_still_holds_the_data():
    box = Adaptive(base="box", margin=0).starting_base(Gaussian(1), START, DATA[:, :1])
    assert box.space == Box([1.0], [2.0])
    assert np.isfinite(box.log_density(DATA[:, :1])).all()


def test_a_box_without_a_margin_around_a_constant_is_refused_or_has_an_inside():
    with pytest.raises(InputError, match="low < high in every column"):
        Adaptive(base="box", margin=0).starting_base(Gaussian(2), START, DATA)


def test_bases_by_name_space_and_object():
    given = Normal([0.0, 0.0], np.eye(2))
    angles = DATA[:, :1]
    assert Adaptive(base=given).starting_base(Gaussian(2), START, DATA) is given
    assert Adaptive(base="start").starting_base(VonMises(), START, angles) is START
    assert Adaptive().starting_base(Gaussian(2), START, DATA) is START
    assert Adaptive().starting_base(Exponential(), START, angles) is START
    assert Adaptive().starting_base(VonMises(), START, angles) == Uniform(Torus(1))
    assert Adaptive().starting_base(TorusGraph(2), START, DATA) is None
    plain = Adaptive(method="resampling").starting_base(TorusGraph(2), START, DATA)
    assert plain == Uniform(Torus(2))


def test_alpha_is_the_paper_s_from_the_uniform_and_a_half_elsewhere():
    assert Adaptive().wanted_alpha(Uniform(Torus(1))) == 0.1
    assert Adaptive().wanted_alpha(None) == 0.5
    assert Adaptive().wanted_alpha(START) == 0.5
    assert Adaptive(alpha=1).wanted_alpha(Uniform(Torus(1))) == 1.0
    assert Adaptive(alpha=0).wanted_alpha(None) == 0.0


@dataclass(frozen=True)
class Angles:
    """Independent angles, ``theta . cos x``: the share of effective points is known exactly."""

    dimension: int

    @property
    def space(self):
        return Torus(self.dimension)

    @property
    def groups(self):
        return {"cos": tuple(f"cos(x{k})" for k in range(self.dimension))}

    def statistics(self, x):
        return np.cos(x)

    def log_base(self, x):
        return np.zeros(len(x))


class Sweeping(Angles):
    def sweep(self, theta, x, rng):
        return rng.vonmises(np.where(theta < 0, np.pi, 0), np.abs(theta), x.shape) % (2 * np.pi)


def log_i0(k):
    return math.log(i0e(k)) + k


def effective_share(concentration, dimension):
    """``(E w)^2 / E w^2`` from the uniform, ``w = exp(k sum cos x)``."""
    return math.exp(dimension * (2 * log_i0(concentration) - log_i0(2 * concentration)))


def tempered(settings, model, theta, size=400, seed=1):
    start = Uniform(model.space)
    data = model.space.uniform(50, np.random.default_rng(0))
    base = settings.starting_base(model, start, data)
    made = settings.temper(model, theta, base, size, np.random.default_rng(seed))
    return made, base


def test_easy_noise_passes_at_once(seed):
    made, base = tempered(Adaptive(alpha=0.5), Angles(1), np.ones(1), seed=seed)
    assert (made.alpha, made.work, made.effective) == (0.5, 10, 1.0)
    exact = log_i0(0.5) + 0.5 * math.log(2 * math.pi)
    assert abs(made.log_z - exact) < 5.5 * made.log_z_error
    assert 0 < made.log_z_error < 0.1
    assert isinstance(Adaptive().built(Angles(1), base, made), Resampled)


def test_proposals_are_doubled_until_they_are_enough(seed):
    """A share of 0.03: 10 and 20 proposals a point are too few, 40 (or 80) are enough."""
    k = brentq(lambda k: effective_share(k, 8) - 0.03, 0.01, 5)
    made, _ = tempered(Adaptive(alpha=1.0), Angles(8), np.full(8, k), size=2000, seed=seed)
    assert made.alpha == 1.0
    assert made.work in (40, 80)
    assert made.effective >= 0.8
    few, _ = tempered(
        Adaptive(alpha=1.0, most_proposals=39), Angles(8), np.full(8, k), size=2000, seed=seed
    )
    assert few.work == 20
    assert few.alpha < 1


def test_alpha_is_lowered_as_far_as_needed(seed):
    """To the alpha whose share of effective points is 0.8 of one proposal in 80, or nearly."""
    d, k, size = 30, 3.0, 1000
    made, _ = tempered(Adaptive(alpha=1.0), Angles(d), np.full(d, k), size=size, seed=seed)
    wanted = brentq(lambda a: effective_share(a * k, d) - 0.8 / 80, 1e-3, 1)
    assert made.work == 80
    assert made.alpha == pytest.approx(wanted, rel=0.15)
    assert made.effective == pytest.approx(0.8, abs=0.01)
    assert made.log_z_error <= 0.1


def test_the_guard_is_off_at_the_user_s_risk(seed):
    settings = Adaptive(alpha=1.0, least_effective=0, largest_error=math.inf)
    made, _ = tempered(settings, Angles(30), np.full(30, 3.0), seed=seed)
    assert (made.alpha, made.work) == (1.0, 10)
    assert made.effective < 0.1


@pytest.mark.parametrize("model", [Angles(400), Sweeping(400)], ids=lambda m: type(m).__name__)
def test_hopeless_noise_is_refused(model, seed):
    settings = Adaptive(alpha=0.5, proposals=1, most_proposals=1, steps=1, most_steps=1)
    refused = tempered(settings, model, np.full(400, 60.0), size=50, seed=seed)[0]
    assert refused.reason == FEW_EFFECTIVE
    assert 0 < refused.effective < 0.8


@pytest.mark.parametrize("model", [Angles(2), Sweeping(2)], ids=lambda m: type(m).__name__)
def test_an_error_that_nothing_meets_is_refused(model, seed):
    refused, _ = tempered(Adaptive(largest_error=0.0), model, np.ones(2), seed=seed)
    assert refused.reason == UNCERTAIN
    assert refused.log_z_error > 0


def test_weights_of_zero_are_refused(seed):
    """Proposals that never lie in the model's space have no weight at all."""
    data = np.random.default_rng(seed).integers(0, 2, (30, 3)).astype(float)
    settings = Adaptive(base="box", method="resampling")
    base = settings.starting_base(Ising(3), Uniform(Binary(3)), data)
    rng = np.random.default_rng(seed)
    assert settings.temper(Ising(3), np.zeros(6), base, 30, rng) == Refused(ZERO_WEIGHTS)


def counted(model, calls):
    """The model, noting at which theta it is swept."""

    class Counted(type(model)):
        def sweep(self, theta, x, rng):
            calls.append((theta.copy(), len(x)))
            return super().sweep(theta, x, rng)

    return Counted(model.dimension)


def test_annealing_takes_more_steps_before_it_lowers_alpha(seed):
    """20 angles of concentration 1: 10 steps are too few, and 80 enough."""
    calls = []
    model = counted(Sweeping(20), calls)
    made, base = tempered(Adaptive(alpha=1.0), model, np.ones(20), seed=seed)
    assert base is None
    assert made.alpha == 1.0
    assert made.work in (20, 40, 80)
    assert made.effective >= 0.8
    assert len(calls) == sum(work for work in (10, 20, 40, 80) if work <= made.work)
    assert {size for _, size in calls} == {FEWEST_PARTICLES}
    exact = 20 * (log_i0(1.0) + math.log(2 * math.pi))
    assert abs(made.log_z - exact) < 5.5 * made.log_z_error
    assert isinstance(Adaptive().built(model, base, made), Annealed)


def test_annealing_lowers_alpha_where_there_are_no_more_steps(seed):
    d = 60
    settings = Adaptive(alpha=1.0, steps=5, most_steps=20)
    made, _ = tempered(settings, Sweeping(d), np.ones(d), size=700, seed=seed)
    assert made.work == 20
    assert 0.02 <= made.alpha < 1
    assert made.effective >= 0.8
    exact = d * (log_i0(made.alpha) + math.log(2 * math.pi))
    assert abs(made.log_z - exact) < 5.5 * made.log_z_error
    whole = Adaptive(alpha=1.0, steps=20, most_steps=20, least_effective=0, largest_error=math.inf)
    assert tempered(whole, Sweeping(d), np.ones(d), size=700, seed=seed)[0].effective < 0.8


def test_the_same_random_numbers_give_the_same_noise(seed):
    for model in (Angles(5), Sweeping(5)):
        one, other = (tempered(Adaptive(), model, np.ones(5), seed=seed)[0] for _ in range(2))
        assert (one.alpha, one.log_z, one.work) == (other.alpha, other.log_z, other.work)


def test_a_base_means_resampling_also_where_noise_could_be_annealed():
    assert Adaptive().is_annealed(TorusGraph(2))
    assert not Adaptive(base="start").is_annealed(TorusGraph(2))


def test_alpha_zero_is_the_base_also_where_the_model_is_zero():
    model, base = Exponential(), Normal(1.0, 4.0)  # half of it lies below 0
    settings, rng = Adaptive(alpha=0.0, base=base), np.random.default_rng(1)
    tempering = settings.temper(model, np.array([1.0]), base, 50, rng)
    assert (tempering.alpha, tempering.log_z) == (0.0, 0.0)
    made, x = settings.built(model, base, tempering), np.array([[-1.0], [0.5], [3.0]])
    np.testing.assert_array_equal(made.log_density(x), base.log_density(x))
    assert np.isfinite(made.sample(50, rng)).all()
