"""Attacks: searches for the network on which a policy loses most against others."""
