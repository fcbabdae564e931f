"""quicgym's controllers and policies in noq, in virtual time."""

from __future__ import annotations

import numpy as np
import pytest
from runs import (
    INTERVAL,
    SECOND,
    catalogue,
    goodput_mbps,
    mean_rtt_ms,
    of_scenario,
    own,
    plans,
    policy,
    run,
    short,
)

import quicgym
from quicgym import load_scenario
from quicgym.envs.simulation.qlog import read_log
from quicgym.errors import UserError
from quicgym.real.stacks import NEVER, StackError, find_stack

SINGLE = load_scenario("ebcc-single")


@pytest.mark.parametrize("name", ["newreno", "cubic", "bbr", "bbr3", "ebcc"])
def test_a_controller_does_in_noq_what_it_does_in_the_simulator(name):
    flows = plans(SINGLE, of_scenario(SINGLE, name))
    (record,) = run(SINGLE, flows)
    simulated = quicgym.run(SINGLE, name, seed=1).flows[0]
    goodput = goodput_mbps(SINGLE, flows[0], record)
    assert goodput == pytest.approx(simulated.goodput_mbps, rel=0.005)
    assert mean_rtt_ms(record) == pytest.approx(simulated.mean_rtt_ms, rel=0.015)


def test_the_records_are_complete_and_consistent():
    (record,) = run(SINGLE, plans(SINGLE, catalogue("cubic")))
    rows = record.rows
    assert rows["time"].tolist() == list(range(0, 20 * SECOND + 1, INTERVAL))
    for total in ("delivered_bytes", "lost_bytes", "lost_packets", "goodput_bytes"):
        assert (np.diff(rows[total].astype(np.int64)) >= 0).all(), total
    end = rows[-1]
    assert record.compared_bytes == end["goodput_bytes"] > 0.95 * end["delivered_bytes"]
    assert end["lost_bytes"] == pytest.approx(1400 * end["lost_packets"], rel=0.01)
    assert end["in_flight_bytes"] <= end["window_bytes"]
    assert rows["window_bytes"].max() > 10 * 1400
    assert (np.diff(record.rtt[:, 0]) >= 0).all()
    assert record.rtt[:, 1].min() >= 100_000_000  # twice 10 ms and 2 * 20 ms
    assert end["smoothed_rtt"] == pytest.approx(record.rtt[-1, 1], rel=0.1)
    assert record.completion == NEVER
    assert len(record.decision_lateness) == 0


def test_the_same_seed_gives_the_same_run(tmp_path):
    scenario = short(tmp_path, "  loss: {kind: bernoulli, probability: 0.02}")
    first, again, other = (
        run(scenario, plans(scenario, catalogue("bbr"), seed))[0] for seed in (5, 5, 6)
    )
    assert (first.rows == again.rows).all() and (first.rtt == again.rtt).all()
    assert not (first.rows == other.rows).all()


def test_a_policy_decides_on_the_senders_clock():
    (record,) = run(SINGLE, plans(SINGLE, policy("window")))
    assert len(record.decision_lateness) > 100
    assert (record.decision_lateness == 0).all()  # nothing is late in virtual time
    assert record.rows["goodput_bytes"][-1] > 30_000_000


def test_parameters_reach_the_controller(tmp_path):
    scenario = short(tmp_path)
    windows = [
        run(scenario, plans(scenario, catalogue("ebcc", gamma=[gamma])))[0].rows["window_bytes"]
        for gamma in (10.0, 100.0)
    ]
    assert (windows[0] != windows[1]).any()


@pytest.mark.parametrize("name", ["noq-newreno", "noq-cubic", "noq-bbr3"])
def test_noqs_own_controllers_keep_the_link_busy(name):
    assert name in find_stack("noq").own_controllers
    flows = plans(SINGLE, own(name))
    (record,) = run(SINGLE, flows)
    assert 12 < goodput_mbps(SINGLE, flows[0], record) < 15
    assert record.rows["pacing_rate"][-1] > 1e6


def test_flows_share_a_bottleneck():
    scenario = load_scenario("ebcc-flows-3")
    flows = plans(scenario, of_scenario(scenario, "cubic"))
    records = run(scenario, flows)
    simulated = quicgym.run(scenario, "cubic", seed=1).flows
    total = sum(goodput_mbps(scenario, *pair) for pair in zip(flows, records, strict=True))
    assert total == pytest.approx(sum(flow.goodput_mbps for flow in simulated), rel=0.02)
    first = [np.argmax(record.rows["goodput_bytes"] > 0) * INTERVAL for record in records]
    assert all(at > flow.start for at, flow in zip(first, flows, strict=True))


def test_a_transfer_ends_when_the_receiver_has_all(tmp_path):
    scenario = short(tmp_path, "  loss: {kind: bernoulli, probability: 0.01}")
    size = 612_345
    (record,) = run(scenario, plans(scenario, catalogue("newreno"), size_bytes=size))
    assert record.compared_bytes == record.rows["goodput_bytes"][-1] == size
    assert 0.82 * SECOND < record.completion < 3 * SECOND  # at 6 Mbps and less


def test_nothing_is_sent_after_the_stop(tmp_path):
    scenario = short(tmp_path)
    (record,) = run(scenario, plans(scenario, catalogue("cubic"), stop=SECOND))
    late = record.rows[record.rows["time"] > 1.2 * SECOND]
    assert len(set(late["goodput_bytes"].tolist())) == 1


@pytest.mark.parametrize(
    "text",
    [
        "  loss: {kind: gilbert-elliott, good_to_bad: 0.005, bad_to_good: 0.2, loss_in_bad: 0.7}",
        "  jitter: {kind: uniform, max_ms: 6}\n  reordering: true",
        "  rate_schedule: [{at_s: 1, rate_mbps: 0}, {at_s: 2, rate_mbps: 6}]",
    ],
    ids=["bursts of losses", "reordering", "outage"],
)
def test_every_byte_is_compared_over_bad_links(text, tmp_path):
    scenario = short(tmp_path, text)
    (record,) = run(scenario, plans(scenario, catalogue("newreno")))
    assert record.compared_bytes == record.rows["goodput_bytes"][-1] > 200_000
    if "rate_mbps: 0" in text:
        assert record.probe_timeouts > 0


@pytest.mark.parametrize(
    ("steering", "changes", "text"),
    [
        (catalogue("cubic"), {"ecn": True}, "set ecn to false"),
        (catalogue("prague"), {}, "wants ECT"),
        (catalogue("cubik"), {}, "no controller is named 'cubik'"),
        (catalogue("cubic", gamma=[1.0]), {}, "gamma"),
        (own("noq-vegas"), {}, "noq has no controller"),
    ],
)
def test_what_noq_cannot_do_is_refused_with_a_reason(steering, changes, text, tmp_path):
    scenario = short(tmp_path)
    with pytest.raises(StackError, match=text):
        run(scenario, plans(scenario, steering, **changes))
    assert issubclass(StackError, UserError)


def test_the_receiver_acknowledges_as_the_scenario_says():
    often, seldom = (
        run(SINGLE, plans(SINGLE, catalogue("cubic"), ack_eliciting_threshold=threshold))[0]
        for threshold in (1, 9)
    )
    packets = often.rows["delivered_bytes"][-1] / 1400
    assert len(often.rtt) == pytest.approx(packets / 2, rel=0.05)
    assert len(seldom.rtt) == pytest.approx(packets / 10, rel=0.15)


def test_qlog_files_tell_of_packets_and_of_the_window(tmp_path):
    folder = tmp_path / "qlog"
    folder.mkdir()
    scenario = short(tmp_path)
    (record,) = run(scenario, plans(scenario, catalogue("newreno")), qlog=folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["flow-0-receiver.sqlog", "flow-0-sender.sqlog"]
    header, *events = read_log(folder / "flow-0-sender.sqlog")
    assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
    sent = [event for event in events if event["name"] == "transport:packet_sent"]
    assert len(sent) > 0.9 * record.rows["delivered_bytes"][-1] / 1300
    windows = [
        event["data"]["congestion_window"]
        for event in events
        if "congestion_window" in event["data"]
    ]
    assert max(windows) >= record.rows["window_bytes"].max()  # rows are 100 ms apart
    assert windows[-1] == pytest.approx(int(record.rows["window_bytes"][-1]), rel=0.05)
    assert max(event["time"] for event in events) <= 1e3 * scenario.duration_s


def test_a_qlog_folder_that_is_not_there_is_an_error(tmp_path):
    scenario = short(tmp_path)
    with pytest.raises(StackError, match="nowhere"):
        run(scenario, plans(scenario, catalogue("newreno")), qlog=tmp_path / "nowhere")


def test_progress_is_told_each_second_and_its_exception_ends_the_run(tmp_path):
    scenario = short(tmp_path)
    told = []
    run(
        scenario,
        plans(scenario, catalogue("cubic")),
        progress=lambda time, received, rtts: told.append((time, received[0], rtts[0])),
    )
    assert [time for time, _, _ in told] == [SECOND, 2 * SECOND, 3 * SECOND]
    assert 0 < told[0][1] < told[2][1]
    assert told[2][2] > 50_000_000

    def stop(time, received, rtts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scenario, plans(scenario, catalogue("cubic")), progress=stop)


def test_the_deadline_ends_a_run():
    with pytest.raises(StackError, match=r"the deadline of 0\.001 s has passed"):
        run(SINGLE, plans(SINGLE, catalogue("cubic")), deadline_s=0.001)
