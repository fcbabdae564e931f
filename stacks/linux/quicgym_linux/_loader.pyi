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
