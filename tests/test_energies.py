"""Energies from the front door: right answers, clear refusals, whole results."""

import sys

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from scipy.special import ndtri

import ncbayes as ncb
from ncbayes.base import InputError, Model
from ncbayes.energies import Energy, Positive, Real
from ncbayes.noise.carried import Path
from ncbayes.noise.tempered import log_mean, systematic
from ncbayes.priors import Normal

quiet = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
PLANE = ncb.spaces.Reals(2)


def gaussian(params, x):
    return -(((x - params["mean"]) / params["sd"]) ** 2).sum(axis=1) / 2


# One object: another of the same function would be compiled again.
GAUSSIAN = Energy(
    gaussian, {"mean": Real(Normal(10.0), shape=(2,)), "sd": Positive(shape=(2,))}, PLANE
)


def points(seed, rows=200):
    return np.random.default_rng(seed).normal([1.0, -2.0], [0.5, 2.0], (rows, 2))


def fitted(energy, data, **changed):
    """Against matched noise: each candidate of automatic noise takes seconds to compile."""
    options = {"seed": 1, "draws": 40, "tune": 60, "chains": 2, "cores": 1, "progress": False}
    return ncb.fit(energy, data, **{"noise": "matched", **options, **changed})


@pytest.fixture(scope="module")
def posterior():
    return fitted(GAUSSIAN, points(1), draws=500, tune=300, noise="auto")


def test_the_posterior_is_that_of_the_same_family_by_gibbs(posterior):
    """A Gaussian energy and ``Gaussian(1)`` by Gibbs on each axis: the same data and truth."""
    data, tree = points(1), posterior.data["posterior"]
    sd, mean = tree["sd"].to_numpy()[:, :, 0], tree["mean"].to_numpy()[:, :, 0]
    # The exact likelihood's posterior, flat priors; noise_ratio 5 widens by sqrt(1.2) or so.
    for k in range(2):
        error = data[:, k].std() / np.sqrt(len(data))
        assert abs(mean[..., k].mean() - data[:, k].mean()) < 3 * error
        assert 0.9 < mean[..., k].std() / error < 1.6
        assert 0.9 < sd[..., k].std() / (error / np.sqrt(2)) < 1.6
    # log Z is known given the parameters, and its error is that of the contrast alone.
    known = np.log(2 * np.pi) + np.log(sd).sum(axis=-1)
    off = posterior.log_z.to_numpy()[..., 0] - known
    assert abs(off.mean()) < 6 * off.std() / np.sqrt(len(data)) + 3 * off.std()
    assert off.std() < 0.2


def bumps(params, x):
    waves = jnp.stack([jnp.cos(x[:, 0]), jnp.sin(2 * x[:, 0])])
    return params["slope"] * x[:, 0] + params["waves"] @ waves


LINEAR = Energy(
    bumps,
    {"slope": Normal(1.0), "waves": Real(ncb.priors.HalfCauchyNormal(), shape=(2,))},
    ncb.spaces.Box([-3.0], [3.0]),
)


def bent(params, x):
    """Linear up to 3 of its prior's sds, and not beyond."""
    return bumps(params, x) + jax.nn.relu(params["slope"] - 3.0) * x[:, 0] ** 2


@quiet
def test_an_energy_that_is_linear_runs_as_a_family_and_agrees_with_nuts(tmp_path):
    rng = np.random.default_rng(1)
    data = {"one": rng.uniform(-3, 3, (80, 1)), "two": 3 * rng.beta(3, 2, (60, 1))}
    short = {"draws": 800, "tune": 400}
    both = [fitted(LINEAR, data, engine=engine, **short) for engine in ("auto", "nuts")]
    assert [each.data.attrs["engine"][:4] for each in both] == ["Join", "Nuts"]
    one, other = (each.summary() for each in both)
    assert list(one.index) == list(other.index)
    errors = [each["sd"] / np.sqrt(each["ess_bulk"]) for each in (one, other)]
    off = (one["mean"] - other["mean"]) / np.hypot(*errors)
    assert off.abs().max() < -ndtri(1e-6 / len(off))
    whole = fitted(LINEAR, data)
    assert_equal_draws(fitted(LINEAR, data, draws=25, checkpoint=tmp_path).extend(15), whole)
    assert_equal_draws(fitted(LINEAR, data, engine="joint", cores=2), whole)


def assert_equal_draws(one, other):
    for name, values in one.data["posterior"].data_vars.items():
        np.testing.assert_array_equal(values, other.data["posterior"][name], err_msg=name)


@quiet
@pytest.mark.parametrize("energy", [GAUSSIAN, Energy(bent, LINEAR.params, LINEAR.space)])
def test_an_energy_that_bends_anywhere_does_not(energy):
    data = points(1, 40)[:, : energy.space.dimension]
    data = data.clip(-2.9, 2.9)
    found = fitted(energy, data, draws=2, tune=2, verify=False)
    assert found.data.attrs["engine"].startswith("Nuts")


def test_every_parameter_is_a_variable_of_its_shape(posterior, tmp_path):
    tree = posterior.data["posterior"]
    assert tree["mean"].dims == ("chain", "draw", "group", "mean_dim_0")
    assert tree["sd"].shape == (2, 500, 1, 2)
    assert np.all(tree["sd"] > 0)
    assert list(posterior.summary().index) == ["mean[0]", "mean[1]", "sd[0]", "sd[1]", "log_z"]
    described = repr(posterior).splitlines()[-1]
    assert described.startswith("<Posterior of Energy(mean, sd; Reals(dimension=2)): 2 ch")
    assert "variables 3" in repr(posterior)
    assert posterior.warning_lines() == []
    posterior.save(tmp_path / "energy.nc")
    again = ncb.load(tmp_path / "energy.nc")
    assert np.array_equal(again.data["posterior"]["mean"], tree["mean"])
    assert again.summary().equals(posterior.summary())
    assert again.data["sample_stats"]["diverging"].dtype == bool
    with pytest.raises(InputError, match=r"no theta: .*'mean', 'sd', 'log_z'"):
        _ = again.theta


def test_the_noise_is_reported(posterior):
    report = posterior.noise_report()
    assert 0.5 < report.table["auc"].iloc[0] < 0.75
    assert 0.85 < report.table["information_kept"].iloc[0] < 1
    assert report.table["widening"].max() < 0.08
    assert posterior.data.attrs["noise_ratio"] >= 5
    assert posterior.data.attrs["schedule"] == "Auto"
    fitted_ones = {"matched", "normal", "margins", "gaussian mixture", "copula"}
    assert fitted_ones | {"model^0.5", "model^0.9"} == {*report.candidates.index}


@quiet
def test_far_noise_is_told_apart_and_the_advice_is_one_that_works():
    far = ncb.noise.Normal([1000.0, 0.0], np.diag([1e4, 4.0]))
    poor = fitted(GAUSSIAN, points(1), noise=far, noise_ratio=5)
    lines = " ".join([*poor.warning_lines(), *poor.noise_report().lines])
    assert "gaussian_mixture(data)" in lines
    assert "auto" not in lines
    assert "Adaptive" not in lines


@quiet
def test_extended_resumed_and_pooled(resumed):
    energy, data = GAUSSIAN, points(2)
    whole = fitted(energy, data, draws=12, tune=30, chains=1)
    part = fitted(energy, data, draws=5, tune=30, chains=1).extend(7)
    assert np.array_equal(part.data["posterior"]["sd"], whole.data["posterior"]["sd"])
    for again in resumed(
        lambda **options: fitted(energy, data, draws=12, tune=30, chains=1, **options), (3, 40)
    ):
        assert np.array_equal(again.data["posterior"]["sd"], whole.data["posterior"]["sd"])
    pooled = fitted(energy, data, noise=ncb.noise.Pooled(sets=2), chains=1)
    assert len(pooled.between_set_spread()) == 5
    fitted(energy, data, noise=ncb.noise.Fresh(), chains=1)


@quiet
def test_a_checkpoint_of_another_energy_is_refused(tmp_path):
    data = points(2)
    fitted(GAUSSIAN, data, chains=1, checkpoint=tmp_path)
    other = Energy(lambda params, x: 1.01 * gaussian(params, x), GAUSSIAN.params, PLANE)
    with pytest.raises(InputError, match="statistics of the model"):
        fitted(other, data, chains=1, checkpoint=tmp_path)


@quiet
def test_groups_have_parameters_of_their_own_and_may_share_a_scale():
    def shifted(params, x):
        return -((x - params["location"]["mean"]) ** 2).sum(axis=1) / 2

    energy = Energy(shifted, {"location": {"mean": ncb.priors.HalfCauchyNormal()}},
                    ncb.spaces.Reals(1))  # fmt: skip
    rng = np.random.default_rng(3)
    data = {"a": rng.normal(-1, 1, (100, 1)), "b": rng.normal(2, 1, (120, 1))}
    tree = fitted(energy, data, draws=150, tune=150).data["posterior"]
    assert tree["location.mean"].dims == ("chain", "draw", "group")
    assert np.all(np.abs(tree["location.mean"].mean(("chain", "draw")) - [-1, 2]) < 0.6)
    assert np.all(tree["location.mean.scale"] > 0)
    known = np.log(2 * np.pi) / 2
    assert np.all(np.abs(tree["log_z"].mean(("chain", "draw")) - known) < 0.3)


@quiet
def test_points_outside_of_the_space_count_as_noise_for_certain():
    """A density on the box against noise that lies half outside of it: log Z stays right."""
    energy = Energy(lambda params, x: params["slope"] * x[:, 0], {"slope": Normal(2.0)},
                    ncb.spaces.Box(0.0, 1.0))  # fmt: skip
    data = np.random.default_rng(4).random((400, 1))
    wide = ncb.noise.Uniform(ncb.spaces.Box(0.0, 2.0))
    found = fitted(energy, data, noise=wide, noise_ratio=10, draws=200, tune=150)
    slope = found.data["posterior"]["slope"].to_numpy()
    off = found.log_z.to_numpy() - np.log(np.expm1(slope) / slope)
    # Of 4000 noise points half are inside: log Z has a standard error of 0.05 or so.
    assert abs(off.mean()) < 5 * 0.05


def test_double_precision_is_ours_alone(posterior):
    assert jnp.ones(1).dtype == jnp.float32
    assert posterior.data["posterior"]["mean"].dtype == np.float64
    values = GAUSSIAN.evaluated(np.zeros((3, 4)), points(1))
    exact = -(points(1) ** 2).sum(axis=1) / 2
    assert np.allclose(values, exact, rtol=1e-14)


def test_an_energy_is_a_model_by_its_tangent():
    """Log density and slopes at the starting values, against differences."""
    energy = Energy(gaussian, {"mean": Real(Normal(10.0), (2,), [0.3, -0.2]),
                               "sd": Positive(2.0, shape=(2,), initial=1.5)}, PLANE)  # fmt: skip
    assert isinstance(energy, Model)
    x, start = points(5, 6), np.array([0.3, -0.2, np.log(1.5), np.log(1.5)])
    assert np.allclose(energy.start, start)
    value = energy.evaluated(start[None], x)[0]
    assert np.allclose(energy.log_base(x) + energy.statistics(x) @ start, value)
    steps = 1e-6 * np.eye(4)
    slopes = (energy.evaluated(start + steps, x) - energy.evaluated(start - steps, x)) / 2e-6
    assert np.allclose(energy.statistics(x), slopes.T, atol=1e-6)
    tree = energy.tree(start)
    assert np.allclose(energy.row({"mean": tree["mean"], "sd": tree["sd"]}), start)


@quiet
def test_a_mixture_energy_is_recovered(seed):
    """Two bumps on the line; ``weight`` is the log ratio of heights, ``gap > 0`` orders them."""

    def bumps(params, x):
        place = params["left"] + jnp.array([0.0, 1.0]) * params["gap"]
        heights = jnp.array([0.0, 1.0]) * params["weight"]
        return jax.nn.logsumexp(heights - ((x - place) / params["width"]) ** 2 / 2, axis=1)

    params = {
        "left": Normal(3.0),
        "gap": Positive(3.0),
        "width": Positive(),
        "weight": Normal(2.0),
    }
    energy = Energy(bumps, params, ncb.spaces.Reals(1))
    rng = np.random.default_rng(seed)
    high = rng.random(300) < 0.75
    data = np.where(high, 2.0, -2.0) + 0.6 * rng.standard_normal(300)
    found = fitted(energy, data, noise_ratio=3, draws=250, tune=250).summary()
    truth = {"left": -2.0, "gap": 4.0, "width": 0.6, "weight": np.log(3)}
    truth["log_z"] = np.log(np.sqrt(2 * np.pi) * 0.6 * 4)
    z = (found["mean"][list(truth)] - list(truth.values())) / found["sd"][list(truth)]
    assert np.all(np.abs(z) < -ndtri(1e-6 / 2 / len(truth))), z
    assert found["sd"].max() < 0.5


@quiet
def test_independent_components_are_recovered(seed):
    """A product of experts: ``log p = -sum log cosh(W x)``, rows of W up to order and sign."""

    def experts(params, x):
        return -jnp.log(jnp.cosh(x @ params["filter"].T)).sum(axis=1)

    truth = np.array([[2.0, 0.5], [-0.5, 1.5]])
    energy = Energy(experts, {"filter": Real(Normal(3.0), (2, 2), truth + 0.3)}, PLANE)
    rng = np.random.default_rng(seed)
    # cosh^-1 / pi is the density of log|Cauchy|.
    sources = np.log(np.abs(rng.standard_cauchy((500, 2))))
    data = sources @ np.linalg.inv(truth).T
    found = fitted(energy, data, noise_ratio=3, draws=250, tune=250).summary()
    known = [*truth.ravel(), 2 * np.log(np.pi) - np.log(np.linalg.det(truth))]
    z = (found["mean"] - known) / found["sd"]
    assert np.all(np.abs(z) < -ndtri(1e-6 / 2 / len(known))), z
    assert found["sd"].max() < 0.4


def nan_gradient(params, x):
    zero = params["a"] - params["a"]
    return jnp.where(zero > 0, jnp.sqrt(zero), 0.0) - x[:, 0] ** 2


BAD = [
    (
        lambda params, x: params["a"] * jnp.log(x[:, 0] - 100.0),
        "log_density is nan at row 0 of the",
    ),
    (
        lambda params, x: params["a"] * x,
        r"shape \(120,\) for x of shape \(120, 1\), got shape \(12",
    ),
    (lambda params, x: params["a"] * x.sum(), r"got shape \(\); a function of one point .*vmap"),
    (lambda params, x: -params["a"] * x[0] ** 2, r"got shape \(1,\); .*vmap"),
    (lambda params, x: (x[:, 0] > params["a"]).astype(int), "can be differentiated, got int64"),
    (lambda params, x: jnp.round(params["a"]) * x[:, 0], "does not change with any of its param"),
    (nan_gradient, "the derivative of log_density by 'a' is nan near the starting values"),
    (lambda params, x: np.sin(params["a"]) * x[:, 0], "can't be compiled by JAX; use jax.numpy"),
    (lambda params, x: x[:, 0] if params["a"] > 0 else -x[:, 0], "can't be compiled by JAX"),
    (lambda params, x: params["b"] * x[:, 0], "log_density.params, x. fails .*KeyError: 'b'"),
    (lambda params, x: params["a"] * x @ jnp.ones(7), "fails for x of shape .120, 1.: TypeError"),
    (
        lambda params, x: params["a"] - x[:, 0] ** 2,
        "the parameter 'a' adds the same number to log_density at every point",
    ),
    (
        lambda params, x: jnp.where(params["a"] == 0, 0.0, jnp.nan) - params["a"] * x[:, 0],
        "not finite at 20 starting values near those given; start where",
    ),
    (lambda params, x: "high", "fails .*not a valid JAX type"),
]


@pytest.mark.parametrize(("function", "words"), BAD, ids=[words[:30] for _, words in BAD])
def test_functions_that_are_no_energies_are_refused_in_one_sentence(function, words):
    energy = Energy(function, {"a": Normal(1.0)}, ncb.spaces.Reals(1))
    with pytest.raises(InputError, match=words) as caught:
        fitted(energy, points(1, 60)[:, :1], noise="auto")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "has no parameters; name one"),
        ({"layer": {}}, "has no parameters"),
        ({"a": 1.0}, r"params\['a'\] must be a prior such as .*, got 1.0; start there by initial"),
        ({"net": {"w": np.zeros(3)}}, r"params\['net'\]\['w'\] must be a prior"),
        ([Normal(1.0)], "params must be a prior such as .* or a dict of such"),
        (Normal(1.0), "params must be a prior"),
        ({"a": Normal}, "got the class Normal"),
        ({"a.b": Normal(1.0)}, "has the key 'a.b'; a parameter's name is text without"),
        ({"log_z": Normal(1.0)}, "has the key 'log_z'"),
        ({3: Normal(1.0)}, "has the key 3"),
        ({"theta": Normal(1.0)}, "has the key 'theta'"),
        (
            {"a": Real(Normal(1.0), shape=(2,)), "a_dim_0": Normal(1.0)},
            "the key 'a_dim_0', which in the result is the name of an axis of another parameter",
        ),
        ({"net": {"statistic": Normal(1.0)}}, "has the key 'statistic'"),
    ],
)
def test_parameters_without_priors_or_names_are_refused(params, words):
    with pytest.raises(InputError, match=words):
        Energy(gaussian, params, PLANE)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Real(2.0), "must be a prior such as ncbayes.priors.Normal"),
        (lambda: Real(Normal(1.0), shape=3), r"tuple of positive whole numbers, .* got 3"),
        (lambda: Real(Normal(1.0), shape=(0,)), r"got \(0,\)"),
        (lambda: Real(Normal(1.0), shape=(2,), initial=[1.0]), r"array of shape \(2,\), got \[1.0"),
        (lambda: Real(Normal([1.0, 2.0]), shape=(3,)), r"one scale, or an array of this shape"),
        (lambda: Positive(median=-1.0), r"Positive\(median=...\) must be positive"),
        (lambda: Positive(spread="x"), r"Positive\(spread=...\) must be one positive"),
        (lambda: Positive(initial=0.0), r"Positive\(initial=...\) must be positive, got 0.0"),
        (lambda: Energy("f", {"a": Normal(1.0)}, PLANE), "must be a JAX function .*, got 'f'"),
        (lambda: Energy(gaussian, {"a": Normal(1.0)}, 2), r"space=...\) must be one such as"),
        (lambda: Energy(gaussian, {"a": Normal(1.0)}, ncb.spaces.Reals), "got the class Reals"),
    ],
)
def test_settings_are_checked(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior": Normal(1.0)}, "priors of an Energy stand in its params, got prior=Normal"),
        ({"engine": "gibbs"}, "an Energy is fitted by engine=\"nuts\", or .*, got 'gibbs'"),
        ({"engine": "joint"}, "'joint' is for an Energy whose log_density is linear in all"),
        ({"engine": "hyvarinen"}, "an Energy is fitted by engine"),
        ({"noise": ncb.noise.Adaptive()}, 'needs an exponential family, .*use "auto"'),
        ({"noise_ratio": -1}, "noise_ratio must be a positive number"),
        ({"noise": ncb.noise.Normal([0.0], [[1.0]])}, "points of dimension 2 like the data"),
    ],
)
def test_options_that_an_energy_does_not_have_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        fitted(GAUSSIAN, points(1, 60), **options)


@quiet
def test_chains_begin_where_the_log_density_is_finite():
    # No derivative where they are told to start, and no value below.
    energy = Energy(
        lambda params, x: -jnp.sqrt(params["a"] - 1.0) * x[:, 0] ** 2,
        {"a": Positive()},
        ncb.spaces.Reals(1),
    )
    posterior = fitted(energy, points(2, 60)[:, :1])
    assert (posterior.data["posterior"]["a"] > 1).all()
    assert np.isfinite(posterior.log_z).all()


def test_noise_beyond_the_space_of_the_energy_is_refused():
    energy = Energy(lambda params, x: params["a"] * x[:, 0], {"a": Normal(1.0)},
                    ncb.spaces.Box(0.0, 1.0))  # fmt: skip

    class Elsewhere:
        def sample(self, size, rng):
            return 5.0 + rng.random((size, 1))

        def log_density(self, x):
            return np.zeros(len(x))

    with pytest.raises(InputError, match="none of the 50 noise points lies in Box"):
        fitted(energy, np.linspace(0.1, 0.9, 50), noise=Elsewhere(), noise_ratio=1)


@pytest.mark.parametrize("missing", ["jax", "blackjax"])
def test_without_the_extra_the_error_names_the_install_line(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=f'{missing}, which is not .*install "ncbayes.energy."'):
        fitted(GAUSSIAN, points(1, 60))


def wells(params, x):
    well = ((x**2 - 1) ** 2).sum(axis=1)
    return -params["depth"] * well + params["tie"] * (x[:, 1:] * x[:, :-1]).sum(axis=1)


WELLS = Energy(wells, {"depth": Positive(), "tie": Positive()}, ncb.spaces.Reals(8))


@pytest.fixture(scope="module")
def of_wells():
    """400 rows in a chain of wells, and a fit whose noise is the energy itself."""
    path = Path(WELLS, np.log([1.0, 0.3]), ncb.noise.Normal(np.zeros(8), 4 * np.eye(8)))
    rng = np.random.default_rng(1)
    points, log_weights = path.carried(1.0, 200, 2000, rng)
    data = points[systematic(log_weights[-1], 400, rng)]
    options = {"noise": ncb.noise.Auto(rounds=1, batch=30), "tune": 150, "draws": 150}
    return data, options, fitted(WELLS, data, **options)


@quiet
def test_an_energy_of_many_wells_is_its_own_noise(of_wells, resumed):
    data, options, whole = of_wells
    report = whole.noise_report()
    others = report.candidates.drop(["model^0.5", "model^0.9"])
    assert report.candidates["model^0.9"] > 1.05 * others.max()
    assert report.lines[0].startswith("Noise chosen: the fitted model, tempered by alpha = 0.")
    assert whole.data.attrs["noise"].startswith("Carried")
    assert report.table["widening"].max() < 0.1
    found = [whole.data["posterior"][name] for name in ("depth", "tie")]
    for values, truth in zip(found, (1.0, 0.3), strict=True):
        assert abs(float(values.mean()) - truth) < 5 * float(values.std())
    (noise,) = whole.noises.values()
    assert np.all(np.isfinite(noise.log_density(data)))
    for again in resumed(lambda **more: fitted(WELLS, data, **options, **more), (3,)):
        assert_equal_draws(again, whole)


@quiet
def test_log_z_of_its_own_noise_has_no_error_of_that_noise(of_wells):
    """Carried noise is normalized by an estimate; log Z is worked out from its base."""
    _, _, whole = of_wells
    path = Path(WELLS, np.log([1.0, 0.3]), ncb.noise.Normal(np.zeros(8), 4 * np.eye(8)))
    _, weights = path.carried(1.0, 400, 4000, np.random.default_rng(2))
    exact, _ = log_mean(weights[-1])
    assert abs(float(whole.log_z.mean()) - exact) < 4 * float(whole.log_z.std())
