"""The studies of votes and wine run, on made-up tables of the same layout."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

STUDIES = Path(__file__).parents[1] / "studies"
SHORT = {"draws": 30, "tune": 20, "chains": 1, "cores": 1, "progress": False}


def load(name):
    spec = importlib.util.spec_from_file_location(name, STUDIES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_votes(tmp_path, capsys, monkeypatch, seed):
    study, rng = load("votes"), np.random.default_rng(seed)
    leader = rng.random((120, 1)) < 0.5
    table = pd.DataFrame(np.where(rng.random((120, 4)) < 0.85, leader, ~leader).astype(int))
    table.columns = ["budget", "crime", "water", "trade"]
    table.insert(0, "party", np.where(leader[:, 0], "one", "other"))
    table.to_csv(tmp_path / "votes.csv", index=False)
    monkeypatch.setattr(study, "REPLICATIONS", 3)
    study.main(tmp_path / "votes.csv", seed=seed, **SHORT)
    printed = capsys.readouterr().out
    assert "of 6; expected false" in printed
    assert "at least 12 of 16" in printed


@pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")
def test_wine(tmp_path, capsys, monkeypatch, seed):
    study, rng = load("wine"), np.random.default_rng(seed)
    table = pd.DataFrame(rng.gamma(5.0, 1.0, (150, 3)), columns=["acid", "sugar", "alcohol"])
    table["quality"] = 5
    table.to_csv(tmp_path / "wine.csv", index=False)
    assert study.measurements(tmp_path / "wine.csv").std().to_numpy() == pytest.approx(1)
    monkeypatch.setattr(study, "REPLICATIONS", 3)
    study.main(tmp_path / "wine.csv", seed=seed, **SHORT)
    assert "of 3; expected false" in capsys.readouterr().out
    study.main(tmp_path / "wine.csv", seed=seed, columns=["acid", "alcohol"], **SHORT)
    assert "of 1; expected false" in capsys.readouterr().out
