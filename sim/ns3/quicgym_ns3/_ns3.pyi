# Written by hand: the module cannot be imported where it is built, since its bases are quicgym's.
from quicgym import _core

ns3_version: str

class Ns3Simulation(_core.Simulation):
    def __init__(self, scenario: _core.Scenario, seed: int) -> None: ...
    def close(self) -> None: ...

def ns3_batch(
    settings: _core.EnvironmentSettings,
    simulations: int,
    agents_per_simulation: int,
    threads: int,
) -> _core.Batch: ...
def transmission_time_ns(bytes: int, bits_per_second: int) -> int: ...
