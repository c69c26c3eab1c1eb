"""Exponential families, one file a family."""

from ncbayes.models import terms
from ncbayes.models.counts import ConwayMaxwell
from ncbayes.models.degeneracy import DegenerateWarning
from ncbayes.models.ergm import ERGM
from ncbayes.models.ergm_sets import VaryingERGM
from ncbayes.models.features import Features
from ncbayes.models.ising import Ising
from ncbayes.models.nodes import grid_edges
from ncbayes.models.radial import RadialBasis
from ncbayes.models.simple import Exponential, Gamma, Gaussian, VonMises
from ncbayes.models.torus import TorusGraph
from ncbayes.models.truncated import TruncatedGaussian

__all__ = [
    "ERGM",
    "ConwayMaxwell",
    "DegenerateWarning",
    "Exponential",
    "Features",
    "Gamma",
    "Gaussian",
    "Ising",
    "RadialBasis",
    "TorusGraph",
    "TruncatedGaussian",
    "VaryingERGM",
    "VonMises",
    "grid_edges",
    "terms",
]
