"""Training runs: configuration, model, callbacks, folder."""
