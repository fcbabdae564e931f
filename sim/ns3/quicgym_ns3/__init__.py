"""The ns-3 host of quicgym: its scenarios, endpoints and controllers on ns-3's nodes and links.

`quicgym` loads it for `engine="ns3"`. Importing it raises ImportError where the installed `quicgym`
is another build than the one that this was built for.
"""

from quicgym import _core
from quicgym_ns3 import _ns3
from quicgym_ns3._ns3 import Ns3Simulation, ns3_batch, ns3_version, transmission_time_ns

# Objects of another quicgym's classes would be read as ours.
if _core.interface != _ns3.interface:
    raise ImportError(
        "quicgym-ns3 was built for another build of quicgym: it fits "
        f"[{_ns3.interface}], and installed is [{_core.interface}]; "
        "install quicgym and quicgym-ns3 from the same sources"
    )

__all__ = ["Ns3Simulation", "ns3_batch", "ns3_version", "transmission_time_ns"]
