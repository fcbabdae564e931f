"""Data files: scenarios, distributions, suites, sweeps, searches, what papers print and claim."""
