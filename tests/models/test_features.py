import numpy as np
import pytest
from jax import numpy as jnp

import ncbayes as ncb
from ncbayes.base import InputError, Model
from ncbayes.models import Features, VonMises
from ncbayes.testing import check_model

CIRCLE, PLANE = ncb.spaces.Torus(1), ncb.spaces.Reals(2)


def waves(x):
    return np.hstack([np.cos(x), np.sin(x)])


def jax_waves(x):
    return jnp.concatenate([jnp.cos(x), jnp.sin(x)], axis=1)


def hidden(x):
    """A hidden layer of three units."""
    return jnp.tanh(x @ jnp.array([[1.0, -0.5, 0.2], [0.3, 0.8, -1.0]]) + 0.1)


MODELS = [
    Features(waves, CIRCLE),
    Features(jax_waves, CIRCLE, names=["cos", "sin"]),
    Features(hidden, PLANE, names=3),
    Features(hidden, PLANE, base=lambda x: -(x**2).sum(axis=1) / 2),
    Features(lambda x: np.log(x), ncb.spaces.Orthant(2)),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_model_keeps_its_contract(model):
    check_model(model)
    assert isinstance(model, Model)


def test_a_function_that_looks_at_other_rows_is_refused():
    with pytest.raises(AssertionError, match="when it stands among other points"):
        check_model(Features(lambda x: x - x.mean(axis=0), PLANE))


def test_names_and_counts():
    assert MODELS[0].groups == {"feature": ("f1", "f2")}
    assert MODELS[1].groups == {"feature": ("cos", "sin")}
    assert MODELS[2].groups == {"feature": ("f1", "f2", "f3")}
    assert repr(MODELS[3]) == "Features(3 on Reals(dimension=2))"


def test_jax_features_have_double_precision():
    x = np.linspace(0.1, 6.0, 7)[:, None]
    assert np.allclose(MODELS[1].statistics(x), waves(x), rtol=1e-14, atol=1e-15)
    assert MODELS[1].statistics(x).dtype == np.float64
    base = Features(jax_waves, CIRCLE, base=lambda x: jnp.sin(x[:, 0])).log_base(x)
    assert np.allclose(base, np.sin(x[:, 0]), rtol=1e-14, atol=1e-15)
    assert jnp.ones(1).dtype == jnp.float32


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
@pytest.mark.parametrize("function", [waves, jax_waves], ids=["numpy", "jax"])
def test_a_family_written_as_features_has_the_same_draws(function, seed):
    angles = VonMises().sample(np.array([1.0, 0.5]), 80, np.random.default_rng(seed))
    options = {"noise": "matched", "seed": seed, "draws": 30, "tune": 30, "progress": False}
    one = ncb.fit(VonMises(), angles, **options)
    other = ncb.fit(Features(function, CIRCLE), angles, **options)
    assert np.allclose(one.theta, other.theta, rtol=1e-9)
    assert np.allclose(one.log_z, other.log_z, rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Features(3, PLANE), r"Features\(function=...\) must be a function of points"),
        (lambda: Features(waves, PLANE, base=0.0), r"Features\(base=...\) must be a function"),
        (lambda: Features(waves, 2), r"space=...\) must be one such as"),
        (lambda: Features(waves, ncb.spaces.Reals), "got the class Reals"),
        (lambda: Features(waves, PLANE, names=0), "how many features there are, or None, got 0"),
        (lambda: Features(waves, PLANE, names="ab"), "must be a list of names"),
        (lambda: Features(waves, PLANE, names=[1, 2]), "must be a list of names"),
        (lambda: Features(waves, PLANE, names=[]), "must be a list of names"),
        (lambda: Features(lambda x: x + 0j, PLANE).groups, "must return real numbers, one row a p"),
        (lambda: Features(lambda x: "high", PLANE).groups, "must return real numbers, .* got 'hi"),
        (
            lambda: Features(waves, PLANE, base=lambda x: x[:, 0] * np.nan).log_base(
                np.ones((3, 2))
            ),
            r"a number for every point, got nan at \[1.0, 1.0\]; return -inf",
        ),
        (lambda: Features(lambda x: x[:, 0], PLANE).groups, r"shape \(n, k\), got shape \(1,\)"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_wrong_count_is_named_by_fit():
    with pytest.raises(InputError, match=r"statistics must return shape \(.*, 5\)"):
        ncb.fit(Features(hidden, PLANE, names=5), np.random.default_rng(0).normal(size=(50, 2)),
                noise="matched", progress=False)  # fmt: skip
