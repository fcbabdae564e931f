"""Attacks: searches for the network on which a policy is worst beside others."""
