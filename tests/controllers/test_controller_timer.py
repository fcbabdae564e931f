"""The timer of controllers in Python: when on_timer is called, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

import quicgym
from quicgym import ControllerError, Simulation
from quicgym.controllers import AckEvent, LossEvent

ENGINES = ["native", pytest.param("ns3", marks=pytest.mark.ns3)]
every_engine = pytest.mark.parametrize("engine", ENGINES)
PERIOD = 50_000_000


class Clock(quicgym.Controller):
    """Adds a datagram to the window every 50 ms, whatever is acknowledged."""

    calls: list[int] = []

    def on_start(self, max_datagram_bytes: int) -> None:
        self.timer = 0
        type(self).calls = []

    def on_timer(self, now: int) -> None:
        assert self.timer is None
        self.calls.append(now)
        self.window_bytes += self.max_datagram_bytes
        self.timer = now + PERIOD

    def on_ack(self, event: AckEvent) -> None:
        pass

    def on_loss(self, event: LossEvent) -> None:
        pass


def run_for_2_s(controller: type[quicgym.Controller], engine: str = "native") -> Simulation:
    with Simulation("ebcc-single", engine, controllers=controller) as simulation:  # type: ignore[arg-type]
        simulation.run_until(2.0)
        return simulation


@every_engine
def test_a_timer_that_is_set_again_comes_with_its_period(engine: str) -> None:
    with Simulation("ebcc-single", engine, controllers=Clock) as simulation:
        simulation.run_until(2.0)
        first = Clock.calls[0]
        trace = simulation.trace(0)
    assert Clock.calls == list(range(first, 2_000_000_001, PERIOD))
    # Due before the connection was there: called at once when the handshake was complete.
    assert trace["time"][trace["rtt"] > 0][0] - first < 10_000_000
    grown = trace["window_bytes"][-1] - trace["window_bytes"][0]
    assert trace["time"][0] < first
    assert grown == quicgym.load_scenario("ebcc-single").max_datagram_bytes * len(Clock.calls)


@every_engine
def test_a_timer_comes_once_unless_it_is_set_again(engine: str) -> None:
    class Once(Clock):
        def on_timer(self, now: int) -> None:
            self.calls.append(now)

    run_for_2_s(Once, engine)
    assert len(Once.calls) == 1


def test_a_timer_runs_while_nothing_is_sent() -> None:
    class Silent(Clock):
        def on_start(self, max_datagram_bytes: int) -> None:
            super().on_start(max_datagram_bytes)
            self.window_bytes = 1  # lets nothing out, so no ACK comes either

        def on_timer(self, now: int) -> None:
            self.calls.append(now)
            if len(self.calls) == 4:
                self.window_bytes = 10 * self.max_datagram_bytes
            else:
                self.timer = now + PERIOD

    assert run_for_2_s(Silent).flows[0].statistics["received_bytes"] > 10_000
    assert len(Silent.calls) == 4


def test_a_later_call_may_move_the_timer_or_take_it_away() -> None:
    class Watchdog(Clock):
        def on_start(self, max_datagram_bytes: int) -> None:
            super().on_start(max_datagram_bytes)
            self.timer = 1_300_000_000

        def on_ack(self, event: AckEvent) -> None:
            self.timer = event.now + 4 * PERIOD if event.now < 1_500_000_000 else None

    run_for_2_s(Watchdog)
    assert Watchdog.calls == []  # an ACK came in every 200 ms


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "timer is 0 ns, and now is"),
        (1.5, "timer is 1.5; it must be an int of nanoseconds, or None"),
        (True, "timer is True; it must be an int"),
        (-1, "timer is -1; it must be from 0"),
    ],
)
def test_a_timer_that_cannot_be_ends_the_run(value: Any, text: str) -> None:
    class Wrong(Clock):
        def on_timer(self, now: int) -> None:
            self.timer = value

    with pytest.raises(ControllerError, match="Wrong failed in on_timer at") as caught:
        quicgym.run("ebcc-single", Wrong)
    assert text in str(caught.value)


def test_a_class_without_on_timer_has_no_timer() -> None:
    class Misled(quicgym.Controller):
        def on_ack(self, event: AckEvent) -> None:
            self.timer = event.now + 1

        def on_loss(self, event: LossEvent) -> None:
            pass

    with pytest.raises(ControllerError, match="did you mean on_timer, which a class overrides"):
        quicgym.run("ebcc-single", Misled)


def environment_of(name: str) -> Any:
    gymnasium = pytest.importorskip("gymnasium")
    environment = gymnasium.make(f"quicgym/{name}", scenario="ebcc-single").unwrapped
    environment.reset(seed=1, options={"controller": Clock})
    return environment


def test_a_copied_episode_has_the_timer_too() -> None:
    environment = environment_of("Tuning-v1")
    environment.step(environment.action_space.sample())
    state = environment.clone_state()
    traces = []
    for _ in range(2):
        environment.restore_state(state)
        observations = [environment.step(environment.action_space.low)[0] for _ in range(5)]
        traces.append([observation.tolist() for observation in observations])
    assert traces[0] == traces[1]
