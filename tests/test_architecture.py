"""Imports go downward only, modules stay small, and importing the package stays cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ncbayes

ROOT = Path(ncbayes.__file__).parent
# What each room may import from the package, its own submodules aside.
ALLOWED = {
    "base": set(),
    "spaces": {"base"},
    "notebooks": {"base", "diagnostics"},
    "models": {"autodiff", "base", "notebooks", "spaces"},
    "noise": {"base", "spaces"},
    "priors": {"base", "couplings", "spaces"},
    "linalg": {"base"},
    "score": {"base", "linalg"},
    "exact": {"base", "contrast", "pilots", "quadrature", "spaces"},
    "simulated": {"base", "contrast", "pilots"},
    "conditionals": {"base", "contrast", "linalg"},
    "pilots": {
        "base",
        "conditionals",
        "conditioning",
        "contrast",
        "engines",
        "noise",
        "problem",
    },
    "autodiff": {"base"},
    "curved": {"autodiff", "base", "linalg"},
    "contrast": {"base", "curved", "linalg"},
    "engines": {"autodiff", "base", "contrast", "curved", "linalg"},
    "parameters": {"base", "priors"},
    "energies": {"autodiff", "base", "curved", "notebooks", "parameters"},
    "energy_fit": {
        "autodiff",
        "base",
        "checkpoints",
        "contrast",
        "energies",
        "engines",
        "fingerprints",
        "inputs",
        "noise",
        "posterior",
        "priors",
        "problem",
        "progress",
        "resources",
        "threads",
    },
    "problem": {"base", "contrast"},
    "checkpoints": {"base"},
    "progress": set(),
    "chains": {"base", "checkpoints", "contrast", "problem", "progress", "threads"},
    "diagnostics": {"base", "modes"},
    "modes": set(),
    "concerns": set(),
    "mixing": {"concerns", "diagnostics", "modes"},
    "diagnosis": {"base", "concerns", "diagnostics", "mixing", "reports"},
    "checks": {
        "assembly",
        "autodiff",
        "base",
        "fields",
        "integration",
        "noise",
        "normalizers",
        "problem",
        "quadrature",
        "sites",
        "spaces",
        "threads",
    },
    "couplings": {"base"},
    "integration": {"base", "diagnostics", "models", "spaces"},
    "sites": {"base", "fields", "inputs", "integration", "places", "spaces"},
    "stamps": {"base", "dates", "periods", "spaces"},
    "readout": {
        "base",
        "baselines",
        "fields",
        "inputs",
        "integration",
        "posterior",
        "sites",
        "stamps",
    },
    "exports": {"base", "spaces"},
    "densities": {
        "base",
        "couplings",
        "exports",
        "inputs",
        "posterior",
        "readout",
        "sites",
        "spaces",
        "stamps",
    },
    "reports": {
        "concerns",
        "diagnostics",
        "noise",
    },
    "comparison": {"base", "couplings", "diagnostics", "posterior"},
    "assembly": {
        "base",
        "chains",
        "contrast",
        "couplings",
        "diagnostics",
        "fields",
        "normalizers",
        "problem",
        "threads",
    },
    "normalizers": {"base", "noise", "quadrature", "spaces"},
    "several_sets": {"base", "diagnostics", "reports"},
    "posterior": {
        "several_sets",
        "assembly",
        "base",
        "chains",
        "checkpoints",
        "checks",
        "concerns",
        "diagnosis",
        "diagnostics",
        "fields",
        "mixing",
        "normalizers",
        "notebooks",
        "problem",
        "progress",
        "reports",
        "resources",
        "tails",
        "threads",
    },
    "tails": {"base", "spaces"},
    "thinness": {"base", "spaces"},
    "estimators": {"base", "fitting", "graphs", "models", "posterior", "scores"},
    "adaptation": {"base", "checkpoints", "contrast", "diagnostics", "noise", "problem"},
    "rounds": {
        "adaptation",
        "base",
        "checks",
        "conditionals",
        "contrast",
        "engines",
        "noise",
        "normalizers",
        "pilots",
        "priors",
        "problem",
        "score",
        "spaces",
    },
    "choice": {
        "adaptation",
        "base",
        "contrast",
        "noise",
        "priors",
        "problem",
        "resources",
        "rounds",
        "spaces",
    },
    "preparation": {
        "adaptation",
        "base",
        "chains",
        "checkpoints",
        "choice",
        "noise",
        "problem",
        "progress",
        "rounds",
        "threads",
    },
    "inputs": {"base", "contrast", "couplings", "noise", "priors", "progress", "spaces"},
    "threads": set(),
    "resources": {"base", "contrast", "linalg"},
    "conditioning": {"base", "contrast", "priors"},
    "identifiability": {"base", "contrast", "priors", "problem"},
    "fingerprints": {"base", "contrast", "problem"},
    "noiseless": {
        "base",
        "checkpoints",
        "conditionals",
        "conditioning",
        "contrast",
        "exact",
        "fingerprints",
        "identifiability",
        "noise",
        "posterior",
        "priors",
        "problem",
        "progress",
        "resources",
        "score",
        "simulated",
        "threads",
    },
    "worlds": {
        "base",
        "conditionals",
        "contrast",
        "exact",
        "linalg",
        "priors",
        "score",
        "simulated",
    },
    "testing": {"base", "contrast", "noise", "worlds"},
    "plots": {
        "base",
        "comparison",
        "concerns",
        "contrast",
        "couplings",
        "densities",
        "diagnosis",
        "diagnostics",
        "fields",
        "graphs",
        "posterior",
        "predictive",
        "readout",
        "sites",
        "spaces",
        "stamps",
    },
    "webreport": {
        "base",
        "concerns",
        "couplings",
        "densities",
        "diagnosis",
        "diagnostics",
        "fields",
        "graphs",
        "mixing",
        "posterior",
        "readout",
        "reports",
        "sites",
        "spaces",
    },
    "fields": {"base", "dates", "models", "spaces"},
    "dates": {"base"},
    "periods": {"base", "dates", "spaces"},
    "places": {"base", "models", "spaces"},
    "remarks": {"base", "periods", "places", "spaces"},
    "events": {"base", "dates", "periods", "places", "remarks", "spaces"},
    "over_time": {
        "base",
        "contrast",
        "diagnostics",
        "events",
        "fields",
        "fitting",
        "inputs",
        "models",
        "noise",
        "posterior",
        "priors",
        "progress",
        "spaces",
        "threads",
    },
    "baselines": {"base", "dates", "diagnostics", "events", "progress", "spaces"},
    "metrics": {"base", "spaces"},
    "datasets": {"base", "dates", "models", "spaces"},
    "group_tests": {
        "base",
        "conditionals",
        "conditioning",
        "contrast",
        "engines",
        "linalg",
        "noise",
        "pilots",
        "problem",
    },
    "graphs": {
        "base",
        "contrast",
        "couplings",
        "diagnostics",
        "fitting",
        "group_tests",
        "inputs",
        "posterior",
        "progress",
    },
    "predictive": {
        "base",
        "checks",
        "contrast",
        "couplings",
        "fields",
        "inputs",
        "posterior",
        "spaces",
        "threads",
    },
    "scores": {
        "base",
        "baselines",
        "contrast",
        "couplings",
        "energies",
        "inputs",
        "noise",
        "normalizers",
        "posterior",
        "readout",
        "sites",
        "spaces",
        "stamps",
        "threads",
    },
    "quadrature": {"base", "contrast", "spaces"},
    "asymptotics": {"base", "contrast", "posterior", "quadrature", "spaces"},
}
# The front door and the leaves above it see everything but each other.
LEAVES = {
    "estimators",
    "baselines",
    "comparison",
    "datasets",
    "graphs",
    "group_tests",
    "metrics",
    "plots",
    "predictive",
    "scores",
    "testing",
    "webreport",
    "worlds",
}
ALLOWED["fitting"] = set(ALLOWED) - LEAVES
FILES = sorted(ROOT.rglob("*.py"))


def room(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def imported(path):
    """Rooms of the package that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {
                alias.name.split(".")[1] for alias in node.names if alias.name[:8] == "ncbayes."
            }
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ncbayes":
            inside = node.module.split(".")[1:2]
            found |= set(inside) if inside else {alias.name for alias in node.names}
    return {name for name in found if name != "__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downward(path):
    name = room(path)
    if name in {"__init__", "__main__", "cli"}:
        return
    assert imported(path) - {name} <= ALLOWED[name]


def test_nobody_imports_the_leaves():
    others = [path for path in FILES if room(path) not in {"__init__", "__main__", "cli", "plots"}]
    assert not [path for path in others if imported(path) & {"cli", "plots"}]


def test_the_import_walk_sees_an_upward_import(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("def f():\n    from ncbayes.engines import Gibbs\n    import ncbayes.fitting\n")
    assert imported(path) == {"engines", "fitting"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_one_room(path):
    assert len(path.read_text().splitlines()) <= 420


HEAVY = (
    "arviz_stats",
    "blackjax",
    "jax",
    "joblib",
    "matplotlib",
    "networkx",
    "numba",
    "pandas",
    "rasterio",
    "rich",
    "scipy.stats",
    "shapely",
    "sklearn",
    "typer",
    "xarray",
)


def test_heavy_parts_are_imported_where_they_are_used():
    # Names are imported on first use; these are what every fit uses.
    used = "ncbayes.compare, ncbayes.Energy, ncbayes.fit, ncbayes.fit_density_over_time"
    code = f"import sys, ncbayes; {used}; print([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
