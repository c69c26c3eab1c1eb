"""Is log_z right where noise was fitted to the same rows? Hyperbolic coordinates tell.

    log p(x) = -a sum_j sqrt(1 + x_j^2) + t . x,    log Z = sum_j log(2 a K_1(g_j) / g_j),
    g_j = sqrt(a^2 - t_j^2)

Each fit has default noise, as a family and, with --energy, as an energy. Two things are asked: is
log_z, in the mean over the draws, within 2 of its stated standard errors of the exact log Z at
the same draws; and does the log score of held-out points ever beat the true density by more than
its stated error? The contrast's own -c is shown beside it.

    python studies/log_normalizer.py --dimensions 5 20 40 --fits 40

With --plain the noise is a Student t fitted to the very rows, ratio 5: what matched noise was
before it was cross-fitted.
"""

from __future__ import annotations

import argparse
import warnings

import joblib
import numpy as np
from scipy.special import k1e

import ncbayes as ncb

ROWS, HELD_OUT, SHAPE = 400, 1000, 1.5


class Hyperbolic:
    """Independent hyperbolic coordinates, with the three members that a family needs."""

    def __init__(self, dimension: int) -> None:
        self.space = ncb.spaces.Reals(dimension)
        self.groups = {"shape": ("a",), "tilt": tuple(f"t{j}" for j in range(dimension))}

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """The sum of the roots with a minus sign, then the coordinates."""
        return np.column_stack([-np.sqrt(1 + x**2).sum(axis=1), x])

    def log_base(self, x: np.ndarray) -> np.ndarray:
        """Zero everywhere."""
        return np.zeros(len(x))


def energy(dimension: int) -> ncb.Energy:
    """The same as an energy."""
    from jax import numpy as jnp

    def log_density(params, x):
        return x @ params["t"] - params["a"] * jnp.sqrt(1 + x**2).sum(axis=1)

    tilt = ncb.energies.Real(ncb.priors.Normal(1.0), shape=(dimension,))
    params = {"a": ncb.energies.Positive(), "t": tilt}
    return ncb.Energy(log_density, params, ncb.spaces.Reals(dimension))


def log_z(theta: np.ndarray) -> np.ndarray:
    """The exact log Z of theta = (a, t), (..., 1 + dimension)."""
    a = theta[..., :1]
    g = np.sqrt(a**2 - theta[..., 1:] ** 2)
    return (np.log(2 * a * k1e(g) / g) - g).sum(axis=-1)


def sample(theta: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws by the inverse distribution function on a fine grid."""
    grid = np.linspace(-60.0, 60.0, 120_001)
    columns = []
    for t in theta[1:]:
        total = np.cumsum(np.exp(t * grid - theta[0] * np.sqrt(1 + grid**2)))
        columns.append(np.interp(rng.random(size) * total[-1], total, grid))
    return np.column_stack(columns)


def one(
    dimension: int, seed: int, as_energy: bool, sweeps: int, plain: bool = False
) -> dict[str, float]:
    """One data set: errors of log_z and of -c at the draws, and of the score."""
    rng = np.random.default_rng([dimension, seed])
    truth = np.append(SHAPE, np.linspace(-0.5, 0.5, dimension))
    data, held_out = sample(truth, ROWS, rng), sample(truth, HELD_OUT, rng)
    model = energy(dimension) if as_energy else Hyperbolic(dimension)
    options = {"draws": sweeps, "tune": sweeps, "chains": 2, "cores": 1, "progress": False}
    if plain:
        options |= {"noise": ncb.noise.StudentT.match(data), "noise_ratio": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = ncb.fit(model, data, seed=seed, **options)
        score = ncb.scores.log_score(posterior, held_out, draws=400, seed=seed)
    tree = posterior.data["posterior"]
    if as_energy:
        theta = np.concatenate([tree["a"].to_numpy()[..., None], tree["t"].to_numpy()], axis=-1)
    else:
        theta = tree["theta"].to_numpy()
    exact = log_z(theta)
    own = posterior.data["normalizer"]["contrast_log_z"].to_numpy()
    off, own_off = tree["log_z"].to_numpy() - exact, own - exact
    true_score = (Hyperbolic(dimension).statistics(held_out) @ truth).mean() - log_z(truth)
    a = theta[..., 0, 0]
    return {
        "off": float(off.mean()),
        "stated": float(posterior.data["normalizer"]["error"][0]),
        "sd of off": float(off.std()),
        "contrast off": float(own_off.mean()),
        "contrast sd": float(own_off.std()),
        "a in sds": float((a.mean() - SHAPE) / a.std()),
        "score less truth": score.mean - true_score,
        "score's error": float(np.hypot(score.error, score.log_z_error)),
        "log Z error of the score": score.log_z_error,
    }


def study(
    dimension: int, fits: int, as_energy: bool, sweeps: int, cores: int, plain: bool = False
) -> None:
    """One line a dimension."""
    given = (as_energy, sweeps, plain)
    jobs = (joblib.delayed(one)(dimension, seed, *given) for seed in range(1, fits + 1))
    rows = joblib.Parallel(cores)(jobs)
    found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    inside = int((np.abs(found["off"]) <= 2 * found["sd of off"]).sum())
    before = int((np.abs(found["contrast off"]) <= 2 * found["contrast sd"]).sum())
    beaten = int((found["score less truth"] > found["score's error"]).sum())
    by_log_z = int((found["score less truth"] > 2 * found["log Z error of the score"]).sum())
    kind = "energy" if as_energy else "family"
    off, own, a, gain = (found[n] for n in ("off", "contrast off", "a in sds", "score less truth"))
    print(
        f"{kind} d = {dimension}: log_z within 2 sds of the exact value in {inside} of {fits} "
        f"(off {off.mean():+.3f}, sd {found['sd of off'].mean():.3f}); -c in {before} "
        f"(off {own.mean():+.3f}, sd {found['contrast sd'].mean():.3f}); a off by {a.mean():+.2f} "
        f"sds in the mean, rms {np.sqrt((a**2).mean()):.2f}; score less that of the truth "
        f"{gain.mean():+.3f}, at most {gain.max():+.3f}: above its stated error in {beaten}, above "
        f"2 errors of its log Z in {by_log_z}",
        flush=True,
    )


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[5, 20, 40])
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--sweeps", type=int, default=400)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--energy", action="store_true")
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    for dimension in given.dimensions:
        study(dimension, given.fits, given.energy, given.sweeps, given.cores, given.plain)


if __name__ == "__main__":
    main()
