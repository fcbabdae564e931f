"""Policies: the protocol, hand-coded ones, learned ones and their networks."""
