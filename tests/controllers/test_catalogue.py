"""The catalogue, its error messages, and what holds for every controller in it."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from helpers.ack_rounds import DATAGRAM, Driver
from hypothesis import given, settings
from hypothesis import strategies as st

from quicgym import Scenario, Simulation, _core, controllers, load_scenario

CATALOGUE = controllers.catalogue()
NAMES = [controller.name for controller in CATALOGUE]
every_controller = pytest.mark.parametrize("controller", CATALOGUE, ids=NAMES)


def test_the_names_and_their_order():
    known = [
        *("newreno", "cubic", "vegas"),
        *("bbr", "bbr-smooth", "bbr-extended", "bbr-combined", "ebcc", "ibcca"),
        *("newreno+", "cubic+", "ibcca-cubic", "external", "guided"),
    ]
    assert NAMES[: len(known)] == known  # new ones follow
    assert NAMES[len(known) :] == sorted(NAMES[len(known) :])


def test_the_baselines_and_their_order():
    known = (
        *("newreno", "newreno+", "cubic", "cubic+", "vegas", "ibcca", "ibcca-cubic"),
        *("bbr", "bbr-smooth", "bbr-extended", "bbr-combined", "ebcc"),
    )
    baselines = controllers.baselines()
    assert baselines[: len(known)] == known
    steered = {entry.name for entry in CATALOGUE if entry.steered}
    assert steered >= {"external", "guided"}
    assert sorted(NAMES) == sorted([*baselines, *steered])


def test_presets_are_another_controller_with_other_defaults():
    presets = {entry.name: entry.preset_of for entry in CATALOGUE if entry.preset_of}
    assert {"bbr-smooth", "bbr-extended", "bbr-combined", "ebcc"} <= presets.keys()
    for name, of in presets.items():
        values = controllers.find(name).complete()
        assert _core.make_controller(of, values).parameters == values


@every_controller
def test_every_entry_is_documented_and_its_defaults_are_in_range(controller):
    assert controller.description and controller.source
    for parameter in controller.parameters:
        assert parameter.description and parameter.source
        assert parameter.minimum < parameter.maximum
        assert parameter.is_list or len(parameter.default) == 1
        assert all(parameter.minimum <= value <= parameter.maximum for value in parameter.default)


@every_controller
def test_a_new_controller_has_the_defaults_of_the_catalogue(controller):
    defaults = {parameter.name: list(parameter.default) for parameter in controller.parameters}
    assert _core.make_controller(controller.name).parameters == defaults
    assert controller.complete() == defaults


@every_controller
def test_both_ends_of_every_range_are_allowed_and_nothing_beyond(controller):
    for parameter in controller.parameters:
        made = _core.make_controller(controller.name)
        for value in (parameter.minimum, parameter.maximum):
            made.set_parameters({parameter.name: value})
            assert made.parameters[parameter.name] == [value]
        beyond = [math.nan, math.nextafter(parameter.minimum, -math.inf)]
        if parameter.maximum < math.inf:
            beyond.append(math.nextafter(parameter.maximum, math.inf))
        for value in beyond:
            for reject in (
                lambda values: controller.complete(values),
                lambda values: _core.make_controller(controller.name, values),
                made.set_parameters,
            ):
                with pytest.raises(ValueError, match=f"{parameter.name}.*{controller.name}.*range"):
                    reject({parameter.name: value})


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="'reno'.*newreno, cubic, vegas, bbr"):
        _core.make_controller("reno")
    with pytest.raises(KeyError, match="'reno'.*newreno, cubic, vegas, bbr"):
        controllers.find("reno")
    with pytest.raises(ValueError, match="'ebcc'.*'gama'.*gamma, beta"):
        controllers.find("ebcc").complete({"gama": 1})
    with pytest.raises(ValueError, match=r"'cubic\+'.*'gama'.*period_ms.*fast_convergence"):
        _core.make_controller("cubic+").set_parameters({"gama": 1})
    with pytest.raises(KeyError, match="'gama'.*gamma, beta"):
        controllers.find("bbr").parameter("gama")


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("gain_cycle", [], "at least one number, not 0"),
        ("gain_cycle", [1, 99], "is 99, outside the range"),
        ("gain_cycle", [1, math.nan], "is nan"),
        ("gain_cycle", "fast", "number or a list"),
        ("beta", [0.1, 0.2], "one number, not 2"),
    ],
)
def test_bad_values_are_rejected(name, value, message):
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        _core.make_controller("bbr", {name: value})


@pytest.mark.parametrize(
    "name, values",
    [
        ("bbr", {"alpha": 0.5, "beta": 7}),
        ("ibcca", {"alpha": 0.5, "test_rounds": 0}),
        ("ibcca", {"derate_tests": 5, "beta": 7}),
        ("cubic+", {"beta": 0.5, "theta": 7}),
        ("cubic+", {"theta": 0.5, "beta": 7}),
    ],
)
def test_rejected_parameters_change_nothing(name, values):
    controller = _core.make_controller(name)
    before = controller.parameters
    with pytest.raises(ValueError):
        controller.set_parameters(values)
    assert controller.parameters == before


def test_events_without_what_controllers_need_are_errors():
    with pytest.raises(ValueError, match="random"):
        _core.make_controller("bbr").on_ack(_core.AckEvent())
    with pytest.raises(ValueError, match="max_datagram_bytes"):
        _core.make_controller("bbr", {}, 0)


def test_find_gives_range_and_unit():
    gamma = controllers.find("ebcc").parameter("gamma")
    assert (gamma.default, gamma.minimum, gamma.maximum) == ((30.0,), 0.0, math.inf)
    assert gamma.unit == "packets"


def minimum_window(made):
    return made.parameters.get("min_window_packets", [2.0])[0] * DATAGRAM


def check(made):
    snapshot = made.snapshot
    smallest = int(minimum_window(made))
    assert smallest <= made.window_bytes < 1 << 60
    assert math.isfinite(made.pacing_rate) and made.pacing_rate > 0
    assert math.isfinite(snapshot.bandwidth_estimate) and snapshot.bandwidth_estimate >= 0
    assert math.isfinite(snapshot.queue_estimate_packets) and snapshot.queue_estimate_packets >= 0
    assert snapshot.round_trip_estimate >= 0
    assert (snapshot.window_bytes, snapshot.pacing_rate) == (made.window_bytes, made.pacing_rate)


def parameter_values(controller):
    """Any values in range, both ends included, for some of the controller's parameters."""

    def numbers(parameter):
        one = st.one_of(
            st.sampled_from([parameter.minimum, parameter.maximum]),
            st.floats(parameter.minimum, min(parameter.maximum, 1e6)),
        )
        return st.lists(one, min_size=1, max_size=12) if parameter.is_list else one

    return st.fixed_dictionaries(
        {}, optional={parameter.name: numbers(parameter) for parameter in controller.parameters}
    )


class Operations(Driver):
    """Packets in flight, and whatever may happen to them, in any order."""

    def __init__(self, made):
        super().__init__(made, seed=5)
        self.now = self.sent = self.lost = self.next_round = 0
        self.outstanding = []  # number, sent time, and delivered, lost and in flight when sent

    @property
    def in_flight(self):
        return DATAGRAM * len(self.outstanding)

    def send(self, count):
        for _ in range(count):
            known = self.delivered, self.lost, self.in_flight + DATAGRAM
            self.outstanding.append((self.sent, self.now, *known))
            self.controller.on_packet_sent(self.now, DATAGRAM, self.in_flight)
            self.sent += 1

    def take(self, count):
        taken, self.outstanding = self.outstanding[:count], self.outstanding[count:]
        return taken

    def lose(self, count, app_limited=False):
        taken = self.take(count)
        for number, sent_time, _, lost, in_flight in taken:
            self.lost += DATAGRAM
            self.packet_lost(
                number,
                sent_time=sent_time,
                in_flight_at_send=in_flight,
                lost_since_sent=self.lost - lost,
                app_limited=app_limited,
            )
        if taken:
            self.loss(DATAGRAM * len(taken), sent_time=taken[-1][1], in_flight=self.in_flight)
        return DATAGRAM * len(taken)

    def acknowledge(self, count, lost, without_rtt, app_limited, **arguments):
        prior_in_flight = self.in_flight
        lost_bytes = self.lose(lost, app_limited)
        acked = self.take(count)
        if not acked:
            return
        _, sent_time, delivered, lost_before, in_flight = acked[-1]
        acked_bytes = DATAGRAM * len(acked)
        is_round_start = delivered >= self.next_round
        if is_round_start:
            self.next_round = self.delivered + acked_bytes
        self.ack(
            acked_bytes,
            rtt=0 if without_rtt else max(1, self.now - sent_time),
            sent_time=sent_time,
            since_sent=self.delivered + acked_bytes - delivered,
            lost_since_sent=self.lost - lost_before,
            in_flight_at_send=in_flight,
            in_flight=self.in_flight,
            prior_in_flight=prior_in_flight,
            lost=lost_bytes,
            app_limited=app_limited,
            round_start=is_round_start,
            **arguments,
        )


@pytest.mark.parametrize(
    "controller",
    [entry for entry in CATALOGUE if not entry.preset_of],  # all parameters are drawn below
    ids=lambda entry: entry.name,
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_invariants_hold_under_any_sequence_of_events(controller, data):
    values = parameter_values(controller)
    made = _core.make_controller(controller.name, data.draw(values))
    operations = Operations(made)
    check(made)
    # Mostly what moves the state machine on: packets, time, ACKs.
    kinds = ["send", "ack", "ack", "ack", "loss", "persistent", "spurious", "ecn", "parameters"]
    for kind in data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=60)):
        operations.now += data.draw(st.sampled_from([0, 1, 10**6, 10**8, 10**9, 11 * 10**9]))
        count = data.draw(st.integers(1, 40))
        before = made.snapshot
        if kind == "send":
            operations.send(count)
        elif kind == "ack":
            operations.send(data.draw(st.integers(0, 40)))
            operations.now += data.draw(st.sampled_from([0, 1, 10**7, 10**8]))
            operations.acknowledge(
                count,
                lost=data.draw(st.sampled_from([0, 0, 0, 1, 5])),
                rate=data.draw(st.sampled_from([0.0, 1e-3, 1e5, 1.2e5, 1e6, 1e10])),
                rate_limited=data.draw(st.booleans()),
                app_limited=data.draw(st.booleans()),
                without_rtt=data.draw(st.sampled_from([False, False, False, True])),
                unsent=data.draw(st.sampled_from([0, 10**5, 2**61])),
            )
            check_bounds_on_inflight(made)
        elif kind == "loss":
            operations.lose(count)
        elif kind == "persistent":
            made.on_persistent_congestion(operations.now)
        elif kind == "spurious":
            made.on_spurious_loss(operations.now)
        elif kind == "ecn":
            operations.ecn(count - 1, sent_time=operations.now)
            if controller.name == "prague":  # its alpha is from 0 to 1
                least = max(2 * DATAGRAM, before.window_bytes // 2 - 1)
                assert least <= made.window_bytes <= before.window_bytes
        else:
            made.set_parameters(data.draw(values))
            check_that_parameters_changed_nothing_else(controller.name, made, before)
        check(made)


def check_bounds_on_inflight(made):
    """Those of BBRv3 hold its window after an acknowledgement; other controllers have none."""
    state = made.snapshot
    bounds = {state.inflight_shortterm_bytes}
    if state.mode == _core.ControllerMode.probe_bw:
        bounds.add(state.inflight_longterm_bytes)
    for bound in bounds - {0}:
        assert 0 < bound < 2**62
        assert state.window_bytes <= max(bound, int(minimum_window(made)))


def check_that_parameters_changed_nothing_else(name, made, before):
    after, window = made.snapshot, before.window_bytes
    # Where the window is a parameter itself; in `guided` it also ends slow start.
    (given,) = made.parameters.get("window_bytes", [0.0])
    if given > 0:
        window = int(given)
    is_ended = name == "guided" and given > 0
    assert after.mode == (_core.ControllerMode.congestion_avoidance if is_ended else before.mode)
    assert after.bandwidth_estimate == before.bandwidth_estimate
    if name != "external" or given > 0:  # whose 0 is the initial window
        assert after.window_bytes == max(window, int(minimum_window(made)))


def test_a_value_that_has_a_name_is_given_by_it_wherever_parameters_are_given():
    slow_start = controllers.find("cubic").parameter("slow_start")
    standard = slow_start.choices.index("standard")
    assert slow_start.default != (standard,)
    flow = {"name": "own", "controller": "cubic", "parameters": {"slow_start": "standard"}}
    fields = {"flows": [flow, {"controller": "cubic:slow_start=standard"}, {}]}
    fields["controller_parameters"] = {"cubic": {"slow_start": "standard"}}
    scenario = load_scenario("ebcc-single").model_dump(exclude_none=True) | fields
    simulation = Simulation(Scenario.model_validate(scenario), controllers="cubic")
    for simulated in simulation.flows:
        assert simulated.parameters["slow_start"] == standard
    simulated.set_parameters(slow_start="hystart++")
    assert simulated.parameters["slow_start"] == slow_start.choices.index("hystart++")
    with pytest.raises(
        ValueError, match=r"'slow_start' .* 'cubic' is 'none'; give one of standard"
    ):
        simulated.set_parameters(slow_start="none")
    with pytest.raises(ValueError, match="'beta' of controller 'cubic' is 'half'; give a number"):
        controllers.find("cubic:beta=half")


EVENTS = (
    controllers.AckEvent,
    controllers.EcnEvent,
    controllers.LossEvent,
    controllers.RateSample,
)
UNITLESS = {"app_limited", "no_unsent_data", "round_start", "sample", "random"}


@pytest.mark.parametrize("event", EVENTS)
def test_every_field_of_an_event_says_what_it_is_and_in_which_unit(event: type) -> None:
    fields = [name for name in vars(event) if not name.startswith("_")]
    assert len(fields) >= 4
    for name in fields:
        text = inspect.getdoc(getattr(event, name))
        assert text and text.endswith("."), name
        if name in UNITLESS or name.endswith("_events"):
            continue
        unit = next(
            (
                unit
                for end, unit in {
                    "_bytes": "bytes",
                    "_packets": "packets",
                    "_rate": "Bytes per ",
                }.items()
                if name.endswith(end)
            ),
            "in ns",
        )
        assert unit in text, f"{event.__name__}.{name}: {text}"


TUNABLE = tuple(
    (controller.name, parameter)
    for controller in controllers.catalogue()
    if not controller.steered
    for parameter in controller.parameters
)
any_parameter = st.sampled_from(TUNABLE)
coordinates = st.floats(-1, 1, width=32)


def value_at(row, coordinate):
    controller, parameter = row
    return _core.value_at(controller, parameter.name, coordinate)


def coordinate_of(row, value):
    controller, parameter = row
    return float(np.float32(_core.coordinate_of(controller, parameter.name, value)))


def test_the_ends_of_the_interval_are_the_ends_of_the_range():
    for row in TUNABLE:
        name, parameter = row
        ends = parameter.minimum, parameter.maximum
        where = f"{name}: {parameter.name}"
        assert (value_at(row, -1.0), value_at(row, 1.0)) == ends, where
        assert [coordinate_of(row, end) for end in ends] == [-1.0, 1.0], where


def test_a_default_survives_single_precision_exactly():
    for row in TUNABLE:
        for value in row[1].default:
            found = value_at(row, coordinate_of(row, value))
            assert found == value, f"{row[0]}: {row[1].name}"


def test_a_range_without_end_or_over_many_magnitudes_is_not_linear():
    for name, parameter in TUNABLE:
        low, high = parameter.minimum, parameter.maximum
        allowed = {"odds"} if math.isinf(high) else {"logarithmic"}
        if high / (low or 1) <= 100:
            allowed.add("linear")
        assert parameter.scale in allowed, f"{name}: {parameter.name}"


@given(any_parameter, coordinates, coordinates)
def test_values_are_in_the_range_and_rise_with_the_coordinate(row, one, other):
    first, second = (value_at(row, coordinate) for coordinate in sorted((one, other)))
    assert row[1].minimum <= first <= second <= row[1].maximum


@given(any_parameter, coordinates)
def test_a_value_goes_to_its_coordinate_and_back(row, coordinate):
    value = value_at(row, coordinate)
    assert value_at(row, coordinate_of(row, value)) == value


@pytest.mark.parametrize(
    "controller, name, coordinate, value",
    [
        ("cubic+", "theta", 0.0, 0.55),
        ("cubic+", "period_ms", 0.0, 244.95),  # the square root of 1 * 60000
        ("cubic+", "jitter_threshold_ms", 0.0, 243.95),  # of 1 * 60001, less 1
        ("ibcca", "gain_cycle", 0.0, 1.0),
        ("ibcca", "first_extension_ms", -1 / 7, 1.0),
        ("ebcc", "gamma", 0.0, 30.0),
        ("ebcc", "gamma", 0.5, 90.0),
        ("bbr", "alpha", 0.0, 0.4995),
    ],
)
def test_linear_logarithmic_and_odds(controller, name, coordinate, value):
    assert _core.value_at(controller, name, coordinate) == pytest.approx(value, rel=2e-5)


def test_an_unknown_parameter_is_answered_with_those_that_there_are():
    with pytest.raises(ValueError, match="'cubic' has no parameter 'theta'; it has: c, beta"):
        _core.value_at("cubic", "theta", 0.0)
