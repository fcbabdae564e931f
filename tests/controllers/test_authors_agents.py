"""The authors' agents: what they measure, compute and do is what their own code does.

Weights and references are other people's files, which no repository of quicgym's has. Tests that
need them are skipped without them. The others take drawn weights.
"""

from __future__ import annotations

import json
from ctypes import c_int64

import numpy as np
import pytest
from helpers.authors import authors_file, published_agent, random_agent
from helpers.c_interface import Bottleneck, C, CController, MirroredPair, last_error
from helpers.endpoints import MILLISECOND, SECOND, make_flow

import quicgym as package
from quicgym import _core, controllers
from quicgym.agents.policies.by_name import PRETRAINED
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario

AGENTS = ("aurora", "orca", "indigo", "astraea")
TOLERANCE = 1e-4


def path_of(rate_mbps, rtt_ms, queue_packets, duration_s=20, **flow):
    """One flow over one bottleneck, with packets of 1448 bytes."""
    return Scenario.model_validate(
        {
            "name": "one-path",
            "duration_s": duration_s,
            "max_datagram_bytes": 1448,
            "bottleneck": {
                "rate_mbps": rate_mbps,
                "delay_ms": rtt_ms / 2,
                "queue": {"limit": queue_packets, "unit": "packets"},
            },
            "access": {"rate_mbps": 10_000, "delay_ms": 0},
            "flows": [flow],
        }
    )


def columns(reference, names):
    places = {name: place for place, name in enumerate(reference["raw_columns"])}
    return np.stack([reference["raw"][:, places[name]] for name in names.split()], axis=1)


def episodes(reference):
    """Yields the rows of each episode, which is one connection."""
    numbers = reference["raw"][:, 0]
    for episode in np.unique(numbers):
        yield np.flatnonzero(numbers == episode)


# ---- fidelity -----------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["aurora", "orca", "astraea"])
def test_network_gives_the_original_graphs_outputs(agent, tmp_path):
    reference = authors_file(f"{agent}-reference")
    network = network_of(published_agent(agent, tmp_path), *reference["inputs"].shape[1:], 1)
    assert np.abs(network(reference["inputs"]) - reference["actions"]).max() < TOLERANCE


def test_indigos_network_gives_the_original_graphs_scores(tmp_path):
    reference = authors_file("indigo-reference")
    network = network_of(published_agent("indigo", tmp_path), 9, 5)
    for inputs, scores, actions in zip(
        reference["closed_inputs"],
        reference["closed_scores"],
        reference["closed_actions"],
        strict=True,
    ):
        outputs, _ = network.unroll(inputs)
        assert np.abs(outputs - scores).max() < TOLERANCE
        assert np.array_equal(outputs.argmax(axis=1), actions)
    for i, inputs in enumerate(reference["open_inputs"]):
        state = np.concatenate([reference["open_h0"][i], reference["open_c0"][i]])
        outputs, state = network.unroll(inputs, state.tolist())
        assert np.abs(outputs - reference["open_scores"][i]).max() < TOLERANCE
        assert np.abs(state[:32] - reference["open_h"][i]).max() < TOLERANCE
        assert np.abs(state[32:] - reference["open_c"][i]).max() < TOLERANCE


def network_of(path, inputs, outputs):
    return _core.PolicyNetwork(
        **json.loads(path.read_text())["architecture"],
        observation_size=inputs,
        outputs=outputs,
        tensors=_core.read_safetensors(path.with_suffix(".safetensors").read_bytes()),
    )


def test_auroras_inputs_are_those_of_the_authors_code():
    reference = authors_file("aurora-reference")
    raw = columns(
        reference,
        "bytes_sent bytes_acked start_s end_s rtt_samples mean_rtt_first_half_s "
        "mean_rtt_second_half_s",
    )
    seconds = raw[:, 3] - raw[:, 2]
    packet = np.full(len(raw), 1500.0)
    rows = np.stack([raw[:, 0], raw[:, 1], packet, seconds, seconds, *raw[:, 4:].T], axis=1)
    for places in episodes(reference):
        features = _core.agent_features("aurora", rows[places].tolist())
        assert np.abs(features - reference["raw_features"][places]).max() < TOLERANCE


def test_auroras_rate_is_that_of_the_authors_code():
    reference = authors_file("aurora-reference")
    rates = columns(reference, "rate_packets_per_s_after action_before")
    for places in episodes(reference):
        for before, (after, action) in zip(rates[places][:-1, 0], rates[places][1:], strict=True):
            expected = min(max(_core.agent_decision("aurora", before, action), 40.0), 1000.0)
            assert after == pytest.approx(expected, rel=TOLERANCE)


def test_orcas_inputs_and_windows_are_those_of_the_authors_code():
    reference = authors_file("orca-reference")
    rows = columns(
        reference,
        "throughput_Bps pacing_rate_Bps loss_Bps rtt_samples cwnd interval_s min_rtt_ms srtt_ms",
    )
    for places in episodes(reference):
        features = _core.agent_features("orca", rows[places].tolist())
        assert np.abs(features - reference["raw_features"][places]).max() < TOLERANCE
    actions = reference["actions"][: len(rows), 0]
    percents = reference["factor_percent"]
    for window, action, percent in zip(reference["cwnd_packets"], actions, percents, strict=True):
        after = _core.agent_decision("orca", float(window), float(action))
        assert after == max(window * percent // 100, 4)


def test_astraeas_inputs_and_windows_are_those_of_the_authors_code():
    reference = authors_file("astraea-reference")
    raw = columns(
        reference,
        "avg_thr avg_urtt min_rtt srtt_us cwnd loss_ratio packets_out pacing_rate retrans_out",
    )
    rows = raw * [1, 1e-6, 1e-6, 1e-6 / 8, 1, 1, 1, 1, 1]
    for places in episodes(reference):
        features = _core.agent_features("astraea", rows[places].tolist())
        assert np.abs(features - reference["raw_features"][places]).max() < TOLERANCE
    windows, actions = reference["cwnd_packets"], reference["actions"][: len(rows), 0]
    for window, action, after in zip(windows, actions, reference["next_cwnd_packets"], strict=True):
        assert _core.agent_decision("astraea", float(window), float(action)) == after


def test_indigos_states_decisions_and_windows_are_those_of_the_authors_code():
    reference = authors_file("indigo-reference")
    names = {name: place for place, name in enumerate(reference["ack_columns"])}
    for path in np.unique(reference["acks"][:, 0]):
        acks = reference["acks"][reference["acks"][:, 0] == path]
        now, sent_at, before = (
            acks[:, names[n]] for n in ("arrival_ms", "send_ms", "steps_before")
        )
        delivered = np.cumsum(acks[:, names["ack_bytes"]])
        rows = [
            now,
            now - sent_at,
            delivered - acks[:, names["delivered_at_send"]],
            now - acks[:, names["delivered_time_ms_at_send"]],
            acks[:, names["sent_bytes_now"]] - acks[:, names["sent_bytes_at_send"]],
            np.ones(len(acks)),
        ]
        found = _core.agent_features("indigo", np.stack(rows, axis=1).tolist())
        decided = np.array([len(row) for row in found]) > 0
        assert np.array_equal(np.cumsum(decided)[:-1], acks[1:, names["steps_before"]])
        states = np.array([row for row in found if row])
        closed = reference["closed_states"][path]
        assert np.abs(states[: len(closed)] - closed[:, :3]).max() < TOLERANCE
        window = 10.0
        steps = zip(
            closed[:, 3],
            reference["closed_actions"][path],
            reference["closed_cwnd_after"][path],
            strict=True,
        )
        for window_before, action, window_after in steps:
            assert window == window_before
            window = _core.agent_decision("indigo", window, float(action))
            assert window == window_after


# ---- behaviour that is known of the originals -------------------------------------------------


def goodput_mbps(choice, scenario, from_s=0.0):
    return package.run(scenario, str(choice), from_s=from_s).to_dict()["flows"][0]["goodput_mbps"]


def test_aurora_is_trapped_where_it_begins_with_few_packets_per_interval(tmp_path):
    """1000 packets per second and 100 ms; each packet acknowledged by itself, as in training."""
    agent = published_agent("aurora", tmp_path)
    rate_mbps = 1000 * 1448 * 8e-6
    every_packet = {"ack_frequency": {"ack_eliciting_threshold": 0}}
    scenario = path_of(rate_mbps, 100, 1000, duration_s=30, **every_packet)
    shares = {}
    for packets in (10, 40):
        first_mbps = packets / 0.05 * 1448 * 8e-6
        choice = f"{agent}:first_rate_mbps={first_mbps:.3f}"
        shares[packets] = goodput_mbps(choice, scenario, from_s=20) / rate_mbps
    assert shares[10] < 0.1
    assert shares[40] > 0.8


def test_auroras_published_client_is_blind_to_latency(tmp_path):
    agent = published_agent("aurora", tmp_path)
    rtt_ms = {}
    for variant in ("as-trained", "published-client"):
        run = package.run(path_of(12, 100, 400), f"{agent}:variant={variant}", from_s=10)
        rtt_ms[variant] = run.to_dict()["flows"][0]["mean_rtt_ms"]
    assert rtt_ms["as-trained"] < 150
    assert rtt_ms["published-client"] > 300


@pytest.mark.parametrize("rtt_ms", [20, 40, 60])
def test_orca_rests_with_a_queue_of_about_a_tenth_of_the_minimum_rtt(rtt_ms, tmp_path):
    agent = published_agent("orca", tmp_path)
    run = package.run(path_of(48, rtt_ms, 8 * rtt_ms), str(agent), from_s=10)
    queueing = run.to_dict()["flows"][0]["mean_rtt_ms"] / rtt_ms - 1
    assert 0.05 < queueing < 0.25


def test_indigo_starts_with_plus_ten_and_doublings(tmp_path):
    agent = published_agent("indigo", tmp_path)
    run = package.run(path_of(100, 54, 173), str(agent), trace_interval_ms=10)
    windows = run.traces()["window_bytes"] / 1448
    steps = windows[windows.diff() != 0].tolist()
    assert steps[:4] == [10, 20, 40, 80]


def test_astraea_grows_by_a_packet_per_decision_at_first(tmp_path):
    agent = published_agent("astraea", tmp_path)
    run = package.run(path_of(100, 30, 500), str(agent), trace_interval_ms=30)
    windows = run.traces()["window_bytes"] / 1448
    growth = windows.diff()[2:20]
    assert set(growth) == {1.0}


# ---- as controllers, with drawn weights --------------------------------------------------------


@pytest.mark.parametrize("agent", AGENTS)
def test_agent_repeats_itself(agent, tmp_path):
    choice = str(random_agent(agent, tmp_path))
    scenario = path_of(10, 30, 60, duration_s=4)
    results = [package.run(scenario, choice, seed=1).to_dict()["flows"] for _ in range(2)]
    assert results[0] == results[1]
    assert results[0][0]["goodput_mbps"] > 0


@pytest.mark.parametrize("agent", AGENTS)
def test_agent_competes_in_a_scenario_file(agent, tmp_path):
    random_agent(agent, tmp_path)
    file = tmp_path / "beside.yaml"
    file.write_text(
        "name: beside\nduration_s: 3\n"
        "bottleneck: {rate_mbps: 10, delay_ms: 10, queue: {limit: 50, unit: packets}}\n"
        "access: {rate_mbps: 1000, delay_ms: 1}\n"
        f"flows:\n- {{}}\n- {{controller: {agent}.json}}\n"
    )
    run = package.run(file, "cubic")
    assert [flow["controller"] for flow in run.to_dict()["flows"]] == ["cubic", agent]


def test_evaluation_names_variant_and_kind(quicgym, tmp_path):
    random_agent("aurora", tmp_path)
    choices = ["aurora.json", "real=aurora.json:variant=published-client"]
    done = quicgym(
        "evaluate", "--policy", *choices, "--suite", "ebcc-single", "--seeds", 1, "--jobs", 1,
        "--until-s", 5, "--format", "csv", "--out", tmp_path / "out",
    )  # fmt: skip
    assert "aurora.json," in done.stdout
    assert "real," in done.stdout


def test_agent_is_named_by_its_parameters(tmp_path):
    path = random_agent("aurora", tmp_path)
    info = controllers.find(f"{path}:variant=published-client")
    assert info.complete()["variant"] == [1.0]
    with pytest.raises(ValueError, match="give one of as-trained, published-client"):
        controllers.find(f"{path}:variant=other")
    with pytest.raises(ValueError, match="no parameter 'gamma'"):
        controllers.find(f"{path}:gamma=3")


def test_policy_is_no_controller_and_an_agent_no_policy(tmp_path):
    path = random_agent("orca", tmp_path)
    with pytest.raises(package.errors.PolicyError, match="a controller with its own clock"):
        package.load_policy(str(path))
    policy = PRETRAINED / "tuning.json"
    with pytest.raises(ScenarioError, match="is a policy of an environment, not a controller"):
        package.run(path_of(10, 30, 60), str(policy))


@pytest.mark.parametrize(("agent", "output"), [("orca", 1.0), ("astraea", 1.0), ("indigo", 4.0)])
def test_a_window_that_rises_with_every_decision_stays_within_bounds(agent, output):
    window = 10.0
    for _ in range(3000):
        window = _core.agent_decision(agent, window, output)
    assert window == 1e6


def test_damaged_weights_are_refused(tmp_path):
    path = random_agent("orca", tmp_path)
    weights = path.with_suffix(".safetensors")
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(ScenarioError, match=r"orca\.safetensors: its SHA-256 is"):
        package.run(path_of(10, 30, 60), str(path))
    path.unlink()
    with pytest.raises(ScenarioError, match="import-agent wrote"):
        package.run(path_of(10, 30, 60), str(path))


def test_missing_field_and_other_architectures_are_refused(tmp_path):
    path = random_agent("orca", tmp_path)
    whole = path.read_text()
    for change, reason in [
        (('"agent": "orca"', '"agent": "orcas"'), "give one of aurora, orca, indigo, astraea"),
        (('"output": "tanh"', '"output": "linear"'), "orca has tanh; import the agent again"),
        (('"agent": "orca",', '"agent": "orca", "history_length": 10,'), "unknown field"),
        (('"agent": "orca"', '"agent": "astraea"'), "has the shape"),
    ]:
        path.write_text(whole.replace(*change))
        with pytest.raises(ScenarioError, match=reason):
            package.run(path_of(10, 30, 60), str(path))


@pytest.mark.ns3
@pytest.mark.parametrize("agent", AGENTS)
def test_both_engines_deliver_the_same(agent, tmp_path):
    choice = str(random_agent(agent, tmp_path))
    deliveries = []
    for engine in ("native", "ns3"):
        scenario = path_of(10, 30, 60, duration_s=3)
        with package.Simulation(scenario, engine, 1, choice, record_deliveries=True) as simulation:
            simulation.run_until(3)
            deliveries.append(simulation.deliveries())
    assert len(deliveries[0]) > 50
    assert np.array_equal(*deliveries)


# ---- behind the C interface ---------------------------------------------------------------------


class AgentBehindC(CController):
    """A handle of an agent's controller."""

    def __init__(self, path):
        policy = C["policy_load"](str(path).encode())
        assert policy, last_error()
        self.handle = C["policy_controller_new"](policy, 1200, 1, 0)
        C["policy_free"](policy)

    def decide(self, now):
        due = c_int64()
        assert C["policy_decide"](self.handle, now, due) == 0, last_error()
        return due.value


def test_agent_without_timers_has_the_simulators_window_behind_the_c_interface(tmp_path):
    path = random_agent("indigo", tmp_path)
    flow = make_flow()
    flow.set_plugin_controller(_core.load_agent(str(path)))
    windows = set()

    def compare(pair):
        windows.add(pair.sender.snapshot.window_bytes)
        assert pair.controller.window_bytes == pair.sender.snapshot.window_bytes

    bottleneck = Bottleneck(4_000_000, 20, lost=range(350, 900, 97))
    MirroredPair(flow, AgentBehindC(path), bottleneck, compare).run_until(2 * SECOND)
    assert len(windows) > 2


def test_agent_behind_the_c_interface_decides_when_its_timer_is_due(tmp_path):
    agent = AgentBehindC(random_agent("astraea", tmp_path))
    assert agent.decide(0) == 10 * MILLISECOND
    agent.on_handshake(20 * MILLISECOND, 20 * MILLISECOND)  # the first decision
    assert agent.decide(20 * MILLISECOND) == 30 * MILLISECOND
    window = agent.window_bytes
    assert agent.decide(50 * MILLISECOND) == 60 * MILLISECOND
    assert agent.window_bytes != window
