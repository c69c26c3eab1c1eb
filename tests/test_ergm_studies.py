"""Studies of random graphs, in small; docs/random_graphs.md has the numbers."""

from pathlib import Path

import numpy as np
import pytest

import ergm_recovery
import mice

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.mark.slow
def test_a_replication_recovers_what_was_simulated(seed):
    z, covered, sd, seconds = ergm_recovery.replication(seed, draws=300)
    assert np.abs(z).max() < 5  # the study asks for 3, of ten replications with known seeds
    # The broken twin: without triangles and homophily in the truth, z would be far off.
    assert np.abs(z * sd + ergm_recovery.TRUTH)[2] / sd[2] > 3
    assert set(covered) <= {0.0, 1.0}
    assert np.all(seconds < 120)


def mouse_files(folder, mice_edges):
    lines = ["node,ROI,Structure,Abbreviation", "1,42,Medial_Entorhinal_Cortex,MEnt"]
    lines += ["2,43,Ventral_Entorhinal_Cortex,VEnt", "3,44,Hippocampus,Hc", "4,45,Claustrum,Cl"]
    (folder / mice.NODES).write_text("\n".join(lines) + "\n")
    rows = [f"sub-{k},B6,male,{j},{i},{count}" for k, j, i, count in mice_edges]
    header = "subject,genotype,sex,node_i,node_j,streamlines"
    (folder / mice.EDGES).write_text("\n".join([header, *rows]) + "\n")


def test_connectomes_are_read_by_name(tmp_path):
    mouse_files(tmp_path, [(1, 1, 2, 7), (1, 1, 3, 2000), (2, 2, 4, 1500)])
    names, classes, matrices = mice.connectomes(tmp_path, 1000)
    assert names == ["MEnt", "VEnt", "Hc", "Cl"]
    assert classes == ["Entorhinal", "Entorhinal", "Hippocampus", "Claustrum"]
    assert matrices.shape == (2, 4, 4)
    assert [np.argwhere(each).tolist() for each in matrices] == [
        [[0, 2], [2, 0]],
        [[1, 3], [3, 1]],
    ]
    assert mice.described(matrices)["mean degree"] == 0.5
    assert mice.described(1 - np.eye(4)[None])["triangles"] == 4


@pytest.mark.skipif(
    not (SHARED / mice.EDGES).exists(), reason="the files are not beside the checkout"
)
def test_the_mice_are_those_of_the_page():
    names, classes, matrices = mice.connectomes(SHARED, 1000)
    assert matrices.shape == (32, 20, 20)
    assert (len(set(names)), len(set(classes))) == (20, 13)
