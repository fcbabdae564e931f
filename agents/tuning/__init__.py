"""Sweeps of controller parameters and searches for hyperparameters, over Ray Tune."""
