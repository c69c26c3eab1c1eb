"""Does a neural energy with a Bayesian last layer predict better than a Gaussian mixture?

    python studies/two_moons.py [--replications 10] [--rows 500] [--cores 2]

Two moons (scikit-learn's, noise 0.1) in a box. The network, 2 -> 10 -> 10 -> 1 with tanh, is
trained by Adam on the contrastive loss against uniform noise (a point estimate with normal priors
of its weights). Then its last hidden layer is fixed, and the head is fitted by conjugate Gibbs:
``models.Features``. Against it stand Gaussian mixtures: with as many parameters as the network (25
components), and with as many components as BIC likes best. Printed is the mean log score of 2000
held-out points, with 90 % intervals over replications; the score of the trained network without a
posterior, normalized by quadrature; that of the true density; and how far the estimated log_z is
from log Z by quadrature on a grid. Replication r uses seed r, for any number. The priors and the
rate of the training were chosen among six on the data of seed 1001.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from joblib import Parallel, delayed
from scipy import stats
from scipy.special import logsumexp
from sklearn.datasets import make_moons
from sklearn.mixture import GaussianMixture

import ncbayes as ncb

BOX = ncb.spaces.Box([-1.8, -1.3], [2.8, 1.8])
NOISE = 0.1
WIDTH = 10
NOISE_RATIO = 20
HELD_OUT = 2000
MOST = 30
LEVEL = 0.9
# The sd of the normal priors of the weights while the network is trained.
WEIGHT_SD = 2.0
STEPS, RATE = 3000, 0.03
COLUMNS = ("last layer", "network", "mixture, same size", "mixture, by BIC", "truth")


def moons(rows: int, seed: int) -> np.ndarray:
    """Points of two moons."""
    return np.asarray(make_moons(rows, noise=NOISE, random_state=seed)[0])


def true_log_density(x: np.ndarray) -> np.ndarray:
    """A moon is a half circle, with normal noise around it."""
    angle = (np.arange(400) + 0.5) * np.pi / 400
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    arcs = np.concatenate([upper, np.array([1.0, 0.5]) - upper])
    apart = ((x[:, None] - arcs) ** 2).sum(axis=2)
    return logsumexp(-apart / (2 * NOISE**2), axis=1) - np.log(len(arcs) * 2 * np.pi * NOISE**2)


def hidden(weights: Any, x: Any) -> Any:
    """The last hidden layer of the network, (n, WIDTH)."""
    first, second, *_ = weights
    return jnp.tanh(jnp.tanh(x @ first[:-1] + first[-1]) @ second[:-1] + second[-1])


def size(weights: Any) -> int:
    """Weights of the network, c left out."""
    return sum(np.size(each) for each in weights[:-1])


def trained(data: np.ndarray, seed: int, steps: int = STEPS) -> Any:
    """Weights of both layers, of the head, and c, by Adam; fresh noise in every step."""
    keys = jax.random.split(jax.random.key(seed), 3)
    weights = [
        jax.random.normal(keys[0], (3, WIDTH)),
        jax.random.normal(keys[1], (WIDTH + 1, WIDTH)) / np.sqrt(WIDTH),
        jnp.zeros(WIDTH),
        jnp.zeros(()),
    ]
    low, high = jnp.asarray(BOX.low), jnp.asarray(BOX.high)
    offset = BOX.log_volume - np.log(NOISE_RATIO)

    def loss(weights: Any, key: Any) -> Any:
        noise = jax.random.uniform(key, (NOISE_RATIO * len(data), 2), minval=low, maxval=high)
        log_odds = [hidden(weights, x) @ weights[2] + weights[3] + offset for x in (data, noise)]
        labels = jax.nn.softplus(-log_odds[0]).sum() + jax.nn.softplus(log_odds[1]).sum()
        return labels + sum((each**2).sum() for each in weights[:2]) / (2 * WEIGHT_SD**2)

    def step(state: Any, number: Any) -> Any:
        weights, mean, square = state
        slope = jax.grad(loss)(weights, jax.random.fold_in(keys[2], number))
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, square, slope)
        rate = RATE * (1 - number / steps)

        def moved(w: Any, m: Any, v: Any) -> Any:
            m, v = m / (1 - 0.9 ** (number + 1)), v / (1 - 0.999 ** (number + 1))
            return w - rate * m / (jnp.sqrt(v) + 1e-8)

        return (jax.tree.map(moved, weights, mean, square), mean, square), None

    zero = jax.tree.map(jnp.zeros_like, weights)
    (weights, *_), _ = jax.lax.scan(step, (weights, zero, zero), jnp.arange(steps))
    return [np.asarray(each) for each in weights]


def grid(cells: int = 300) -> tuple[np.ndarray, float]:
    """Midpoints of a grid over the box, and the log area of a cell."""
    axes = [
        low + (np.arange(cells) + 0.5) * (high - low) / cells
        for low, high in zip(np.ravel(BOX.low), np.ravel(BOX.high), strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    return points, BOX.log_volume - 2 * np.log(cells)


def last_layer(weights: Any, data: np.ndarray, seed: int, draws: int = 1000) -> Any:
    """The features and the posterior of their head."""
    model = ncb.models.Features(lambda x: hidden(weights, x), BOX, WIDTH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        posterior = ncb.fit(
            model,
            data,
            prior=ncb.priors.HalfCauchyNormal(10.0),
            noise=ncb.noise.Uniform(BOX),
            noise_ratio=NOISE_RATIO,
            draws=draws,
            tune=300,
            chains=2,
            cores=1,
            seed=seed,
            progress=False,
        )
    return model, posterior


def mixture(data: np.ndarray, components: int, seed: int) -> GaussianMixture:
    """By expectation maximization from k-means, the best of three starts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GaussianMixture(components, n_init=3, random_state=seed).fit(data)


def replication(seed: int, rows: int = 500, steps: int = STEPS) -> np.ndarray:
    """Log scores in the order of COLUMNS, then log_z: its error, posterior sd, worst R-hat."""
    data, held_out = moons(rows, seed), moons(HELD_OUT, 100_000 + seed)
    weights = trained(data, seed, steps)
    model, posterior = last_layer(weights, data, seed)
    score = ncb.scores.log_score(posterior, held_out)
    points, log_cell = grid()
    head = hidden(weights, points) @ weights[2]
    network = (hidden(weights, held_out) @ weights[2]).mean() - logsumexp(head) - log_cell
    same = mixture(data, round((size(weights) + 1) / 6), seed)
    by_bic = min((mixture(data, k, seed) for k in range(1, MOST)), key=lambda m: m.bic(data))
    scores = [score.mean, network, same.score(held_out), by_bic.score(held_out)]
    theta = posterior.theta.to_numpy().reshape(-1, WIDTH)[::20]
    exact = logsumexp(theta @ model.statistics(points).T, axis=1) + log_cell
    log_z = posterior.log_z.to_numpy().ravel()
    off = (log_z[::20] - exact).mean()
    worst = posterior.summary()["r_hat"].max()
    return np.array([*scores, true_log_density(held_out).mean(), off, log_z.std(), worst])


def study(replications: int, rows: int, cores: int) -> None:
    """Print the table."""
    jobs = (delayed(replication)(seed, rows) for seed in range(1, replications + 1))
    found = np.array(Parallel(n_jobs=cores)(jobs))
    width = stats.t.ppf((1 + LEVEL) / 2, replications - 1) / np.sqrt(replications)
    print(f"{replications} replications of {rows} rows, {HELD_OUT} held out; 90 % intervals\n")
    print(
        "| | log score | less than the last layer by | wins of the last layer |\n|---|---|---|---|"
    )
    for k, name in enumerate(COLUMNS):
        score, less = found[:, k], found[:, 0] - found[:, k]
        numbers = [f"{each.mean():.3f} ± {width * each.std(ddof=1):.3f}" for each in (score, less)]
        wins = f"{(less > 0).sum()} of {replications}"
        numbers = [numbers[0], *([numbers[1], wins] if k else ["", ""])]
        print(f"| {name} | {' | '.join(numbers)} |")
    off, spread, worst = found[:, -3], found[:, -2], found[:, -1]
    print(
        f"\nlog_z less log Z by quadrature: mean {off.mean():.3f} ± {width * off.std(ddof=1):.3f},"
        f" root mean square {np.sqrt((off**2).mean()):.3f}; posterior sd of log_z "
        f"{spread.mean():.3f}; worst R-hat {worst.max():.3f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    study(arguments.replications, arguments.rows, arguments.cores)
