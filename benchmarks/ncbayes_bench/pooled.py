"""The logistic regression behind a fit, taken from what the posterior holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import ncbayes as ncb


@dataclass(frozen=True, eq=False)
class Pooled:
    """The logistic regression that a fit has sampled from.

    ``statistics`` (N, p) of data and noise, ``offset`` and ``is_data`` (N,), ``runs`` (p,): the
    number of the run, with one local scale, that each statistic belongs to.
    """

    statistics: np.ndarray
    offset: np.ndarray
    is_data: np.ndarray
    runs: np.ndarray


def pooled(posterior: ncb.Posterior, model: Any) -> Pooled:
    """``offset = log_base - log q + log n - log m`` at the points of a fit with one noise set."""
    data = posterior.data["observed_data"]["points"].to_numpy()
    noise = posterior.data["noise"].to_dataset()
    points = np.concatenate([data, noise["points"].to_numpy()])
    at_data = noise["log_density_at_data"].to_numpy()[0]
    log_noise = np.concatenate([at_data, noise["log_density"].to_numpy()])
    ratio = np.log(len(data) / len(noise["points"]))
    is_data = np.arange(len(points)) < len(data)
    offset = model.log_base(points) - log_noise + ratio
    return Pooled(model.statistics(points), offset, is_data, np.asarray(model.clusters))
