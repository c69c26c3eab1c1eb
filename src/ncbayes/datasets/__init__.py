"""Data to try things on: the paper's simulations, files of phase angles and of incidents, wind."""

from ncbayes.datasets.city import incidents
from ncbayes.datasets.crime import Incidents, load_crime
from ncbayes.datasets.densities import SimulatedDensity, growing_ring, moving_mixture
from ncbayes.datasets.recordings import PhaseAngles, load_phase_angles
from ncbayes.datasets.signals import angles_from_signal
from ncbayes.datasets.simulators import Simulated, torus_chain, torus_cycle, torus_random
from ncbayes.datasets.weather import Wind, wind

__all__ = [
    "Incidents",
    "PhaseAngles",
    "Simulated",
    "SimulatedDensity",
    "Wind",
    "angles_from_signal",
    "growing_ring",
    "incidents",
    "load_crime",
    "load_phase_angles",
    "moving_mixture",
    "torus_chain",
    "torus_cycle",
    "torus_random",
    "wind",
]
