import math

import h5py
import numpy as np
import pytest
from scipy.io import savemat

import ncbayes as ncb
from ncbayes.base import InputError
from ncbayes.datasets import load_phase_angles

REGIONS = ["CA3"] * 5 + ["DG"] * 8 + ["Sub"] * 3 + ["PFCv"] * 8


def angles(seed=0, shape=(24, 840)):
    return np.random.default_rng(seed).uniform(-math.pi, math.pi, shape)


def cells(names, column=True):
    array = np.empty((len(names), 1) if column else (1, len(names)), dtype=object)
    array.flat = names
    return array


def saved_hdf5(path, table, names, *, char=False):
    """A file of the layout of MATLAB's v7.3: axes reversed, cells as references, text as codes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("anglebeta", data=table.T)
        texts = [np.array([[ord(letter)] for letter in name], dtype=np.uint16) for name in names]
        if char:
            width = max(map(len, names))
            codes = np.array([[ord(letter) for letter in name.ljust(width)] for name in names])
            file.create_dataset("subregions", data=codes.T.astype(np.uint16))
            file["subregions"].attrs["MATLAB_class"] = np.bytes_("char")
        else:
            references = np.empty((1, len(names)), dtype=h5py.ref_dtype)
            for k, text in enumerate(texts):
                file.create_dataset(f"#refs#/{k}", data=text)
                file[f"#refs#/{k}"].attrs["MATLAB_class"] = np.bytes_("char")
                references[0, k] = file[f"#refs#/{k}"].ref
            file.create_dataset("subregions", data=references)
            file["subregions"].attrs["MATLAB_class"] = np.bytes_("cell")
        file.create_group("settings")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def saved(path, **variables):
    savemat(path, {"anglebeta": angles(), "subregions": cells(REGIONS), **variables})
    return path


LAYOUTS = {
    "cells": lambda path, table: savemat(path, {"anglebeta": table, "subregions": cells(REGIONS)}),
    "row of cells": lambda path, table: savemat(
        path, {"anglebeta": table, "subregions": cells(REGIONS, column=False)}
    ),
    "cells in cells": lambda path, table: savemat(
        path, {"anglebeta": table, "subregions": cells([cells([name]) for name in REGIONS])}
    ),
    "char matrix": lambda path, table: savemat(path, {"anglebeta": table, "subregions": REGIONS}),
    "compressed": lambda path, table: savemat(
        path, {"anglebeta": table, "subregions": cells(REGIONS)}, do_compression=True
    ),
    "version 4": lambda path, table: savemat(
        path, {"anglebeta": table, "subregions": np.array(REGIONS)}, format="4"
    ),
    "hdf5 cells": lambda path, table: saved_hdf5(path, table, REGIONS),
    "hdf5 char matrix": lambda path, table: saved_hdf5(path, table, REGIONS, char=True),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("turned", [False, True])
def test_files_of_every_layout_give_trials_by_channels(layout, turned, tmp_path, seed):
    table, path = angles(seed), tmp_path / "anglebeta.mat"
    LAYOUTS[layout](path, table.T if turned else table)
    found = load_phase_angles(str(path))
    assert found.data.shape == (840, 24)
    assert found.data == pytest.approx(table.T % (2 * math.pi), abs=1e-15)
    assert ncb.spaces.Torus(24).contains(found.data).all()
    assert found.nodes[:7] == ("CA3.1", "CA3.2", "CA3.3", "CA3.4", "CA3.5", "DG.1", "DG.2")
    assert found.nodes[-1] == "PFCv.8"
    assert list(found.regions) == list(found.nodes)
    assert list(found.regions.values()) == REGIONS
    assert ncb.models.TorusGraph(found.nodes).space.dimension == 24


def test_names_may_alternate_and_a_square_matrix_is_channels_by_trials(tmp_path):
    table = angles(shape=(3, 3))
    savemat(tmp_path / "a.mat", {"phases": table, "area": cells(["DG", "CA3", "DG"])})
    found = load_phase_angles(tmp_path / "a.mat", angles="phases", names="area")
    assert found.nodes == ("DG.1", "CA3.1", "DG.2")
    assert found.data == pytest.approx(table.T % (2 * math.pi))


def test_names_are_not_needed(tmp_path):
    savemat(tmp_path / "a.mat", {"anglebeta": angles(shape=(2, 5))})
    found = load_phase_angles(tmp_path / "a.mat", names=None)
    assert found.nodes == ("channel.1", "channel.2")
    assert found.data.shape == (5, 2)


def test_degrees_are_welcome_if_one_says_so(tmp_path):
    table = angles(1)
    path = saved(tmp_path / "a.mat", anglebeta=np.rad2deg(table))
    assert load_phase_angles(path, degrees=True).data == pytest.approx(table.T % (2 * math.pi))
    with pytest.raises(
        InputError, match=r"radians, .* from -1[78]\S* to 1[78]\S*: pass degrees=Tr"
    ):
        load_phase_angles(path)
    with pytest.raises(InputError, match=r"look like radians: leave out degrees=True$"):
        load_phase_angles(saved(tmp_path / "b.mat"), degrees=True)
    with pytest.raises(InputError, match=r"^degrees must be True or False, got 'yes'$"):
        load_phase_angles(path, degrees="yes")


def test_a_file_that_is_not_there_or_not_matlab_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"^there is no file .*none.mat; pass the path of a MATLAB"
    ):
        load_phase_angles(tmp_path / "none.mat")
    with pytest.raises(InputError, match=r"^there is no file 7; pass the path of a MATLAB file$"):
        load_phase_angles(7)
    for content in (b"", b"a,b\n1,2\n" * 50, b"\x89PNG" * 100):
        (tmp_path / "other.mat").write_bytes(content)
        with pytest.raises(
            InputError, match=r"^other.mat cannot be read as a MATLAB file \(.*; if it is"
        ):
            load_phase_angles(tmp_path / "other.mat")


@pytest.mark.parametrize("layout", ["cells", "compressed", "hdf5 cells"])
def test_a_file_that_was_cut_short_is_refused(layout, tmp_path):
    path = tmp_path / "a.mat"
    LAYOUTS[layout](path, angles())
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(
        InputError, match=r"a.mat cannot be read as a MATLAB file \(.*copy it or sav"
    ):
        load_phase_angles(path)


def test_a_variable_that_is_not_there_is_named_with_those_that_are(tmp_path):
    path = saved(tmp_path / "a.mat")
    expected = (
        r"^a.mat holds no variable 'beta'; it holds anglebeta \(24 x 840\), subregions "
        r"\(24 x 1\): pass angles=\.\.\. with the name of one$"
    )
    with pytest.raises(InputError, match=expected):
        load_phase_angles(path, angles="beta")
    with pytest.raises(InputError, match=r"no variable 'areas'; .*: pass names=\.\.\. with"):
        load_phase_angles(path, names="areas")
    savemat(path, {})
    with pytest.raises(InputError, match=r"no variable 'anglebeta'; it holds none: pass"):
        load_phase_angles(path)
    saved_hdf5(path, angles(), REGIONS)
    with pytest.raises(InputError, match=r"it holds anglebeta \(24 x 840\), settings \(\), subreg"):
        load_phase_angles(path, angles="beta")
    with pytest.raises(
        InputError, match=r"^settings in .* must be a matrix of numbers, channels x"
    ):
        load_phase_angles(path, angles="settings")


def test_where_a_value_is_missing_is_said(tmp_path):
    table = angles()
    table[6, 9] = table[7, 0] = np.nan
    expected = (
        r"finite angles, got nan at DG.3, trial 1 \(counted from 1\), and 2 such values in all: "
        r"remove these trials or channels and save the file again$"
    )
    with pytest.raises(InputError, match=expected):
        load_phase_angles(saved(tmp_path / "a.mat", anglebeta=table))


TEXT = r"must hold a name for each channel, as a cell array of text or a char matrix \(in MATLAB "


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"anglebeta": angles(shape=(23, 840))}, r"^anglebeta in a.mat must have 24 rows, one "),
        ({"anglebeta": angles(shape=(2, 2))}, r"name in subregions, .* got shape \(2, 2\)$"),
        ({"anglebeta": angles(shape=(2, 24, 3))}, r"channels x trials, got .* shape \(2, 24, 3\)$"),
        ({"anglebeta": np.zeros((24, 0))}, r"matrix of numbers, .* of shape \(24, 0\)$"),
        (
            {"anglebeta": REGIONS},
            r"must be a matrix of numbers, channels x trials, got an array of",
        ),
        ({"anglebeta": angles() * 1j}, r"got complex numbers: save angle\(anglebeta\) instead$"),
        ({"anglebeta": 1000 * angles()}, r"save mod\(anglebeta, 2 \* pi\) if they are unwrapped"),
        ({"subregions": np.arange(24)}, TEXT),
        ({"subregions": cells([*REGIONS[:-1], ""])}, TEXT),
        ({"subregions": cells([*REGIONS[:-1], 3.0])}, TEXT + r"subregions = cellstr\(subregions\)"),
        ({"subregions": np.empty((0, 0), dtype=object)}, TEXT),
    ],
)
def test_other_layouts_are_refused(variables, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_phase_angles(saved(tmp_path / "a.mat", **variables))
