"""What RFC 9743 asks of a congestion controller, measured: `quicgym checklist`."""
