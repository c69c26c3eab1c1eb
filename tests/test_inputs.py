"""What a user can get wrong at the front door, and the one sentence that comes back."""

import math
import re
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

import ncbayes as ncb
from ncbayes import models, noise, priors
from ncbayes.base import NoiseSet, Precision
from ncbayes.contrast import contrast, model_name
from ncbayes.spaces import Binary, Box, Reals, Torus, shown

X = np.random.default_rng(0).normal(size=(20, 1))
ANGLES = np.random.default_rng(0).vonmises(1.0, 1.0, size=(20, 1))
GAUSSIAN = models.Gaussian(1)


def fit(model=GAUSSIAN, data=X, **options):
    """The shortest fit; its few draws are no reason for a warning here."""
    few = {"draws": 8, "tune": 2, "chains": 1, "cores": 1, "seed": 1, "progress": False}
    few["noise"] = "matched"
    if "noise" not in options or options["noise"] != "auto":
        few["noise_ratio"] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(model, data, **{**few, **options})


@dataclass
class Family:
    """A user's model: statistics are functions of the columns."""

    functions: dict = field(default_factory=lambda: {"x": lambda x: x[:, 0]})
    space: object = field(default_factory=lambda: Reals(1))

    def __repr__(self):
        return "Family()"

    @property
    def groups(self):
        return {"all": list(self.functions)}

    def statistics(self, x):
        return np.column_stack([function(x) for function in self.functions.values()])

    def log_base(self, x):
        return np.zeros(len(x))


@dataclass
class Named(Family):
    """The same with groups of its own, whatever they are."""

    groups: object = None

    def __repr__(self):
        return "Named()"


@dataclass
class Ising:
    """Three spins, their fields and couplings."""

    @property
    def space(self):
        return Binary(3)

    @property
    def groups(self):
        return {"fields": ["a", "b", "c"], "couplings": ["ab", "ac", "bc"]}

    def statistics(self, x):
        return np.column_stack([x, x[:, 0] * x[:, 1], x[:, 0] * x[:, 2], x[:, 1] * x[:, 2]])

    def log_base(self, x):
        return np.zeros(len(x))


class Unboxed:
    """A model on the unit interval."""

    space = Box(0.0, 1.0)
    groups = {"all": ("x",)}  # noqa: RUF012

    def statistics(self, x):
        return x

    def log_base(self, x):
        return np.zeros(len(x))


class WideStatistics(Family):
    def statistics(self, x):
        return np.hstack([x, x])


class NoSpace:
    groups = {"all": ("x",)}  # noqa: RUF012

    def statistics(self, x):
        return x


class Never(Named):
    """A model that is far too large to be evaluated."""

    def statistics(self, x):
        raise AssertionError("statistics were computed before the memory was checked")


class TallNoise:
    """Noise whose densities are a column instead of a row of numbers."""

    def sample(self, size, rng):
        return rng.normal(size=(size, 1))

    def log_density(self, x):
        return norm.logpdf(x)


class FlatNoise(TallNoise):
    def sample(self, size, rng):
        return rng.normal(size=size)


class Zeros(TallNoise):
    """Noise that sits at 0, as a rounded amplitude would."""

    def sample(self, size, rng):
        return np.zeros((size, 1))

    def log_density(self, x):
        return np.zeros(len(x))


@dataclass
class Given:
    """A prior that says what it is told to say."""

    within: object
    shift: object
    between: object = None

    def draw(self, shape, rng):
        return {}

    def gaussian(self, state, shape):
        return Precision(self.within, self.between), self.shift

    def update(self, state, theta, rng):
        return state


def log(x):
    with np.errstate(divide="ignore"):
        return np.log(x[:, 0])


GROUPED = {"a": X, "b": X + 1}
BITS = np.random.default_rng(0).integers(0, 2, (20, 3))
NORMAL = noise.Normal(0.0, 4.0)
LONG = [1] * 10_000

DATA = {
    "columns": (
        lambda: fit(data=np.zeros((9, 2))),
        r"^data must have 1 column \(Gaussian\(dimension=1\)\), got shape \(9, 2\)$",
    ),
    "nan": (lambda: fit(data=[1.0, np.nan, 2.0]), "finite numbers.*row 1 .* column 0: nan: drop"),
    "infinite": (lambda: fit(data=[1.0, 2.0, -np.inf]), "finite numbers.*row 2 .* -inf: drop"),
    "empty list": (lambda: fit(data=[]), r"rows and columns, got empty data, shape \(0,\)"),
    "empty array": (lambda: fit(data=np.empty((0, 1))), r"got empty data, shape \(0, 1\)"),
    "one row": (lambda: fit(data=[1.0]), "at least 2 rows, one for each observation, got 1"),
    "None": (lambda: fit(data=None), "must be an array, a list or a data frame .* got NoneType"),
    "path": (lambda: fit(data="data.csv"), "must be an array, a list or a data frame .* got str"),
    "degrees": (
        lambda: fit(models.VonMises(), np.rad2deg(np.abs(ANGLES))),
        r"angles must be in radians.*pass np.deg2rad\(data\) if they are degrees",
    ),
    "outside the box": (
        lambda: fit(Unboxed(), [0.5, 0.1, 1.5]),
        "lie in the box.*row 2 .*: 1.5, where the bounds are 0 and 1: drop these rows or widen",
    ),
    "negative": (
        lambda: fit(models.Exponential(), [1.0, -2.0, 3.0]),
        "zero or positive, got 1 such value in row 1 .*: -2: drop these rows or use a model",
    ),
    "zero for Gamma": (
        lambda: fit(models.Gamma(), [1.0, 0.0, 3.0, 2.0]),
        r"the statistic 'log\(x\)' of Gamma\(\) is -inf at row 1 of the data \(\[0.0\]\); it must",
    ),
    "zero for log x": (
        lambda: fit(Family({"log x": log}), [1.0, 0.0, 3.0], noise=noise.Gamma(1.0, 1.0)),
        r"the statistic 'log x' of Family\(\) is -inf at row 1 of the data \(\[0.0\]\); it must",
    ),
    "noise at zero for log x": (
        lambda: fit(Family({"log x": log}), [1.0, 2.0, 3.0], noise=Zeros()),
        r"the statistic 'log x' of Family\(\) is -inf at a noise point \(\[0.0\]\); it must be",
    ),
    "not binary": (
        lambda: fit(Ising(), BITS * 2),
        "data must be 0 or 1, got .* the first in row .*: 2: recode the data as 0 and 1",
    ),
    "signs": (lambda: fit(Ising(), BITS * 2 - 1), r"0 or 1, got .*: -1: pass \(data \+ 1\) / 2"),
    "text": (
        lambda: fit(data=["a", "b", "c"]),
        r"must be numbers, got a \(str\) in row 0 .* of column 0: drop this column or turn it",
    ),
    "text in two lines": (lambda: fit(data=["a\nb", "c"]), r"got a b \(str\)"),
    "text in pandas": (
        lambda: fit(data=pd.DataFrame({"name": ["u", "v"]})),
        r"must be numbers, got u \(str\) in row 0 .* of column 'name': drop",
    ),
    "text in polars": (
        lambda: fit(data=pl.DataFrame({"name": ["u", "v"]})),
        r"must be numbers, got u \(str\) in row 0 .* of column 'name': drop",
    ),
    "a long column name": (
        lambda: fit(data=pd.DataFrame({"n" * 9999: ["u", "v"]})),
        r"of column 'nnn+\.\.\.: drop",
    ),
    "no groups": (lambda: fit(data={}), "empty mapping; it must hold at least one group of points"),
    "a bad group": (
        lambda: fit(data={"a": X, "b": np.zeros((9, 2))}),
        r"^in group 'b': data must have 1 column \(.*\), got shape \(9, 2\)$",
    ),
    "a group with a long label": (
        lambda: fit(data={"b" * 9999: [1.0]}),
        r"^in group 'bbb+\.\.\.: data must have at least 2 rows",
    ),
    "groups of one label": (lambda: fit(data={1: X, "1": X}), "same label when written as text"),
    "a constant column": (
        lambda: fit(data=np.ones(9)),
        "^data must vary to match noise to it, got a constant column 0 .* or pass noise=",
    ),
    "a constant group": (
        lambda: fit(data={"a": X, "b": np.ones(9)}),
        "^in group 'b': data must vary to match noise to it",
    ),
}

NOISE = {
    "too narrow": (
        lambda: fit(noise=noise.Uniform(Box(-0.5, 0.5))),
        "the noise Uniform.* has log density -inf at .* of 20 points of the data .*choose a wider",
    ),
    "wrong dimension": (
        lambda: fit(noise=noise.Normal((0, 0), np.eye(2))),
        r"Normal.sample must return 20 points of dimension 1 like the data, got shape \(20, 2\)",
    ),
    "flat sample": (
        lambda: fit(noise=FlatNoise()),
        r"FlatNoise.sample must return 20 points of dimension 1 .* got shape \(20,\)",
    ),
    "wrong shape of density": (
        lambda: fit(noise=TallNoise()),
        r"TallNoise.log_density must return one number a point, shape \(20,\), got shape \(20, 1\)",
    ),
    "class": (
        lambda: fit(noise=noise.Normal),
        r"noise must have sample.*such as ncbayes.noise.Uniform\(space\).* got the class Normal$",
    ),
    "schedule class": (lambda: fit(noise=noise.Pooled), "got the class Pooled$"),
    "string": (
        lambda: fit(noise="normal"),
        """^noise must be "auto" .*, "matched" .*, a distribution, .*, got 'normal'$""",
    ),
    "None": (lambda: fit(noise=None), """^noise must be "auto" .*, "matched" .*, got None$"""),
    "string in a schedule": (
        lambda: fit(noise=noise.Fresh("normal")),
        """^noise must be "auto" .*, "matched" .*, got 'normal'$""",
    ),
    "string in a mapping": (lambda: fit(noise={"all": "normal"}), "sample.* got 'normal'$"),
    "a long list": (lambda: fit(noise=LONG), r"noise must have sample.* got \[1, 1, .*\.\.\.$"),
    "wrong groups": (
        lambda: fit(data=GROUPED, noise={"a": NORMAL, "c": NORMAL}),
        r"^noise must name the groups of the data, \['a', 'b'\], got \['a', 'c'\]$",
    ),
    "missing group": (lambda: fit(data=GROUPED, noise={"a": NORMAL}), r"'b'\], got \['a'\]$"),
    "no group": (lambda: fit(noise={}), r"groups of the data, \['all'\], got \[\]$"),
    "many groups": (lambda: fit(noise=dict.fromkeys(range(9999), NORMAL)), r"got \['0', .*\.\.\.$"),
    "none in the space": (
        lambda: fit(models.Exponential(), [1.0, 2.0, 3.0], noise=noise.Normal(-1e3, 100.0)),
        r"none of the 3 noise points lies where Exponential\(\) has mass.*choose noise on the",
    ),
    "more sets than draws": (
        lambda: fit(draws=4, noise=noise.Pooled(sets=5)),
        r"draws must be at least the number of noise sets \(5\), got 4; raise draws or lower",
    ),
    **{
        f"ratio {shown(value)}": (
            lambda value=value: fit(noise_ratio=value),
            r"^noise_ratio must be a positive number \(noise points for each data point\), got "
            + re.escape(shown(value)),
        )
        for value in (0, -1, math.nan, math.inf, "5", True, np.complex128(1), LONG)
    },
    "ratio too small": (
        lambda: fit(noise_ratio=0.01),
        "noise_ratio=0.01 gives no noise points for 20 rows of data; it must be at least 0.05",
    ),
}

PRIOR = {
    "unknown block": (
        lambda: fit(prior={"variance": priors.Normal(1)}),
        "unknown block 'variance'; allowed are 'linear', 'precision', 'normalizer'$",
    ),
    "no prior": (
        lambda: fit(prior="normal"),
        r"the prior of theta must be one such as ncbayes.priors.Normal\(1\), got 'normal'",
    ),
    "a class": (
        lambda: fit(prior=priors.Normal),
        "the prior of theta must .*, got the class Normal",
    ),
    "None for a block": (
        lambda: fit(prior={"linear": None}),
        "prior of linear must be .* got None",
    ),
    "text for a scale": (lambda: fit(prior=priors.Normal("a")), "must be positive .* got 'a'"),
    "scales for one": (
        lambda: fit(prior=priors.HalfCauchyNormal([1.0, 2.0])),
        r"must be one positive and finite number, got \[1.0, 2.0\]",
    ),
    "a gaussian of the wrong shape": (
        lambda: fit(prior=Given(np.ones((1, 3)), np.zeros((1, 3)))),
        r"prior of theta must return a precision of shape \(1, 2\) .*, got \(1, 3\) and \(1, 3\)",
    ),
    "a negative precision": (
        lambda: fit(prior=Given(np.array([[1.0, -1.0]]), np.zeros((1, 2)))),
        "the prior of theta .* or a negative precision; see ncbayes.testing.check_prior$",
    ),
    "a negative diagonal": (
        lambda: fit(prior=Given(np.diag([1.0, -1.0])[None], np.zeros((1, 2)))),
        "or a negative precision",
    ),
    "a precision of nan": (
        lambda: fit(prior=Given(np.array([[1.0, np.nan]]), np.zeros((1, 2)))),
        "prior",
    ),
    "an infinite precision": (
        lambda: fit(prior=Given(np.array([[1.0, np.inf]]), np.zeros((1, 2)))),
        "^the prior of theta returns a precision or shift that is not finite",
    ),
    "a shift of nan": (
        lambda: fit(prior=Given(np.ones((1, 2)), np.full((1, 2), np.nan))),
        "returns a precision or shift that is not finite",
    ),
    "a coupling of nan": (
        lambda: fit(
            data=GROUPED, prior=Given(np.ones((2, 2)), np.zeros((2, 2)), np.full((1, 2), np.nan))
        ),
        "returns a precision or shift that is not finite",
    ),
    "number for a block": (lambda: fit(prior={"linear": 1.0}), "the prior of linear must be one"),
    **{
        f"scale {value}": (
            lambda value=value: fit(prior=priors.Normal(value)),
            rf"Normal\(scale=...\) must be positive and finite, got {re.escape(str(value))}; to",
        )
        for value in (0, -1.0, math.nan, math.inf, [1.0, 0.0])
    },
    "scale of wrong length": (
        lambda: fit(prior=priors.Normal([1.0, 2.0, 3.0])),
        r"Normal\(scale=...\) must be one number or 2 of them, one for each stat.*got shape \(3,\)",
    ),
    "mean of wrong length": (
        lambda: fit(prior={"linear": priors.Normal(1.0, mean=[1.0, 2.0])}),
        r"Normal\(mean=...\) must be one number or 1 of them, .* got shape \(2,\)",
    ),
}

SETTINGS = {
    **{
        f"{name} {shown(value)}": (
            lambda name=name, value=value: fit(**{name: value}),
            rf"^{name} must be a whole number, {int(name != 'tune')} or more, got "
            + re.escape(shown(value)),
        )
        for name in ("draws", "tune", "chains", "cores")
        for value in (-1, 1.5, 2.0, True, "10", LONG, *([0] if name != "tune" else []))
    },
    **{
        f"seed {shown(value)}": (
            lambda value=value: fit(seed=value),
            r"seed must be a whole number, 0 or more, or a generator such as np.random.*, got "
            + re.escape(shown(value)),
        )
        for value in (-1, 1.5, True, "1", [1, 2])
    },
    "old random numbers": (lambda: fit(seed=np.random.RandomState(1)), "seed must .* RandomState"),
    "engine": (
        lambda: fit(engine="hmc"),
        r"engine must be one of 'auto', .*'gibbs'.* or an engine such as .*Gibbs\(\), got 'hmc'",
    ),
    "engine class": (lambda: fit(engine=ncb.engines.Gibbs), "engine must .* got the class Gibbs$"),
    "engine None": (lambda: fit(engine=None), "engine must be one of .* got None$"),
    "progress": (lambda: fit(progress="yes"), "progress must be None, False or a function .*'yes'"),
    "checkpoint": (lambda: fit(checkpoint=3), "checkpoint must be the path of a folder, got 3$"),
    "checkpoint with a zero byte": (
        lambda: fit(checkpoint="a\0b"),
        r"^checkpoint must be a path without zero bytes, got 'a\\x00b'$",
    ),
    "file with a zero byte": (
        lambda: fit().save("a\0b"),
        r"^path must be a name without zero bytes, got 'a\\x00b'$",
    ),
    "file to load with a zero byte": (
        lambda: ncb.load("a\0b"),
        r"^path must be a name without zero bytes, got 'a\\x00b'$",
    ),
    "level 0": (lambda: fit().summary(0), "level must be between 0 and 1, such as 0.9, got 0"),
    "level 1": (lambda: fit().summary(1), "level must be between 0 and 1, such as 0.9, got 1"),
    "level 90": (lambda: fit().summary(90), "level must be between 0 and 1, .* got 90"),
    "level nan": (lambda: fit().summary(math.nan), "level must be between 0 and 1, .* got nan"),
}

MODEL = {
    "class": (
        lambda: fit(models.Gaussian),
        r"model must be an instance, got the class Gaussian; make one, as in Gaussian\(...\)",
    ),
    "string": (
        lambda: fit("gaussian"),
        r"model must have space, groups, .* got 'gaussian', which lacks space, groups, stat",
    ),
    "swapped": (lambda: fit(X, GAUSSIAN), r"got array\(\[\[.*; call fit\(model, data\)$"),
    "half a model": (
        lambda: fit(NoSpace()),
        "got an object of class NoSpace, which lacks space, log_base; call",
    ),
    "space": (
        lambda: fit(Family(space="reals")),
        r"the space of Family\(\) must be one such as ncbayes.spaces.Reals\(2\), got 'reals'",
    ),
    "groups as a list": (
        lambda: fit(Named(groups=["x"])),
        r"groups of Named\(\) must map names of blocks to lists of names .* got \['x'\]$",
    ),
    "names as a string": (lambda: fit(Named(groups={"all": "x"})), r"got \{'all': 'x'\}$"),
    "names as numbers": (lambda: fit(Named(groups={"all": [1]})), r"got \{'all': \[1\]\}$"),
    "no names": (lambda: fit(Named(groups={"all": []})), "no statistics; groups must name at leas"),
    "a name twice": (
        lambda: fit(Named(groups={"one": ["x", "y"], "two": ["y"]})),
        r"Named\(\) names the statistic 'y' 2 times; names must differ",
    ),
    "a name twice among thousands": (
        lambda: fit(Named(groups={"all": [*map(str, range(5000)), "77"]})),
        "names the statistic '77' 2 times",
    ),
    **{
        f"a block called {block}": (
            lambda block=block: fit(Named(groups={block: ["x"]})),
            rf"^Named\(\) has a block called {re.escape(shown(block))}; a block's name is text "
            r"without '.' and '/', and not 'normalizer'; call it something else$",
        )
        for block in ("a.b", "a/b", "normalizer", 1)
    },
    "a statistic called log_z": (
        lambda: fit(Named(groups={"all": ["log_z"]})),
        r"^Named\(\) has a statistic called 'log_z', the name of the log normalizing constant; ca",
    ),
    "shape of statistics": (
        lambda: fit(WideStatistics()),
        r"Family\(\).statistics must return shape \(40, 1\) \(one row a point, .*\), got \(40, 2\)",
    ),
    "too large": (
        lambda: fit(
            Never(groups={"all": [*map(str, range(100_000))]}), np.zeros((200_000, 1)), noise=NORMAL
        ),
        r"^this fit needs about 2400 GB of memory and [\d.]+ GB are available; lower noise_ratio, ",
    ),
    **{
        f"far too large by {ratio}": (
            lambda ratio=ratio: fit(noise_ratio=ratio),
            r"^this fit needs about [\d.]+e\+\d+ GB of memory and [\d.]+ GB are available",
        )
        for ratio in (1e300, 1e308)
    },
}


TABLES = {"data": DATA, "noise": NOISE, "prior": PRIOR, "settings": SETTINGS, "model": MODEL}
CASES = [
    pytest.param(call, message, id=f"{table}: {name}")
    for table, cases in TABLES.items()
    for name, (call, message) in cases.items()
]


@pytest.mark.parametrize(
    ("within", "shift", "by_block"),
    [
        (np.ones(2), np.zeros((1, 2)), False),
        (np.ones((1, 2)), np.zeros(2), False),
        (np.ones(1), np.zeros((1, 1)), True),
        (np.ones((1, 2)), np.zeros((1, 2)), True),
    ],
)
def test_a_prior_s_gaussian_of_the_wrong_shape_is_refused_in_a_sentence(within, shift, by_block):
    prior = Given(within, shift)
    with pytest.raises(ncb.InputError, match="must return a precision"):
        fit(prior={"linear": prior} if by_block else prior)


def assert_is_one_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert 20 < len(text) < 400
    assert "Traceback" not in text
    assert "ndarray" not in text
    assert "object at 0x" not in text


@pytest.mark.parametrize(("call", "message"), CASES)
def test_what_is_wrong_is_said_in_one_sentence(call, message):
    with pytest.raises(ncb.InputError, match=message) as raised:
        call()
    assert_is_one_sentence(raised.value)


@pytest.mark.parametrize("name", ["README", "run.json"])
def test_checkpoints_do_not_take_a_folder_with_other_files(tmp_path, name):
    (tmp_path / name).write_text("[1, 2]")
    with pytest.raises(ncb.InputError, match="is in use for something else"):
        fit(checkpoint=tmp_path)


def test_a_kill_during_the_first_write_does_not_spoil_the_folder(tmp_path):
    (tmp_path / ".writing-abc").write_text("{")
    assert fit(checkpoint=tmp_path).complete


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_checkpoints_do_not_take_what_is_not_theirs(tmp_path, kind):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(
        ncb.InputError, match=r"is in use for something else; name a new or empty folder$"
    ) as raised:
        fit(checkpoint=path if kind == "file" else tmp_path)
    assert str(path if kind == "file" else tmp_path) in str(raised.value)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_checkpoints_that_cannot_be_written_say_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ncb.InputError, match="can't be written: Not a directory"):
        fit(checkpoint=tmp_path / "file" / "run")


TABLE = np.random.default_rng(1).integers(-5, 6, (20, 2)).astype(float)


@pytest.mark.parametrize(
    "data",
    [
        TABLE.tolist(),
        TABLE.astype(int),
        TABLE.astype(np.float32),
        np.asfortranarray(TABLE),
        pd.DataFrame(TABLE, columns=["name", "columns"]),
        pd.DataFrame(TABLE, index=range(20, 0, -1)).astype("Int64"),
        pl.DataFrame(TABLE, schema=["a", "b"]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_any_table_gives_the_fit_of_the_float_array(data):
    one, other = fit(models.Gaussian(2), TABLE), fit(models.Gaussian(2), data)
    assert np.array_equal(one.theta, other.theta)
    assert np.array_equal(one.log_z, other.log_z)


@pytest.mark.parametrize(
    "data", [X[:, 0], X[:, 0].tolist(), pd.Series(X[:, 0], name="x"), pl.Series(X[:, 0])]
)
def test_one_column_may_be_a_flat_list(data):
    assert np.array_equal(fit().theta, fit(data=data).theta)


def test_the_data_are_not_written():
    data, before = X.copy(), X.copy()
    fit(data=data)
    assert np.array_equal(data, before)


class Writes(Family):
    """A model that centres its points where they lie."""

    def statistics(self, x):
        x -= x.mean()
        return x


class WritesBase(Family):
    def log_base(self, x):
        x[:] = 0.0
        return np.zeros(len(x))


@pytest.mark.parametrize("model", [Writes(), WritesBase()], ids=lambda model: type(model).__name__)
def test_a_model_that_writes_into_its_points_fails(model):
    data = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        fit(model, data)
    assert np.array_equal(data, X)


def test_groups_may_be_tables_of_different_kinds():
    posterior = fit(data={1: X.tolist(), "two": pd.DataFrame(X)})
    assert posterior.theta["group"].values.tolist() == ["1", "two"]


def test_noise_may_be_named_by_labels_that_are_not_text():
    assert fit(data={1: X, 2: X}, noise={2: NORMAL, 1: NORMAL}).complete


def test_settings_may_be_numpy_numbers():
    one = fit(draws=np.int64(8), noise_ratio=np.float32(2), seed=np.uint32(1))
    assert np.array_equal(one.theta, fit(noise_ratio=2).theta)


def test_generators_are_seeds():
    one, other = (fit(seed=np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(one.theta, other.theta)
    assert not np.array_equal(one.theta, fit(seed=5).theta)


def test_more_statistics_than_points_is_the_priors_job(seed):
    functions = {f"cos {k}": lambda x, k=k: np.cos(k * x[:, 0]) for k in range(1, 61)}
    posterior = fit(Family(functions, Torus(1)), ANGLES, prior=priors.Normal(1.0), seed=seed)
    assert posterior.theta.shape == (1, 8, 1, 60)
    assert np.isfinite(posterior.theta).all()


def test_noise_outside_the_space_counts_but_has_no_row():
    """The log likelihood of all labels, points without mass included, written out."""
    rng = np.random.default_rng(3)
    data, points = rng.exponential(size=(30, 1)), rng.normal(size=(50, 1))
    q = noise.Normal(0.0, 1.0)
    made = contrast(
        models.Exponential(), data, NoiseSet(points, q.log_density(points), q.log_density(data))
    )
    assert 0 < (points >= 0).sum() < 50
    assert made.design.shape == (30 + (points >= 0).sum(), 2)
    rate, c = 1.3, 0.2
    pooled = np.concatenate([data, points])[:, 0]
    model = np.where(pooled >= 0, np.exp(-rate * pooled + c), 0.0)
    of_data, of_noise = 30 * model, 50 * norm.pdf(pooled)
    expected = np.log((of_data / (of_data + of_noise))[:30]).sum()
    expected += np.log((of_noise / (of_data + of_noise))[30:]).sum()
    found = made.log_likelihood(made.log_odds(np.array([rate, c])))
    assert found == pytest.approx(expected, rel=1e-12)
    dropped = made.log_odds(np.array([rate, c])) + np.log(50 / (points >= 0).sum())
    assert abs(made.log_likelihood(dropped) - expected) > 0.1


def test_fits_take_noise_partly_outside_the_space():
    data = np.random.default_rng(3).exponential(size=(30, 1))
    posterior = fit(models.Exponential(), data, noise=noise.Normal(0.0, 4.0))
    assert (posterior.data["noise"]["points"] < 0).any()
    assert posterior.complete


@dataclass
class Verbose(Family):
    text: str = ""

    def __repr__(self):
        return self.text


def test_models_are_named_briefly():
    assert model_name(Verbose(text="Verbose(1)")) == "Verbose(1)"
    assert model_name(Verbose(text="v" * 10_000)) == "Verbose"
    assert model_name(NoSpace()) == "NoSpace"
    with pytest.raises(ncb.InputError, match=r"must have 1 column \(Verbose\), got") as raised:
        fit(Verbose(text="v" * 10_000), np.zeros((9, 2)))
    assert_is_one_sentence(raised.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        ("a" * 10_000, "'" + "a" * 56 + "..."),
        (np.zeros((2, 1)), "array([[0.], [0.]])"),
        (NoSpace, "the class NoSpace"),
        (NoSpace(), "an object of class NoSpace"),
    ],
)
def test_values_are_shown_on_one_short_line(value, text):
    assert shown(value) == text
