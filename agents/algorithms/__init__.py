"""Training algorithms of our own, beside those of Stable-Baselines3."""
