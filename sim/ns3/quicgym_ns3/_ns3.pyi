from collections.abc import Mapping, Sequence

import quicgym._core


ns3_version: str = '3.44.post0'

class Ns3Simulation:
    def __init__(self, scenario: quicgym._core.Scenario, seed: int) -> None: ...

    @property
    def now(self) -> int: ...

    def run_until(self, until: int) -> None: ...

    @property
    def flow_count(self) -> int: ...

    def statistics(self, arg: int, /) -> dict: ...

    def snapshot(self, arg: int, /) -> dict: ...

    def parameters(self, arg: int, /) -> dict[str, list[float]]: ...

    def set_parameters(self, arg0: int, arg1: Mapping[str, Sequence[float]], /) -> None: ...

    def trace(self, arg: int, /) -> bytes: ...

    @property
    def queue_occupancy_seconds(self) -> float: ...

    def queue_trace(self, hop: int = 0) -> bytes: ...

    def deliveries(self) -> bytes: ...

    def requests(self, arg: int, /) -> bytes: ...

    def transfers(self, arg: int, /) -> bytes: ...

    def close(self) -> None:
        """
        Writes what is left of output files and lets the next ns-3 simulation of this process begin.
        """

def ns3_batch(settings: quicgym._core.EnvironmentSettings, simulations: int, agents_per_simulation: int, threads: int) -> quicgym._core.Batch:
    """A batch of episodes over this host."""

def transmission_time_ns(bytes: int, bits_per_second: int) -> int:
    """Nanoseconds that so many bytes take by ns-3's DataRate."""
