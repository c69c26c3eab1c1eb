import os

import pytest


@pytest.fixture
def seed() -> int:
    """Any seed must do: sweep them with NCBAYES_TEST_SEED=2, 3, ..."""
    return int(os.environ.get("NCBAYES_TEST_SEED", "1"))


@pytest.fixture
def short_pilots(monkeypatch):
    """Every step of check_engine is on a new target, and would make a pilot of 60 sweeps."""
    from ncbayes.engines import joint

    monkeypatch.setattr(joint, "PILOT_SWEEPS", 2)
    # So short a pilot sees no width, and scales that hardly move would pass any test.
    monkeypatch.setattr(joint, "LEAST_WIDTH", 1.0)
