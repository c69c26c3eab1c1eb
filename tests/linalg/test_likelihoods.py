"""Likelihoods for compiled loops, against NumPy in double precision."""

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes.contrast import Contrast, Target
from ncbayes.engines import posing
from ncbayes.linalg import likelihoods
from ncbayes.linalg.designs import Dense, products, with_intercept
from ncbayes.priors import Normal


def expit(x):
    return 1 / (1 + np.exp(-x))


def exact(contrasts, coef):
    """Log likelihood, its gradient, and the largest absolute log odds."""
    odds = [each.log_odds(row) for each, row in zip(contrasts, coef, strict=True)]
    pairs = list(zip(contrasts, odds, strict=True))
    slopes = [each.design.rmatvec(each.is_data - expit(psi)) for each, psi in pairs]
    value = sum(each.log_likelihood(psi) for each, psi in pairs)
    return value, np.array(slopes), max(np.abs(psi).max() for psi in odds)


def dense_contrasts(rng, size=1.0):
    return tuple(
        Contrast(
            Dense(size * rng.standard_normal((rows, 4)) * [1.0, 1e-3, 1e4, 1.0]),
            rng.standard_normal(rows),
            rng.random(rows) < 0.5,
        )
        for rows in (40, 1, 75)
    )


def torus_contrasts(rng, model, rows=(700, 512)):
    found = []
    for count in rows:
        x = rng.uniform(0, 2 * np.pi, (count, len(model.nodes)))
        design = with_intercept(model.design(x))
        found.append(Contrast(design, rng.standard_normal(count), rng.random(count) < 0.4))
    return tuple(found)


def compared(contrasts, coef):
    """What compiled code says less what is exact, of value and gradient, by their sizes."""
    data = posing.compiled_likelihood(Target(contrasts, Normal(1.0)))
    value, slopes, largest = exact(contrasts, coef)
    got, most = likelihoods.value(data, coef)
    out, residual = np.empty_like(coef), np.zeros(len(data.label), np.float32)
    likelihoods.gradient(data, coef, out, residual)
    scale = np.abs(slopes).max(axis=0) + np.sqrt(len(residual)) * data_scale(contrasts)
    assert most == pytest.approx(largest)
    return data.kind, abs(got - value) / abs(value), np.max(np.abs(out - slopes) / scale)


def data_scale(contrasts):
    return np.sqrt(np.mean(np.concatenate([e.design.dense() for e in contrasts]) ** 2, axis=0))


@pytest.mark.parametrize("size", [1e-6, 1.0, 30.0])
def test_dense_designs(size, seed):
    rng = np.random.default_rng(seed)
    contrasts = dense_contrasts(rng, size)
    coef = rng.standard_normal((3, 4)) / [1.0, 1e-3, 1e4, 1.0]
    kind, value, slope = compared(contrasts, coef)
    assert kind == likelihoods.DENSE
    assert value < 1e-13
    assert slope < 2e-6


MODELS = {
    "all": ncb.models.TorusGraph(4),
    "some pairs": ncb.models.TorusGraph(5, edges=[(0, 1), (2, 4)]),
    "differences alone": ncb.models.TorusGraph(4, marginal=False, reflectional=False),
}


@pytest.mark.parametrize("name", MODELS)
def test_designs_of_products(name, seed, monkeypatch):
    monkeypatch.setattr(posing, "MOST_ENTRIES", 0)
    rng = np.random.default_rng(seed)
    contrasts = torus_contrasts(rng, MODELS[name])
    coef = rng.standard_normal((2, contrasts[0].design.shape[1]))
    kind, value, slope = compared(contrasts, coef)
    assert kind == likelihoods.PRODUCTS
    assert value < 1e-12
    assert slope < 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_products_are_the_columns(name, seed):
    rng = np.random.default_rng(seed)
    design = torus_contrasts(rng, MODELS[name], (30,))[0].design
    waves, pairs, signs = products(design)
    made = np.einsum("jk,jkn,jkn->nj", signs, waves[pairs[:, :, 0]], waves[pairs[:, :, 1]])
    assert np.allclose(made, design.dense())


def test_a_dense_design_has_no_products():
    assert products(Dense(np.ones((3, 2)))) is None


def test_gradients_are_the_same_to_the_last_bit(seed):
    """Or kicks would not be functions of the position."""
    rng = np.random.default_rng(seed)
    contrasts, coef = dense_contrasts(rng), rng.standard_normal((3, 4))
    found = set()
    for _ in range(20):
        data = posing.compiled_likelihood(Target(contrasts, Normal(1.0)))
        out, residual = np.empty_like(coef), np.zeros(len(data.label), np.float32)
        likelihoods.gradient(data, coef, out, residual)
        found.add(out.tobytes())
    assert len(found) == 1


def test_certain_labels_are_finite():
    design = Dense(np.array([[1.0], [-1.0]]))
    each = Contrast(design, np.zeros(2), np.array([True, False]))
    data = posing.compiled_likelihood(Target((each,), Normal(1.0)))
    for size in (1e3, 1e6):
        assert likelihoods.value(data, np.array([[size]]))[0] == 0.0
        assert likelihoods.value(data, np.array([[-size]]))[0] == pytest.approx(-2 * size)
