"""Exponential families, one file a family."""

from ncbayes.models import terms
from ncbayes.models.degeneracy import DegenerateWarning
from ncbayes.models.ergm import ERGM
from ncbayes.models.ergm_sets import VaryingERGM
from ncbayes.models.ising import Ising
from ncbayes.models.radial import RadialBasis
from ncbayes.models.simple import Exponential, Gamma, Gaussian, VonMises
from ncbayes.models.torus import TorusGraph

__all__ = [
    "ERGM",
    "DegenerateWarning",
    "Exponential",
    "Gamma",
    "Gaussian",
    "Ising",
    "RadialBasis",
    "TorusGraph",
    "VaryingERGM",
    "VonMises",
    "terms",
]
