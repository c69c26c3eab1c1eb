"""Models, noise, priors and engines by name, from tables of a SPEC.toml.

Names are those that the namespaces of the package export, or "file.py:Name" for the user's own. A
table in a table, or in a list, is an object too: ``prior = { name = "Normal", scale = 1.0 }``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ncbayes.base import InputError, shown
from ncbayes.cli.specs import Job, Table, closest

# Where names of each section are looked up: first in the namespace of the section itself.
NAMESPACES = {"model": "models", "noise": "noise", "prior": "priors", "engine": "engines"}
ELSEWHERE = ("spaces", "models.terms")
# What makes noise or priors without being one: schedules of noise, and functions.
MAKERS = (
    "Adaptive", "Auto", "Fixed", "Fresh", "Pooled", "Tempering", "gaussian_mixture", "margins",
    "matched", "global_scale",
)  # fmt: skip
Known = Mapping[str, Callable[[], Any]]


def named(section: str, table: Table, job: Job, known: Known) -> Any:
    """The object that a table describes.

    ``known`` makes arguments that may be left out: nodes, dimension, space and data.
    """
    if "name" not in table:
        raise InputError(f"[{section}] needs a name, one of {', '.join(_exported(section))}")
    name = table["name"]
    if not isinstance(name, str):
        raise InputError(f"the name in [{section}] must be text, got {shown(name)}")
    arguments = {
        key: _argument(section, value, job, known) for key, value in table.items() if key != "name"
    }
    found = _own(job, name) if ".py:" in name else _listed(section, name)
    if not callable(found) or (".py:" in name and not isinstance(found, type)):
        if arguments:
            raise InputError(
                f"{name} in [{section}] is an object that is made already, so it takes no "
                f"arguments, got {', '.join(arguments)}"
            )
        return found
    return _called(section, name, found, arguments, known)


def _argument(section: str, value: Any, job: Job, known: Known) -> Any:
    if isinstance(value, list):
        return [_argument(section, each, job, known) for each in value]
    if isinstance(value, dict):
        if "name" in value:
            return named(section, value, job, known)
        return {key: _argument(section, each, job, known) for key, each in value.items()}
    return value


def _exported(section: str) -> list[str]:
    """The names that a section may have: no warnings, and no functions that make other things."""
    module = importlib.import_module(f"ncbayes.{NAMESPACES[section]}")
    there = {name: getattr(module, name) for name in module.__all__}
    return [name for name, each in there.items() if _is_of(section, name, each)]


def _is_of(section: str, name: str, each: Any) -> bool:
    if section == "model":
        return isinstance(each, type) and hasattr(each, "statistics")
    if section == "noise":
        return name in MAKERS or hasattr(each, "log_density")
    return isinstance(each, type) or name in MAKERS


def _public(module: ModuleType) -> list[str]:
    """What a module has made itself."""
    ours = module.__name__.split(".")[0]
    return [
        name
        for name, each in vars(module).items()
        if callable(each) and name[0] != "_" and getattr(each, "__module__", "").startswith(ours)
    ]


def _listed(section: str, name: str) -> Any:
    """What a namespace exports under a name, whatever its case, or a part of it: "Tree.match"."""
    first, dot, rest = name.partition(".")
    own = importlib.import_module(f"ncbayes.{NAMESPACES[section]}")
    # Arguments of models may be what functions beside them make, as grid_edges does.
    places = [(own.__name__, [each for each in own.__all__ if callable(getattr(own, each))])]
    for place in ELSEWHERE:
        module = importlib.import_module(f"ncbayes.{place}")
        places.append((module.__name__, _public(module)))
    for place, there in places:
        by_case = {each.lower(): each for each in reversed(there)}
        if first.lower() in by_case:
            exact = first if first in there else by_case[first.lower()]
            found = getattr(importlib.import_module(place), exact)
            if not dot:
                return found
            part = None if rest.startswith("_") else getattr(found, rest, None)
            if part is not None:
                return part
    known = _exported(section)
    raise InputError(
        f"there is no {section} called {name!r}{closest(name, known)}; there are "
        f"{', '.join(known)}, and file.py:Name for your own"
    )


def _own(job: Job, name: str) -> Any:
    """The user's own class or object in a Python file."""
    file, _, inside = name.rpartition(":")
    path = job.path(file)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}, which {name!r} names")
    module = _module(path.resolve())
    if not hasattr(module, inside):
        there = [each for each in vars(module) if each[0] != "_"]
        raise InputError(
            f"{path.name} has no {inside!r}{closest(inside, there)}; it has {', '.join(there)}"
        )
    return getattr(module, inside)


def _module(path: Path) -> ModuleType:
    # Not left among the modules: processes of chains could not import it, and what belongs to
    # no module is sent to them as a whole.
    spec = importlib.util.spec_from_file_location(f"ncbayes_own_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    # sys.exit() of theirs must not end this command as if all were well.
    except (Exception, SystemExit) as wrong:
        raise InputError(f"{path.name} can't be run: {_said(wrong, path)}") from wrong
    finally:
        del sys.modules[spec.name]
    return module


def _said(wrong: BaseException, path: Path) -> str:
    """An error of the user's code, with the line of the file where it came up."""
    lines = [f.lineno for f in traceback.extract_tb(wrong.__traceback__) if f.filename == str(path)]
    line = lines[-1] if lines else getattr(wrong, "lineno", None)
    where = f" (line {line})" if line else ""
    return f"{type(wrong).__name__}: {wrong}{where}"


def _called(
    section: str, name: str, function: Any, arguments: Mapping[str, Any], known: Known
) -> Any:
    """The object that a class, its ``match`` or a function makes of the arguments."""
    if not _complete(function, arguments, known) and hasattr(function, "match"):
        function, name = function.match, f"{name}.match"
    parameters = _parameters(function)
    for key in arguments:
        if key not in parameters:
            allowed = f"it may have {', '.join(parameters)}" if parameters else "it takes none"
            raise InputError(
                f"{name} in [{section}] has no argument {key!r}{closest(key, parameters)}; "
                f"{allowed}"
            )
    if not _complete(function, arguments, known):
        needed = [key for key in _required(function) if key not in arguments and key not in known]
        raise InputError(
            f"{name} in [{section}] needs {' and '.join(needed)}; its arguments are "
            f"{', '.join(parameters)}"
        )
    # A space that may be left out is filled in too: kernels on a circle are others than on a line.
    open_ones = [*_required(function), *({"space"} & set(parameters) & set(known))]
    filled = {key: known[key]() for key in open_ones if key not in arguments}
    try:
        return function(**filled, **arguments)
    except InputError:
        raise
    # A constructor that takes its arguments for something else fails in its own ways.
    except (Exception, SystemExit) as wrong:
        if ".py:" not in name and not isinstance(wrong, TypeError | ValueError | AttributeError):
            raise
        given = ", ".join(f"{key} = {shown(value)}" for key, value in arguments.items())
        kind = f"{type(wrong).__name__}: " if ".py:" in name else ""
        raise InputError(
            f"{name} in [{section}] can't be made of {given or 'no arguments'}: {kind}{wrong}"
        ) from wrong


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    fixed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {each.name: each for each in found if each.kind not in fixed}


def _required(function: Any) -> list[str]:
    parameters = _parameters(function).items()
    return [name for name, each in parameters if each.default is inspect.Parameter.empty]


def _complete(function: Any, arguments: Mapping[str, Any], known: Known) -> bool:
    return all(name in arguments or name in known for name in _required(function))


def by_label(section: str, table: Table, job: Job, known: Known) -> Any:
    """One object, or one for each block of statistics or group, where the table has no name."""
    if "name" in table:
        return named(section, table, job, known)
    for label, each in table.items():
        if not isinstance(each, Mapping):
            raise InputError(
                f"[{section}] needs a name, or tables with one, as in [{section}.{label}]; got "
                f"{label} = {shown(each)}"
            )
    return {label: named(section, each, job, known) for label, each in table.items()}
