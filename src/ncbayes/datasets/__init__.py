"""Data to try things on: the paper's simulations, files of phase angles, signals, and wind."""

from ncbayes.datasets.recordings import PhaseAngles, load_phase_angles
from ncbayes.datasets.signals import angles_from_signal
from ncbayes.datasets.simulators import Simulated, torus_chain, torus_cycle, torus_random
from ncbayes.datasets.weather import Wind, wind

__all__ = [
    "PhaseAngles",
    "Simulated",
    "Wind",
    "angles_from_signal",
    "load_phase_angles",
    "torus_chain",
    "torus_cycle",
    "torus_random",
    "wind",
]
