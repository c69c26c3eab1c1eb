"""Noise given that it lies in a space: its mass, its draws, and noise for polygons."""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

import ncbayes as ncb
from ncbayes import models, noise
from ncbayes.base import InputError, Noise, NoiseSet
from ncbayes.contrast import contrast
from ncbayes.noise import Restricted, restricted
from ncbayes.noise.auto import families
from ncbayes.spaces import Binary, Box, Orthant, Reals, Region
from ncbayes.testing import check_noise

LSHAPE = Region.of([[0, 0], [4, 0], [4, 1], [1, 1], [1, 3], [0, 3]])
HOLED = Region((np.array([[-2, -2], [2, -2], [2, 2], [-2, 2]]), np.array([[0, 0], [1, 0], [0, 1]])))
WIDE = noise.Normal([1.0, 1.0], [[1.0, -0.3], [-0.3, 1.0]])
POINTS = LSHAPE.uniform(60, np.random.default_rng(0))


def normal_mass(mean, low, high):
    return float(np.prod(ndtr(np.subtract(high, mean)) - ndtr(np.subtract(low, mean))))


# Noise, a space, and the exact probability of the space, where there is one.
CASES = {
    "normal in a box": (noise.Normal([0.5, 0.0], np.eye(2)), Box((0, -1), (2, 1)),
                        normal_mass([0.5, 0.0], [0, -1], [2, 1])),
    "normal in an orthant": (noise.Normal([0.0, 1.0], np.eye(2)), Orthant(2),
                             normal_mass([0.0, 1.0], [0, 0], [np.inf, np.inf])),
    "uniform in a region": (noise.Uniform(Box((0, 0), (4, 3))), LSHAPE, 0.5),
    "flips": (noise.Bernoulli([0.2, 0.7]), Binary(2), 1.0),
    "normal in an L": (WIDE, LSHAPE, None),
    "student around a hole": (noise.StudentT([0.0, 0.0], np.eye(2), 3.0), HOLED, None),
    "kernels in an L": (noise.KernelDensity.match(POINTS), LSHAPE, None),
}  # fmt: skip
EACH = pytest.mark.parametrize(("made", "space", "mass"), CASES.values(), ids=CASES)


@EACH
def test_restricted_noise_is_noise(made, space, mass, seed):
    ours = Restricted.to(made, space)
    draws = ours.sample(500, np.random.default_rng(seed))
    assert isinstance(ours, Noise)
    assert ours.dimension == 2
    assert draws.shape == (500, 2)
    assert space.contains(draws).all()
    assert ours.log_density(draws) == pytest.approx(made.log_density(draws) - ours.log_mass)
    assert ours.sample(0, np.random.default_rng(seed)).shape == (0, 2)


@EACH
def test_the_mass_is_found_to_its_standard_error(made, space, mass):
    found = Restricted.to(made, space)
    assert found == Restricted.to(made, space)
    if mass is not None:
        assert found.log_mass == pytest.approx(math.log(mass), abs=4.9 * restricted.ENOUGH)
        assert found.log_mass != pytest.approx(math.log(mass) + 0.02, abs=4.9 * restricted.ENOUGH)


def test_the_density_is_that_of_the_noise_inside_and_zero_outside():
    ours = Restricted(noise.Normal(0, 1), Box(-1, 2), math.log(normal_mass(0, [-1], [2])))

    def density(x):
        return math.exp(ours.log_density(np.array([[x]]))[0])

    assert integrate.quad(density, -1, 2)[0] == pytest.approx(1, abs=1e-9)
    x = np.array([[-1.0], [2.0], [-1.001], [2.001], [np.nan]])
    assert np.isfinite(ours.log_density(x)).tolist() == [True, True, False, False, False]
    assert (ours.log_density(x[2:]) == -np.inf).all()


def test_the_noise_is_not_asked_for_densities_outside():
    class Logs:
        def sample(self, size, rng):
            return np.exp(rng.standard_normal((size, 1)))

        def log_density(self, x):
            assert (x > 0).all()
            return -(np.log(x[:, 0]) ** 2) / 2 - np.log(x[:, 0]) - math.log(2 * math.pi) / 2

    ours = Restricted.to(Logs(), Box(0.5, 2.0))
    assert ours.log_density(np.array([[-3.0], [1.0]]))[0] == -np.inf


@EACH
def test_draws_follow_the_density(made, space, mass, seed):
    check_noise(Restricted.to(made, space), space, seed=seed)


@dataclass(frozen=True)
class Broken:
    """Restricted noise with one fault."""

    right: Restricted
    fault: str

    def sample(self, size, rng):
        if self.fault == "draws":
            wider = noise.Normal(self.right.noise.mean, 1.3 * self.right.noise.covariance)
            return Restricted.to(wider, self.right.space).sample(size, rng)
        if self.fault == "no rejection":
            return self.right.noise.sample(size, rng)
        return self.right.sample(size, rng)

    def log_density(self, x):
        if self.fault == "mass":
            return self.right.log_density(x) + self.right.log_mass
        return self.right.log_density(x)


@pytest.mark.parametrize("space", [LSHAPE, HOLED, Box((0, 0), (1, 2))], ids=repr)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("draws", "draws points that do not follow its log_density"),
        ("no rejection", "has no finite log density at .* of its own draws"),
        ("mass", "not normalized: it integrates to"),
    ],
)
def test_broken_restrictions_are_rejected(space, fault, message, seed):
    right = Restricted.to(noise.Normal([0.5, 0.5], 0.5 * np.eye(2)), space)
    check_noise(right, space, seed=seed)
    with pytest.raises(AssertionError, match=message):
        check_noise(Broken(right, fault), space, seed=seed)


def test_an_error_of_the_mass_moves_the_normalizer_alone():
    """The offsets of all points move by one constant, which c takes up."""
    model, data = models.Exponential(), np.array([[0.5], [1.0], [0.2]])
    made = noise.Normal(1, 1)
    points = Restricted(made, Orthant(1), -0.2).sample(50, np.random.default_rng(0))
    offsets = []
    for log_mass in (-0.2, -0.25):
        each = Restricted(made, Orthant(1), log_mass)
        noises = NoiseSet(points, each.log_density(points), each.log_density(data))
        offsets.append(contrast(model, data, noises).offset)
    assert offsets[1] - offsets[0] == pytest.approx(np.full(53, -0.05))


FAR = noise.Normal([50.0, 50.0], np.eye(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Restricted.to("normal", LSHAPE), "needs noise with sample and .*, got 'normal'$"),
        (lambda: Restricted.to(noise.Normal, LSHAPE), "needs noise .*, got the class Normal$"),
        (lambda: Restricted.to(WIDE, "L"), r"needs a space such as .*Region.of.*, got 'L'$"),
        (lambda: Restricted(WIDE, Box, -1), "needs a space such as .*, got the class Box$"),
        (lambda: Restricted.to(noise.Normal(0, 1), LSHAPE), "number of columns, got 1 and 2$"),
        (lambda: Restricted(WIDE, LSHAPE, 0.1), "log of a probability, .* up to 0, got 0.1: .*to"),
        (lambda: Restricted(WIDE, LSHAPE, -math.inf), "log of a probability, .*, got -inf: "),
        (lambda: Restricted(WIDE, LSHAPE, "all"), r"log_mass=...\) must be .*, got 'all': "),
        (
            lambda: Restricted.to(FAR, LSHAPE),
            r"^hardly any draws of Normal.* lie in Region\(1 ring.*\), 0 of \d+, and .*Uniform",
        ),
        (
            lambda: Restricted(FAR, LSHAPE, -1.0).sample(5, np.random.default_rng(0)),
            r"hardly any draws of Normal.* 0 of \d+, and rejection would take too long: choose",
        ),
        (
            lambda: noise.KernelDensity.match(POINTS, LSHAPE),
            r"no kernels that end at the border of Region\(.*\): pass ncbayes.noise.Restricted.to",
        ),
        (
            lambda: noise.KernelDensity(POINTS, 1.0, LSHAPE),
            r"no kernels that end at the border of Region\(.*\): pass ncbayes.noise.Restricted.to",
        ),
        (
            lambda: noise.margins(POINTS, LSHAPE),
            r"can't make independent columns in Region\(.*\): pass ncbayes.noise.Restricted.to",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_restricted_is_refused_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message) as raised:
        make()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 260


def test_rare_spaces_are_still_drawn_from(seed):
    """One in 3000 is slow, and not hopeless."""
    ours = Restricted(noise.Uniform(Box(0, 3000)), Box(0, 1), math.log(1 / 3000))
    assert Box(0, 1).contains(ours.sample(200, np.random.default_rng(seed))).all()


def test_matched_noise_of_a_region_is_uniform():
    assert noise.matched(LSHAPE, POINTS) == noise.Uniform(LSHAPE)


def test_families_of_a_region_are_noise_there(seed):
    for family in families(LSHAPE).values():
        check_noise(family(POINTS), LSHAPE, seed=seed)


@dataclass(frozen=True)
class Slope:
    """``exp(theta x)`` on a space of the plane."""

    space: Region | Box

    @property
    def groups(self):
        return {"slope": ("x",)}

    def statistics(self, x):
        return x[:, :1]

    def log_base(self, x):
        return np.zeros(len(x))


def log_partition(theta):
    """On the L: ``3 int_0^1 exp(theta x) + int_1^4 exp(theta x)``."""
    return math.log((3 * math.expm1(theta) + math.exp(4 * theta) - math.exp(theta)) / theta)


def fitted(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(
            model, data, draws=300, tune=150, chains=2, cores=1, progress=False, **options
        )


@pytest.mark.slow
@pytest.mark.parametrize("word", ["auto", "matched", "restricted"])
def test_a_slope_is_recovered_on_a_region_and_lost_where_the_outline_is_ignored(word, seed):
    theta, rng = 0.6, np.random.default_rng(seed)
    proposals = LSHAPE.uniform(2000, rng)
    data = proposals[rng.random(2000) < np.exp(theta * (proposals[:, 0] - 4))]
    own = Restricted.to(noise.Normal.match(data), LSHAPE)
    kind = own if word == "restricted" else word
    posterior = fitted(Slope(LSHAPE), data, noise=kind, noise_ratio=2, seed=seed)
    for values, truth in ((posterior.theta, theta), (posterior.log_z, log_partition(theta))):
        assert abs(float(values.mean()) - truth) < 4.9 * float(values.std())
    blind = fitted(Slope(Box((0, 0), (4, 3))), data, noise="matched", seed=seed).theta
    assert abs(float(blind.mean()) - theta) > 4.9 * float(blind.std())


@pytest.mark.slow
def test_regions_can_be_fitted_in_processes_and_by_group(seed):
    rng = np.random.default_rng(seed)
    data = {"u": LSHAPE.uniform(50, rng), "v": LSHAPE.uniform(80, rng)}
    options = {"noise": "auto", "noise_ratio": 1, "seed": seed, "draws": 40, "tune": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        one, two = (
            ncb.fit(Slope(LSHAPE), data, chains=2, cores=cores, progress=False, **options)
            for cores in (1, 2)
        )
    assert np.array_equal(one.theta, two.theta)


def test_reals_stay_unbounded():
    """A restriction to all reals changes nothing."""
    ours = Restricted.to(WIDE, Reals(2))
    assert ours.log_mass == 0.0
    x = WIDE.sample(9, np.random.default_rng(0))
    assert np.array_equal(ours.log_density(x), WIDE.log_density(x))
