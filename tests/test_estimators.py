"""The torus graph for scikit-learn: its own checks, and the same numbers as ``fit``."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import ncbayes as ncb
from ncbayes.estimators import TorusGraphEstimator

SHORT = {"draws": 8, "tune": 4, "chains": 1, "cores": 1, "noise": "matched", "random_state": 1}
pytestmark = [
    pytest.mark.filterwarnings("ignore::ncbayes.FitWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


@parametrize_with_checks([TorusGraphEstimator(unwrapped=True, **SHORT)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


ANGLES = ncb.datasets.torus_chain(60, nodes=3, seed=1)


def test_it_is_fit_by_another_name():
    frame = pd.DataFrame(ANGLES.data, columns=["a", "b", "c"])
    found = TorusGraphEstimator(rule="interval", level=0.5, **SHORT).fit(frame)
    posterior = ncb.fit(
        ncb.models.TorusGraph(["a", "b", "c"]), ANGLES.data, noise="matched", draws=8, tune=4,
        chains=1, cores=1, seed=1, progress=False,
    )  # fmt: skip
    np.testing.assert_array_equal(found.posterior_.theta, posterior.theta)
    pd.testing.assert_frame_equal(
        found.edges_, ncb.graphs.edges(posterior, rule="interval", level=0.5)
    )
    assert found.adjacency_.shape == (3, 3)
    scores = ncb.scores.log_score(posterior, ANGLES.data[:9])
    np.testing.assert_allclose(found.score_samples(frame[:9]), scores.pointwise)
    assert found.score(frame[:9]) == pytest.approx(scores.mean)


def test_degrees_are_refused_and_unwrapped_phases_welcome_if_announced():
    with pytest.raises(ncb.InputError, match="angles must be in radians"):
        TorusGraphEstimator(**SHORT).fit(np.rad2deg(ANGLES.data))
    turned = ANGLES.data + 6 * np.pi
    found = TorusGraphEstimator(unwrapped=True, **SHORT).fit(turned)
    np.testing.assert_allclose(
        found.posterior_.theta, TorusGraphEstimator(**SHORT).fit(ANGLES.data).posterior_.theta,
        rtol=1e-6,
    )  # fmt: skip


def test_settings_are_compared_by_held_out_rows():
    # A prior that allows no couplings tells the held-out rows of a chain much worse.
    none, wide = ncb.priors.Normal(1e-3), ncb.priors.Normal(2.0)
    search = GridSearchCV(TorusGraphEstimator(**SHORT), {"prior": [none, wide]}, cv=2)
    assert search.fit(ANGLES.data).best_params_ == {"prior": wide}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with pytest.raises(NotFittedError):
        clone(search.best_estimator_).score_samples(ANGLES.data)
