"""The contrastive posterior under a horseshoe for NumPyro's NUTS, to hold our sampler against.

NumPyro is the extra ``bench``. One thread, so that the seconds of both samplers can be compared.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import ncbayes as ncb
from ncbayes_bench.pooled import Pooled

# The prior standard deviation of c that ``fit`` uses, the paper's N(0, 1000).
NORMALIZER_SCALE = 1000.0**0.5
# XLA reads this once, when JAX starts.
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def density(contrast: Pooled, form: str, slab: float) -> None:
    """The NumPyro model, theta in units of its scale.

    "conditional": ``theta ~ N(0, (slab^-2 + (u tau)^-2)^-1)``. "likelihood":
    ``N(theta; 0, (u tau)^2) exp(-theta^2 / (2 slab^2))``. u and tau half-Cauchy in both.
    """
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    columns = contrast.statistics.shape[1]
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    local = numpyro.sample("local", dist.HalfCauchy(1.0).expand([int(contrast.runs.max()) + 1]))
    unit = numpyro.sample("unit", dist.Normal(0.0, 1.0).expand([columns]))
    scale = (local * tau)[contrast.runs]
    if form == "conditional":
        scale = slab * scale / jnp.sqrt(slab**2 + scale**2)
    theta = numpyro.deterministic("theta", scale * unit)
    if form == "likelihood":
        numpyro.factor("slab", -jnp.sum(theta**2) / (2 * slab**2))
    c = numpyro.sample("c", dist.Normal(0.0, NORMALIZER_SCALE))
    log_odds = contrast.statistics @ theta + c + contrast.offset
    labels = contrast.is_data.astype(int)
    numpyro.sample("labels", dist.Bernoulli(logits=log_odds), obs=labels)


def sampler(
    contrast: Pooled,
    form: str,
    tune: int,
    draws: int,
    chains: int = 1,
    target_accept: float = 0.8,
    double: bool = True,
    slab: float = 1.0,
) -> Any:
    """NUTS for that density, ready to run; chains one after the other."""
    os.environ.setdefault("XLA_FLAGS", ONE_THREAD)
    import numpyro

    numpyro.enable_x64(double)
    return numpyro.infer.MCMC(
        numpyro.infer.NUTS(density, target_accept_prob=target_accept),
        num_warmup=tune,
        num_samples=draws,
        num_chains=chains,
        chain_method="sequential",
        progress_bar=False,
    )


def run(mcmc: Any, contrast: Pooled, form: str, seed: int, slab: float = 1.0) -> None:
    """Run it to the end, and wait for it."""
    import jax

    mcmc.run(jax.random.PRNGKey(seed), contrast, form, slab, extra_fields=("diverging",))
    jax.block_until_ready(mcmc.get_samples())


def divergences(mcmc: Any) -> int:
    """How many draws ended a trajectory that could not be integrated."""
    return int(np.sum(mcmc.get_extra_fields()["diverging"]))


def their_draws(mcmc: Any) -> np.ndarray:
    """(chain, draw, parameter): theta, log Z = -c and log tau."""
    found = {
        name: np.asarray(values, float)
        for name, values in mcmc.get_samples(group_by_chain=True).items()
    }
    scalars = np.stack([-found["c"], np.log(found["tau"])], axis=-1)
    return np.concatenate([found["theta"], scalars], axis=-1)


def our_draws(posterior: ncb.Posterior) -> np.ndarray:
    """The same parameters, (chain, draw, parameter)."""
    theta = posterior.theta.to_numpy()[:, :, 0]
    log_tau = np.log(posterior.data["posterior"]["theta.tau"].to_numpy())
    minus_c = posterior.data["normalizer"]["contrast_log_z"].to_numpy()
    return np.concatenate([theta, minus_c, log_tau], axis=-1)


def effective(draws: np.ndarray) -> np.ndarray:
    """Effective draws of each parameter, by ArviZ."""
    from arviz_stats.base import array_stats

    return np.asarray(array_stats.ess(draws, chain_axis=0, draw_axis=1))


def z_scores(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Differences of the means of each parameter, in Monte Carlo standard errors."""
    from arviz_stats.base import array_stats

    errors = [
        array_stats.mcse(each, chain_axis=0, draw_axis=1, method="mean") for each in (ours, theirs)
    ]
    difference = ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1))
    return np.asarray(difference / np.hypot(*errors))
