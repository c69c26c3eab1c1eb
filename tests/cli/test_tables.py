"""Files as tables, and the one sentence for each that is none."""

import builtins

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from ncbayes import InputError
from ncbayes.cli import tables

TABLE = pd.DataFrame({"a": [0.5, 1.5, 2.5, 3.5], "b": [1.0, 2.0, 3.0, 4.0]})


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n0.5,1\n1.5,2\n2.5,3\n3.5,4\n"),
        ("t.csv", "\ufeffa,b\n0.5,1\n1.5,2\n2.5,3\n3.5,4\n"),
        ("t.csv", "a; b\n0.5; 1\n1.5; 2\n2.5; 3\n3.5; 4\n"),
        ("t.CSV", '"a","b"\n0.5,1\n1.5,2\n2.5,3\n3.5,4'),
        ("t.tsv", "a\tb\n0.5\t1\n1.5\t2\n2.5\t3\n3.5\t4\n"),
        ("t.txt", "a\tb\n0.5\t1\n1.5\t2\n2.5\t3\n3.5\t4\n"),
    ],
)
def test_text_is_read_whatever_its_separator(tmp_path, name, text):
    frame = tables.read(written(tmp_path, name, text))
    pd.testing.assert_frame_equal(frame, TABLE, check_dtype=False)


def test_columns_without_names_get_them(tmp_path):
    frame = tables.read(written(tmp_path, "t.csv", "0.5,1\n1.5,2\n2.5,3\n3.5,4\n"))
    assert list(frame.columns) == ["x1", "x2"]
    assert frame["x1"].tolist() == TABLE["a"].tolist()


def test_numpy_files_are_read(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, TABLE.to_numpy())
    assert np.array_equal(tables.read(path).to_numpy(), TABLE.to_numpy())
    np.save(path, np.arange(3))
    assert tables.read(path)["x1"].tolist() == [0, 1, 2]


def test_parquet_files_are_read(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    TABLE.to_parquet(path)
    pd.testing.assert_frame_equal(tables.read(path), TABLE)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = written(tmp_path, "t.parquet", "PAR1")

    def none(*arguments, **options):
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", none)
    with pytest.raises(InputError, match=r"run pip install 'ncbayes\[files\]'$"):
        tables.read(path)


def test_matlab_matrices_are_turned_so_that_the_longer_side_is_the_rows(tmp_path):
    path, matrix = tmp_path / "t.mat", TABLE.to_numpy()
    savemat(path, {"phase": matrix.T, "rate": 500.0})
    assert np.array_equal(tables.read(path).to_numpy(), matrix)
    with h5py.File(path, "w") as file:
        file["phase"] = matrix  # MATLAB's axes are the other way round
    assert np.array_equal(tables.read(path, "phase").to_numpy(), matrix)


@pytest.mark.parametrize("factor", [1.0, 60.0])
def test_matlab_names_become_those_of_the_columns(tmp_path, factor):
    path, matrix = tmp_path / "t.mat", factor * TABLE.to_numpy()
    regions = np.array(["CA3", "CA3", "DG", "CA1"], dtype=object)
    savemat(path, {"phase": matrix, "regions": regions})
    frame = tables.read(path, "phase", "regions")
    assert list(frame.columns) == ["CA3.1", "CA3.2", "DG.1", "CA1.1"]
    assert np.allclose(frame.to_numpy(), matrix.T)
    square = factor * np.arange(4.0).reshape(2, 2)
    savemat(path, {"phase": square, "regions": regions[:2]})
    assert np.allclose(tables.read(path, "phase", "regions").to_numpy(), square.T)


def bad_files(folder):
    savemat(folder / "two.mat", {"one": np.ones((3, 2)), "two": np.ones((4, 2))})
    np.save(folder / "text.npy", np.array(["a", "b"]))
    np.save(folder / "cube.npy", np.ones((2, 2, 2)))
    (folder / "pickled.npy").write_bytes(b"\x80\x04 not numpy")
    (folder / "junk.csv").write_bytes(bytes(range(256)) * 10)
    (folder / "wide.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    (folder / "late.csv").write_bytes(b"a,b\n" + b"1,2\n" * 20_000 + b"\xff\xfe,1\n")
    (folder / "junk.mat").write_bytes(b"\0" * 300)
    (folder / "junk.parquet").write_bytes(b"\0" * 300)
    (folder / "empty.csv").write_text("")
    (folder / "names.csv").write_text("a,b\n")
    (folder / "twice.csv").write_text("a,a \n1,2\n")
    (folder / "same.csv").write_text("a,a\n1,2\n")
    (folder / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (folder / "long.csv").write_text("a,b\n1,2,3\n1,2,3\n")
    (folder / "table.xlsx").write_text("")
    (folder / "folder.csv").mkdir()
    (folder / "good.csv").write_text("a,b\n1,2\n")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("none.csv", {}, r"none.csv' does not exist; pass the name of a file of data$"),
        ("folder.csv", {}, r"folder.csv' is a folder; pass the name of a file of data$"),
        ("table.xlsx", {}, r"^'table.xlsx' must be a file of one of the kinds .csv, .tsv, .txt, "),
        ("empty.csv", {}, r"^empty.csv is empty; it must hold a table of data$"),
        ("names.csv", {}, r"^names.csv has names of columns but no rows$"),
        ("twice.csv", {}, r"^twice.csv has two columns called 'a'; names must differ$"),
        ("same.csv", {}, r"^same.csv has two columns called 'a'; names must differ$"),
        ("ragged.csv", {}, r"^ragged.csv cannot be read as a table \(Expected 2 fields in line 3"),
        ("long.csv", {}, r"^long.csv cannot be read as a table \(Length of header"),
        ("junk.csv", {}, r"^junk.csv is not text; save the table as CSV in UTF-8$"),
        ("wide.csv", {}, r"^wide.csv is not text; save the table as CSV in UTF-8$"),
        ("late.csv", {}, r"^late.csv cannot be read as a table \('utf-8"),
        ("text.npy", {}, r"^text.npy must hold a matrix of real numbers, one row for each "),
        ("cube.npy", {}, r"got an array of float64 of shape \(2, 2, 2\)$"),
        ("pickled.npy", {}, r"^pickled.npy is not an NPY file of numbers; write it by np.save"),
        ("junk.mat", {}, r"^junk.mat cannot be read as a MATLAB file; save it in MATLAB again$"),
        ("junk.parquet", {}, r"^junk.parquet (cannot be read as a Parquet|is a Parquet) file"),
        ("two.mat", {}, r"^two.mat holds the matrices one \(3 x 2\), two \(4 x 2\); say which is"),
        ("two.mat", {"variable": "tow"}, r"holds no matrix 'tow' \(did you mean 'two'\?\); it ho"),
        ("two.mat", {"variable": "one", "names": "x"}, r"^two.mat holds no variable 'x'; it holds"),
        ("good.csv", {"variable": "one"}, r"^only a MATLAB file has variables, and good.csv is no"),
    ],
)
def test_files_that_cannot_be_read_get_one_sentence(tmp_path, name, options, message):
    bad_files(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        tables.read(tmp_path / name, **options)
    assert "\n" not in str(caught.value)


def test_a_file_larger_than_memory_is_not_opened(tmp_path, monkeypatch):
    path = written(tmp_path, "t.csv", "a,b\n1,2\n")
    monkeypatch.setattr(tables, "available_bytes", lambda: 60.0)
    monkeypatch.setattr(builtins, "open", None)
    with pytest.raises(InputError, match=r"^t.csv has 8e-09 GB, and reading it may take 6.4e-08 "):
        tables.read(path)


def test_a_missing_column_is_named_with_the_closest():
    with pytest.raises(
        InputError, match=r"^t.csv has no column 'A1' \(did you mean 'a'\?\); it has a, b$"
    ):
        tables.column(TABLE.rename(columns={"b": "b"}), "A1", "t.csv")
    many = pd.DataFrame(np.ones((2, 20)), columns=[f"channel{k}" for k in range(20)])
    with pytest.raises(InputError, match=r"channel11 and 8 more$"):
        tables.column(many, "x", "t.csv")


def test_rows_are_chosen_by_value():
    frame = TABLE.assign(kind=["GUN", "KNIFE", "GUN ", "GUN"], code=[1, 2, 1, 2])
    kept = tables.chosen_rows(frame, {"kind": "GUN", "code": "1"}, "t.csv")
    assert kept.index.tolist() == [0, 2]
    with pytest.raises(InputError, match=r"^no row of t.csv has kind = 'gun'; there is GUN, KNIFE"):
        tables.chosen_rows(frame, {"kind": "gun"}, "t.csv")


def test_gaps_are_named_or_left_out():
    frame = TABLE.assign(b=[1.0, np.nan, np.nan, 4.0])
    assert tables.complete_rows(frame, ["a"], "error", "t.csv") is frame
    with pytest.raises(
        InputError, match=r"^column 'b' of t.csv has no value in row 2 \(counted from 1, .* 2 rows"
    ):
        tables.complete_rows(frame, ["a", "b"], "error", "t.csv")
    assert tables.complete_rows(frame, ["a", "b"], "drop", "t.csv").index.tolist() == [0, 3]
    with pytest.raises(InputError, match=r"^t.csv has no row with values in all of a, b$"):
        tables.complete_rows(frame.iloc[1:3], ["a", "b"], "drop", "t.csv")


def test_text_in_numbers_is_named_by_row_and_column():
    assert np.array_equal(tables.numbers(TABLE, ["b"], "t.csv"), TABLE[["b"]].to_numpy())
    frame = TABLE.assign(b=["1", "2", "three", "4"])
    with pytest.raises(
        InputError, match=r"^column 'b' of t.csv must hold numbers, got 'three' in row 3 \(counted"
    ):
        tables.numbers(frame, ["a", "b"], "t.csv")
    with pytest.raises(InputError, match=r"must hold numbers, got .*inf.* in row 1 "):
        tables.numbers(TABLE.assign(b=[np.inf, 1, 2, 3]), ["b"], "t.csv")


def test_units_are_detected_by_the_largest_angle_and_said():
    small, large = np.array([[-3.0, 6.2]]), np.array([[-90.0, 350.0]])
    values, units, why = tables.radians(small, None, "t.csv")
    assert units == "radians"
    assert np.array_equal(values, small)
    assert why.startswith("angles are taken as radians: values from -3 to 6.2; --degrees or")
    values, units, why = tables.radians(large, None, "t.csv")
    assert units == "degrees"
    assert np.allclose(values, np.deg2rad([[270.0, 350.0]]))
    assert why.startswith("angles are taken as degrees: values from -90 to 350")
    values, units, why = tables.radians(small, "degrees", "t.csv")
    assert np.allclose(values, np.deg2rad([[357.0, 6.2]]))
    assert why == "angles are in degrees, as told: values from -3 to 6.2"


def test_values_that_are_no_angles_are_refused():
    with pytest.raises(InputError, match=r"^t.csv has values from 0 to 400, which are neither ra"):
        tables.radians(np.array([[0.0, 400.0]]), None, "t.csv")
    with pytest.raises(InputError, match=r"^angles in radians must lie between -2 pi and 2 pi"):
        tables.radians(np.array([[0.0, 7.0]]), "radians", "t.csv")


@pytest.mark.parametrize(
    "text", ["0.5,\n1.5,2\n", "0.5,nan\n1.5,2\n", "NA,1\n1.5,2\n", "0.5;-inf\n1.5;2\n"]
)
def test_a_first_row_of_numbers_and_gaps_is_data(tmp_path, text):
    frame = tables.read(written(tmp_path, "t.csv", text))
    assert list(frame.columns) == ["x1", "x2"]
    assert frame.shape == (2, 2)
    assert frame["x2"].iloc[1] == 2


@pytest.mark.parametrize("header", ["nan,NA", ",0,1", "a,1"])
def test_a_first_row_that_is_not_data_is_names(tmp_path, header):
    rows = "1,2,3\n" if header.count(",") == 2 else "1,2\n"
    assert len(tables.read(written(tmp_path, "t.csv", f"{header}\n{rows}"))) == 1


def test_separators_in_quotes_separate_nothing(tmp_path):
    text = '"a, cm, mm";"b, s, ms"\n1;2\n'
    assert list(tables.read(written(tmp_path, "t.csv", text))) == ["a, cm, mm", "b, s, ms"]


def test_columns_without_a_name_are_refused_unless_they_are_empty(tmp_path):
    def others(text):
        return tables.other_columns(tables.read(written(tmp_path, "t.csv", text)), ["g"], "t.csv")

    assert others("a,g,b,\n1,2,3,\n4,5,6,\n") == ["a", "b"]
    assert list(tables.read(written(tmp_path, "t.csv", "1,2,\n3,4,\n"))) == ["x1", "x2"]
    for text in ("a,,g\n1,2,3\n", "a,Unnamed: 0,g\n1,2,3\n"):
        with pytest.raises(
            InputError, match=r"^column 2 of t.csv has no name: drop it, or choose columns by --col"
        ):
            others(text)
    with pytest.raises(InputError, match=r"^column 1 of t.csv has no name"):
        others(",0,1\n0,5,6\n")
    with pytest.raises(InputError, match=r"^t.csv has no columns besides 'g', and the model needs"):
        others("g\n1\n")


def test_labels_stay_as_they_are_written(tmp_path):
    path = written(tmp_path, "t.csv", "g,n,a\n01,1,NA\n 02 ,NA,2\nNA,3,3\n,4,4\n")
    assert tables.read(path)["g"].dropna().tolist() == [1, 2]
    frame = tables.read(path, labels=["g", "n"])
    # Among numbers these words are gaps, among words they are labels.
    assert frame["g"].isna().tolist() == [False, False, True, True]
    assert tables.as_labels(frame["g"]).dropna().tolist() == ["01", "02"]
    assert frame["n"].isna().tolist() == [False, True, False, False]
    assert frame["a"].isna().tolist() == [True, False, False, False]
    path = written(tmp_path, "w.csv", "g\nNone\nNA\nnull\nx\nnan\n")
    kept = tables.as_labels(tables.read(path, labels=["g"])["g"])
    assert kept.dropna().tolist() == ["None", "NA", "null", "x"]
    assert tables.as_labels(pd.Series([1.0, np.nan])).dropna().tolist() == ["1"]


@pytest.mark.parametrize("value", ["1", "1.0", "01", 1, 1.0])
def test_numbers_are_chosen_as_numbers_also_where_there_are_gaps(value):
    frame = TABLE.assign(s=[1, np.nan, 2, 1])
    assert tables.chosen_rows(frame, {"s": value}, "t.csv").index.tolist() == [0, 3]
    with pytest.raises(InputError, match=r"^no row of t.csv has s = 3; there is 1, 2$"):
        tables.chosen_rows(frame, {"s": 3}, "t.csv")


def test_a_list_of_values_means_any_of_them():
    frame = TABLE.assign(kind=["x", "y", "z", "x"])
    assert tables.chosen_rows(frame, {"kind": ["x", "y"]}, "t.csv").index.tolist() == [0, 1, 3]
    with pytest.raises(InputError, match=r"^no row of t.csv has kind = 'w'; there is x, y, z$"):
        tables.chosen_rows(frame, {"kind": ["x", "w"]}, "t.csv")


def test_rows_keep_the_numbers_of_the_file():
    frame = TABLE.assign(kind=["x", "y", "y", "y"], b=["1", "2", "three", "4"])
    kept = tables.chosen_rows(frame, {"kind": "y"}, "t.csv")
    with pytest.raises(InputError, match=r"got 'three' in row 3 "):
        tables.numbers(kept, ["b"], "t.csv")
