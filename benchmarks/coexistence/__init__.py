"""How a controller or policy shares a bottleneck with others: `quicgym coexist`."""
