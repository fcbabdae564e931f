"""Measures what RFC 9743 asks of a congestion controller: `quicgym checklist`."""
