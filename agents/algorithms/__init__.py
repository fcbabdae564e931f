"""Quicgym's own training algorithms, in addition to those of Stable-Baselines3."""
