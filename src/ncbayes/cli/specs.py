"""A fit as text: SPEC.toml, which people write, and run.toml, which repeats a run."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ncbayes.base import InputError, shown

Table = Mapping[str, Any]
Kinds = tuple[type, ...]
# The keys of the sections that are ours, with what they must be. The other sections hold a name
# and the arguments of what is named, which is asked for its own.
KEYS: Mapping[str, Mapping[str, Kinds]] = {
    "data": {
        "file": (str,),
        "columns": (list,),
        "group": (str,),
        "time": (str,),
        "units": (str,),
        "where": (dict,),
        "missing": (str,),
        "variable": (str,),
        "names": (str,),
    },
    "fit": {
        "draws": (int,),
        "tune": (int,),
        "chains": (int,),
        "cores": (int,),
        "seed": (int,),
        "noise_ratio": (int, float),
        "verify": (bool,),
        "minutes": (int, float),
        "extended": (list,),
    },
    "density": {
        "domain": (str,),
        "every": (str, int, float),
        "coordinates": (str,),
        "outside": (str,),
        "day_first": (bool,),
        "tz": (str,),
        "basis": (int,),
        "bandwidth": (int, float),
        "kernel": (str,),
    },
}
NAMED = ("model", "noise", "prior", "engine")
CHOICES = {
    "units": ("degrees", "radians"),
    "missing": ("error", "drop"),
    "coordinates": ("degrees", "plane"),
}
WORDS = {str: "text", list: "a list", dict: "a table", int: "a whole number", bool: "true or false"}
SPECIAL = {
    "extended": "a list of whole numbers of draws, as ncbayes extend writes it",
    "columns": "a list of names, one or more",
    "where": "a table of columns with the value of each, or a list of values",
}
# What run.toml adds: the version that wrote it, and the digests of the files it needs.
VERSION, DIGESTS = "ncbayes", "sha256"


@dataclass(frozen=True)
class Job:
    """A fit: the tables of a SPEC.toml, whose file names are relative to ``folder``."""

    folder: Path
    data: Table
    model: Table = field(default_factory=dict)
    noise: Table = field(default_factory=dict)
    prior: Table = field(default_factory=dict)
    engine: Table = field(default_factory=dict)
    fit: Table = field(default_factory=dict)
    density: Table | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None

    def path(self, name: str) -> Path:
        """The file that a table names."""
        return self.folder / name

    def files(self) -> list[str]:
        """The names of all files that the fit reads."""
        found = [self.data["file"]]
        if self.density is not None and "domain" in self.density:
            found.append(self.density["domain"])
        for table in (self.model, self.noise, self.prior, self.engine):
            found += [name.rpartition(":")[0] for name in _names(table) if ".py:" in name]
        return list(dict.fromkeys(found))

    def moved(self, folder: Path) -> Job:
        """The same fit with file names relative to another folder."""
        new = {name: _relative(self.path(name), folder) for name in self.files()}
        density = self.density
        if density is not None and "domain" in density:
            density = {**density, "domain": new[density["domain"]]}
        return dataclasses.replace(
            self,
            folder=folder,
            data={**self.data, "file": new[self.data["file"]]},
            density=density,
            digests={new[name]: digest for name, digest in self.digests.items()},
            **{section: _renamed(getattr(self, section), new) for section in NAMED},
        )

    def checked_files(self) -> None:
        """Refuse files that have changed since run.toml was written."""
        for name, digest in self.digests.items():
            path = self.path(name)
            if path.is_file() and sha256(path) != digest:
                raise InputError(
                    f"{str(path)!r} has changed since the run, so it can't be repeated; bring the "
                    f"old file back, or take the table [{DIGESTS}] out of the .toml file"
                )

    def with_digests(self) -> Job:
        """The same fit, with the digests of its files."""
        digests = {name: sha256(self.path(name)) for name in self.files()}
        return dataclasses.replace(self, digests=digests)

    def text(self) -> str:
        """The TOML that ``read`` reads."""
        from ncbayes import __version__

        sections: dict[str, Table | None] = {
            "data": self.data,
            "density": self.density,
            **{name: getattr(self, name) for name in NAMED},
            "fit": self.fit,
            DIGESTS: self.digests,
        }
        lines = [f"# ncbayes fit {{this file}} repeats the run.\n{VERSION} = {_value(__version__)}"]
        for name, table in sections.items():
            if table is None or (not table and name != "density"):
                continue
            rows = [f"{_key(key)} = {_value(each)}" for key, each in table.items()]
            lines.append("\n".join([f"[{name}]", *rows]))
        return "\n\n".join(lines) + "\n"


def read(path: Path) -> Job:
    """The fit that a file tells."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; pass the name of a TOML file")
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise InputError(f"{path.name} is not a TOML file: {wrong}") from wrong
    sections = ("data", "density", *NAMED, "fit", DIGESTS)
    check_keys(document, (*sections, VERSION), path.name)
    for name in NAMED:
        # noise = "matched" is short for a table with nothing but a name.
        if isinstance(document.get(name), str):
            document[name] = {"name": document[name]}
    for name in sections:
        if not isinstance(document.get(name, {}), dict):
            raise InputError(
                f"{name} in {path.name} must be a table, as in [{name}], got "
                f"{shown(document[name])}"
            )
    for name, keys in KEYS.items():
        _check_section(path, name, document.get(name, {}), keys)
    return Job(
        folder=path.parent,
        data=_checked_data(path, document),
        density=document.get("density"),
        fit=document.get("fit", {}),
        digests=document.get(DIGESTS, {}),
        version=document.get(VERSION),
        **{name: document.get(name, {}) for name in NAMED},
    )


def _checked_data(path: Path, document: Table) -> Table:
    """The table [data], once it is plain what is fitted to what."""
    data: Table = document.get("data", {})
    if "file" not in data:
        raise InputError(f'{path.name} needs a table [data] with file = "...", the data')
    if "density" in document and "model" in document:
        raise InputError(f"{path.name} has both [model] and [density]; keep one of them")
    if "density" not in document and "model" not in document:
        raise InputError(
            f'{path.name} needs a table [model] with name = "TorusGraph", say, or a table '
            "[density] for a density over time"
        )
    if "density" in document and not ("columns" in data and "time" in data):
        raise InputError(
            f"[data] in {path.name} must name the columns of a density over time, as in "
            'columns = ["LONGITUDE", "LATITUDE"] and time = "DATE"'
        )
    return data


def _check_section(path: Path, name: str, table: Table, keys: Mapping[str, Kinds]) -> None:
    check_keys(table, keys, f"[{name}] in {path.name}")
    for key, value in table.items():
        kinds = keys[key]
        fine = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        if key == "columns":
            fine = fine and bool(value) and all(isinstance(each, str) for each in value)
        if key == "where":
            fine = fine and all(map(_is_choice, value.values()))
        if not fine:
            words = "a number" if float in kinds else WORDS[kinds[0]]
            words = SPECIAL.get(key, words)
            raise InputError(
                f"{key} of [{name}] in {path.name} must be {words}, got {shown(value)}"
            )
        if key in CHOICES and value not in CHOICES[key]:
            raise InputError(
                f"{key} of [{name}] in {path.name} must be "
                f"{' or '.join(map(repr, CHOICES[key]))}, got {shown(value)}"
            )


def _is_choice(value: Any) -> bool:
    """Whether rows can be chosen by a value, or by one of those in a list."""
    each = value if isinstance(value, list) else [value]
    return bool(each) and not any(isinstance(one, list | dict) for one in each)


def check_keys(table: Iterable[str], allowed: Iterable[str], where: str) -> None:
    """Refuse a key that is not allowed, and name the closest one that is."""
    allowed = list(allowed)
    for key in table:
        if key not in allowed:
            raise InputError(
                f"{where} has an unknown key {shown(key)}{closest(key, allowed)}; it may have "
                f"{', '.join(allowed)}"
            )


def closest(word: str, allowed: Iterable[str]) -> str:
    """A guess at what was meant, to be put behind a word that is not allowed; empty if none."""
    by_case = {each.lower(): each for each in allowed}
    near = get_close_matches(word.lower(), by_case, 1)
    return f" (did you mean {by_case[near[0]]!r}?)" if near else ""


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names with commas, the first of them if there are many."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # on another drive
        return str(path.resolve())


def _names(value: Any) -> list[str]:
    """What stands under ``name`` in a table, or in tables in it."""
    if isinstance(value, Mapping):
        own = [value["name"]] if isinstance(value.get("name"), str) else []
        return own + [name for each in value.values() for name in _names(each)]
    return [name for each in value for name in _names(each)] if isinstance(value, list) else []


def _renamed(value: Any, new: Mapping[str, str]) -> Any:
    """The same tables with other names of .py files."""
    if isinstance(value, list):
        return [_renamed(each, new) for each in value]
    if not isinstance(value, Mapping):
        return value
    table = {key: _renamed(each, new) for key, each in value.items()}
    name = table.get("name")
    if isinstance(name, str) and ".py:" in name:
        file, _, inside = name.rpartition(":")
        table["name"] = f"{new[file]}:{inside}"
    return table


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML reads what JSON writes, but for one control character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return repr(value)
