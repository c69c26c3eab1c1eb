"""Where points live, and the one door through which the user's data come in."""

from ncbayes.base import BoolArray, FloatArray, InputError, Space, shown
from ncbayes.spaces.columns import coordinate_names, default_names, named_columns
from ncbayes.spaces.graphs import Graphs, GraphSets
from ncbayes.spaces.points import (
    as_points,
    check_numbers,
    column_count,
    is_continuous,
    is_numeric,
    is_periodic,
    is_whole,
)
from ncbayes.spaces.projection import Projection
from ncbayes.spaces.region import Region
from ncbayes.spaces.simple import (
    ANGLE_SLACK,
    TWO_PI,
    Binary,
    Box,
    Counts,
    Orthant,
    Reals,
    Torus,
    label_columns,
    no_uniform,
    wrapped,
)

__all__ = [
    "ANGLE_SLACK",
    "TWO_PI",
    "Binary",
    "BoolArray",
    "Box",
    "Counts",
    "FloatArray",
    "GraphSets",
    "Graphs",
    "InputError",
    "Orthant",
    "Projection",
    "Reals",
    "Region",
    "Space",
    "Torus",
    "as_points",
    "check_numbers",
    "column_count",
    "coordinate_names",
    "default_names",
    "is_continuous",
    "is_numeric",
    "is_periodic",
    "is_whole",
    "label_columns",
    "named_columns",
    "no_uniform",
    "shown",
    "wrapped",
]
