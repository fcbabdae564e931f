"""Peers that send too much, speak something else, or connect in another one's episode."""

from __future__ import annotations

import multiprocessing
import socket
from contextlib import AbstractContextManager, suppress
from threading import Event
from typing import Any

import pytest
import zmq
from helpers.ns3gym_peers import (
    PATIENCE_S,
    SMALL_INIT,
    Background,
    NestedEnv,
    agent,
    await_listener,
    box_state,
    free_port,
    raw_socket,
    small_env,
)

from quicgym.envs.ns3gym import MessageError, Ns3GymError, PeerError, PeerGoneError, messages, serve
from quicgym.envs.ns3gym.connection import MAXIMUM_MESSAGE_BYTES

INIT = SMALL_INIT.SerializeToString()
STATE = box_state(0.5, -0.5, reward=1).SerializeToString()
HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"


def simulation(port: int) -> AbstractContextManager[zmq.Socket[bytes]]:
    return raw_socket(zmq.REQ, port)


def serving(port: int, timeout_s: float = PATIENCE_S) -> Background:
    return Background(lambda: serve(small_env(), port, timeout_s=timeout_s))


# What is sent, and what the receiving end says of it.
WRONG = {
    "parts": ([INIT, b"more"], MessageError, "has 2 parts; it is a single frame"),
    "too large": (
        [bytes(MAXIMUM_MESSAGE_BYTES + 1)],
        PeerGoneError,
        "was expected: it ended, or sent a message of more than 16777216 bytes",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_message_that_is_too_much_is_named(what: str) -> None:
    frames, error, text = WRONG[what]
    port = free_port()

    def play() -> None:
        with simulation(port) as end:
            end.send(INIT)
            end.recv()
            end.send_multipart(frames)

    playing = Background(play)
    with agent(port) as env, pytest.raises(error, match=f"EnvStateMsg {text}"):
        env.reset()
    playing.join()
    with raw_socket(zmq.REP, port) as end:
        answered = serving(port, 3.0)  # it connects again until then
        end.recv()
        end.send_multipart(frames)
        with pytest.raises(Ns3GymError, match=f"SimInitAck {text}"):
            answered.join()


def test_a_message_of_our_own_that_is_too_large_is_not_sent() -> None:
    class Talkative(NestedEnv):
        def reset(self, **arguments: Any) -> Any:
            observation, _ = super().reset(**arguments)
            return observation, {"text": "x" * MAXIMUM_MESSAGE_BYTES}

    port = free_port()
    talking = Background(lambda: serve(Talkative(), port, timeout_s=PATIENCE_S))
    with agent(port) as env, pytest.raises(PeerGoneError):
        env.reset()
    with pytest.raises(MessageError, match="EnvStateMsg: message too large: is 16777.* bytes"):
        talking.join()


def test_what_a_simulation_sends_without_being_asked_waits_at_its_own_end() -> None:
    port, count = free_port(), 0
    # A DEALER may send without waiting for answers.
    with raw_socket(zmq.DEALER, port) as end:
        end.sndhwm, end.sndtimeo = 1, 500
        begun = Background(lambda: agent(port))
        end.send_multipart([b"", INIT])
        with begun.join():
            with suppress(zmq.Again):
                for count in range(100):  # noqa: B007
                    end.send_multipart([b"", bytes(2**22)])
            assert count < 20


def test_a_second_simulation_is_refused_and_changes_nothing() -> None:
    port = free_port()

    def play() -> None:
        with simulation(port) as end:
            end.send(INIT)
            end.recv()
            end.send(STATE)
            end.recv()
            with pytest.raises(MessageError, match="the agent refuses the simulation; where it is"):
                serving(port).join()
            with simulation(port) as intruder:
                intruder.send(box_state(1, 1, reward=99).SerializeToString())
                assert messages.SimInitAck.FromString(intruder.recv()).stopSimReq
            end.send(box_state(0.25, 0.25, reward=7).SerializeToString())
            end.recv()

    playing = Background(play)
    env = agent(port)
    env.reset()
    with pytest.warns(RuntimeWarning, match="a second simulation sent .* was refused; gi") as said:
        observation, reward, *_ = env.step(0)
    assert (observation.tolist(), reward, len(said)) == ([0.25, 0.25], 7.0, 1)
    env.close()
    playing.join()


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


def test_a_simulation_that_went_before_its_turn_is_an_error_at_once() -> None:
    port = free_port()
    begun = Background(lambda: agent(port))
    with simulation(port) as end:
        end.send(INIT)
        env = begun.join()
    with env, pytest.raises(PeerGoneError, match="simulation closed the connection"):
        env.reset()


def test_an_agent_goes_on_after_a_peer_that_is_no_zeromq() -> None:
    port = free_port()

    def knock() -> None:
        await_listener(port)
        with socket.create_connection(("127.0.0.1", port)) as end:
            end.sendall(HTTP)

    knocking = Background(knock)
    with pytest.raises(PeerError, match="is not there .somebody else connected, without ZeroMQ's"):
        agent(port, timeout_s=2)
    knocking.join()
    begun = Background(lambda: agent(port))
    knock()
    with simulation(port) as end:
        end.send(INIT)
        begun.join().close()


def test_a_simulation_names_a_listener_that_is_no_zeromq() -> None:
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)

        def listen() -> None:
            while not over.is_set():
                with suppress(TimeoutError), listener.accept()[0] as end:
                    end.sendall(HTTP)

        listening = Background(listen)
        with pytest.raises(PeerError, match="it is no ZeroMQ socket of an ns3-gym agent"):
            serving(listener.getsockname()[1], 2.0).join()
        over.set()
        listening.join()


def test_a_silent_peer_does_not_keep_an_honest_simulation_out() -> None:
    port = free_port()
    begun = Background(lambda: agent(port))
    await_listener(port)
    with socket.create_connection(("127.0.0.1", port)), simulation(port) as end:
        end.send(INIT)
        begun.join().close()


def play_an_episode(pipe: Any) -> None:
    port = free_port()
    serving = Background(lambda: serve(small_env(), port, episodes=1, timeout_s=PATIENCE_S))
    with agent(port) as env:
        pipe.send(env.reset()[0].shape)
    assert serving.join() == 1


def test_a_process_that_was_forked_has_environments_of_its_own() -> None:
    ours, theirs = multiprocessing.Pipe()
    port = free_port()
    begun = Background(lambda: agent(port))
    with simulation(port) as end:
        end.send(INIT)
        env = begun.join()
        child = multiprocessing.get_context("fork").Process(target=play_an_episode, args=(theirs,))
        child.start()
        assert ours.poll(PATIENCE_S) and ours.recv() == (2,)
        child.join(PATIENCE_S)
        assert child.exitcode == 0
        env.close()  # answers the simulation that waits
        assert messages.SimInitAck.FromString(end.recv()).stopSimReq
