"""Named columns meet named nodes: put in their order, or refused, wherever a table comes in."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import ncbayes as ncb
from ncbayes.inputs import checked_data, fitted_columns
from ncbayes.spaces import Graphs, Reals, as_points

NODES = ["A", "B", "C"]
RNG = np.random.default_rng(1)
ANGLES = pd.DataFrame(RNG.uniform(0, 6, (30, 3)), columns=NODES)
TURNED = ANGLES[["C", "A", "B"]]
BITS = (ANGLES < 3).astype(int)
MODELS = {
    "torus": (ncb.models.TorusGraph(NODES), ANGLES),
    "ising": (ncb.models.Ising(NODES), BITS),
    "truncated": (ncb.models.TruncatedGaussian(NODES), ANGLES),
    "counts": (ncb.models.ConwayMaxwell(NODES, most=4), BITS),
}
TABLES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame(dict(frame)),
    "arrow": lambda frame: pa.table(frame),
    "xarray": lambda frame: xr.DataArray(
        frame.to_numpy(), dims=("row", "node"), coords={"node": list(frame.columns)}
    ),
    "records": lambda frame: frame.to_records(index=False),
}
SHORT = {"noise": "matched", "draws": 10, "tune": 5, "chains": 1, "seed": 1, "progress": False}
pytestmark = pytest.mark.filterwarnings("ignore::ncbayes.FitWarning")


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("table", TABLES)
def test_columns_are_put_in_the_order_of_the_nodes(kind, table):
    model, frame = MODELS[kind]
    made = TABLES[table](frame[["C", "A", "B"]])
    np.testing.assert_array_equal(
        checked_data(model, made)["all"], checked_data(model, frame.to_numpy())["all"]
    )
    assert fitted_columns(model, made) == tuple(NODES)


def test_an_edge_has_the_name_of_its_columns(seed):
    """The issue's example: A and B are coupled, C is not, and C stands first."""
    rng = np.random.default_rng(seed)
    a, c = rng.uniform(0, 2 * np.pi, (2, 200))
    frame = pd.DataFrame({"C": c, "A": a, "B": (a + rng.vonmises(0, 6, 200)) % (2 * np.pi)})
    posterior = ncb.fit(MODELS["torus"][0], frame, **{**SHORT, "draws": 60, "tune": 40})
    edges = ncb.graphs.edges(posterior).sort_values("strength")
    assert edges[["node1", "node2"]].iloc[-1].tolist() == ["A", "B"]
    assert posterior.data["observed_data"]["axis"].to_numpy().tolist() == NODES


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (ANGLES.rename(columns={"C": "D"}), "there is no column 'C' and 'D' is no node; rename"),
        (ANGLES.assign(D=1.0, E=2.0), r"which are 'A', 'B', 'C': 'D', 'E' are no nodes; .*choose"),
        (ANGLES[["B", "A"]], "there is no column 'C'; rename the columns or choose"),
        (ANGLES[["A", "B", "B"]], "the name 'B' stands over 2 of them; rename or drop all but"),
        (pd.concat({"u": ANGLES}, axis=1), r"names of several levels, such as \('u', 'A'\); give"),
        (ANGLES.rename(columns={"C": 3}), "there is no column 'C' and '3' is no node"),
        (ANGLES["A"].rename("D"), "there is no column 'A', 'B', 'C' and 'D' is no node"),
    ],
)
def test_columns_that_are_not_the_nodes_are_refused(frame, message):
    model = ncb.models.TorusGraph(NODES)
    start = (
        r"^columns of data are matched by name with the nodes of TorusGraph\(\['A', 'B', 'C'\]\),"
    )
    with pytest.raises(ncb.InputError, match=start) as raised:
        ncb.fit(model, frame, **SHORT)
    assert re.search(message, str(raised.value))
    with pytest.raises(ncb.InputError, match=r"^in group 'b': columns of data are matched by name"):
        ncb.fit(model, {"a": ANGLES, "b": frame}, **SHORT)


@pytest.mark.parametrize(
    "table",
    [
        TURNED.to_numpy(),
        pd.DataFrame(TURNED.to_numpy()),
        pd.DataFrame(TURNED.to_numpy(), columns=["x1", "x2", "x3"]),
        xr.DataArray(TURNED.to_numpy(), dims=("row", "node")),
    ],
    ids=["array", "counted", "numbered", "no coordinate"],
)
def test_columns_without_names_are_taken_as_they_stand(table):
    found = checked_data(ncb.models.TorusGraph(NODES), table)["all"]
    np.testing.assert_array_equal(found, TURNED.to_numpy())


def test_nodes_called_by_numbers_are_found_under_numbers():
    model = ncb.models.TorusGraph(["7", "8", "9"])
    frame = TURNED.set_axis([9, 7, 8], axis=1)
    np.testing.assert_array_equal(checked_data(model, frame)["all"], ANGLES.to_numpy())


@pytest.mark.parametrize("model", [ncb.models.TorusGraph(3), ncb.models.Gaussian(3)], ids=repr)
def test_names_mean_nothing_to_a_model_without_names(model):
    """Unless there are several tables: the first one's names then order the others."""
    for frame in (
        TURNED,
        ANGLES[["A", "B"]].assign(D=ANGLES["C"]),
        ANGLES.set_axis(list("AAB"), axis=1),
    ):
        np.testing.assert_array_equal(checked_data(model, frame)["all"], frame.to_numpy())
    groups = checked_data(model, {"one": TURNED, "two": ANGLES, "three": ANGLES.to_numpy()})
    np.testing.assert_array_equal(groups["two"], TURNED.to_numpy())
    np.testing.assert_array_equal(groups["three"], ANGLES.to_numpy())
    other = ANGLES.set_axis(["left A", "left B", "left C"], axis=1)
    np.testing.assert_array_equal(
        checked_data(model, {"one": TURNED, "two": other})["two"], other.to_numpy()
    )
    with pytest.raises(ncb.InputError, match=r"^in group 'two': the column 'A' stands at another"):
        checked_data(model, {"one": TURNED, "two": ANGLES.rename(columns={"B": "D"})})


def test_numbered_names_are_names_where_the_table_has_them():
    frame = TURNED.set_axis(["x3", "x1", "x2"], axis=1)
    found = checked_data(ncb.models.TorusGraph(3), frame)["all"]
    np.testing.assert_array_equal(found, ANGLES.to_numpy())


def test_the_name_of_a_single_column_is_free():
    groups = {"a": pd.Series([1.0, 2.0], name="left"), "b": pd.Series([1.0, 3.0], name="right")}
    assert checked_data(ncb.models.VonMises(), groups)["b"].tolist() == [[1.0], [3.0]]


@pytest.mark.parametrize(
    "model", [ncb.models.TorusGraph(NODES), ncb.models.TorusGraph(3)], ids=repr
)
def test_tables_that_come_after_the_fit_are_matched_too(model, tmp_path):
    posterior = ncb.fit(model, ANGLES, **SHORT)
    held_out = ncb.scores.log_density_draws(posterior, TURNED[:4])
    np.testing.assert_array_equal(
        held_out, ncb.scores.log_density_draws(posterior, ANGLES[:4].to_numpy())
    )
    checks = [
        ncb.predictive.check(posterior, model, np.mean, draws=2, seed=1, data=data)
        for data in (TURNED, ANGLES.to_numpy())
    ]
    first = [
        ncb.predictive.check(posterior, model, lambda x: x[:, 0].mean(), draws=2, seed=1, data=data)
        for data in (TURNED, ANGLES.to_numpy())
    ]
    for one, other in (checks, first):
        assert one.table["observed"].tolist() == other.table["observed"].tolist()
    stein = [
        ncb.predictive.stein(posterior, model, draws=2, seed=1, data=data).table["observed"]
        for data in (TURNED, ANGLES)
    ]
    assert stein[0].tolist() == stein[1].tolist()
    posterior.save(tmp_path / "fit.nc")
    again = ncb.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        ncb.scores.log_density_draws(again, TURNED[:4], model=model), held_out
    )


def test_a_run_goes_on_with_columns_in_another_order(tmp_path):
    model, options = ncb.models.TorusGraph(NODES), {**SHORT, "checkpoint": tmp_path / "run"}
    first = ncb.fit(model, ANGLES, **options)
    again = ncb.fit(model, TURNED, **options)
    np.testing.assert_array_equal(first.theta, again.theta)


def test_a_dataset_is_no_table():
    dataset = xr.Dataset({"A": ("row", [1.0, 2.0]), "B": ("row", [1.0, 2.0])})
    for ask in (
        lambda: ncb.fit(ncb.models.Gaussian(2), dataset, **SHORT),
        lambda: as_points(dataset, Reals(2), "m"),
    ):
        with pytest.raises(ncb.InputError, match=r"got an xarray Dataset; pass data.to_dataframe"):
            ask()


def test_adjacency_matrices_with_names_are_put_in_the_order_of_the_nodes():
    path = pd.DataFrame([[0, 1, 0], [1, 0, 0], [0, 0, 0]], index=NODES, columns=NODES)
    turned = path.loc[["C", "A", "B"], ["C", "A", "B"]]
    space = Graphs(3, names=tuple(NODES))
    assert space.points([path, turned]).tolist() == [[1, 0, 0], [1, 0, 0]]
    # Names of nodes that are only numbered bind nobody.
    assert Graphs(3).points([turned]).tolist() == [[0, 0, 1]]
    with pytest.raises(ncb.InputError, match="'D' is no node"):
        space.points([path.rename(index={"C": "D"}, columns={"C": "D"})])
    with pytest.raises(
        ncb.InputError, match=r"graph 0 .* both must be its nodes, in the same order"
    ):
        space.points([path.loc[["C", "A", "B"]]])
