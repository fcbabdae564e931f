"""Policies, training and evaluation."""
