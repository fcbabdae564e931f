"""Data files: scenarios, distributions, suites, sweeps, searches, what papers print and claim."""

from quicgym.moved import moved_names

__getattr__ = moved_names(__name__)
