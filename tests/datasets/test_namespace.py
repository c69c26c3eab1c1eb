import doctest
import importlib
import subprocess
import sys

import pytest

import ncbayes as ncb


def test_the_namespace_holds_what_it_names():
    assert all(hasattr(ncb.datasets, name) for name in ncb.datasets.__all__)


def test_readers_and_filters_are_imported_where_they_are_used():
    heavy = ("h5py", "scipy.io", "scipy.signal", "scipy.stats", "pandas", "numba")
    code = (
        "import sys, ncbayes, ncbayes.datasets as d; d.wind(); d.torus_cycle(5); d.growing_ring(); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "name", ["city", "crime", "densities", "recordings", "signals", "simulators", "weather"]
)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(f"ncbayes.datasets.{name}")).failed == 0
