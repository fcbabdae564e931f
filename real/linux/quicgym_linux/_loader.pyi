from collections.abc import Mapping, Sequence

class Program:
    def __init__(
        self,
        object: bytes,
        name: str,
        constants: Mapping[str, Sequence[int]],
        contents: Mapping[str, bytes],
    ) -> None: ...
    def close(self) -> None: ...
    @property
    def verified_instructions(self) -> int: ...

class Agent:
    def __init__(
        self,
        program: Program,
        library: str,
        controller: str,
        specification: int,
        parameters: Mapping[str, Sequence[float]],
        policy: str,
    ) -> None: ...
    def close(self) -> None: ...
    @property
    def problem(self) -> str: ...

def observe(is_recent: bool, datagram_bytes: int, states: Sequence[Sequence[int]]) -> list[int]: ...
def compute(
    network: bytes, layers: Sequence[Sequence[int]], inputs: Sequence[int]
) -> list[int]: ...
