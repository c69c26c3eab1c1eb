"""scikit-learn's way of asking: ``TorusGraphEstimator().fit(X)``.

For pipelines and cross-validation; everything else is said more directly to ``ncbayes.fit``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ncbayes import graphs
from ncbayes.base import FloatArray
from ncbayes.fitting import fit
from ncbayes.models import TorusGraph
from ncbayes.scores import log_density_draws

if TYPE_CHECKING:
    import pandas as pd

    from ncbayes.posterior import Posterior

__all__ = ["TorusGraphEstimator"]


class TorusGraphEstimator(BaseEstimator):  # type: ignore[misc]
    """A torus graph of the columns of X, angles in radians.

    Parameters are those of ``ncbayes.fit`` and ``ncbayes.graphs.edges``; ``unwrapped=True`` takes
    phases that run on beyond a full turn. After ``fit``: ``posterior_``, ``model_``, ``edges_`` (a
    row an edge) and ``adjacency_`` (strengths of the selected edges). ``score`` is the mean log
    density of new rows, by which ``sklearn.model_selection`` compares settings.
    """

    def __init__(
        self,
        *,
        rule: str = "interval",
        threshold: float = 0.1,
        level: float = 0.9,
        unwrapped: bool = False,
        noise: Any = "auto",
        prior: Any = None,
        noise_ratio: float | None = None,
        draws: int | None = None,
        tune: int = 1000,
        chains: int = 4,
        cores: int | None = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.rule = rule
        self.threshold = threshold
        self.level = level
        self.unwrapped = unwrapped
        self.noise = noise
        self.prior = prior
        self.noise_ratio = noise_ratio
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.cores = cores
        self.random_state = random_state
        self.progress = progress

    posterior_: Posterior
    edges_: pd.DataFrame
    adjacency_: FloatArray

    def fit(self, X: Any, y: Any = None) -> TorusGraphEstimator:
        """Fit the graph; ``y`` is not used."""
        angles = self._angles(X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        columns = angles.shape[1] if names is None else tuple(map(str, names))
        self.model_ = TorusGraph(columns)
        self.posterior_ = fit(
            self.model_, angles, noise=self.noise, prior=self.prior, noise_ratio=self.noise_ratio,
            draws=self.draws, tune=self.tune, chains=self.chains, cores=self.cores,
            seed=self._seed(), progress=self.progress,
        )  # fmt: skip
        how = (self.rule, self.threshold, self.level)
        self.edges_ = graphs.edges(self.posterior_, *how)
        self.adjacency_ = graphs.adjacency(self.posterior_, *how).to_numpy()
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """The log of the posterior mean density of each row."""
        check_is_fitted(self)
        angles = self._angles(X, reset=False)
        found = log_density_draws(self.posterior_, angles).to_numpy()
        return np.asarray(logsumexp(found, axis=0) - np.log(len(found)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ``score_samples``; ``y`` is not used."""
        return float(self.score_samples(X).mean())

    def _angles(self, X: Any, reset: bool) -> FloatArray:
        angles = validate_data(
            self, X, reset=reset, dtype=float, ensure_min_samples=2 if reset else 1
        )
        return np.asarray(angles % (2 * np.pi) if self.unwrapped else angles)

    def _seed(self) -> Any:
        """The seed of ``ncbayes.fit``; of NumPy's old generator, a number drawn from it."""
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31))
        return self.random_state
