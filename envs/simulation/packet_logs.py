"""Which packets of a run go into its qlog or pcap files, and how large these become."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.simulation.pcap import thinned
from quicgym.envs.simulation.qlog import log_folder, log_path, sender_records, write_log
from quicgym.output_folders import file_name, write_atomically

SMALLEST_MB = 0.001
PCAP_END = r"-((hop-\d+-)?router(-\d+)?|access-point)\.pcap"
"""The ending that ns-3's host adds to `pcap_prefix`: a file for each end of a link, or the air."""


@dataclass(frozen=True)
class PacketLogs:
    """The qlog files of a run, or on ns-3 its pcap files.

    Attributes:
        folder: Folder of the run's files; is made where it is not there.
        every: N, to keep every Nth packet. In qlog these are packets sent, packets received and
            updates of metrics, each counted by itself. All losses and changes of state are kept.
        limit_mb: Size in MB of 10^6 bytes at which a file ends; None: no limit.
    """

    folder: Path
    every: int = 1
    limit_mb: float | None = None

    def __post_init__(self) -> None:
        """Refuses what no file can be written with."""
        if self.every < 1:
            raise ScenarioError(f"every = {self.every}: give 1 or more; 1 keeps all packets")
        if self.limit_mb is not None and self.limit_mb < SMALLEST_MB:
            raise ScenarioError(
                f"limit_mb = {self.limit_mb:g}: is no room for a file's header; give "
                f"{SMALLEST_MB:g} or more, or None"
            )

    @classmethod
    def of(cls, choice: str | Path | PacketLogs) -> PacketLogs:
        """Returns logs of all packets where the user names a folder only."""
        return choice if isinstance(choice, PacketLogs) else cls(Path(choice))

    def inside(self, name: str) -> PacketLogs:
        """Returns the same with a folder inside this one."""
        return PacketLogs(self.folder / name, self.every, self.limit_mb)

    @property
    def limit_bytes(self) -> int | None:
        """The limit in bytes."""
        return None if self.limit_mb is None else int(self.limit_mb * 1e6)

    def pcap_prefix(self, scenario: str) -> str:
        """Returns the beginning of the pcap files' paths; makes the folder."""
        return str(log_folder(self.folder) / file_name(scenario))

    def thin_pcap(self, scenario: str) -> None:
        """Leaves in the run's pcap files, which are written, the packets that are to be kept."""
        own = re.compile(re.escape(file_name(scenario)) + PCAP_END)
        for path in sorted(self.folder.iterdir()):
            limit = self.limit_bytes
            fits = limit is None or path.stat().st_size <= limit
            if own.fullmatch(path.name) and (self.every > 1 or not fits):
                write_atomically({path: partial(self._write, path)})

    def write_qlog(self, events: Iterable[NDArray[Any]], source: str) -> None:
        """Writes the log of each flow's sender, of what `Simulation.events` has returned."""
        folder = log_folder(self.folder)
        for flow, rows in enumerate(events):
            path = log_path(folder, flow, "sender")
            records = sender_records(rows, self.every)
            if not write_log(path, records, "sender", source, self.every, self.limit_bytes):
                self._warn(path)

    def _write(self, path: Path, new: Path) -> None:
        size = 0
        with new.open("wb") as file:
            for part in thinned(path, self.every):
                size += len(part)
                if self.limit_bytes is not None and size > self.limit_bytes:
                    self._warn(path)
                    return
                file.write(part)

    def _warn(self, path: Path) -> None:
        warnings.warn(
            f"{path}: ends at {self.limit_mb:g} MB, before the run's end; raise the limit, or keep "
            "fewer packets",
            stacklevel=3,
        )
