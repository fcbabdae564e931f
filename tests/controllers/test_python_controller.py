"""Controllers that users write in Python: what they may do, what goes wrong, and by entry point."""

from __future__ import annotations

import gc
import json
import math
import pickle
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.packages import run_python, write_metadata

import quicgym
from quicgym import ControllerError, Scenario, ScenarioError, Simulation, load_scenario
from quicgym.controllers import AckEvent, LossEvent, Parameter, describe
from quicgym.envs.simulation.simulation import MODES

ENGINES = ["native", pytest.param("ns3", marks=pytest.mark.ns3)]
every_engine = pytest.mark.parametrize("engine", ENGINES)


class NewReno(quicgym.Controller):
    """NewReno of RFC 9002, line by line what controllers/newreno.cpp does."""

    name = "python-newreno"
    parameters = (
        Parameter("decrease", 0.5, 0.1, 0.95, description="What is left after a loss"),
        Parameter("unused", [1.0, 2.0], minimum=0),
    )
    decrease: float
    unused: list[float]

    def on_start(self, max_datagram_bytes: int) -> None:
        self.threshold = 2**62
        self.acked = 0
        self.recovery_start = -1
        self.mode = "slow_start"

    def on_ack(self, event: AckEvent) -> None:
        if event.largest_acked_sent_time <= self.recovery_start or event.app_limited:
            return
        if self.window_bytes < self.threshold:
            self.window_bytes += event.newly_acked_bytes
        else:
            self.acked += event.newly_acked_bytes
            if self.acked >= self.window_bytes:
                self.acked -= self.window_bytes
                self.window_bytes += self.max_datagram_bytes
        self._set_mode()

    def on_loss(self, event: LossEvent) -> None:
        if event.largest_lost_sent_time <= self.recovery_start:
            return
        self.recovery_start = event.now
        self.threshold = int(self.window_bytes * self.decrease)
        self.window_bytes = max(self.threshold, 2 * self.max_datagram_bytes)
        self.acked = 0
        self._set_mode()

    def _set_mode(self) -> None:
        slow = self.window_bytes < self.threshold
        self.mode = "slow_start" if slow else "congestion_avoidance"


class Plain(quicgym.Controller):
    """Keeps its first window."""

    def on_ack(self, event: AckEvent) -> None:
        pass

    def on_loss(self, event: LossEvent) -> None:
        pass


def own(name: str, base: type[quicgym.Controller] = Plain, **members: Any) -> type[Any]:
    """A class of this name with these methods and attributes."""
    return type(name, (base,), members)


def lossy() -> quicgym.Scenario:
    """A small network where packets get lost soon."""
    scenario = load_scenario("ebcc-single")
    bottleneck = scenario.links["bottleneck"]
    queue = bottleneck.queue.model_copy(update={"limit": 20})
    link = bottleneck.model_copy(update={"queue": queue})
    return scenario.model_copy(update={"bottleneck": link, "duration_s": 8.0})


def deliveries(controller: Any, engine: str) -> np.ndarray:
    with Simulation(lossy(), engine, controllers=controller, record_deliveries=True) as simulation:
        simulation.run()
        assert simulation.flows[0].statistics["congestion_events"] > 0
        return simulation.deliveries()


# ---- what they may do ------------------------------------------------------------------------


@every_engine
def test_the_same_algorithm_in_python_sends_the_same_packets_as_in_cpp(engine: str) -> None:
    assert np.array_equal(deliveries(NewReno, engine), deliveries("newreno", engine))


@every_engine
def test_names_classes_and_parameters_mix(engine: str) -> None:
    chosen = ["bbr", NewReno, NewReno.with_parameters(decrease=0.7, unused=[3])]
    with Simulation("ebcc-flows-3", engine, controllers=chosen) as simulation:
        names = ["bbr", "python-newreno", "python-newreno(decrease=0.7, unused=3)"]
        assert [flow.controller for flow in simulation.flows] == names
        assert simulation.flows[1].parameters == {"decrease": 0.5, "unused": [1.0, 2.0]}
        assert simulation.flows[2].parameters == {"decrease": 0.7, "unused": [3.0]}
        simulation.run_until(6)
        trace = simulation.trace(1)
        assert {MODES[mode] for mode in trace["mode"]} <= {"slow_start", "congestion_avoidance"}
        snapshot = simulation.flows[1].snapshot
        assert snapshot["window_bytes"] == trace["window_bytes"][-1]
        assert snapshot["pacing_rate"] == trace["pacing_rate"][-1]


@every_engine
def test_parameters_change_while_the_simulation_runs(engine: str) -> None:
    taken: list[dict[str, Any]] = []

    class Watching(NewReno):
        def on_parameters(self, values: Any) -> None:
            super().on_parameters(values)
            taken.append(dict(values))
            self.window_bytes = 30_000

    with Simulation("ebcc-single", engine, controllers=Watching) as simulation:
        simulation.run_until(1.5)
        flow = simulation.flows[0]
        flow.set_parameters(decrease=0.8)
        assert taken == [{"decrease": 0.5, "unused": [1.0, 2.0]}, {"decrease": 0.8}]
        assert flow.parameters == {"decrease": 0.8, "unused": [1.0, 2.0]}
        assert flow.snapshot["window_bytes"] == 30_000
        for wrong in ({"decrease": 0.99}, {"decrees": 0.5}, {"decrease": math.nan}):
            with pytest.raises(ValueError, match="'decrease'.*range|no parameter 'decrees'"):
                flow.set_parameters(**wrong)
        assert len(taken) == 2
        simulation.run_until(3)


def test_rate_window_and_mode_are_read_back_after_every_call() -> None:
    class Scripted(Plain):
        def on_start(self, max_datagram_bytes: int) -> None:
            assert max_datagram_bytes == self.max_datagram_bytes == 1400
            assert self.window_bytes == 14_000
            self.pacing_rate = 125_000

        def on_ack(self, event: AckEvent) -> None:
            self.window_bytes = np.int64(28_000)
            self.pacing_rate = np.float32(250_000)
            self.mode = "probe_rtt"

    simulation = Simulation("ebcc-single", controllers=Scripted)
    flow = simulation.flows[0]
    set_at_start = {"pacing_rate": 125_000, "mode": "congestion_avoidance"}
    set_by_acks = {"window_bytes": 28_000, "pacing_rate": 250_000, "mode": "probe_rtt"}
    assert flow.snapshot == flow.snapshot | set_at_start
    simulation.run_until(5)
    assert flow.snapshot == flow.snapshot | set_by_acks
    before = flow.statistics["sent_bytes"]
    simulation.run_until(6)
    assert flow.statistics["sent_bytes"] - before == pytest.approx(250_000, abs=1400)


def test_every_callback_is_called_with_its_arguments() -> None:
    sent, acks, losses = [], [], []

    class Listening(NewReno):
        def on_packet_sent(self, now: int, bytes: int, in_flight_bytes: int) -> None:
            sent.append(bytes)

        def on_ack(self, event: AckEvent) -> None:
            super().on_ack(event)
            acks.append(event.now)
            assert 0 <= event.random.uniform() < 1
            assert event.sample.delivery_rate >= 0

        def on_loss(self, event: LossEvent) -> None:
            super().on_loss(event)
            losses.append(event.lost_packets)

    simulation = Simulation(lossy(), controllers=Listening)
    simulation.run()
    total = simulation.flows[0].statistics
    assert len(sent) == pytest.approx(total["sent_packets"], abs=3)
    assert max(sent) == 1400
    assert sum(losses) == total["declared_lost_packets"] > 0
    assert len(acks) < 0.7 * len(sent)
    assert acks == sorted(acks)


@pytest.mark.ns3
def test_ecn_marks_are_reported() -> None:
    scenario = load_scenario("ebcc-single").model_dump()
    scenario["bottleneck"]["queue"] = {"limit": 100, "discipline": "codel", "ecn_marking": True}
    scenario["flows"] = [{"ecn": True}]
    marks = []

    def on_ecn(self: Any, event: Any) -> None:
        marks.append(event.newly_marked_packets)
        self.window_bytes = max(self.window_bytes // 2, 2800)

    marked = own("Marked", NewReno, on_ecn=on_ecn)
    with Simulation(Scenario.model_validate(scenario), "ns3", controllers=marked) as simulation:
        simulation.run_until(10)
        assert sum(marks) == simulation.flows[0].statistics["ecn_marks"] > 0


def test_persistent_congestion_takes_the_smallest_window_unless_overridden() -> None:
    scenario = load_scenario("ebcc-single").model_dump()
    outages = {"good_to_bad": 0.02, "bad_to_good": 0.2, "loss_in_bad": 1.0}
    scenario["duration_s"] = 60.0
    scenario["bottleneck"]["loss"] = {"kind": "gilbert-elliott", **outages}
    windows = []

    class Stubborn(NewReno):
        def on_persistent_congestion(self, now: int) -> None:
            super().on_persistent_congestion(now)
            windows.append(self.window_bytes)

    simulation = Simulation(Scenario.model_validate(scenario), controllers=Stubborn)
    simulation.run()
    count = simulation.flows[0].statistics["persistent_congestion_events"]
    assert windows == [2800] * count != []


def test_random_numbers_come_from_the_seed_and_what_is_kept_does_no_harm() -> None:
    drawn: dict[int, list[int]] = {}
    kept: list[Any] = []

    def on_ack(self: Any, event: AckEvent) -> None:
        drawn[run].append(event.random.next())
        kept[:] = [event, event.sample, event.random]

    for run, seed in enumerate((1, 1, 2)):
        drawn[run] = []
        Simulation("ebcc-single", seed=seed, controllers=own("A", on_ack=on_ack)).run_until(3)
    gc.collect()
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == len(drawn[0]) > 50
    event, sample, random = kept
    assert event.now > 0 and sample.interval > 0
    assert event.random.next() != random.next()


def raises(controller: Any, *_: Any) -> None:
    controller.no_such_attribute  # noqa: B018


def test_nothing_is_left_behind() -> None:
    instances: list[weakref.ref[Any]] = []
    watched = own("Watched", on_start=lambda self, size: instances.append(weakref.ref(self)))
    simulation = Simulation("ebcc-flows-3", controllers=[watched, watched, "cubic"])
    simulation.run_until(2)
    del simulation
    with pytest.raises(ControllerError):
        quicgym.run("ebcc-single", own("Failing", watched, on_ack=raises))
    gc.collect()
    assert [instance() for instance in instances] == [None] * 3


def test_many_simulations_in_threads() -> None:
    def work(seed: int) -> Any:
        return quicgym.run("ebcc-single", NewReno, seed=seed).to_dict()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [work(seed) for seed in range(4)]


# ---- what goes wrong -------------------------------------------------------------------------


def returns(controller: Any, *_: Any) -> Any:
    return math.nan


def sets(name: str, value: Any) -> Callable[..., None]:
    return lambda controller, *_: setattr(controller, name, value)


WINDOW, RATE, MODE = "window_bytes", "pacing_rate", "mode"
BAD = {
    "raises": (raises, AttributeError, "no_such_attribute"),
    "returns": (returns, TypeError, "returned nan, where None is expected"),
    "window-nan": (sets(WINDOW, math.nan), TypeError, "window_bytes is nan"),
    "window-float": (sets(WINDOW, 9000.0), TypeError, "window_bytes is 9000.0; .* an int"),
    "window-text": (sets(WINDOW, "9000"), TypeError, "window_bytes is '9000'"),
    "window-bool": (sets(WINDOW, True), TypeError, "window_bytes is True"),
    "window-zero": (sets(WINDOW, 0), ValueError, "window_bytes is 0; .* above 0"),
    "window-huge": (sets(WINDOW, 2**63), ValueError, "below 2"),
    "rate-nan": (sets(RATE, math.nan), ValueError, "pacing_rate is nan"),
    "rate-infinite": (sets(RATE, math.inf), ValueError, "pacing_rate is inf"),
    "rate-zero": (sets(RATE, 0.0), ValueError, "pacing_rate is 0.0"),
    "rate-text": (sets(RATE, "fast"), TypeError, "pacing_rate is 'fast'"),
    "mode-unknown": (sets(MODE, "asleep"), ValueError, "mode is 'asleep'; .* slow_start, cong"),
    "mode-list": (sets(MODE, []), ValueError, r"mode is \[\]"),
    "misspelt-window": (
        sets("cwnd", 5),
        AttributeError,
        "'cwnd' is neither a parameter nor set in on_start: .* did you mean window_bytes?",
    ),
    "misspelt-parameter": (sets("decreese", 1), AttributeError, "'decreese' .* mean decrease?"),
    "misspelt-own": (sets("treshold", 1), AttributeError, "'treshold' .* did you mean threshold?"),
}


@every_engine
@pytest.mark.parametrize("callback", ["on_ack", "on_loss", "on_packet_sent"])
def test_bad_controllers_end_the_run_with_an_error(engine: str, callback: str) -> None:
    for deed, cause, text in BAD.values():
        check_that_it_ends(engine, callback, deed, cause, text)
    # The next simulation of the process does not notice.
    assert quicgym.run("ebcc-single", NewReno, engine).metrics["receive_rate_mbps"] > 1


def check_that_it_ends(
    engine: str, callback: str, deed: Any, cause: type[Exception], text: str
) -> None:
    times = []

    def act(controller: Any, *arguments: Any) -> Any:
        if callback != "on_packet_sent" and not times:
            getattr(NewReno, callback)(controller, *arguments)
        times.append(arguments[0] if callback == "on_packet_sent" else arguments[0].now)
        return deed(controller, *arguments)

    bad = own("Bad", NewReno, **{callback: act})
    with Simulation(lossy(), engine, controllers=bad) as simulation:
        with pytest.raises(ControllerError, match=text) as caught:
            simulation.run()
        place = f"controller Bad failed in {callback} at {times[0] * 1e-9:.9g} s: "
        assert place in str(caught.value), text
        assert type(caught.value.__cause__) is cause, text
        assert cause.__name__ in str(caught.value), text
        with pytest.raises(RuntimeError, match="ended with an error"):
            simulation.run()
        assert len(times) == 1, text
        assert simulation.flows[0].statistics["sent_packets"] > 0, text
        assert len(simulation.queue_trace()) >= len(simulation.trace(0)) > 0, text


@every_engine
def test_failing_to_start(engine: str) -> None:
    def on_start(self: Any, max_datagram_bytes: int) -> None:
        raise KeyError("nothing")

    broken = own("Broken", on_start=on_start)
    needs_more = own("NeedsMore", __init__=lambda self, more: None)
    for bad, text in (
        (broken, "Broken failed in on_start at 0 s: KeyError: 'nothi"),
        (needs_more, "NeedsMore failed in __init__ at 0 s: TypeError"),
    ):
        with pytest.raises(ControllerError, match=text):
            Simulation("ebcc-single", engine, controllers=bad)
    quicgym.run("ebcc-single", Plain, engine)


@every_engine
def test_failing_to_take_parameters(engine: str) -> None:
    class Picky(NewReno):
        def on_parameters(self, values: Any) -> None:
            if values["decrease"] > 0.6:
                raise ValueError("too much")
            super().on_parameters(values)

    with Simulation("ebcc-single", engine, controllers=Picky) as simulation:
        simulation.run_until(2)
        with pytest.raises(ControllerError, match="Picky failed in on_parameters .*too much"):
            simulation.flows[0].set_parameters(decrease=0.8)
        assert simulation.flows[0].parameters["decrease"] == 0.5
        simulation.run_until(3)


def test_attributes_of_the_class_of_init_and_of_on_start_may_be_assigned() -> None:
    last: list[tuple[int, int, int, float]] = []

    class Counting(Plain):
        acks = 0

        def __init__(self) -> None:
            self.acked = 0

        def on_start(self, max_datagram_bytes: int) -> None:
            self.rounds = 0

        def on_ack(self, event: AckEvent) -> None:
            self.acks += 1
            self.acked += event.newly_acked_bytes
            self.rounds += event.round_start
            self.pacing_rate = 1e6
            if self.acks == 3:
                del self.rounds
                self.rounds = 1
            last[:] = [(self.acks, self.acked, self.rounds, self.pacing_rate)]

    quicgym.run("ebcc-single", Counting)
    assert all(number > 10 for number in last[0])


@every_engine
def test_an_interrupt_is_not_the_controllers_failure(engine: str) -> None:
    def on_ack(self: Any, event: AckEvent) -> None:
        raise KeyboardInterrupt

    interrupted = own("Interrupted", on_ack=on_ack)
    with Simulation("ebcc-single", engine, controllers=interrupted) as simulation:
        with pytest.raises(KeyboardInterrupt):
            simulation.run()
        with pytest.raises(RuntimeError, match="ended with an error"):
            simulation.run()


def test_the_error_crosses_processes() -> None:
    with pytest.raises(ControllerError) as caught:
        quicgym.run("ebcc-single", own("Failing", on_ack=lambda self, event: {}["rate"]))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is ControllerError
    assert str(copy) == str(caught.value)
    assert "KeyError: 'rate'" in str(copy)
    assert "(test_python_controller.py:" in str(copy)


def test_an_absurdly_slow_rate_is_survived() -> None:
    result = quicgym.run("ebcc-single", own("Slow", pacing_rate=1e-300))
    assert result.metrics["send_rate_mbps"] < 0.1


def test_wrong_classes_are_refused() -> None:
    no_loss = own("NoLoss", quicgym.Controller, on_ack=Plain.on_ack)
    for controller, text in (
        (no_loss, "NoLoss lacks the method on_loss"),
        (own("A", parameters=({"name": "x"},)), "is not a Parameter"),
        (own("A", parameters=(Parameter("window_bytes", 1),)), "'window_bytes' is taken"),
        (own("A", parameters=(Parameter("x", 1), Parameter("x", 2))), "'x' is taken"),
        (own("cubic"), "its name 'cubic' is a controller's of quicgym"),
        (int, "not a subclass of quicgym.Controller"),
        ([NewReno()], "not a subclass of quicgym.Controller"),
    ):
        with pytest.raises(ScenarioError, match=text):
            Simulation("ebcc-single", controllers=controller)
    for make, text in (
        (lambda: NewReno.with_parameters(decrease=2), "outside the range"),
        (lambda: NewReno.with_parameters(x=2), "has no parameter 'x'"),
        (lambda: Parameter("a b", 1), "identifier"),
        (lambda: Parameter("a", 2, 0, 1), "outside the range"),
        (lambda: Parameter("a", []), "empty"),
    ):
        with pytest.raises(ValueError, match=text):
            make()


def test_a_class_describes_itself() -> None:
    info = describe(NewReno)
    assert info.name == "python-newreno"
    assert info.description.startswith("NewReno of RFC 9002")
    assert info.source.endswith("test_python_controller.NewReno")
    assert info.complete({"decrease": 0.6}) == {"decrease": [0.6], "unused": [1.0, 2.0]}
    assert describe(Plain).name == "Plain"


# ---- by entry point --------------------------------------------------------------------------

PACKAGE = '''
import quicgym
from quicgym.controllers import Parameter

class Aimd(quicgym.Controller):
    """One packet more per round, half on loss."""

    parameters = (Parameter("decrease", 0.5, 0.1, 0.9, description="What is left"),)

    def on_ack(self, event):
        if event.round_start:
            self.window_bytes += self.max_datagram_bytes

    def on_loss(self, event):
        self.window_bytes = max(int(self.window_bytes * self.decrease), 2 * 1200)

class Failing(Aimd):
    def on_ack(self, event):
        if event.now > 3e9:
            1 / 0
'''
ENTRY_POINTS = """aimd = aimd_package:Aimd
failing = aimd_package:Failing
missing = aimd_package:Missing
gone = no_such_package:Controller
number = math:pi
cubic = aimd_package:Aimd
twice = aimd_package:Aimd
"""


@pytest.fixture
def installed(tmp_path: Path) -> Callable[..., Any]:
    """Runs Python where a package registers controllers."""
    site = tmp_path / "site"
    write_metadata(site, "aimd-package", ENTRY_POINTS)
    write_metadata(site, "other-package", "twice = aimd_package:Aimd")
    (site / "aimd_package.py").write_text(PACKAGE)
    return partial(run_python, tmp_path, site)


def test_entry_points_are_listed(installed: Any) -> None:
    result = installed("-m", "quicgym_start", "show", "controllers")
    assert result.returncode == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    names = [line[0] for line in lines if line]
    assert names.count("cubic") == 1
    assert names.index("aimd") > names.index("ebcc")
    assert "One packet more per round, half on loss. (aimd_package.Aimd)" in result.stdout
    assert ["decrease", "0.5", "0.1", "to", "0.9", "What", "is", "left"] in lines
    for text in (
        "controller 'gone' (entry point no_such_package:Controller of aimd-package) cannot be "
        "loaded: ModuleNotFoundError: No module named 'no_such_package'",
        "controller 'missing' (entry point aimd_package:Missing of aimd-package) cannot be loaded",
        "controller 'number' (entry point math:pi of aimd-package) cannot be loaded: TypeError: 3",
        "controller 'cubic' (entry point aimd_package:Aimd of aimd-package) is refused",
        "controller 'twice' is registered by aimd-package and other-package",
    ):
        assert text in result.stderr


def test_a_registered_name_works_everywhere(installed: Any, tmp_path: Path) -> None:
    flow = {"controller": "aimd", "parameters": {"decrease": 0.8}}
    scenario = {"base": "ebcc-single", "name": "own", "flows": [flow]}
    (tmp_path / "own.yaml").write_text(json.dumps(scenario))
    script = """
import sys, quicgym
from quicgym import controllers
assert not any(name in sys.modules for name in ("aimd_package", "pandas"))
quicgym.Simulation("ebcc-single", controllers="cubic")
assert "aimd_package" not in sys.modules
simulation = quicgym.Simulation("own.yaml")
print(simulation.flows[0].controller, simulation.flows[0].parameters)
for name in ("gone", "aimed"):
    try:
        quicgym.run("ebcc-single", name)
    except quicgym.ScenarioError as error:
        print(error)
try:
    open("wrong.yaml", "w").write(open("own.yaml").read().replace('"aimd"', '"gone"'))
    quicgym.load_scenario("wrong.yaml")
except quicgym.ScenarioError as error:
    print(error)
"""
    result = installed("-c", script)
    assert result.returncode == 0, result.stderr
    first, gone, unknown, wrong = result.stdout.splitlines()
    assert first == "aimd {'decrease': 0.8}"
    assert "entry point no_such_package:Controller of aimd-package) cannot be loaded" in gone
    assert "did you mean aimd?" in unknown
    assert wrong.startswith("wrong.yaml: flows.0.controller = 'gone': controller 'gone' (entry")
