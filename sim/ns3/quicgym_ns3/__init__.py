"""The ns-3 host of quicgym: its scenarios, endpoints and controllers on ns-3's nodes and links.

`quicgym` loads it for `engine="ns3"`. Importing it raises ImportError where the installed `quicgym`
is another build than the one that this was built for.
"""

from quicgym_ns3._ns3 import Ns3Simulation, ns3_batch, ns3_version, transmission_time_ns

__all__ = ["Ns3Simulation", "ns3_batch", "ns3_version", "transmission_time_ns"]
