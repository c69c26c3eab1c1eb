"""Makes two pictures of docs/index.md: python docs/make_index_pictures.py [folder]."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import ncbayes as ncb

DPI = 110
SWEEPS = {"draws": 3000, "tune": 500, "chains": 2, "cores": 1, "seed": 1, "progress": False}


def votes() -> plt.Figure:
    """The graph of the simulated votes of docs/ising.md."""
    names = ["budget", "schools", "crime", "trade", "exports", "missiles", "water", "energy"]
    model = ncb.models.Ising(names)
    columns = [name for block in model.groups.values() for name in block]
    truth = np.where(np.arange(len(columns)) < len(names), -0.7, 0.0)
    edges = ("budget*schools", "schools*crime", "trade*exports", "exports*missiles", "water*energy")
    truth[[columns.index(edge) for edge in edges]] = 2.0
    data = model.sample(truth, 250, np.random.default_rng(1))
    prior = {"edge": ncb.priors.Horseshoe(slab=2.5)}
    posterior = ncb.fit(model, data, prior=prior, **SWEEPS)
    return ncb.plots.network(posterior, rule="interval", threshold=0.5)


def ring() -> plt.Figure:
    """The ring of docs/energy.md: points, and the density at the posterior mean."""
    import jax.numpy as jnp

    def log_density(params, x):
        distance = jnp.sqrt((x**2).sum(axis=1))
        return -(((distance - params["radius"]) / params["width"]) ** 2) / 2

    params = {"radius": ncb.energies.Positive(median=1.0), "width": ncb.energies.Positive()}
    rng = np.random.default_rng(1)
    distance, angle = rng.normal(2.0, 0.4, 4000), rng.uniform(0, 2 * np.pi, 400)
    distance = rng.choice(distance, 400, p=distance / distance.sum())
    points = np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])
    posterior = ncb.fit(ncb.Energy(log_density, params, ncb.spaces.Reals(2)), points, **SWEEPS)
    mean = posterior.summary()["mean"]
    side = np.linspace(-3.8, 3.8, 200)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    height = log_density({name: mean[name] for name in params}, grid.reshape(-1, 2))
    density = np.exp(np.asarray(height) - mean["log_z"]).reshape(200, 200)
    figure, axis = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
    drawn = axis.contourf(side, side, density, 12, cmap="Blues")
    axis.plot(*points.T, ".", color="black", markersize=3)
    axis.set(aspect="equal", xlabel="x1", ylabel="x2")
    figure.colorbar(drawn, label="density, normalized")
    return figure


if __name__ == "__main__":
    mpl.use("agg")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
    votes().savefig(folder / "votes_network.png", dpi=DPI)
    ring().savefig(folder / "ring.png", dpi=DPI)
