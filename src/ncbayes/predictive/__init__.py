"""Goodness of fit: would data from the fitted model look like the data?"""

from ncbayes.predictive.again import verify
from ncbayes.predictive.checks import STATISTICS, PredictiveCheck, check, check_angles
from ncbayes.predictive.discrepancy import SteinCheck, stein

__all__ = [
    "STATISTICS",
    "PredictiveCheck",
    "SteinCheck",
    "check",
    "check_angles",
    "stein",
    "verify",
]
