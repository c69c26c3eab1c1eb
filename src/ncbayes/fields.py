"""What a density model is a density over: basis, space, times and map, and how a file holds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ncbayes.base import FloatArray, InputError, Space
from ncbayes.dates import DateStyle
from ncbayes.models import RadialBasis
from ncbayes.spaces import Box, Projection, Region

if TYPE_CHECKING:
    import xarray as xr

# The group of a posterior's tree that holds a field.
GROUP = "field"


class Ground(Protocol):
    """Where and when a density is: its space, the names of its axes, its times and its map."""

    @property
    def space(self) -> Space: ...
    @property
    def axes(self) -> tuple[str, ...]: ...
    @property
    def times(self) -> NDArray[Any] | None: ...
    @property
    def projection(self) -> Projection | None: ...
    @property
    def style(self) -> DateStyle: ...


@dataclass(frozen=True, eq=False)
class Field:
    """A radial basis, the names of its axes, when its groups stand, and the projection in use.

    ``times`` (group,) are datetimes or numbers, None where groups have labels only. With a
    ``projection`` the basis and its space are in km, and what users see is in degrees. ``dropped``
    points of the user's lay outside the space and were left out. Dates were read in this ``style``.
    ``far`` says which points are far from all others, if there are any.
    """

    model: RadialBasis
    axes: tuple[str, ...] = ()
    times: NDArray[Any] | None = None
    projection: Projection | None = None
    dropped: int = 0
    style: DateStyle = field(default_factory=DateStyle)
    far: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What coordinates and dates were taken for, for the attributes of a posterior."""
        if not self.axes:  # a basis without a user's table
            return {}
        told = {"day_first": self.style.day_first, "tz": self.style.tz}
        known = {name: value for name, value in told.items() if value is not None}
        # Files have no truth values.
        numbers = {k: int(v) if isinstance(v, bool) else v for k, v in known.items()}
        # Files give the name "coordinates" a meaning of its own.
        return {"coordinate_system": "plane" if self.projection is None else "degrees", **numbers}

    @property
    def space(self) -> Space:
        """Where the density is, in the coordinates of the basis."""
        return self.model.space

    def dataset(self) -> xr.Dataset:
        """The field as a tree's group ``field`` holds it."""
        import xarray as xr

        model, space = self.model, self.model.space
        found: dict[str, Any] = {"centers": (("center", "axis"), model.table)}
        if isinstance(space, Region):
            found["corners"] = (("corner", "axis"), np.concatenate(space.rings))
            numbers = np.repeat(np.arange(len(space.rings)), [len(ring) for ring in space.rings])
            found["ring"] = ("corner", numbers)
        elif isinstance(space, Box):
            found["bounds"] = (("end", "axis"), np.array(space.bounds))
        if self.times is not None:
            found["time"] = ("group", self.times)
        # As variables, since the attributes of a tree's groups are ArviZ's.
        found |= {"bandwidth": model.bandwidth, "kernel": model.kernel, "dropped": self.dropped}
        if self.projection is not None:
            found |= vars(self.projection)
        found |= {key: value for key, value in self.settings.items() if key != "coordinate_system"}
        found |= {"far": self.far} if self.far else {}
        axes = self.axes or tuple(f"x{k + 1}" for k in range(model.table.shape[1]))
        return xr.Dataset(found, {"axis": list(axes)})


def field_of(model: Any) -> Field | None:
    """The field of a model that is one, with neither times nor map; None for others."""
    return Field(model) if isinstance(model, RadialBasis) else None


def stored_field(tree: xr.DataTree, asker: str) -> Field:
    """The field that a posterior holds; ``asker`` is the function that wants it."""
    if GROUP not in tree.children:
        raise InputError(
            f"{asker} needs the posterior of a density, such as that of "
            "ncbayes.fit_density_over_time or of ncbayes.models.RadialBasis, got one of "
            f"{tree.attrs.get('model', 'another model')}"
        )
    data = tree[GROUP].to_dataset()
    facts = {name: data[name].item() for name in ("bandwidth", "kernel", "dropped")}
    kernel: Any = str(facts["kernel"])
    centers, bandwidth = data["centers"].to_numpy(), float(facts["bandwidth"])
    model = RadialBasis(centers, bandwidth, _space(data), kernel)
    projection = None
    if "longitude" in data:
        projection = Projection(data["longitude"].item(), data["latitude"].item())
    times = data["time"].to_numpy() if "time" in data else None
    axes = tuple(str(name) for name in data["axis"].to_numpy())
    far = str(data["far"].item()) if "far" in data else ""
    return Field(model, axes, times, projection, int(facts["dropped"]), _style(data), far)


def _style(data: xr.Dataset) -> DateStyle:
    day_first = bool(data["day_first"].item()) if "day_first" in data else None
    return DateStyle(day_first, str(data["tz"].item()) if "tz" in data else None)


def _space(data: xr.Dataset) -> Space:
    if "bounds" in data:
        return Box(*data["bounds"].to_numpy())
    corners, numbers = data["corners"].to_numpy(), data["ring"].to_numpy()
    rings: list[FloatArray] = [corners[numbers == k] for k in np.unique(numbers)]
    return Region(tuple(rings))
