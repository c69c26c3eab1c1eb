"""What a sweep of a small model must not do again in every sweep."""

import numpy as np
import pytest

import ncbayes as ncb

SHORT = {"tune": 10, "chains": 1, "cores": 1, "seed": 1, "progress": False}
MODEL = ncb.models.VonMises()
DATA = MODEL.sample(np.array([1.0, 0.5]), 60, np.random.default_rng(0))


class Counted(ncb.priors.Normal):
    """A normal prior that counts how often it is asked for its precision."""

    calls = 0

    def gaussian(self, state, shape):
        type(self).calls += 1
        return super().gaussian(state, shape)


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_a_prior_without_scales_is_asked_once_and_not_in_every_sweep(monkeypatch):
    calls = []
    for draws in (20, 200):
        monkeypatch.setattr(Counted, "calls", 0)
        options = {"noise": "matched", "draws": draws, **SHORT}
        found = ncb.fit(MODEL, DATA, prior=Counted(2.0), **options)
        calls.append(Counted.calls)
        same = ncb.fit(MODEL, DATA, prior=ncb.priors.Normal(2.0), **options)
        np.testing.assert_array_equal(found.theta, same.theta)
    assert calls[0] == calls[1]
