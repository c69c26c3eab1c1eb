import os

import pytest


@pytest.fixture
def seed() -> int:
    """Any seed must do: sweep them with NCBAYES_TEST_SEED=2, 3, ..."""
    return int(os.environ.get("NCBAYES_TEST_SEED", "1"))
