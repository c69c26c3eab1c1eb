"""Longitude and latitude as kilometers in the plane, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ncbayes.base import FloatArray, InputError, shown
from ncbayes.spaces.points import as_points, is_numeric
from ncbayes.spaces.simple import Reals

# The mean radius of the earth in km: (2 a + b) / 3 of the ellipsoid WGS 84.
RADIUS = 6371.0088
HIGHEST_CENTER = 85.0
# How far rounding carries the sine of a pole beyond 1.
SLACK = 1e-12
# The share of the map by which its edge is avoided, where east and west are one.
EDGE = 1e-9


@dataclass(frozen=True)
class Projection:
    """Degrees to km east and north of a center, and back; equal-area (cylindrical).

    ``x = R cos(lat0) (lon - lon0)``, ``y = R (sin lat - sin lat0) / cos(lat0)``, R = 6371.0088 km.

    Areas are exact on the sphere, so densities per km^2 are too. On the ellipsoid they are within
    0.5 % up to 55 degrees of latitude and within 0.9 % at the poles. Lengths are right along
    the parallel of the center; elsewhere east-west ones are ``cos(lat0) / cos(lat)`` times too
    long and north-south ones as many times too short: at 40 degrees, 0.15 % for each 0.1 degree
    from the center, 1.5 % for 1 degree. ``stretch`` is the ratio of the two.

    >>> washington = Projection(-77.0, 38.9)
    >>> washington.forward([[-77.0, 38.9], [-76.9, 38.9]]).round(3).tolist()
    [[0.0, 0.0], [8.654, 0.0]]
    """

    longitude: float
    latitude: float

    def __post_init__(self) -> None:
        for name, most in (("longitude", 360.0), ("latitude", HIGHEST_CENTER)):
            value = getattr(self, name)
            if not (is_numeric(value) and np.ndim(value) == 0 and abs(value) <= most):
                remedy = ": nearer to a pole use a polar projection" if name == "latitude" else ""
                raise InputError(
                    f"Projection({name}=...) must be a number of degrees between {-most:g} and "
                    f"{most:g}, got {shown(value)}{remedy}"
                )

    @classmethod
    def around(cls, degrees: object) -> Projection:
        """Centered in the middle of the points: the map is cut in their widest gap of longitude."""
        longitude, latitude = _checked_degrees(degrees, "Projection.around").T
        middle = _middle_longitude(longitude, longitude)
        return cls(middle, float((latitude.min() + latitude.max()) / 2))

    @classmethod
    def over(cls, rings: Iterable[FloatArray]) -> Projection:
        """Centered in the middle of rings of corners in degrees, also across the date line.

        >>> fiji = [np.array([[177.0, -19], [180, -16]]), np.array([[-180.0, -19], [-178, -16]])]
        >>> Projection.over(fiji)
        Projection(longitude=179.5, latitude=-17.5)
        """
        corners = [_checked_degrees(ring, "Projection.over") for ring in rings]
        starts, stops = np.array([(each[:, 0].min(), each[:, 0].max()) for each in corners]).T
        latitudes = np.concatenate(corners)[:, 1]
        middle = float((latitudes.min() + latitudes.max()) / 2)
        return cls(_middle_longitude(starts, stops), middle)

    def stretch(self, latitude: object) -> FloatArray:
        """How many times longer than wide a circle at this latitude is drawn, east-west.

        ``(cos(lat0) / cos(lat))^2``: 1 at the center, below 1 nearer to the equator.
        """
        there = np.maximum(np.cos(np.radians(np.asarray(latitude, float))), SLACK)
        return np.asarray((self._sine_cosine[1] / there) ** 2)

    def forward(self, degrees: object) -> FloatArray:
        """Longitude and latitude in degrees, (n, 2), to km east and north of the center."""
        points = _checked_degrees(degrees, "Projection.forward")
        sine, cosine = self._sine_cosine
        x = RADIUS * cosine * np.radians(_turned(points[:, 0] - self.longitude))
        y = RADIUS * (np.sin(np.radians(points[:, 1])) - sine) / cosine
        return np.column_stack([x, y])

    def inverse(self, km: object) -> FloatArray:
        """Km east and north of the center, (n, 2), to degrees, longitudes from -180 up to 180."""
        points = as_points(km, Reals(2), "Projection.inverse", minimum=1)
        sine, cosine = self._sine_cosine
        height = points[:, 1] * cosine / RADIUS + sine
        beyond = np.flatnonzero(np.abs(height) > 1 + SLACK)
        if len(beyond):
            row = beyond[0]
            low, high = (RADIUS * (pole - sine) / cosine for pole in (-1, 1))
            raise InputError(
                f"km north of the center must lie between the poles, {low:.6g} and {high:.6g}, got "
                f"{points[row, 1]:.6g} in row {row} (counted from 0): pass what forward returned"
            )
        longitude = _turned(self.longitude + np.degrees(points[:, 0] / (RADIUS * cosine)))
        return np.column_stack([longitude, np.degrees(np.arcsin(np.clip(height, -1, 1)))])

    def unwrapped(self, km: object) -> FloatArray:
        """The same with longitudes that do not jump: within 180 degrees of the center."""
        degrees = self.inverse(km)
        away = degrees[:, 0] - self.longitude
        degrees[:, 0] += np.where(away > 180, -360, np.where(away < -180, 360, 0))
        return degrees

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest places on the map, a hair inside of poles and date line."""
        sine, cosine = self._sine_cosine
        east = RADIUS * cosine * math.pi
        south, north = (RADIUS * (pole - sine) / cosine for pole in (-1.0, 1.0))
        hair = EDGE * np.array([2 * east, north - south])
        return np.array([-east, south]) + hair, np.array([east, north]) - hair

    @property
    def _sine_cosine(self) -> tuple[float, float]:
        latitude = math.radians(self.latitude)
        return math.sin(latitude), math.cos(latitude)


def _turned(longitude: FloatArray) -> FloatArray:
    """Longitudes in [-180, 180)."""
    return np.asarray(np.mod(longitude + 180.0, 360.0) - 180.0, np.float64)


def _checked_degrees(degrees: object, owner: str) -> FloatArray:
    points = as_points(degrees, Reals(2), owner, minimum=1)
    for column, name, most in ((1, "latitudes", 90.0), (0, "longitudes", 360.0)):
        wrong = np.flatnonzero(np.abs(points[:, column]) > most)
        if len(wrong):
            raise InputError(
                f"{name} must lie between {-most:g} and {most:g} degrees, got "
                f"{points[wrong[0], column]:.6g} in row {wrong[0]} (counted from 0): pass degrees, "
                "longitude in the first column and latitude in the second, and not swapped"
            )
    return points


def distances(degrees: FloatArray, center: FloatArray) -> FloatArray:
    """Kilometers on the sphere from the center to each point, all in degrees."""
    longitude, latitude = np.radians(degrees.T)
    east, north = np.radians(center)
    turn = np.sin((longitude - east) / 2) ** 2 * np.cos(latitude) * np.cos(north)
    half = np.sin((latitude - north) / 2) ** 2 + turn
    return np.asarray(2 * RADIUS * np.arcsin(np.sqrt(np.clip(half, 0, 1))))


def _middle_longitude(starts: FloatArray, stops: FloatArray) -> float:
    """The middle of all intervals of longitude, opposite to the widest gap between them.

    The map is cut in that gap, so that it tears nothing apart.
    """
    if (stops - starts).max() >= 360:
        return float(starts.min() + stops.max()) / 2
    order = np.argsort(starts % 360, kind="stable")
    first = (starts % 360)[order]
    reach = np.maximum.accumulate(first + (stops - starts)[order])
    gaps = np.append(first[1:], first[0] + 360) - reach
    widest = int(np.argmax(gaps))
    middle = reach[widest] + gaps[widest] / 2 + 180
    return float((middle + 180) % 360 - 180)
