"""Sweeps of a controller's parameters or a training's hyperparameters, over Ray Tune."""
