"""Makes the pictures of docs/which_noise.md: python docs/make_noise_pictures.py [folder]."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import ncbayes as ncb
from ncbayes import plots

SHORT = {"draws": 600, "tune": 200, "chains": 2, "cores": 1, "seed": 1, "progress": False}
DPI = 110


def picture(posterior: ncb.Posterior) -> np.ndarray:
    """``plots.noise`` as pixels."""
    file = io.BytesIO()
    figure = plots.noise(posterior)
    figure.savefig(file, dpi=DPI)
    plt.close(figure)
    file.seek(0)
    return plt.imread(file)


def good_and_poor() -> np.ndarray:
    """Uniform noise for angles above noise on the other side of the circle."""
    model = ncb.models.VonMises()
    angles = model.sample(np.array([1.5, 0.5]), 400, np.random.default_rng(1))
    noises = ncb.noise.Uniform(model.space), ncb.noise.VonMises([np.pi], [3.0])
    return np.vstack([picture(ncb.fit(model, angles, noise=each, **SHORT)) for each in noises])


def adaptive() -> np.ndarray:
    """Four angles in a chain."""
    graph = ncb.models.TorusGraph(4, edges=[(0, 1), (1, 2), (2, 3)])
    truth = np.zeros(20)
    truth[8::4] = 2.0
    data = graph.sample(truth, 400, np.random.default_rng(1))
    return picture(ncb.fit(graph, data, noise=ncb.noise.Adaptive(), **SHORT))


def main(folder: Path) -> None:
    """Write both into the folder."""
    mpl.use("agg")
    for name, pixels in {"good_poor": good_and_poor(), "adaptive": adaptive()}.items():
        plt.imsave(folder / f"noise_{name}.png", pixels)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "images")
