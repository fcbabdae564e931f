"""Data files: scenarios, distributions, suites, sweeps, what papers print and claim."""
