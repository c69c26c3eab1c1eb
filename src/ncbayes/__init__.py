"""Bayesian inference for models whose normalizing constant nobody can compute."""

__version__ = "0.1.0"
