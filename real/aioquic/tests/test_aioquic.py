"""The stack aioquic: what it does in virtual time, and what a controller hears, in which order."""

import numpy as np
import pytest
from helpers.authors import random_agent
from helpers.packages import compile_example
from helpers.scenarios import short

import quicgym
from quicgym.envs.simulation.qlog import read_log
from quicgym.errors import UserError
from quicgym.real import RealRun, StackError, run_stack
from quicgym.real.hosted_controller import HostedController

aioquic_stack = pytest.importorskip("quicgym_aioquic.stack")


@pytest.fixture
def scenario(tmp_path):
    return short(tmp_path)


@pytest.fixture
def lossy(tmp_path):
    return short(tmp_path, loss=0.02)


def test_a_run_in_virtual_time_measures_what_the_simulator_does(scenario):
    paced = [flow.model_copy(update={"pace_initial_window": True}) for flow in scenario.flows]
    simulated = quicgym.run(scenario.model_copy(update={"flows": tuple(paced)}), "newreno")
    result = quicgym.run(scenario, "newreno", stack="aioquic", clock="virtual")
    assert isinstance(result, RealRun)
    assert result.engine == "aioquic-virtual"
    for metric in ("goodput_mbps", "mean_rtt_ms", "send_rate_mbps", "mean_one_way_delay_ms"):
        assert result.metrics[metric] == pytest.approx(simulated.metrics[metric], rel=0.1), metric
    trace = result.trace()
    assert trace["received_bytes"].is_monotonic_increasing
    assert trace["rtt_ms"].iloc[-1] > 50
    assert len(result.queue_trace()) == 150
    document = result.to_dict()
    assert document["audit"] is None
    assert 0 < document["reward"] < 1


def test_two_runs_in_virtual_time_are_equal(lossy):
    first, second = (
        run_stack(lossy, "cubic", "aioquic", "virtual", seed=3).to_dict() for _ in range(2)
    )
    assert first == second


def test_a_flow_that_is_paced_sends_at_the_rate_that_its_controller_asks_for(scenario):
    result = run_stack(scenario, "bbr", "aioquic", "virtual")
    trace = result.trace().set_index("time_s").loc[0.7:]
    paced = trace["pacing_rate_mbps"].mean()
    sent = (
        (trace["sent_bytes"].iloc[-1] - trace["sent_bytes"].iloc[0])
        * 8e-6
        / (trace.index[-1] - trace.index[0])
    )
    assert sent == pytest.approx(paced, rel=0.1)


class Listening(HostedController):
    """Writes down what it is told."""

    told: list = []

    def _call(self, function, *arguments):
        numbers = arguments[-2][:] if function in ("on_ack", "on_loss") else None
        Listening.told.append((function, arguments[0], numbers or arguments[1:2]))
        super()._call(function, *arguments)


@pytest.fixture
def told(monkeypatch):
    Listening.told = []
    monkeypatch.setattr(aioquic_stack, "HostedController", Listening)
    return Listening.told


def test_waiting_for_the_receiver_is_not_waiting_for_the_application(told, scenario):
    narrow = [
        flow.model_copy(update={"flow_control_window_bytes": 20_000}) for flow in scenario.flows
    ]
    narrowed = scenario.model_copy(update={"flows": tuple(narrow)})
    with pytest.warns(UserWarning, match="flow_control_window_bytes = 20000: aioquic doubles"):
        run_stack(narrowed, "newreno", "aioquic", "virtual")
    names = [name for name, _, _ in told]
    assert "on_window_unused" in names
    assert "on_app_limited" not in names


def test_events_come_in_the_order_that_the_c_interface_asks_for(told, lossy):
    run_stack(lossy, "newreno", "aioquic", "virtual", seed=1)
    order = {"on_ack": 0, "on_loss": 1, "on_persistent_congestion": 2}
    packets = [entry for entry in told if entry[0] in ("on_sent", *order)]
    assert [entry[0] for entry in told].count("on_handshake") == 1
    assert next(name for name, _, _ in told if name.startswith("on_")) == "on_handshake"
    times = [time for _, time, _ in packets]
    assert times == sorted(times)
    for (name, time, _), (following, later, _) in zip(packets, packets[1:], strict=False):
        if later == time and name in order and following in order:
            assert order[name] < order[following]
    sent = [numbers[0] for name, _, numbers in packets if name == "on_sent"]
    assert sent == sorted(set(sent))
    acked, lost = (
        [number for name, _, numbers in packets if name == kind for number in numbers]
        for kind in ("on_ack", "on_loss")
    )
    for name, _, numbers in packets:
        if name in ("on_ack", "on_loss"):
            assert list(numbers) == sorted(numbers)
    assert len(set(acked)) == len(acked)
    assert len(set(lost)) == len(lost) > 0
    assert set(acked) | set(lost) <= set(sent)


def test_packets_in_flight_are_those_that_the_library_counts(told, lossy):
    """Each packet that was sent is acknowledged, lost, or in flight still: none is forgotten."""
    result = run_stack(lossy, "cubic", "aioquic", "virtual", seed=2)
    outstanding = {}
    for name, _, numbers in told:
        if name == "on_sent":
            outstanding[numbers[0]] = True
        elif name in ("on_ack", "on_loss"):
            for number in numbers:
                outstanding.pop(number, None)
    in_flight = result.trace()["in_flight_bytes"].iloc[-1]
    size = lossy.max_datagram_bytes
    assert len(outstanding) == pytest.approx(in_flight / size, abs=3)


FIXED = '''
import quicgym
from quicgym.controllers import Parameter


class Fixed(quicgym.Controller):
    """A window of so many packets."""

    name = "fixed"
    parameters = (Parameter("packets", 20.0, 2.0, 1000.0),)

    def on_start(self, max_datagram_bytes):
        self.window_bytes = int(self.packets * max_datagram_bytes)

    def on_ack(self, event):
        self.window_bytes = int(self.packets * self.max_datagram_bytes)

    def on_loss(self, event):
        pass
'''


def test_a_users_controller_in_python_runs_in_virtual_time(scenario, tmp_path):
    (tmp_path / "mine.py").write_text(FIXED)
    place = f"{tmp_path}/mine.py:Fixed"
    windows = {}
    for choice, packets in ((place, 20), (f"{place}:packets=8", 8)):
        simulated = quicgym.run(scenario, choice)
        result = quicgym.run(scenario, choice, stack="aioquic", clock="virtual")
        window = result.flows[0].mean_window_packets
        assert window == pytest.approx(packets, rel=0.05)
        assert result.metrics["goodput_mbps"] == pytest.approx(
            simulated.metrics["goodput_mbps"], rel=0.1
        )
        windows[result.flows[0].controller] = window
    assert set(windows) == {"mine.py:Fixed", "mine.py:Fixed:packets=8"}  # as in simulations


def test_a_users_controller_in_a_library_runs_in_virtual_time(scenario, tmp_path):
    compile_example(tmp_path / "libmine.so")
    place = f"{tmp_path}/libmine.so:aimd"
    simulated = quicgym.run(scenario, place)
    result = quicgym.run(scenario, place, stack="aioquic", clock="virtual")
    assert result.flows[0].controller == simulated.flows[0].controller == "libmine.so:aimd"
    assert result.metrics["goodput_mbps"] == pytest.approx(
        simulated.metrics["goodput_mbps"], rel=0.1
    )


def test_python_in_real_time_is_said(scenario, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(FIXED)

    def run_nothing(*arguments):
        raise UserError("nothing runs")

    monkeypatch.setattr("quicgym.real.runs._run_real", run_nothing)
    with pytest.warns(UserWarning, match="is in Python"), pytest.raises(UserError, match="nothing"):
        quicgym.run(scenario, f"{tmp_path}/mine.py:Fixed", stack="aioquic", clock="real")


def test_a_users_controller_that_fails_ends_the_run(scenario, tmp_path):
    text = FIXED.replace("int(self.packets * self.max_datagram_bytes)", "1 / 0")
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises((UserError, StackError), match="division by zero"):
        quicgym.run(scenario, f"{tmp_path}/mine.py:Fixed", stack="aioquic", clock="virtual")


def test_a_learned_policy_decides_at_its_interval(scenario):
    result = run_stack(scenario, "window", "aioquic", "virtual")
    assert result.flows[0].controller == "window"
    windows = result.trace()["window_bytes"]
    assert len(np.unique(windows)) > 5
    assert result.metrics["goodput_mbps"] > 1


@pytest.mark.parametrize("agent", ["aurora", "orca", "indigo", "astraea"])
def test_an_agent_of_other_authors_decides_on_the_stacks_clock(agent, scenario, tmp_path):
    result = run_stack(scenario, str(random_agent(agent, tmp_path)), "aioquic", "virtual")
    rates = result.trace()[["window_bytes", "pacing_rate_mbps"]]
    assert len(rates.drop_duplicates()) > 5
    assert result.metrics["goodput_mbps"] > 0


def test_aioquic_s_own_controllers_run_without_ours(scenario):
    result = run_stack(scenario, "aioquic-reno", "aioquic", "virtual")
    assert result.flows[0].controller == "aioquic-reno"
    assert result.metrics["goodput_mbps"] > 1


def test_two_flows_share_the_link(tmp_path):
    scenario = short(tmp_path, flow="{count: 2, start_jitter_ms: 100}")
    result = run_stack(scenario, ["newreno", "cubic"], "aioquic", "virtual")
    assert [flow.controller for flow in result.flows] == ["newreno", "cubic"]
    assert all(flow.goodput_mbps > 0 for flow in result.flows)
    assert result.metrics["efficiency_index_mbps"] > 3


def test_a_sized_transfer_is_complete_when_the_receiver_has_every_byte(tmp_path):
    flow = "{application: {kind: transfer, size_bytes: 200000}}"
    scenario = short(tmp_path, flow=flow)
    simulated = quicgym.run(scenario, "cubic").metrics["completion_time_s"]
    result = run_stack(scenario, "cubic", "aioquic", "virtual")
    assert result.metrics["completion_time_s"] == pytest.approx(simulated, rel=0.15)


def test_qlog_has_the_times_of_the_run(scenario, tmp_path, monkeypatch):
    monkeypatch.setenv("QLOGDIR", str(tmp_path))
    result = run_stack(scenario, "newreno", "aioquic", "virtual")
    _, *events = read_log(tmp_path / "flow-0-sender.sqlog")
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert times[0] == 0.0
    assert 1400 < times[-1] <= 1500
    sent = [event for event in events if event["name"] == "transport:datagrams_sent"]
    payload = sum(event["data"]["raw"][0]["payload_length"] for event in sent)
    assert payload == result.trace()["sent_bytes"].iloc[-1]
    windows = [
        event["data"]["congestion_window"]
        for event in events
        if "congestion_window" in event["data"]
    ]
    assert max(windows) > min(windows)
    assert (tmp_path / "flow-0-receiver.sqlog").is_file()


def test_a_folder_for_qlog_has_to_be_there(scenario, tmp_path, monkeypatch):
    monkeypatch.setenv("QLOGDIR", str(tmp_path / "missing"))
    with pytest.raises(UserError, match="is no folder"):
        run_stack(scenario, "newreno", "aioquic", "virtual")


def test_a_byte_that_differs_ends_the_run(monkeypatch, scenario):
    original = aioquic_stack.content

    def altered(offset, size):
        data = bytearray(original(offset, size))
        data[-1] ^= offset > 100_000
        return memoryview(bytes(data))

    monkeypatch.setattr(aioquic_stack, "content", altered)
    with pytest.raises(StackError, match="differs from what was sent"):
        run_stack(scenario, "cubic", "aioquic", "virtual")


def test_a_peer_that_closes_ends_the_run_with_its_reason(monkeypatch, scenario):
    original = aioquic_stack.Receiver.on_data

    def on_data(self, data):
        original(self, data)
        if self.comparison.compared_bytes > 100_000:
            self.connection.close(error_code=7, reason_phrase="gone fishing")

    monkeypatch.setattr(aioquic_stack.Receiver, "on_data", on_data)
    with pytest.raises(StackError, match="gone fishing"):
        run_stack(scenario, "cubic", "aioquic", "virtual")


def test_a_run_ends_at_its_deadline(monkeypatch, scenario):
    monkeypatch.setattr("quicgym.real.runs.VIRTUAL_GRACE", 0.0)
    with pytest.raises(StackError, match="deadline of 0 s has passed"):
        run_stack(scenario, "cubic", "aioquic", "virtual")
