"""Any mahimahi trace."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from pydantic_core import PydanticCustomError

from quicgym.envs.scenarios import traces

FILE = Path(mkdtemp(prefix="quicgym-fuzz-")) / "any.trace"


def check(data: bytes) -> None:
    """Reads it: the times ascend and the last is above 0, or an error names the file."""
    FILE.write_bytes(data)
    traces._parse.cache_clear()  # by time and size of the file, which may be those of the last one
    try:
        times_ms = traces.read_mahimahi(FILE)
    except PydanticCustomError as error:
        assert FILE.name in str(error), error
        return
    assert times_ms == sorted(times_ms) and times_ms[-1] > 0
    assert traces.mean_rate_mbps(FILE) > 0
