"""Frozen fits: small fits of every kind whose draws must not change by accident.

    python tests/test_frozen_fits.py --renew [NAMES ...]     where a change of draws is meant

``frozen_fits.json`` holds, for each fit, some of its last numbers, and digests of all its draws and
noise by platform: the machine and the packages that round. On a platform without digests the
numbers are compared, where chains do not part by rounding. Before a change that is meant to leave
draws alone, run ``--renew`` on such a platform.
"""

import hashlib
import json
import platform
import sys
import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import engines, models, noise, priors

quiet = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
FILE = Path(__file__).with_name("frozen_fits.json")
PACKAGES = ("numpy", "scipy", "numba", "jax", "blackjax", "polyagamma", "scikit-learn")
SHORT = {"draws": 6, "tune": 10, "chains": 2, "cores": 1, "seed": 7, "progress": False}
# How many numbers of a variable there are, and how near they come on another machine.
NUMBERS, CLOSE = 4, 1e-3
# Fits whose chains part by rounding: kicks in single precision, long trajectories, and noise that
# is made by such chains. On a machine without digests only their shapes are compared. (Found with
# OPENBLAS_CORETYPE=Nehalem NUMBA_CPU_NAME=nehalem NUMBA_CPU_FEATURES="".)
PARTING = (
    "joint, horseshoe",
    "joint, groups of graphs",
    "joint, slab as a likelihood",
    "exact, by states",
    "adaptive noise",
    "automatic, angles",
    "automatic, counts",
    "automatic, positive",
    "automatic, graphs",
    "density over time",
)


def fit(model, data, **options):
    return ncb.fit(model, data, **{**SHORT, "noise": "matched", "noise_ratio": 2, **options})


@cache
def rows(name):
    """Data of a family; functions of fixed seeds."""
    rng = np.random.default_rng(3)
    if name == "angles":
        return np.mod(np.cumsum(rng.vonmises(0.3, 3.0, (60, 4)), axis=1), 2 * np.pi)
    if name == "angle":
        return rng.vonmises(1.0, 2.0, (50, 1)) % (2 * np.pi)
    if name == "bits":
        shared = rng.random((80, 1)) < 0.5
        return ((rng.random((80, 5)) < 0.3) ^ shared).astype(float)
    if name == "counts":
        return rng.poisson(rng.gamma(2.0, 1.0, (60, 1)), (60, 3)).astype(float)
    if name == "positive":
        return np.abs(rng.normal(0.5, 1.0, (70, 3)))
    if name == "graphs":
        ties = np.triu(rng.random((12, 6, 6)) < 0.4, 1)
        return (ties | ties.transpose(0, 2, 1)).astype(float)
    return np.column_stack([rng.beta(2, 3, 150), rng.beta(4, 2, 150)])


def angle_groups():
    x = rows("angle")
    return {"a": x[:20], "b": x[20:28], "c": x[28:]}


def graph_groups():
    x = rows("bits")
    return {"few": x[:25], "many": x[25:]}


def ring(params, x):
    import jax.numpy as jnp

    radius = jnp.sqrt((x**2).sum(axis=1) + 1e-6)
    return -(((radius - params["radius"]) / params["width"]) ** 2) / 2


def line(params, x):
    return params["slope"] @ x.T


def energy(name):
    if name == "ring":
        params = {"radius": ncb.energies.Positive(), "width": ncb.energies.Positive()}
        return ncb.Energy(ring, params, ncb.spaces.Reals(2))
    slope = ncb.energies.Real(priors.Normal(2.0), shape=(2,))
    return ncb.Energy(line, {"slope": slope}, ncb.spaces.Box([0.0, 0.0], [1.0, 1.0]))


def over_time(**options):
    times = np.repeat([1.0, 2.0, 3.0], 50)
    return ncb.fit_density_over_time(rows("plane"), times, basis=8, **{**SHORT, **options})


TORUS, ISING, ANGLE = models.TorusGraph(4), models.Ising(5), models.VonMises()
MIXED = {"field": priors.Normal(2.0), "edge": priors.HalfCauchyNormal()}
FITS = {
    "joint, horseshoe": lambda: fit(TORUS, rows("angles")),
    "joint, mixed blocks": lambda: fit(ISING, rows("bits"), prior=MIXED),
    "joint, multivariate": lambda: fit(
        ANGLE, rows("angle"), prior=priors.MultivariateNormal(np.array([[2.0, 0.5], [0.5, 1.0]]))
    ),
    "joint, population": lambda: fit(ANGLE, angle_groups(), prior=priors.Hierarchical()),
    "joint, diagonal population": lambda: fit(
        ANGLE, angle_groups(), prior=priors.Hierarchical(covariance="diagonal")
    ),
    "joint, walk": lambda: fit(ANGLE, angle_groups(), prior=priors.RandomWalk()),
    "joint, groups of graphs": lambda: fit(ISING, graph_groups()),
    "joint, slab as a likelihood": lambda: fit(
        TORUS, rows("angles"), prior={"edge": priors.Horseshoe(slab_form="likelihood")}
    ),
    "gibbs": lambda: fit(ANGLE, rows("angle"), engine="gibbs"),
    "gibbs, horseshoe": lambda: fit(TORUS, rows("angles"), engine="gibbs"),
    "gibbs, walk": lambda: fit(
        ANGLE, angle_groups(), prior=priors.RandomWalk(), engine=engines.Gibbs()
    ),
    "gibbs, one at a time": lambda: fit(
        ANGLE,
        angle_groups(),
        prior=priors.RandomWalk(rate=1.0, initial="walk"),
        engine=engines.Gibbs(method="one_at_a_time"),
    ),
    "fresh noise, by runs": lambda: fit(TORUS, rows("angles"), noise=noise.Fresh()),
    "pooled noise": lambda: fit(ANGLE, rows("angle"), noise=noise.Pooled(sets=2)),
    "adaptive noise": lambda: fit(TORUS, rows("angles"), noise=noise.Adaptive(batch=10, updates=2)),
    "resampled noise": lambda: fit(
        ANGLE, rows("angle"), noise=noise.Adaptive(method="resampling", batch=10, updates=1)
    ),
    "nuts": lambda: fit(ANGLE, rows("angle"), engine="nuts"),
    "score": lambda: ncb.fit(TORUS, rows("angles"), engine="hyvarinen", **SHORT),
    "exact, by states": lambda: ncb.fit(ISING, rows("bits"), engine="exact", **SHORT),
    "exact, by slices": lambda: ncb.fit(ANGLE, rows("angle"), engine="exact", **SHORT),
    "exchange": lambda: ncb.fit(models.Ising(3), rows("bits")[:, :3], engine="exchange", **SHORT),
    "pseudolikelihood": lambda: ncb.fit(ISING, rows("bits"), engine="pseudolikelihood", **SHORT),
    "automatic, angles": lambda: fit(TORUS, rows("angles"), noise="auto", noise_ratio=None),
    "automatic, counts": lambda: fit(
        models.ConwayMaxwell(3, most=30), rows("counts"), noise="auto", noise_ratio=None
    ),
    "automatic, positive": lambda: fit(
        models.TruncatedGaussian(3), rows("positive"), noise="auto", noise_ratio=None
    ),
    "automatic, graphs": lambda: fit(
        models.ERGM(6, ["edges", models.terms.gwesp(0.5)]),
        rows("graphs"),
        noise="auto",
        noise_ratio=None,
    ),
    "energy": lambda: fit(energy("ring"), rows("plane"), chains=1, verify=False),
    "linear energy": lambda: fit(energy("line"), rows("plane"), verify=False),
    "density over time": over_time,
}


def made(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return FITS[name]()


def draws(posterior):
    """All draws and the noise, by name."""
    tree = posterior.data
    found = {f"posterior/{key}": tree["posterior"][key] for key in tree["posterior"].data_vars}
    if "noise" in tree.children:
        found["noise/points"] = tree["noise"]["points"]
    return {key: np.ascontiguousarray(found[key].to_numpy()) for key in sorted(found)}


def digest(posterior):
    whole = hashlib.sha256()
    for key, values in draws(posterior).items():
        whole.update(f"{key} {values.shape} {values.dtype}".encode())
        whole.update(values.tobytes())
    return whole.hexdigest()[:16]


def numbers(posterior):
    """The first of the last draw of the first chain, by variable."""
    return {
        key: values[0, -1].ravel()[:NUMBERS].tolist()
        for key, values in draws(posterior).items()
        if key.startswith("posterior/") and values.dtype.kind == "f"
    }


@cache
def this_platform():
    """What rounding depends on."""
    packages = []
    for name in PACKAGES:
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"no {name}")
    return ", ".join([platform.system(), platform.machine(), _processor(), *packages])


def _processor():
    """The instructions that libraries choose their loops by."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    flags = next((each.split(":")[1].split() for each in lines if each.startswith("flags")), [])
    wide = sorted(each for each in flags if each.startswith(("avx", "fma", "amx")))
    model = next((each.split(":")[1].strip() for each in lines if "model name" in each), "")
    return f"{model} {hashlib.sha256(' '.join(wide).encode()).hexdigest()[:8]}"


@cache
def frozen():
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


@pytest.mark.parametrize("name", FITS)
def test_draws_are_those_of_before(name):
    posterior, before = made(name), frozen()[name]
    now = numbers(posterior)
    assert list(now) == list(before["numbers"])
    digests = before["digests"]
    if this_platform() in digests:
        assert digest(posterior) == digests[this_platform()]
    for key, values in before["numbers"].items():
        assert np.shape(now[key]) == np.shape(values)
        if this_platform() in digests or name not in PARTING:
            np.testing.assert_allclose(now[key], values, rtol=CLOSE, atol=CLOSE, err_msg=key)


def test_every_fit_is_in_the_file():
    assert set(frozen()) == set(FITS)


@quiet
def test_a_resumed_fit_is_the_frozen_one(resumed):
    whole = digest(made("joint, horseshoe"))
    for again in resumed(lambda **options: fit(TORUS, rows("angles"), **options), (3, 6)):
        assert digest(again) == whole


@quiet
def test_another_seed_is_told():
    other = fit(TORUS, rows("angles"), seed=8)
    assert digest(other) != digest(made("joint, horseshoe"))
    before = frozen()["joint, horseshoe"]["numbers"]
    now = numbers(other)
    assert any(not np.allclose(now[key], before[key], rtol=CLOSE, atol=CLOSE) for key in before)


def test_every_fit_that_parts_is_one():
    assert set(PARTING) < set(FITS)


def renew(names):
    """Write the file anew for some fits, or for all."""
    table = frozen()
    for name in names or FITS:
        posterior = made(name)
        old = table.get(name, {})
        digests = {**old.get("digests", {}), this_platform(): digest(posterior)}
        if old.get("numbers") != numbers(posterior):
            digests = {this_platform(): digest(posterior)}
        table[name] = {"numbers": numbers(posterior), "digests": digests}
        print(name, digest(posterior))
    table = {name: table[name] for name in FITS}
    FILE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    renew([each for each in sys.argv[1:] if each != "--renew"])
