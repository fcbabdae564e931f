"""Peers that send too much, speak something else, or connect in another one's episode."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import zmq
from helpers.ns3gym_peers import (
    GREETING,
    PATIENCE_S,
    PINGS,
    SMALL_INIT,
    Background,
    NestedEnv,
    agent,
    await_listener,
    box_state,
    free_port,
    raw_socket,
    ready,
    small_env,
)

from quicgym.envs.ns3gym import (
    MessageError,
    Ns3GymError,
    PeerError,
    PeerGoneError,
    messages,
    serve,
    zmtp,
)
from quicgym.envs.ns3gym.zmtp import MAXIMUM_INTRODUCTION_BYTES, MAXIMUM_MESSAGE_BYTES

LARGE = b"\0" * (MAXIMUM_MESSAGE_BYTES - 1)
INIT = SMALL_INIT.SerializeToString()
STATE = box_state(0.5, -0.5, reward=1).SerializeToString()
ACK = messages.SimInitAck(done=True).SerializeToString()


def simulation(port: int) -> AbstractContextManager[zmq.Socket[bytes]]:
    return raw_socket(zmq.REQ, port)


@contextmanager
def accepted(sent: bytes) -> Iterator[tuple[Background, socket.socket]]:
    """A simulation, and the socket of what listens there, which has sent this."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        serving = Background(lambda: serve(small_env(), port, timeout_s=PATIENCE_S))
        end, _ = listener.accept()
        with end:
            end.sendall(sent)
            yield serving, end


# What is sent, and what the receiving end says of it.
WRONG = {
    "parts": ([INIT, b"more"], "has several parts; it is a single frame"),
    "too large": ([LARGE + b"12"], "message too large: is 16777217 bytes; at most 16777216 are"),
}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_simulation_connects_again_to_an_agent_that_goes_at_once(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = socket.create_server(("127.0.0.1", 0))
    port = hasty.getsockname()[1]

    def go(end: socket.socket) -> None:
        monkeypatch.undo()
        hasty.close()  # resets what nobody has accepted
        with pytest.raises(ConnectionResetError):
            end.recv(1)

    class Connecting(socket.socket):
        def connect(self, address: Any) -> None:
            super().connect(address)
            go(self)

    def connected(address: tuple[Any, ...]) -> socket.socket | None:
        end = zmtp.connect(address)
        assert end is not None
        go(end)
        return end

    # The connection's own name is asked for at once, too.
    if when == "before":
        monkeypatch.setattr("quicgym.envs.ns3gym.zmtp.socket.socket", Connecting)
    else:
        monkeypatch.setattr("quicgym.envs.ns3gym.connection.connect", connected)
    serving = Background(lambda: serve(small_env(), port, episodes=1, timeout_s=PATIENCE_S))
    while hasty.fileno() >= 0:
        time.sleep(0.01)
    with agent(port) as env:
        env.reset()
    assert serving.join() == 1


@pytest.mark.parametrize("what", WRONG)
def test_a_message_that_is_too_much_is_named(what: str) -> None:
    frames, text = WRONG[what]
    port = free_port()
    with simulation(port) as end:
        end.send_multipart(frames)
        first = text.replace("16777216", str(MAXIMUM_INTRODUCTION_BYTES))
        with pytest.raises(MessageError, match=f"SimInitMsg {first}"):
            agent(port)

    def play() -> None:
        with simulation(port) as end:
            end.send(INIT)
            end.recv()
            end.send_multipart(frames)

    playing = Background(play)
    with agent(port) as env, pytest.raises(MessageError, match=f"EnvStateMsg {text}"):
        env.reset()
    playing.join()
    with raw_socket(zmq.REP, port) as end:
        serving = Background(lambda: serve(small_env(), port, timeout_s=PATIENCE_S))
        end.recv()
        end.send_multipart(frames)
        with pytest.raises(MessageError, match=f"SimInitAck {text}"):
            serving.join()


def test_a_message_of_our_own_that_is_too_large_is_not_sent() -> None:
    class Talkative(NestedEnv):
        def reset(self, **arguments: Any) -> Any:
            observation, _ = super().reset(**arguments)
            return observation, {"text": "x" * MAXIMUM_MESSAGE_BYTES}

    port = free_port()
    serving = Background(lambda: serve(Talkative(), port, timeout_s=PATIENCE_S))
    with agent(port) as env, pytest.raises(PeerGoneError):
        env.reset()
    with pytest.raises(MessageError, match="EnvStateMsg: message too large: is 16777.* bytes"):
        serving.join()


AGENT_OF_MEASURED_MEMORY = """
    import resource, sys
    from quicgym.envs.ns3gym import Ns3GymEnv, Ns3GymError

    with Ns3GymEnv(int(sys.argv[1]), timeout_s=60) as env:
        env.reset()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            for _ in range(3):
                env.step(0)
        except Ns3GymError as error:
            print(error)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("how", ["parts", "queue"])
def test_whatever_a_simulation_sends_memory_is_bounded(how: str) -> None:
    """Before: 15 MB for each of them, in libzmq's own memory, while the agent was waiting."""
    port = free_port()
    script = textwrap.dedent(AGENT_OF_MEASURED_MEMORY)
    running = subprocess.Popen(
        [sys.executable, "-c", script, str(port)], stdout=subprocess.PIPE, text=True
    )
    # A DEALER may send without waiting for answers, and shares one buffer among its messages.
    with raw_socket(zmq.DEALER, port) as end:
        end.sndhwm = 0
        end.send_multipart([b"", INIT])
        end.recv_multipart()
        end.send_multipart([b"", STATE])
        assert end.recv_multipart()  # the first action
        large = zmq.Frame(LARGE)
        if how == "parts":
            end.send_multipart([b"", *[large] * 100], copy=False)
        else:
            end.send_multipart([b"", STATE])
            for _ in range(100):
                end.send_multipart([b"", large], copy=False)
        output, _ = running.communicate(timeout=PATIENCE_S)
    expected = "several parts" if how == "parts" else "EnvStateMsg"
    assert expected in output
    grown_kib = int(output.split()[-1])
    # The message, what it is parsed from, and the allocator's rest.
    assert grown_kib < 100 * 1024, f"{grown_kib} KiB\n{output}"


def test_a_second_simulation_is_refused_and_changes_nothing() -> None:
    port = free_port()

    def play() -> int:
        with simulation(port) as end:
            end.send(INIT)
            end.recv()
            end.send(STATE)
            end.recv()
            intruder = Background(lambda: serve(small_env(), port, timeout_s=PATIENCE_S))
            with pytest.raises(
                PeerError, match="the agent refuses us: the agent is in an episode with another"
            ):
                intruder.join()
            end.send(box_state(0.25, 0.25, reward=7).SerializeToString())
            end.recv()
        return 1

    playing = Background(play)
    env = agent(port)
    env.reset()
    with pytest.warns(RuntimeWarning, match="a second simulation, 127.0.0.1:.*was refused; give"):
        observation, reward, *_ = env.step(0)
    assert (observation.tolist(), reward) == ([0.25, 0.25], 7.0)
    env.close()
    assert playing.join() == 1


def test_a_state_of_a_libzmq_peer_that_did_not_begin_the_episode_is_not_taken() -> None:
    port = free_port()
    with simulation(port) as end, simulation(port) as second:
        end.send(INIT)

        def play() -> None:
            end.recv()
            second.send(box_state(1, 1, reward=99).SerializeToString())
            assert not second.poll(200), "the second simulation was answered"
            end.send(STATE)

        playing = Background(play)
        with pytest.warns(RuntimeWarning, match="a second simulation"):
            env = agent(port)
            observation, _ = env.reset()
        playing.join()
        assert observation.tolist() == [0.5, -0.5]
        env.close()


def test_the_next_episode_may_be_another_simulation_s() -> None:
    port = free_port()

    def play(reward: float) -> None:
        with simulation(port) as end:
            for message in (INIT, STATE, box_state(0, 0, reward=reward, isGameOver=True)):
                end.send(message if isinstance(message, bytes) else message.SerializeToString())
                end.recv()

    playing = Background(lambda: play(1))
    env = agent(port)
    for reward in (1, 2, 3):
        env.reset()
        assert env.step(0)[1] == reward
        playing.join()
        if reward < 3:
            playing = Background(lambda reward=reward: play(reward + 1))  # type: ignore[misc]
    env.close()


WRONG_BEGINNINGS = {
    "HTTP": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "does not begin as ZeroMQ does"),
    "old libzmq": (b"\xff" + bytes(8) + b"\x7f\x01" + bytes(60), "speaks ZMTP 1"),
    "CURVE": (GREETING.replace(b"NULL\0", b"CURVE"), "wants the security mechanism CURVE"),
    "no READY": (GREETING + b"\x00\x05hello", "sends no READY after the greeting"),
    "long READY": (GREETING + b"\x06" + b"\xff" * 8, "sends no READY after the greeting"),
    "PUB": (GREETING + ready("PUB"), "is a socket of type PUB, not RE"),
    "no type": (GREETING + b"\x04\x06\x05READY", "is a socket of type none, not RE"),
    "flags": (GREETING + b"\xf0\x00", "sends a frame with the flags 0xf0"),
}


def test_an_agent_goes_on_after_a_peer_that_is_no_zeromq() -> None:
    beginning, text = WRONG_BEGINNINGS["HTTP"]
    port = free_port()

    def knock() -> None:
        await_listener(port)
        with socket.create_connection(("127.0.0.1", port)) as end:
            end.sendall(beginning)
            end.settimeout(PATIENCE_S)
            while end.recv(1000):
                pass

    knocking = Background(knock)
    with pytest.raises(PeerError, match=f"no SimInitMsg within 0.6 s: .*127.0.0.1 {text}"):
        agent(port, timeout_s=0.6)
    with suppress(ConnectionError):  # the other end had not read everything
        knocking.join()


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        *(
            (beginning, f"what listens there {text}")
            for beginning, text in WRONG_BEGINNINGS.values()
        ),
        *(
            (GREETING + ready("REP") + message, text)
            for message, text in (
                (b"\x00\x05hello", "sends a message without the empty frame"),
                (b"\x01\x02hi\x00\x00", "sends a message without the empty frame"),
                (b"\x01\x00\x04\x00", "sends a command in the middle of a message"),
                (b"\x06" + (1 << 40).to_bytes(8, "big"), "sends a command of 1099511627776 bytes"),
            )
        ),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_simulation_names_what_is_no_agent_or_no_message(sent: bytes, text: str) -> None:
    with accepted(sent) as (serving, _), pytest.raises(Ns3GymError, match=text):
        serving.join()


def test_a_message_in_single_bytes_and_with_commands_arrives() -> None:
    answer = messages.SimInitAck(done=True, stopSimReq=True).SerializeToString()
    everything = GREETING + ready("ROUTER") + b"\x04\x07\x04PING\x00\x01" + b"\x01\x00"
    with accepted(b"") as (serving, end):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in everything + bytes((0, len(answer))) + answer:
            end.sendall(bytes((byte,)))
        assert serving.join() == 0


def test_more_connections_than_are_accepted_wait(tmp_path: Path) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    port = free_port()
    silent: list[socket.socket] = []

    def knock() -> int:
        await_listener(port)
        for _ in range(min(40, soft // 4)):
            end = socket.socket()
            end.settimeout(0.2)
            silent.append(end)
            if end.connect_ex(("127.0.0.1", port)):
                break
        return len(silent)

    knocking = Background(knock)
    with pytest.raises(PeerError, match="the simulation is connected and silent"):
        agent(port, timeout_s=1)
    assert knocking.join() > 16
    for end in silent:
        end.close()


FLOOD_S = 20
"""Far beyond the deadlines below; ends a flood that nobody stops."""


def flood(end: socket.socket, is_over: Callable[[], bool]) -> bool:
    """Sends commands without a pause; whether the other end or `is_over` ended that."""
    patience = time.monotonic() + FLOOD_S
    end.settimeout(FLOOD_S)
    with suppress(ConnectionError):
        while not is_over():
            end.sendall(PINGS)
            if time.monotonic() > patience:
                return False
    return True


@contextmanager
def peer_of(port: int, sent: bytes) -> Iterator[socket.socket]:
    """A peer that greets the agent as a simulation does and then sends these bytes."""
    await_listener(port)
    with socket.create_connection(("127.0.0.1", port)) as end:
        end.sendall(GREETING + ready("REQ") + sent)
        yield end


def test_a_flood_does_not_outlast_the_deadline() -> None:
    port, over = free_port(), Event()

    def play() -> bool:
        with peer_of(port, b"") as end:
            return flood(end, over.is_set)

    playing = Background(play)
    with pytest.raises(PeerError, match=r"no SimInitMsg within 0\.5 s"):
        agent(port, timeout_s=0.5)
    over.set()
    assert playing.join(), "the agent read as long as the flood lasted"


def test_a_refused_peer_that_floods_is_closed_at_once() -> None:
    port = free_port()

    def play() -> bool:
        with simulation(port) as end:
            end.send(INIT)
            end.recv()
            with peer_of(port, b"") as intruder:
                closed = flood(intruder, lambda: False)
            end.send(STATE)
            end.recv()
        return closed

    playing = Background(play)
    with pytest.warns(RuntimeWarning, match="a second simulation"), agent(port) as env:
        env.reset()
    assert playing.join(), "the refused peer could send to the end of the flood"


@pytest.mark.filterwarnings("ignore:.*a second simulation")
@pytest.mark.parametrize(
    ("count", "sent"),
    [(1, b"\1\0\2" + (2**20 - 1).to_bytes(8, "big")), (16, b"")],
    ids=["a large message that does not come", "as many as there are places"],
)
def test_silent_peers_do_not_keep_an_honest_simulation_out(count: int, sent: bytes) -> None:
    port = free_port()

    def play() -> None:
        with ExitStack() as silent:
            for _ in range(count):
                silent.enter_context(peer_of(port, sent))
            with simulation(port) as end:
                end.send(INIT)
                end.recv()

    playing = Background(play)
    agent(port, timeout_s=FLOOD_S).close()
    playing.join()
