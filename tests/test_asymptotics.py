"""The theory of the paper's section 3: exact identities, and what a fit sees of them."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit

import ncbayes as ncb
from ncbayes import asymptotics, quadrature
from ncbayes.asymptotics import efficiency, expected, observed, suggest_noise_ratio


@dataclass(frozen=True)
class SmallIsing:
    """Zeros and ones with fields and couplings, log Z by enumeration or not at all."""

    columns: int = 3

    @property
    def space(self):
        return ncb.spaces.Binary(self.columns)

    @property
    def groups(self):
        pairs = [f"x{i + 1}*x{j + 1}" for i, j in zip(*self._pairs, strict=True)]
        return {"field": [f"x{i + 1}" for i in range(self.columns)], "edge": pairs}

    @property
    def _pairs(self):
        return np.triu_indices(self.columns, 1)

    def statistics(self, x):
        i, j = self._pairs
        return np.hstack([x, x[:, i] * x[:, j]])

    def log_base(self, x):
        return np.zeros(len(x))


@dataclass(frozen=True)
class Line:
    """One number in a box: an exponential distribution cut off, ``log p = theta x - log Z``."""

    @property
    def space(self):
        return ncb.spaces.Box([-1.0], [2.0])

    groups = {"slope": ("x",)}  # noqa: RUF012

    def statistics(self, x):
        return x

    def log_base(self, x):
        return np.zeros(len(x))


ISING = np.array([0.3, -0.5, 0.2, 0.8, -0.4, 0.6])
CASES = {
    "von Mises": (ncb.models.VonMises(), [1.0, 0.5], ncb.noise.Uniform(ncb.spaces.Torus(1))),
    "Gaussian 1": (ncb.models.Gaussian(1), [0.5, 1.0], ncb.noise.Normal([0.0], [[4.0]])),
    "Gaussian 2": (
        ncb.models.Gaussian(2),
        [0.5, -0.2, 1.0, 2.0, 0.4],
        ncb.noise.StudentT([0.0, 0.0], np.eye(2)),
    ),
    "Ising": (SmallIsing(), ISING, ncb.noise.Bernoulli([0.6, 0.4, 0.5])),
    "box": (Line(), [1.3], ncb.noise.Uniform(Line().space)),
}
cases = pytest.mark.parametrize("case", CASES)
ratios = pytest.mark.parametrize("ratio", [0.3, 1.0, 20.0])


def parts(case):
    model, theta, noise = CASES[case]
    return model, np.array(theta), noise


def moments(case, ratio):
    """By the same points, but written out from p and q: rho, s, p's weights and q's."""
    model, theta, noise = parts(case)
    points, of_p, log_p = quadrature.quadrature(model, theta)
    kept = of_p > 0
    points, of_p, log_p = points[kept], of_p[kept], log_p[kept]
    of_q = of_p * np.exp(noise.log_density(points) - log_p)
    s = np.column_stack([model.statistics(points), np.ones(len(points))])
    rho = np.exp(log_p) / (np.exp(log_p) + ratio * np.exp(noise.log_density(points)))
    return rho, s, of_p, of_q


def variance(values, weights):
    """With weights of a measure that may lack a part of its mass where values are 0."""
    mean = weights @ values
    return (values.T * weights) @ values - np.outer(mean, mean)


def close(got, wanted, digits=1e-10):
    np.testing.assert_allclose(got, wanted, rtol=digits, atol=digits * np.abs(wanted).max())


@cases
@ratios
def test_the_matrices_are_those_of_the_paper(case, ratio):
    found = expected(*parts(case), ratio)
    rho, s, of_p, of_q = moments(case, ratio)
    close(found.curvature, (s.T * (of_p * (1 - rho))) @ s)
    close(found.mean, of_p @ ((1 - rho)[:, None] * s))
    close(found.fisher, variance(s[:, :-1], of_p))
    # The variance of the gradient, from its definition (the supplement's eq. for J).
    direct = variance((1 - rho)[:, None] * s, of_p) + ratio * variance(rho[:, None] * s, of_q)
    close(found.variability, direct)
    # Broken twins: without the term in mu, and with rho in the place of 1 - rho.
    assert not np.allclose(found.curvature, direct, rtol=1e-3)
    assert not np.allclose((s.T * (of_p * rho)) @ s, found.curvature, rtol=1e-3)


@cases
@ratios
def test_posterior_and_sampling_covariance_agree_but_for_c(case, ratio):
    found = expected(*parts(case), ratio)
    inverse = np.linalg.inv(found.curvature)
    close(found.inverse_curvature, inverse)
    close(found.sandwich, inverse @ found.variability @ inverse)
    close(found.covariance, found.sandwich[:-1, :-1])
    close(found.covariance, inverse[:-1, :-1])
    gap = found.inverse_curvature - found.sandwich
    close(gap[-1, -1], (1 + ratio) / ratio)
    gap[-1, -1] = 0
    assert np.abs(gap).max() < 1e-10 * np.abs(inverse).max()
    # A broken twin: the sandwich of J without the term in mu has no gap at all.
    assert abs((inverse @ found.curvature @ inverse - inverse)[-1, -1]) < 1e-8


@cases
def test_more_noise_is_better_down_to_the_fisher_information(case):
    path = [expected(*parts(case), ratio).covariance for ratio in (0.1, 1, 10, 100, 1e6)]
    limit = expected(*parts(case), 1.0).limit
    close(limit, np.linalg.inv(expected(*parts(case), 1.0).fisher))
    for more, less in zip([*path, limit], path, strict=False):
        assert np.linalg.eigvalsh(less - more).min() > -1e-10 * np.abs(limit).max()
    close(path[-1], limit, 1e-5)
    assert not np.allclose(path[-2], limit, rtol=1e-5)


@pytest.mark.parametrize("case", ["von Mises", "Gaussian 1", "Gaussian 2"])
def test_the_fisher_information_is_the_hessian_of_log_z(case):
    model, theta, noise = parts(case)
    step, units = 1e-4, np.eye(len(theta))

    def second(a, b):
        corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        values = [i * j * model.log_partition(theta + step * (i * a + j * b)) for i, j in corners]
        return sum(values) / (4 * step**2)

    hessian = np.array([[second(a, b) for a in units] for b in units])
    close(expected(model, theta, noise, 1.0).fisher, hessian, 1e-5)


SELF = {
    "von Mises": ncb.noise.VonMises([np.arctan2(0.5, 1.0)], [np.hypot(1.0, 0.5)]),
    "Gaussian 1": ncb.noise.Normal([0.5], [[1.0]]),
}


@pytest.mark.parametrize("case", SELF)
@ratios
def test_noise_like_the_data_costs_one_plus_one_over_nu(case, ratio):
    model, theta, _ = parts(case)
    found = expected(model, theta, SELF[case], ratio)
    close(found.covariance, (1 + 1 / ratio) * found.limit)
    close(found.relative_width, np.full(2, np.sqrt(1 + 1 / ratio)))
    close(found.standard_errors(100), np.sqrt(np.diag(found.limit) * (1 + 1 / ratio) / 100))


def test_data_far_from_zero_and_in_odd_units_keep_their_digits():
    """Statistics of size 1e3 and 1e6 that vary by 0.1 and 100, and nearly together."""
    model, mean, sd = ncb.models.Gaussian(1), 1e3, 0.1
    near = expected(model, [0.0, 1.0], ncb.noise.Normal([0.5], [[4.0]]), 2.0)
    noise = ncb.noise.Normal([mean + 0.5 * sd], [[4 * sd**2]])
    far = expected(model, [mean / sd**2, 1 / sd**2], noise, 2.0)
    # theta_2 is 1 / variance in both, so its unit is 1 / sd^2.
    close(far.covariance[1, 1] * sd**4, near.covariance[1, 1], 1e-5)
    close(far.limit[1, 1] * sd**4, near.limit[1, 1], 1e-5)
    gap = (np.linalg.inv(far.curvature)[1, 1] * sd**4) / near.covariance[1, 1]
    assert abs(gap - 1) > 1e-3, "without centring the digits are gone, or this test is too easy"


def test_points_and_weights_of_your_own():
    model, theta, noise = parts("von Mises")
    exact = expected(model, theta, noise, 3.0)
    x = np.arange(200)[:, None] * 2 * np.pi / 200
    weights = np.exp(model.statistics(x) @ theta)
    ruled = expected(model, theta, noise, 3.0, x, weights / weights.sum())
    close(ruled.covariance, exact.covariance)
    close(ruled.limit, exact.limit)
    draws = model.sample(theta, 100_000, np.random.default_rng(1))
    close(expected(model, theta, noise, 3.0, draws).covariance, exact.covariance, 0.05)


def test_many_columns_are_enumerated_in_blocks():
    """Independent columns: V of a field is known from one column alone."""

    @dataclass(frozen=True)
    class Fields:
        space = ncb.spaces.Binary(16)
        groups = {"field": [f"x{i}" for i in range(16)]}  # noqa: RUF012

        def statistics(self, x):
            return x

        def log_base(self, x):
            return np.zeros(len(x))

    theta = np.linspace(-1, 1, 16)
    noise = ncb.noise.Bernoulli(expit(theta))
    found = expected(Fields(), theta, noise, 4.0)
    close(found.covariance, np.diag(1.25 / (expit(theta) * expit(-theta))))


@pytest.fixture(scope="module")
def big():
    model, theta, noise = parts("von Mises")
    data = model.sample(theta, 20_000, np.random.default_rng(5))
    return ncb.fit(
        model,
        data,
        noise=noise,
        noise_ratio=2,
        draws=40,
        tune=20,
        chains=1,
        cores=1,
        seed=5,
        progress=False,
    )


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize("ratio", [None, 0.5, 30.0])
def test_a_fit_sees_what_the_theory_says(big, ratio):
    found = observed(big, ratio)
    wanted = expected(*parts("von Mises"), ratio or 2.0)
    assert found.noise_ratio == wanted.noise_ratio
    for name in ("curvature", "sandwich", "covariance", "limit", "fisher"):
        # 20,000 data and 40,000 noise points leave an error of about 1 %.
        close(getattr(found, name), getattr(wanted, name), 0.06)
    close(found.relative_width, wanted.relative_width, 0.02)
    other = expected(*parts("von Mises"), (ratio or 2.0) / 10)
    assert not np.allclose(found.covariance, other.covariance, rtol=0.06)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_the_posterior_has_the_standard_errors_of_efficiency(seed):
    model, theta, noise = parts("von Mises")
    data = model.sample(theta, 1000, np.random.default_rng([6, seed]))
    posterior = short(model, data, noise=noise, noise_ratio=1, draws=1000, tune=50, seed=seed)
    table = efficiency(posterior)
    assert list(table.index) == ["cos", "sin"]
    sd = posterior.theta.to_numpy()[0, :, 0].std(axis=0)
    # 1000 draws leave 2.3 % in a standard deviation, 4.9 of which are 11 %, and n = 1000 some.
    np.testing.assert_allclose(sd, table["standard_error"], rtol=0.13)
    assert not np.allclose(sd, table["standard_error"] / np.sqrt(2), rtol=0.13)
    assert not np.allclose(sd, table["limit_standard_error"], rtol=0.13)
    close(table["efficiency"].to_numpy(), table["relative_width"].to_numpy() ** -2)
    ratio = table["standard_error"] / table["limit_standard_error"]
    close(ratio.to_numpy(), table["relative_width"].to_numpy())
    assert (table["relative_width"] > 1).all()
    assert (efficiency(posterior, 50)["relative_width"] < table["relative_width"]).all()


def short(model, data, **settings):
    few = {"noise": "matched", "draws": 60, "tune": 20, "chains": 1, "cores": 1, "seed": 1}
    return ncb.fit(model, data, progress=False, **{**few, **settings})


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
class TestFits:
    def test_the_suggested_ratio_is_the_smallest(self, big):
        for loss in (0.05, 0.2):
            ratio = suggest_noise_ratio(big, loss)
            assert efficiency(big, ratio)["relative_width"].max() <= 1 + loss
            assert efficiency(big, 0.9 * ratio)["relative_width"].max() > 1 + loss
            assert ratio == float(f"{ratio:.2g}")

    def test_groups_are_told_apart(self):
        model, rng = ncb.models.VonMises(), np.random.default_rng(1)
        data = {
            "flat": model.sample([0.2, 0.0], 200, rng),
            "sharp": model.sample([5.0, 0.0], 300, rng),
        }
        noise = ncb.noise.Uniform(model.space)
        posterior = short(model, data, noise=noise)
        with pytest.raises(ncb.InputError, match=r"one of \['flat', 'sharp'\], got None"):
            observed(posterior)
        table = efficiency(posterior)
        assert list(table.index.names) == ["group", "statistic"]
        for label in data:
            alone = observed(posterior, group=label)
            close(table.loc[label, "relative_width"].to_numpy(), alone.relative_width)
            errors = alone.standard_errors(len(data[label]))
            close(table.loc[label, "standard_error"].to_numpy(), errors)
        # Uniform noise is worse for sharp data, and the worse group decides.
        less = efficiency(posterior, 0.9 * suggest_noise_ratio(posterior))["relative_width"]
        assert less["flat"].max() < 1.05 < less["sharp"].max()

    @pytest.mark.parametrize("schedule", [ncb.noise.Pooled(sets=3), ncb.noise.Fresh()])
    def test_schedules_with_several_noise_sets(self, schedule):
        model, theta, _ = parts("von Mises")
        data = model.sample(theta, 2000, np.random.default_rng(1))
        found = observed(short(model, data, noise=schedule, noise_ratio=3))
        # Matched noise is nearly the truth.
        np.testing.assert_allclose(found.relative_width, np.sqrt(4 / 3), rtol=0.03)

    def test_pooled_noise_is_averaged_over_sets(self):
        model, theta, _ = parts("von Mises")
        data = model.sample(theta, 100, np.random.default_rng(1))
        posterior = short(model, data, noise=ncb.noise.Pooled(sets=2))
        pools = asymptotics._pools(posterior.run, 0)
        each = [asymptotics._observed([pool], None).curvature for pool in pools]
        close(observed(posterior).curvature, np.mean(each, axis=0))
        assert not np.allclose(each[0], each[1])

    def test_infinite_noise_is_never_beaten(self, seed):
        """Whatever the fit: V is at least the limit, as both use the same weights."""
        model = ncb.models.Gaussian(2)
        data = np.random.default_rng(seed).standard_normal((30, 2))
        posterior = short(model, data)
        for ratio in (0.1, 1.0, 100.0):
            found = observed(posterior, ratio)
            lowest = np.linalg.eigvalsh(found.covariance - found.limit).min()
            assert lowest > -1e-9 * np.abs(found.covariance).max()

    def test_a_loaded_posterior_is_refused(self, big, tmp_path):
        big.save(tmp_path / "fit.nc")
        with pytest.raises(ncb.InputError, match=r"loaded from a file .* call fit again"):
            observed(ncb.load(tmp_path / "fit.nc"))
        with pytest.raises(ncb.InputError, match="must be what fit returned, got 3"):
            efficiency(3)

    def test_an_unknown_group_is_refused(self, big):
        with pytest.raises(ncb.InputError, match=r"group must be one of \['all'\], got 'x'"):
            observed(big, group="x")

    @pytest.mark.parametrize("loss", [0, 1, -0.1, "little", np.nan, True])
    def test_a_loss_that_is_none_is_refused(self, big, loss):
        with pytest.raises(ncb.InputError, match="loss must be between 0 and 1"):
            suggest_noise_ratio(big, loss)

    def test_too_few_points_are_refused(self):
        model = ncb.models.Gaussian(6)
        data = np.random.default_rng(1).standard_normal((12, 6))
        with pytest.raises(ncb.InputError, match="24 points can't tell how 27 statistics vary"):
            observed(short(model, data, noise_ratio=1))


def test_the_search_for_a_ratio_is_exact_where_noise_is_the_model():
    model, theta, _ = parts("von Mises")

    def width(ratio):
        return expected(model, theta, SELF["von Mises"], ratio).relative_width.max()

    # 1 / (1.05^2 - 1) = 9.756, rounded up.
    assert asymptotics._smallest_ratio(width, 0.05) == 9.8
    # 1 / (1.4^2 - 1) = 1.042; a number of two digits could be rounded either way.
    assert asymptotics._smallest_ratio(width, 0.4) == 1.1
    assert asymptotics._smallest_ratio(lambda ratio: 1.0, 0.05) == 0.01
    with pytest.raises(ncb.InputError, match=r"even 10000 noise points .* better noise"):
        asymptotics._smallest_ratio(lambda ratio: 1 + 1e3 / ratio, 0.05)


class TestRefusals:
    @pytest.mark.parametrize("ratio", [0, -1.0, np.inf, "many", True])
    def test_ratio(self, ratio):
        with pytest.raises(ncb.InputError, match="noise_ratio must be a positive number"):
            expected(*parts("von Mises"), ratio)

    @pytest.mark.parametrize("theta", [[1.0], [1.0, np.nan], "theta", None])
    def test_theta(self, theta):
        model, _, noise = parts("von Mises")
        with pytest.raises(ncb.InputError, match=r"theta must hold 2 finite numbers"):
            expected(model, theta, noise, 1.0)

    def test_theta_outside_the_family(self):
        model, _, noise = parts("Gaussian 1")
        with pytest.raises(ncb.InputError, match=r"not a parameter of Gaussian.*inf"):
            expected(model, [0.0, -1.0], noise, 1.0)

    @pytest.mark.parametrize("points", [[1.0, 2.0], [[1.0, 2.0]], [[7.0]], "x"])
    def test_points(self, points):
        with pytest.raises(ncb.InputError, match="points must be rows of 1 numbers in Torus"):
            expected(*parts("von Mises"), 1.0, points)

    @pytest.mark.parametrize("weights", [[0.5, 0.6, 0.1], [1.0], [-1.0, 1.0, 1.0], "x"])
    def test_weights(self, weights):
        with pytest.raises(ncb.InputError, match="weights must be 3 numbers"):
            expected(*parts("von Mises"), 1.0, [[1.0], [2.0], [3.0]], weights)

    def test_weights_without_points(self):
        with pytest.raises(ncb.InputError, match="weights belong to points"):
            expected(*parts("von Mises"), 1.0, weights=[1.0])

    def test_points_of_a_model_without_log_partition(self):
        with pytest.raises(ncb.InputError, match=r"SmallIsing.* needs log_partition"):
            expected(*parts("Ising"), 1.0, [[0, 0, 1]])

    def test_fewer_points_than_statistics(self):
        with pytest.raises(ncb.InputError, match="2 points can't tell how 2 statistics"):
            expected(*parts("von Mises"), 1.0, [[1.0], [2.0]])

    @pytest.mark.parametrize(
        ("model", "theta"),
        [
            (ncb.models.Exponential(), np.ones(1)),
            (ncb.models.Gaussian(3), np.repeat([0.0, 1.0, 0.0], 3)),
            (SmallIsing(21), np.zeros(231)),
        ],
    )
    def test_spaces_without_a_rule(self, model, theta):
        with pytest.raises(ncb.InputError, match="no way to sum over all points of"):
            expected(model, theta, ncb.noise.Uniform(ncb.spaces.Torus(1)), 1.0)

    def test_a_model_too_sharp_for_the_grid(self):
        model, _, noise = parts("von Mises")
        with pytest.raises(ncb.InputError, match="it is too concentrated"):
            expected(model, [1e6, 0.0], noise, 1.0)

    def test_a_log_partition_that_is_wrong(self):
        class Wrong(ncb.models.VonMises):
            def log_partition(self, theta):
                return super().log_partition(theta) + 0.1

        with pytest.raises(ncb.InputError, match=r"log_partition \(.*\) is wrong"):
            expected(Wrong(), *parts("von Mises")[1:], 1.0)

    def test_a_density_that_is_no_number(self):
        class Broken(ncb.models.VonMises):
            def log_base(self, x):
                return np.full(len(x), np.nan)

        with pytest.raises(ncb.InputError, match=r"log density of Broken.* is nan at"):
            expected(Broken(), *parts("von Mises")[1:], 1.0)

    def test_points_where_the_model_has_no_mass(self):
        class Half(ncb.models.VonMises):
            def log_base(self, x):
                return np.where(x[:, 0] < 3, 0.0, -np.inf)

        with pytest.raises(ncb.InputError, match=r"must lie where Half.* got \[4.0\]"):
            expected(Half(), *parts("von Mises")[1:], 1.0, [[1.0], [2.0], [2.5], [4.0]])

    def test_noise_that_is_none(self):
        class Flat:
            def sample(self, size, rng):
                return np.zeros((size, 1))

            def log_density(self, x):
                return np.zeros((len(x), 1))

        model, theta, _ = parts("von Mises")
        with pytest.raises(ncb.InputError, match=r"noise must have sample.*got 3"):
            expected(model, theta, 3, 1.0)
        with pytest.raises(ncb.InputError, match=r"Flat.log_density must return one number"):
            expected(model, theta, Flat(), 1.0)

    def test_noise_without_density_where_the_model_has_mass(self):
        model, theta, _ = parts("Gaussian 1")
        noise = ncb.noise.Uniform(ncb.spaces.Box([-1.0], [1.0]))
        with pytest.raises(ncb.InputError, match=r"has log density -inf at .* choose a wider one"):
            expected(model, theta, noise, 1.0)

    def test_a_constant_statistic_is_named(self):
        points = [[0.5], [0.5], [0.5], [0.5]]
        with pytest.raises(ncb.InputError, match="'x1' is constant wherever the model has"):
            _ = expected(*parts("Gaussian 1"), 1.0, points).limit
        with pytest.raises(ncb.InputError, match="'x1' is constant where model and noise overlap"):
            _ = expected(*parts("Gaussian 1"), 1.0, points).covariance

    def test_a_statistic_that_others_make_up_is_named(self):
        # On two points the square is a linear function.
        points = [[0.5], [1.0], [0.5], [1.0]]
        found = expected(*parts("Gaussian 1"), 1.0, points)
        for name in ("limit", "covariance", "sandwich", "relative_width"):
            with pytest.raises(ncb.InputError, match=r"'-x1.2/2' is a linear combination of the"):
                getattr(found, name)

    def test_noise_elsewhere(self):
        model, theta, _ = parts("Gaussian 1")
        found = expected(model, theta, ncb.noise.Normal([1e4], [[1.0]]), 1.0)
        with pytest.raises(ncb.InputError, match="model and noise do not overlap"):
            _ = found.covariance

    @pytest.mark.parametrize("n", [0, -1, "all"])
    def test_standard_errors_of_no_data(self, n):
        with pytest.raises(ncb.InputError, match="n must be a positive number of data points"):
            expected(*parts("von Mises"), 1.0).standard_errors(n)
