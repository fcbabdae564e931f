"""qlog files of senders: what each sent, what it was told, and what it made of that.

The format is version 0.3, that of draft-ietf-quic-qlog-main-schema-02, in JSON text sequences
(RFC 7464): the newest that qvis reads. Times are relative to the run's beginning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from quicgym.envs.simulation.simulation import MODES
from quicgym.errors import UserError
from quicgym.output_folders import write_atomically

VERSION = "0.3"
RECORD_SEPARATOR = "\x1e"


class EventKind(IntEnum):
    """Kind of an event; sim/quic/event_log.hpp says what its values are."""

    PACKET_SENT = 0
    PACKET_RECEIVED = 1
    ACK_DELAY = 2
    ACKED_RANGE = 3
    PACKET_LOST = 4
    METRICS = 5
    MODE = 6


OF_ACK_FRAMES = (EventKind.ACK_DELAY, EventKind.ACKED_RANGE)
"""Events that follow a received packet with an ACK frame."""
INITIAL, ACK_ELICITING, FIN, BURST = 1, 2, 4, 8
"""The flags of sim/quic/event_log.hpp."""
STREAM_ID = 2
"""Stream of the data: the client's first unidirectional stream."""
BURST_STREAM_ID = 6
"""Stream of bursts that have their own."""
METRICS = ("congestion_window", "bytes_in_flight", "smoothed_rtt", "latest_rtt", "min_rtt",
           "pacing_rate")  # fmt: skip
"""Fields of recovery:metrics_updated, in the order of an event's values."""
TRIGGERS = ("reordering_threshold", "time_threshold")
"""Why a packet was declared lost (RFC 9002 6.1), by the event's value."""

Record = dict[str, Any]


def log_folder(folder: str | Path) -> Path:
    """Returns the folder, made where it is not there; UserError where it cannot be made."""
    made = Path(folder)
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}; name another folder") from error
    return made


def log_path(folder: Path, flow: int, side: str) -> Path:
    """Returns where the log of one end of a flow goes; `side` is "sender" or "receiver"."""
    return folder / f"flow-{flow}-{side}.sqlog"


def write_log(
    path: Path,
    events: Iterable[Record],
    side: str,
    source: str,
    every: int = 1,
    limit_bytes: int | None = None,
) -> bool:
    """Writes a qlog file; returns whether all events are in it.

    Args:
        path: The file, a path of log_path.
        events: Events in order, each with `time` in ms from the run's beginning, `name` and `data`.
        side: "sender" or "receiver".
        source: Engine or stack that has sent the packets, such as "native" or "aioquic-virtual".
        every: N, where the events have every Nth packet; the header says so.
        limit_bytes: Size at which the file ends; None: no limit.
    """
    trace: Record = {
        "vantage_point": {"name": source, "type": "client" if side == "sender" else "server"},
        "common_fields": {
            "protocol_type": ["QUIC"],
            "time_format": "relative",
            "reference_time": 0,
        },
    }
    if every > 1:
        trace["description"] = f"every {every}th of packets sent, packets received and metrics"
    header = {
        "qlog_version": VERSION,
        "qlog_format": "JSON-SEQ",
        "title": f"{path.stem}, {source}",
        "trace": trace,
    }
    is_whole = True

    def write(new: Path) -> None:
        nonlocal is_whole
        size = 0
        with new.open("w", encoding="utf-8") as file:
            for record in chain([header], events):
                text = f"{RECORD_SEPARATOR}{json.dumps(record)}\n"
                size += len(text)  # json.dumps writes ASCII
                if limit_bytes is not None and size > limit_bytes:
                    is_whole = False
                    return
                file.write(text)

    write_atomically({path: write})
    return is_whole


def read_log(path: Path) -> list[Record]:
    """Returns the records of a file of JSON text sequences, the header first."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(record) for record in text.split(RECORD_SEPARATOR) if record.strip()]


def sender_records(events: NDArray[Any], every: int = 1) -> Iterator[Record]:
    """Yields qlog events of what a sender recorded, as Simulation.events returns it.

    Of packets sent, packets received and metrics only every so manieth is yielded.
    """
    seen = dict.fromkeys((EventKind.PACKET_SENT, EventKind.PACKET_RECEIVED, EventKind.METRICS), 0)
    metrics: Record = {}
    mode: str | None = None
    rows = list(zip(events["time"].tolist(), events["kind"].tolist(), events["values"].tolist(),
                    strict=True))  # fmt: skip
    position = 0
    while position < len(rows):
        time, kind, values = rows[position]
        position += 1
        if kind in seen:
            seen[kind] += 1
            if (seen[kind] - 1) % every:
                while position < len(rows) and rows[position][1] in OF_ACK_FRAMES:
                    position += 1
                continue
        name = ""
        data: Record = {}
        if kind == EventKind.PACKET_SENT:
            name, data = "transport:packet_sent", _sent(*values[:5])
        elif kind == EventKind.PACKET_RECEIVED:
            frames = []
            if position < len(rows) and rows[position][1] == EventKind.ACK_DELAY:
                delay = rows[position][2][0]
                position += 1
                ranges = []
                while position < len(rows) and rows[position][1] == EventKind.ACKED_RANGE:
                    ranges.append(rows[position][2][:2])
                    position += 1
                frames.append(
                    {"frame_type": "ack", "ack_delay": delay * 1e-6, "acked_ranges": ranges}
                )
            name = "transport:packet_received"
            data = {**_packet(values[0], values[1], values[2]), "frames": frames}
        elif kind == EventKind.PACKET_LOST:
            name = "recovery:packet_lost"
            data = {**_packet(values[0], values[1], 0), "trigger": TRIGGERS[values[2]]}
        elif kind == EventKind.METRICS:
            name = "recovery:metrics_updated"
            now = dict(zip(METRICS, _metrics(values), strict=True))
            data = {key: value for key, value in now.items() if metrics.get(key) != value}
            metrics = now
        elif kind == EventKind.MODE:
            name = "recovery:congestion_state_updated"
            data = {} if mode is None else {"old": mode}
            mode = MODES[values[0]]
            data["new"] = mode
        yield {"time": time * 1e-6, "name": name, "data": data}


def rewrite_log(path: Path, side: str, source: str) -> None:
    """Rewrites a file of the schema's later drafts, which qvis does not read, as write_log has it.

    Names of events have got other prefixes since, and the lengths of STREAM frames have moved. noq
    has the size of a packet in its header, and the pacing rate in bytes per second.
    """
    records = read_log(path)
    write_log(path, (_as_version_03(record) for record in records[1:]), side, source)


RECOVERY_NAMES = {
    "recovery_metrics_updated": "metrics_updated",
    "recovery_parameters_set": "parameters_set",
    "congestion_state_updated": "congestion_state_updated",
    "packet_lost": "packet_lost",
    "marked_for_retransmit": "marked_for_retransmit",
    "timer_updated": "loss_timer_updated",
}
"""Names of recovery events in version 0.3, by those of draft-ietf-quic-qlog-quic-events-12."""


def _as_version_03(record: Record) -> Record:
    prefix, _, name = record["name"].partition(":")
    if prefix == "quic":
        if name in RECOVERY_NAMES:
            name = f"recovery:{RECOVERY_NAMES[name]}"
        elif name.startswith("connection_"):
            name = f"connectivity:{name}"
        else:
            name = f"transport:{name}"
    else:
        name = record["name"]
    for frame in record["data"].get("frames", ()):
        raw = frame.get("raw", {})
        if frame["frame_type"] == "stream" and "length" not in frame:
            frame["length"] = raw.get("payload_length", raw.get("length"))
    data = record["data"]
    size = data.get("header", {}).get("length")
    if size is not None:
        data.setdefault("raw", {"length": size})
    if "pacing_rate" in data:
        data["pacing_rate"] *= 8
    return {"time": record["time"], "name": name, "data": data}


def _packet(number: int, size: int, flags: int) -> Record:
    packet_type = "initial" if flags & INITIAL else "1RTT"
    return {
        "header": {"packet_type": packet_type, "packet_number": number},
        "raw": {"length": size},
    }


def _sent(number: int, size: int, offset: int, length: int, flags: int) -> Record:
    frames: list[Record] = []
    if flags & INITIAL:
        frames = [{"frame_type": "crypto"}]
    elif length:
        stream_id = BURST_STREAM_ID if flags & BURST else STREAM_ID
        frames = [{"frame_type": "stream", "stream_id": stream_id, "offset": offset,
                   "length": length, "fin": bool(flags & FIN)}]  # fmt: skip
    elif flags & ACK_ELICITING:
        frames = [{"frame_type": "ping"}]
    return {**_packet(number, size, flags), "frames": frames}


def _metrics(values: list[int]) -> list[float]:
    """Times in ms, the pacing rate in bits per second."""
    window, in_flight, smoothed, latest, least, rate = values
    return [window, in_flight, smoothed * 1e-6, latest * 1e-6, least * 1e-6, 8 * rate]
