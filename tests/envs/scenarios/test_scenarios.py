from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import yaml
from helpers.random_scenarios import native_networks
from helpers.scenarios import packaged_suite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import quicgym
from quicgym.agents.evaluation.jobs import make_jobs as make_evaluation_jobs
from quicgym.benchmarks.simulations import make_jobs
from quicgym.envs import Scenario, ScenarioError, load_scenario, scenario_names
from quicgym.envs.scenarios.files import as_yaml
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import (
    Access,
    BernoulliLoss,
    GilbertElliottLoss,
    Link,
    Queue,
)
from quicgym.envs.scenarios.suites import load_suite, suite_names
from quicgym.envs.scenarios.traces import read_mahimahi

GOOD: dict[str, Any] = {
    "name": "mine",
    "duration_s": 10,
    "bottleneck": {"rate_mbps": 15, "delay_ms": 10},
    "access": {"rate_mbps": 50, "delay_ms": 20},
    "flows": [{"start_s": 1}],
}


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **changes}))
    return path


def error_of(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    return str(caught.value)


def test_names_are_listed_with_their_numbers_in_order() -> None:
    names = [name for name in scenario_names() if name.startswith("ebcc-bandwidth-")]
    assert names == [f"ebcc-bandwidth-{rate}" for rate in ("5", "10", "15", "17.5")]


def test_the_lossy_links_lose_what_their_names_say() -> None:
    for name in scenario_names():
        kind, _, percent = name.removeprefix("beyond-high-latency-").partition("-")
        if not name.startswith("beyond-high-latency-"):
            continue
        loss = load_scenario(name).bottleneck.loss
        if isinstance(loss, GilbertElliottLoss):
            assert kind == "burst"
            assert 1 / loss.bad_to_good == pytest.approx(5)
            share = loss.good_to_bad / (loss.good_to_bad + loss.bad_to_good)
        else:
            assert isinstance(loss, BernoulliLoss) and kind == "loss"
            share = loss.probability
        assert 100 * share == pytest.approx(float(percent), rel=1e-4)


def test_the_ebcc_experiments_are_the_papers() -> None:
    for name, access, bottleneck, flows in (
        ("single", (50, 20), (15, 10), 1),
        ("bandwidth-5", (15, 20), (5, 10), 1),
        ("bandwidth-10", (30, 20), (10, 10), 1),
        ("bandwidth-15", (50, 20), (15, 10), 1),
        ("bandwidth-17.5", (75, 20), (17.5, 10), 1),
        ("delay-20", (50, 20), (15, 10), 1),
        ("delay-15", (50, 15), (15, 7.5), 1),
        ("delay-10", (50, 10), (15, 5), 1),
        ("flows-3", (50, 20), (15, 10), 3),
        ("flows-5", (50, 20), (15, 10), 5),
    ):
        scenario = load_scenario(f"ebcc-{name}")
        assert (scenario.access.rate_mbps, scenario.access.delay_ms) == access, name
        assert (scenario.bottleneck.rate_mbps, scenario.bottleneck.delay_ms) == bottleneck, name
        assert scenario.bottleneck.queue == Queue(limit=100, unit="packets", discipline="drop-tail")
        assert (scenario.max_datagram_bytes, scenario.duration_s) == (1400, 20)
        assert [flow.start_s for _, flow in scenario.single_flows()] == [1] * flows, name


# Changes of GOOD, where "+" stands for more fields of the bottleneck, and what is said of them.
BAD: list[tuple[str, ...]] = [
    ("bottleneck: {rate_mbps: -5, delay_ms: 10}",
     "bottleneck.rate_mbps = -5", "greater than", "give a number of Mbps"),
    ("bottleneck: {rate_kbps: 15, delay_ms: 10}",
     "bottleneck.rate_kbps = 15", "unknown field", "did you mean rate_mbps?"),
    ("bottleneck: {delay_ms: 10}", "bottleneck.rate_mbps", "missing", "trace"),
    ("+queue: {limit: 0}", "bottleneck.queue.limit = 0", "give a whole number, 1 or more"),
    ("+queue: {limit: 1229, unit: bytes}",
     "bottleneck.queue.limit = 1229", "one takes 1230 bytes", "give at least 1230"),
    ("{bottleneck: {rate_mbps: 15, delay_ms: 10, queue: {limit: 1501, unit: bytes}}, "
     "flows: [{}, {max_datagram_bytes: 1472}]}",
     "bottleneck.queue.limit = 1501", "one takes 1502 bytes"),
    ("flows: [{direction: backward}]",
     "flows.0.direction = 'backward'", "for forward flows", "name the flow's controller"),
    ("+rate_schedule: [{at_s: 1, rate_mbps: 0.0005}]",
     "rate_schedule.0.rate_mbps = 0.0005", "neither", "give 0, or 0.001 or more"),
    ("+delay_schedule: [{at_s: 2, delay_ms: 1}, {at_s: 1, delay_ms: 1}]",
     "delay_schedule.1.at_s = 1", "not after the step before it", "ascending"),
    ("+reordering: true", "reordering = True", "never changes", "add jitter or"),
    ("+policer: {rate_mbps: 1, burst_bytes: 1229}",
     "bottleneck.policer.burst_bytes = 1229", "one takes 1230 bytes"),
    ("+queue: {limit: 0.5}", "bottleneck.queue.limit = 0.5", "no whole number of packets",
     "give a whole number, or the unit bdp"),
    ("+queue: {limit: 0, unit: bdp}", "bottleneck.queue.limit = 0", "with the unit bdp a number"),
    ("+queue: {limit: 0.001, unit: bdp}",
     "bottleneck.queue.limit = 0.001", "one takes 1230 bytes", "give a larger one"),
    ("{bottleneck: {rate_mbps: 15, delay_ms: 0, queue: {limit: 1, unit: bdp}}, "
     "access: {rate_mbps: 50, delay_ms: 0}}",
     "bottleneck.queue.unit = 'bdp'", "without delays the BDP is 0", "bytes, or a delay"),
    ("+queue: {limit: 90000, unit: bytes, discipline: fq-codel}",
     "bottleneck.queue.unit = 'bytes'", "fq-codel takes its limit in packets only"),
    ("+queue: {ecn_marking: true}",
     "bottleneck.queue.ecn_marking = True", "drop-tail cannot mark", "codel"),
    ("+queue: {discipline: pie, ecn_marking: true, ce_threshold_ms: 1}",
     "bottleneck.queue.ce_threshold_ms = 1", "pie has no CE threshold", "codel or fq-codel"),
    ("+queue: {discipline: codel, ce_threshold_ms: 1}", "bottleneck.queue.ce_threshold_ms = 1",
     "is for a queue that marks", "set ecn_marking: true"),
    ("duration_s: .nan", "duration_s = nan", "finite number"),
    ("flows: [{start_s: 10}]", "flows.0.start_s = 10", "never runs", "10 s"),
    ("flows: [{start_s: 5, stop_s: 5}]",
     "flows.0.stop_s = 5", "not after the start", "make stop_s later"),
    ("flows: [{stop_s: 11}]", "flows.0.stop_s = 11", "after the scenario's end"),
    ("flows: [{name: a}, {name: a}]", "flows = 'a'", "two flows have this name"),
    ("flows: [{controller: bbbr}]", "flows.0.controller = 'bbbr'", "did you mean bbr?",
     "newreno, cubic, vegas, bbr"),
    ("flows: [{controller: ebcc, parameters: {gama: 30}}]", "flows.0.parameters.gama = 30",
     "ebcc has no such parameter", "did you mean gamma?"),
    ("flows: [{controller: ebcc, parameters: {gamma: -1}}]",
     "flows.0.parameters.gamma = -1", "out of range", "packets"),
    ("flows: [{controller: bbr, parameters: {gain_cycle: 1}}]",
     "flows.0.parameters.gain_cycle = 1", "give a list"),
    ("flows: [{parameters: {gamma: 1}}]", "flows.0.parameters", "name the flow's controller"),
    ("controller_parameters: {cubic*: {theta: 0.5}}",
     "controller_parameters = 'cubic*'", "no such controller", "did you mean cubic"),
    ("controller_parameters: {cubic: {slow_start: standart}}",
     "controller_parameters.cubic.slow_start = 'standart'", "no such value",
     "did you mean standard"),
    ("controller_parameters: {cubic+: 0.5}",
     "controller_parameters.cubic+ = 0.5", "a mapping of controllers"),
    ("flows: [{offload_packets: 65}]",
     "flows.0.offload_packets = 65", "a whole number of packets, 1 to 64"),
    ("flows: [{transport: tcp, controller: cubic, offload_packets: 2}]",
     "flows.0.offload_packets = 2", "leave out offload_packets, or transport"),
    ("flows: [{transport: tcp, controller: ebcc}]",
     "flows.0.controller = 'ebcc'", "newreno, linux-reno, cubic, bbr, vegas"),
    ("flows: [{application: {kind: bursts, rate_mbps: 1, burst_rate_mbps: 1, burst_duration_s: 3, "
     "burst_period_s: 2, burst_count: 1}}]",
     "flows.0.application.burst_duration_s = 3", "bursts overlap"),
    ("flows: [{burst_retransmission: true, application: {kind: bursts, rate_mbps: 1, "
     "burst_rate_mbps: 1, burst_duration_s: 1, burst_period_s: 2, burst_count: 1, "
     "burst_own_stream: true}}]",
     "flows.0.application.burst_own_stream = True", "burst_retransmission"),
    ("flows: [{transport: tcp, controller: cubic, application: {kind: bursts, rate_mbps: 1, "
     "burst_rate_mbps: 1, burst_duration_s: 1, burst_period_s: 2, burst_count: 1, "
     "burst_own_stream: true}}]",
     "flows.0.application.burst_own_stream = True", "transport"),
    ("short_flows: [{load_mbps: 100000, sizes: 100}]", "short_flows.0.load_mbps = 100000",
     "offers 1.36e+06 Mbps with headers and handshakes, and the path carries 15", "5 times its"),
    ("max_datagram_bytes: 1199", "max_datagram_bytes = 1199", "1200 to 1472"),
    ("name: a b", "name = 'a b'", "without spaces"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad[0][:60])
def test_bad_values_name_file_field_value_and_remedy(tmp_path: Path, bad: tuple[str, ...]) -> None:
    text, *expected = bad
    if text.startswith("+"):
        text = f"bottleneck: {{rate_mbps: 15, delay_ms: 10, {text[1:]}}}"
    path = write(tmp_path, **yaml.safe_load(text))
    message = error_of(path)
    for words in [str(path), *expected]:
        assert words in message


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    message = error_of(write(tmp_path, duration_s=-1, max_datagram_bytes=5))
    assert "duration_s" in message and "max_datagram_bytes" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\nflows: [\n", ":3: not valid YAML"),
        ("name: a\n\tduration_s: 1\n", ":2: not valid YAML"),
        ("", "holds None"),
        ("- 1\n", "holds [1]"),
        ("!!python/object:os.system {}\n", ":1: not valid YAML"),
    ],
)
def test_broken_yaml_names_file_and_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    assert error_of(path).startswith(str(path))
    assert expected in error_of(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in error_of(tmp_path / "missing.yaml")
    assert "Is a directory" in error_of(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in error_of(binary)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ["cannot read the trace: No such file"]),
        ("", ["the trace is empty"]),
        ("0\n", ["the trace is empty"]),
        ("1\n5\n4\n", ["rates.trace:3", "4 ms comes after 5 ms", "ascending"]),
        ("1\nfast\n", ["rates.trace:2", "'fast' is not a time"]),
        ("-1\n", ["rates.trace:1", "is not a time"]),
        (f"1\n{2**32}\n", ["rates.trace:2", "is not a time"]),
    ],
)
def test_bad_traces(tmp_path: Path, content: str | None, expected: list[str]) -> None:
    if content is not None:
        (tmp_path / "rates.trace").write_text(content)
    path = write(
        tmp_path,
        bottleneck={"delay_ms": 10, "trace": "rates.trace"},
        reverse={"delay_ms": 10, "rate_mbps": 10},
    )
    message = error_of(path)
    for text in [str(path), "bottleneck.trace", "rates.trace", *expected]:
        assert text in message


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf1\n1\n4\n",
        b"\xef\xbb\xbf# Mbps\n1\n1\n4\n",
        b"1\n1\n4\n",
        b"1\r\n1\r\n4\r\n",
        b"# Mbps\n\n1\n  1 \n\t# more\n4",
        b"1\r1\r4\r",
    ],
)
def test_line_ends_comments_and_blank_lines_of_traces(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rates.trace"
    path.write_bytes(content)
    assert read_mahimahi(path) == [1, 1, 4]


def test_a_trace_is_found_beside_its_yaml_and_replaces_the_rate(tmp_path: Path) -> None:
    (tmp_path / "rates.trace").write_text("0\n0\n3\n10\n")
    changes = {"bottleneck": {"delay_ms": 10, "trace": "rates.trace"}}
    assert "reverse" in error_of(write(tmp_path, **changes))
    scenario = load_scenario(write(tmp_path, **changes, reverse={"delay_ms": 10, "rate_mbps": 10}))
    assert scenario.bottleneck.trace == tmp_path / "rates.trace"
    both = {"bottleneck": {"delay_ms": 10, "rate_mbps": 1, "trace": "rates.trace"}}
    assert "the trace sets when the link sends" in error_of(write(tmp_path, **both))
    steps = [{"at_s": 1, "rate_mbps": 2}]
    changes["bottleneck"]["rate_schedule"] = steps
    message = error_of(write(tmp_path, **changes, reverse={"delay_ms": 10, "rate_mbps": 10}))
    assert "bottleneck.rate_schedule" in message and "the trace sets when the link sends" in message


def test_what_only_ns3_can_do(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, flows=[{"transport": "tcp"}]))
    scenario.check_engine("ns3")
    with pytest.raises(ScenarioError, match="flows.0.transport = tcp; use the engine ns3"):
        scenario.check_engine("native")


def test_ecn_where_no_queue_marks_warns(tmp_path: Path) -> None:
    ecn = {"flows": [{}, {"name": "mine", "ecn": True}]}
    with pytest.warns(UserWarning, match=r"flows\.1\.ecn = True \(mine\).*ecn_marking") as caught:
        load_scenario(write(tmp_path, **ecn))
    assert len(caught) == 1
    marking = {"discipline": "codel", "ecn_marking": True}
    bottleneck = {"rate_mbps": 15, "delay_ms": 10, "queue": marking}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_scenario(write(tmp_path, **ecn, bottleneck=bottleneck))


MARKING = {"rate_mbps": 15, "delay_ms": 10, "queue": {"discipline": "codel", "ecn_marking": True}}


def test_short_flows_with_ecn_where_no_queue_marks_warn(tmp_path: Path) -> None:
    shorts = {"load_mbps": 1, "sizes": 5000, "ecn": True}
    with pytest.warns(UserWarning, match=r"short_flows\.0\.ecn = True: .*ecn_marking"):
        load_scenario(write(tmp_path, short_flows=[shorts]))


@pytest.mark.parametrize("part", ["rate_schedule", "delay_schedule", "loss_schedule", "reroutes"])
def test_a_change_after_the_end_warns(tmp_path: Path, part: str) -> None:
    what = {"rate_schedule": {"rate_mbps": 1}, "delay_schedule": {"delay_ms": 1}}
    what |= {"loss_schedule": {}, "reroutes": {"rate_mbps": 1, "delay_ms": 1}}
    steps = [{"at_s": at_s, **what[part]} for at_s in (9.5, 10)]
    link = {"rate_mbps": 15, "delay_ms": 10, part: steps}
    with pytest.warns(UserWarning, match=rf"bottleneck\.{part}\.1\.at_s = 10: .*10 s") as caught:
        load_scenario(write(tmp_path, bottleneck=link))
    assert len(caught) == 1


@pytest.mark.parametrize("start", ["run", "make", "baselines"])
def test_marking_for_flows_that_cannot_be_marked_warns(start: str) -> None:
    scenario = Scenario.model_validate({**GOOD, "duration_s": 2, "bottleneck": MARKING})
    begin: dict[str, Callable[[], object]] = {
        "run": lambda: quicgym.run(scenario, "cubic"),
        "make": lambda: gymnasium.make("quicgym/Window-v1", scenario=scenario),
        "baselines": lambda: make_jobs([scenario], ["cubic"], "native", 1),
    }
    with pytest.warns(UserWarning, match=r"bottleneck\.queue\.ecn_marking = True: .*set ecn"):
        begin[start]()
    capable = scenario.model_copy(update={"flows": (Flow(ecn=True),)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quicgym.run(capable, "cubic")
        quicgym.run(scenario, "prague")


def test_a_controller_for_marks_on_a_path_without_them_warns() -> None:
    without = Scenario.model_validate({**GOOD, "duration_s": 2})
    marking = Scenario.model_validate({**GOOD, "duration_s": 2, "bottleneck": MARKING})
    named = without.model_copy(update={"flows": (Flow(controller="prague"),)})
    said = r"flow-1 has the controller prague, .*bottleneck\.queue\.ecn_marking"
    with pytest.warns(UserWarning, match=said):
        quicgym.run(without, "prague")
    with pytest.warns(UserWarning, match=said):
        quicgym.run(named)
    with pytest.warns(UserWarning, match=r"prague: .* in 1 of 2 scenarios \(mine\)"):
        other = marking.model_copy(update={"name": "marking"})
        make_evaluation_jobs(["prague", "cubic"], [without, other], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quicgym.run(marking, "prague")
        quicgym.run(without, "cubic")


def test_an_access_link_below_the_bottleneck_s_rate_warns(tmp_path: Path) -> None:
    slow = {"rate_mbps": 5, "delay_ms": 1}
    with pytest.warns(UserWarning, match=r"flows\.1\.access\.rate_mbps = 5: .* 15, .*at least 15"):
        load_scenario(write(tmp_path, flows=[{}, {"access": slow}]))
    with pytest.warns(UserWarning, match=r": access\.rate_mbps = 5: "):
        load_scenario(write(tmp_path, access=slow))


def test_acks_rarer_than_round_trips_warn(tmp_path: Path) -> None:
    rare = {"ack_eliciting_threshold": 300, "max_ack_delay_ms": 400}
    with pytest.warns(UserWarning, match=r"flows\.0\.ack_frequency: .* in 193 ms at 15 Mbps"):
        load_scenario(write(tmp_path, flows=[{"ack_frequency": rare}]))


def test_every_packaged_scenario_and_suite_loads_without_a_warning() -> None:
    for suite in suite_names():
        packaged_suite(suite)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in scenario_names():
            scenario = load_scenario(name)
            assert scenario.name == name and scenario.source


def test_the_reverse_link_defaults_to_the_bottleneck_without_its_loss() -> None:
    scenario = Scenario(
        name="a",
        duration_s=1,
        bottleneck=Link(
            rate_mbps=3,
            delay_ms=4,
            queue=Queue(limit=9, discipline="codel"),
            loss=BernoulliLoss(probability=0.1),
        ),
        access=Access(rate_mbps=1, delay_ms=1),
        flows=(Flow(),),
    )
    assert scenario.links["reverse"] == Link(rate_mbps=3, delay_ms=4, queue=Queue(limit=9))


def test_the_reverse_queue_has_the_unit_of_the_bottleneck_s() -> None:
    queue = {"limit": 90_000, "unit": "bytes"}
    link = {"rate_mbps": 15, "delay_ms": 10, "queue": queue}
    reverse = Scenario.model_validate({**GOOD, "bottleneck": link}).links["reverse"]
    assert reverse.queue == Queue(limit=90_000, unit="bytes")


def test_counted_flows_get_names() -> None:
    scenario = Scenario.model_validate({**GOOD, "flows": [{}, {"name": "x", "count": 2}, {}]})
    assert [name for name, _ in scenario.single_flows()] == ["flow-1", "x-1", "x-2", "flow-4"]


def test_from_python_the_same_checks_hold_and_nothing_can_be_changed() -> None:
    with pytest.raises(ValidationError, match="not after the start"):
        Flow(start_s=2, stop_s=1)
    with pytest.raises(ValidationError, match="frozen"):
        load_scenario("ebcc-single").duration_s = 5  # type: ignore[misc]


rates, delays = st.floats(0.001, 100_000), st.floats(0, 60_000)
probabilities = st.floats(0, 1)
losses = st.fixed_dictionaries(
    {"kind": st.just("gilbert-elliott")}
    | dict.fromkeys(("good_to_bad", "bad_to_good", "loss_in_good", "loss_in_bad"), probabilities)
)
bursts = {"kind": "bursts", "rate_mbps": 0.1, "burst_rate_mbps": 1 / 3, "burst_duration_s": 1e-3,
          "burst_period_s": 1000.0, "burst_count": 2**40}  # fmt: skip
more_flows = st.fixed_dictionaries(
    {
        "count": st.integers(1, 4),
        "parameters": st.sampled_from([{}, {"gamma": float("inf"), "gain_cycle": (1.25, 0.75)}]),
        "application": st.just(bursts)
        | st.builds(lambda rate: {**bursts, "rate_mbps": rate}, rates),
        "access": st.none() | st.fixed_dictionaries({"rate_mbps": rates, "delay_ms": delays}),
        "max_datagram_bytes": st.none() | st.integers(1200, 1472),
        "flow_control_window_bytes": st.integers(1, 2**40),
        "ecn": st.booleans(),
    }
)


@pytest.mark.filterwarnings("ignore:.*no queue on its path marks")
@settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=list(HealthCheck),
)
@given(
    network=native_networks,
    loss=losses,
    flow=more_flows,
    name=st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True),
    description=st.text(max_size=20),
    gamma=st.floats(1, 100),
)
def test_a_scenario_survives_yaml(
    tmp_path: Path, network: Scenario, loss: Any, flow: Any, gamma: float, **texts: str
) -> None:
    fields = network.model_dump(exclude_none=True, exclude={"source"})
    fields["bottleneck"]["loss"] = loss
    fields["flows"] = (*fields["flows"], {"controller": "ebcc", **flow})
    scenario = Scenario.model_validate(
        fields | {"controller_parameters": {"ebcc": {"gamma": gamma}}, **texts}
    )
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(scenario.model_dump()), encoding="utf-8")
    assert load_scenario(path) == scenario
    path.write_text(as_yaml(scenario, str), encoding="utf-8")
    assert load_scenario(path) == scenario


def test_a_short_yaml_keeps_kinds_and_says_where_a_trace_is(tmp_path: Path) -> None:
    lossy = load_scenario("vivace-loss-1")
    text = as_yaml(lossy, str)
    assert "kind: bernoulli" in text and "extra_delay_ms" not in text
    (tmp_path / "short.yaml").write_text(text)
    assert load_scenario(tmp_path / "short.yaml") == lossy
    cellular = load_scenario("beyond-ebcc-cellular")
    (tmp_path / "drawn.yaml").write_text(as_yaml(cellular, lambda it: it.name))
    assert load_scenario(tmp_path / "drawn.yaml") == cellular
    (tmp_path / "rates.trace").write_text("1\n")
    link = cellular.bottleneck.model_copy(update={"trace": tmp_path / "rates.trace"})
    measured = cellular.model_copy(update={"bottleneck": link})
    assert "trace: rates.trace" in as_yaml(measured, lambda it: it.name)


def test_a_changed_copy_is_checked_too() -> None:
    scenario = load_scenario("ebcc-single")
    assert scenario.bottleneck is not None
    assert scenario.model_copy(update={"duration_s": 5.0}).duration_s == 5
    for part, change in (
        (scenario.bottleneck, {"rate_mbps": 0.0}),
        (scenario, {"max_datagram_bytes": 100}),
        (scenario, {"duration": 5.0}),
        (scenario.flows[0], {"count": 10**6}),
    ):
        with pytest.raises(ValueError, match=next(iter(change))):
            part.model_copy(update=change)


def test_a_sample_of_a_suite_is_every_nth_scenario(tmp_path: Path) -> None:
    assert load_suite("heldout/8") == packaged_suite("heldout")[::8]
    own = tmp_path / "own.yaml"
    own.write_text("[ebcc-single, ebcc-flows-3, ebcc-flows-5]")
    assert [entry.name for entry in load_suite(f"{own}/2")] == ["ebcc-single", "ebcc-flows-5"]
    assert load_suite(f"{own}/1") == load_suite(own)
    with pytest.raises(ScenarioError, match="from 1 to 3"):
        load_suite(f"{own}/4")
