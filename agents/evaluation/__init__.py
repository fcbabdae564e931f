"""Rollouts of policies over suites, their statistics, tables, figures and TensorBoard."""
