from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

class RunError(Exception): ...

Address = tuple[str, int]
Record = tuple[bytes, bytes, int, int, bytes, int, int]

def run_virtual(
    library: Path,
    flows: Sequence[Any],
    network: Any,
    *,
    duration: int,
    interval: int,
    progress: Callable[[int, Sequence[int], Sequence[int]], None],
    deadline_s: float,
    qlog_folder: str | None = None,
) -> list[Record]: ...
def run_real(
    library: Path,
    flows: Sequence[Any],
    connect: Callable[[int, int], tuple[Address, Address]],
    start: Callable[[], int],
    *,
    duration: int,
    interval: int,
    progress: Callable[[int, Sequence[int], Sequence[int]], None],
    deadline_s: float,
    qlog_folder: str | None = None,
) -> list[Record]: ...
