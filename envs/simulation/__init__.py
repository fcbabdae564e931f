"""Simulations of scenarios, and their results."""
