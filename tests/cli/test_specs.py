"""SPEC.toml: what it may hold, and what is said of a typo; objects by name."""

import datetime
import tomllib
from pathlib import Path

import numpy as np
import pytest

import ncbayes as ncb
from ncbayes import InputError
from ncbayes.cli import objects, specs

GOOD = '[data]\nfile = "a.csv"\n[model]\nname = "VonMises"\n'


def job(text, folder):
    path = folder / "spec.toml"
    path.write_text(text)
    return specs.read(path)


def test_a_job_survives_being_written_and_read(tmp_path):
    whole = specs.Job(
        tmp_path,
        data={"file": "a b.csv", "columns": ["x", 'é "q"\x7f'], "where": {"k 1": "v"}},
        model={"name": "Ising", "edges": [["a", "b"]], "fields": True},
        noise={"name": "Mixture", "parts": [{"name": "Normal"}], "weights": [1.0]},
        prior={"edge": {"name": "Normal", "scale": 1e-30}, "field": {"name": "Horseshoe"}},
        engine={"name": "gibbs", "since": datetime.date(2022, 1, 1), "empty": {}},
        fit={"draws": 10, "noise_ratio": 2.5},
        digests={"a b.csv": "00"},
    )
    again = job(whole.text(), tmp_path)
    assert again == specs.dataclasses.replace(whole, version=ncb.__version__)
    density = specs.Job(tmp_path, {"file": "e.csv", "columns": ["x"], "time": "t"}, density={})
    assert job(density.text(), tmp_path).density == {}


def test_a_word_is_short_for_a_table_with_a_name(tmp_path):
    found = job('noise = "matched"\nengine = "gibbs"\n' + GOOD, tmp_path)
    assert (found.noise, found.engine) == ({"name": "matched"}, {"name": "gibbs"})


def test_file_names_follow_when_a_job_moves(tmp_path):
    (tmp_path / "sub").mkdir()
    start = specs.Job(
        tmp_path,
        data={"file": "a.csv"},
        model={"name": "own.py:Model", "parts": [{"name": "own.py:Part"}]},
        density={"domain": "city.geojson"},
        digests={"a.csv": "1"},
    )
    moved = start.moved(tmp_path / "sub")
    assert moved.data["file"] == "../a.csv"
    assert moved.digests == {"../a.csv": "1"}
    assert moved.density["domain"] == "../city.geojson"
    assert moved.model == {"name": "../own.py:Model", "parts": [{"name": "../own.py:Part"}]}
    assert moved.path("../a.csv").resolve() == (tmp_path / "a.csv").resolve()
    assert start.files() == ["a.csv", "city.geojson", "own.py"]


def test_a_changed_file_is_noticed(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    found = job(GOOD, tmp_path).with_digests()
    found.checked_files()
    (tmp_path / "a.csv").write_text("x\n2\n")
    with pytest.raises(InputError, match=r"a.csv' has changed since the run, so it can't be repea"):
        found.checked_files()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", r"^spec.toml is not a TOML file: Invalid value \(at"),
        (
            "[dta]\n",
            r"^spec.toml has an unknown key 'dta' \(did you mean 'data'\?\); it may have d",
        ),
        (
            "[fit]\ndrwas = 1\n",
            r"^\[fit\] in spec.toml has an unknown key 'drwas' \(did you mean 'd",
        ),
        ("fit = 3\n", r"^fit in spec.toml must be a table, as in \[fit\], got 3$"),
        (
            '[fit]\ndraws = "10"\n',
            r"^draws of \[fit\] in spec.toml must be a whole number, got '10'",
        ),
        (
            "[fit]\nseed = true\n",
            r"^seed of \[fit\] in spec.toml must be a whole number, got True$",
        ),
        (
            '[fit]\nnoise_ratio = "a"\n',
            r"^noise_ratio of \[fit\] in spec.toml must be a number, got",
        ),
        ("[data]\nfile = 3\n", r"^file of \[data\] in spec.toml must be text, got 3$"),
        (
            "[data]\ncolumns = [1]\n",
            r"^columns of \[data\] in spec.toml must be a list of names, one or more, got \[1\]$",
        ),
        (
            "[data]\nwhere = 1\n",
            r"^where of \[data\] in spec.toml must be a table of col.*, got 1$",
        ),
        (
            "[data]\nwhere = { a = [] }\n",
            r"^where of \[data\] .* or a list of values, got {'a': \[\]}",
        ),
        (
            "[data]\ncolumns = []\n",
            r"^columns of \[data\] .* list of names, one or more, got \[\]$",
        ),
        (
            '[data]\nunits = "grad"\n',
            r"^units of \[data\] in spec.toml must be 'degrees' or 'radia",
        ),
        ("[density]\nday_first = 1\n", r"^day_first of \[density\] in spec.toml must be true or f"),
        (
            '[density]\ncoordinates = "miles"\n',
            r"^coordinates of \[density\] in spec.toml must be 'degrees' or 'plane', got 'miles'",
        ),
        ("[fit]\ndraws = 1\n", r'^spec.toml needs a table \[data\] with file = "...", the data$'),
        ('[data]\nfile = "a"\n', r"^spec.toml needs a table \[model\] with name = "),
        (GOOD + "[density]\n", r"^spec.toml has both \[model\] and \[density\]; keep one of them$"),
        (
            '[data]\nfile = "a"\n[density]\n',
            r"^\[data\] in spec.toml must name the columns of a de",
        ),
    ],
)
def test_a_spec_with_a_mistake_gets_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        job(text, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_spec_that_is_no_file_or_no_text(tmp_path):
    with pytest.raises(InputError, match=r"^there is no file .*none.toml'; pass the name of a TO"):
        specs.read(tmp_path / "none.toml")
    (tmp_path / "junk.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"^junk.toml is not a TOML file: 'utf-8' codec"):
        specs.read(tmp_path / "junk.toml")


OWN = """
from __future__ import annotations
import dataclasses
import numpy as np
import ncbayes as ncb

@dataclasses.dataclass(frozen=True)
class Wave:
    order: int = 1
    space = ncb.spaces.Torus(1)
    @property
    def groups(self):
        return {"wave": ("cos", "sin")}
    def statistics(self, x):
        return np.column_stack([np.cos(self.order * x), np.sin(self.order * x)])
    def log_base(self, x):
        return np.zeros(len(x))

second = Wave(2)

class Failing:
    def __init__(self):
        raise KeyError("key")
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("x = 1\ny = x / 0\n")
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    return specs.Job(tmp_path, {"file": "a.csv"})


KNOWN = {
    "nodes": lambda: ["a", "b"],
    "dimension": lambda: 2,
    "space": lambda: ncb.spaces.Torus(2),
    "data": lambda: np.random.default_rng(1).normal(size=(20, 2)),
    "points": lambda: np.zeros((20, 2)),
}


def text_table(text):
    return tomllib.loads(text)


@pytest.mark.parametrize(
    ("section", "text", "expected"),
    [
        ("model", 'name = "TorusGraph"', ncb.models.TorusGraph(["a", "b"])),
        (
            "model",
            'name = "torusgraph"\nmarginal = false',
            ncb.models.TorusGraph(["a", "b"], False),
        ),
        ("model", 'name = "Ising"\nnodes = 3', ncb.models.Ising(3)),
        ("model", 'name = "Gaussian"', ncb.models.Gaussian(2)),
        (
            "model",
            'name = "ERGM"\nnodes = 5\nterms = ["edges", { name = "gwesp", decay = 0.5 }]',
            ncb.models.ERGM(5, ["edges", ncb.models.terms.gwesp(0.5)]),
        ),
        ("noise", 'name = "Uniform"', ncb.noise.Uniform(ncb.spaces.Torus(2))),
        ("noise", 'name = "Adaptive"\nalpha = 0.3', ncb.noise.Adaptive(alpha=0.3)),
        ("noise", 'name = "Fresh"', ncb.noise.Fresh()),
        (
            "noise",
            'name = "Pooled"\nsets = 3\n[noise]\nname = "Adaptive"',
            ncb.noise.Pooled(ncb.noise.Adaptive(), sets=3),
        ),
        ("prior", 'name = "Normal"\nscale = 2.0', ncb.priors.Normal(2.0)),
        ("engine", 'name = "gibbs"\nmethod = "cholesky"', ncb.engines.Gibbs("cholesky")),
    ],
)
def test_objects_are_made_by_name(here, section, text, expected):
    made = objects.named(section, text_table(text), here, KNOWN)
    assert type(made) is type(expected)
    assert repr(made) == repr(expected)


def test_noise_that_is_not_told_its_numbers_is_matched_to_the_data(here):
    made = objects.named("noise", {"name": "StudentT", "df": 7.0}, here, KNOWN)
    assert isinstance(made, ncb.noise.StudentT)
    assert made.df == 7.0
    kernels = objects.named("noise", {"name": "KernelDensity.match", "most": 10}, here, KNOWN)
    assert isinstance(kernels, ncb.noise.KernelDensity)


def test_priors_may_be_told_by_block(here):
    table = {"edge": {"name": "Horseshoe"}, "marginal": {"name": "Normal", "scale": 3.0}}
    made = objects.by_label("prior", table, here, KNOWN)
    assert {block: type(each).__name__ for block, each in made.items()} == {
        "edge": "Horseshoe",
        "marginal": "Normal",
    }
    with pytest.raises(InputError, match=r"^\[prior\] needs a name, or tables with one, as in \[p"):
        objects.by_label("prior", {"scale": 3.0}, here, KNOWN)


def test_classes_and_objects_of_the_users_own(here):
    made = objects.named("model", {"name": "own.py:Wave", "order": 3}, here, KNOWN)
    assert made.order == 3
    assert objects.named("model", {"name": "own.py:second"}, here, KNOWN).order == 2
    assert not [name for name in objects.sys.modules if name.startswith("ncbayes_own")]


@pytest.mark.parametrize(
    ("section", "table", "message"),
    [
        ("model", {}, r"^\[model\] needs a name, one of ERGM, ConwayMaxwell, "),
        ("model", {"name": 3}, r"^the name in \[model\] must be text, got 3$"),
        (
            "model",
            {"name": "Torus Graph"},
            r"^there is no model called 'Torus Graph' \(did you mea",
        ),
        ("model", {"name": "os"}, r"^there is no model called 'os'"),
        ("model", {"name": "Ising", "coding": "02"}, r"coding=.*must be .*, got '02'"),
        (
            "model",
            {"name": "Ising", "codng": "01"},
            r"^Ising in \[model\] has no argument 'codng' \(",
        ),
        (
            "model",
            {"name": "VonMises", "k": 1},
            r"^VonMises in \[model\] has no argument 'k'; it ta",
        ),
        (
            "model",
            {"name": "Features"},
            r"^Features in \[model\] needs function; its arguments are",
        ),
        ("model", {"name": "none.py:A"}, r"^there is no file .*none.py', which 'none.py:A' names$"),
        (
            "model",
            {"name": "own.py:Wav"},
            r"^own.py has no 'Wav' \(did you mean 'Wave'\?\); it has ",
        ),
        ("model", {"name": "broken.py:A"}, r"^broken.py can't be run: ZeroDivisionError: .*line 2"),
        (
            "model",
            {"name": "own.py:second", "order": 1},
            r"is an object that is made already, so it",
        ),
        (
            "model",
            {"name": "own.py:Wave", "ordr": 1},
            r"has no argument 'ordr' \(did you mean 'ord",
        ),
        (
            "noise",
            {"name": "Normal", "mean": 0.0},
            r"^Normal.match in \[noise\] has no argument 'me",
        ),
        (
            "noise",
            {"name": "Mixture", "parts": 3, "weights": 4},
            r"^Mixture needs a list of noise, such as .*, got 3$",
        ),
        (
            "prior",
            {"name": "Normal"},
            r"^Normal in \[prior\] needs scale; its arguments are scale, ",
        ),
        (
            "engine",
            {"name": "gibs"},
            r"^there is no engine called 'gibs' \(did you mean 'Gibbs'\?\)",
        ),
        ("model", {"name": "TorusGraph.__init__"}, r"^there is no model called 'TorusGraph.__init"),
        ("model", {"name": "TorusGraph."}, r"^there is no model called 'TorusGraph.'"),
        ("model", {"name": "own.py:Failing"}, r"can't be made of no arguments: KeyError: 'key'$"),
        ("model", {"name": "leaving.py:A"}, r"^leaving.py can't be run: SystemExit: 0 \(line 2\)$"),
    ],
)
def test_objects_that_cannot_be_made_get_one_sentence(here, section, table, message):
    with pytest.raises(InputError, match=message) as caught:
        objects.named(section, table, here, KNOWN)
    assert "\n" not in str(caught.value)


def test_names_in_a_job_are_relative_to_its_folder():
    assert specs.Job(Path("a"), {"file": "b.csv"}).path("b.csv") == Path("a/b.csv")


def test_only_what_a_section_may_have_is_listed(here):
    models, noise = objects._exported("model"), objects._exported("noise")
    assert {"TorusGraph", "Ising"} <= set(models)
    assert not {"DegenerateWarning", "grid_edges", "terms"} & set(models)
    assert {"Adaptive", "Tree", "matched"} <= set(noise)
    grid = {"name": "Ising", "nodes": 4, "edges": {"name": "grid_edges", "rows": 2, "columns": 2}}
    assert len(objects.named("model", grid, here, KNOWN).edges) == 4


def test_a_spec_may_begin_with_the_mark_of_an_editor(tmp_path):
    assert job("\ufeff" + GOOD, tmp_path).model == {"name": "VonMises"}


def test_a_list_of_values_survives_being_written_and_read(tmp_path):
    start = specs.Job(tmp_path, {"file": "a.csv", "where": {"g": ["x", "y"]}}, {"name": "VonMises"})
    assert job(start.text(), tmp_path).data["where"] == {"g": ["x", "y"]}
