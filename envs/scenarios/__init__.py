"""Scenarios: model, files, distributions, suites, traces."""
