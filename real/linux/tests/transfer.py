"""A transfer over TCP whose bytes are compared, for programs behind a link.

`transfer.py send SECONDS` waits for a connection and sends for so long. `transfer.py receive`
compares, and prints what it has received and the sender's controller as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time

PORT = 5400
BLOCK = bytes(range(256)) * 64


def send(seconds: float) -> None:
    with socket.create_server(("", PORT)) as server:
        connection, _ = server.accept()
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
    digest, size = hashlib.sha256(), 0
    connection.sendall(name.ljust(16))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection.sendall(BLOCK)
        digest.update(BLOCK)
        size += len(BLOCK)
    connection.shutdown(socket.SHUT_WR)
    # The receiver's own digest comes back: it is over the bytes that have arrived.
    received = connection.makefile("rb").read()
    assert received == digest.digest() + size.to_bytes(8, "little"), "other bytes have arrived"


def receive() -> None:
    connection = socket.create_connection((os.environ["QUICGYM_PEER"], PORT))
    stream = connection.makefile("rb")
    name = stream.read(16).decode().strip()
    digest, size = hashlib.sha256(), 0
    start = time.monotonic()
    while block := stream.read(len(BLOCK)):
        assert block == BLOCK[: len(block)]
        digest.update(block)
        size += len(block)
    seconds = time.monotonic() - start
    connection.sendall(digest.digest() + size.to_bytes(8, "little"))
    connection.close()
    print(json.dumps({"controller": name, "bytes": size, "seconds": seconds}))


if __name__ == "__main__":
    send(float(sys.argv[2])) if sys.argv[1] == "send" else receive()
