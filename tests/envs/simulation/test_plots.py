"""Pictures of runs: what they draw is what the run's series and metrics say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from PIL import Image, ImageSequence

import quicgym
from quicgym import Scenario
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs.simulation.animation import Take, write_film
from quicgym.envs.simulation.plots import RunTraces, draw_episodes, draw_overview, draw_plane
from quicgym.plot_style import look_of


def scenario(**bottleneck: Any) -> Scenario:
    data = quicgym.load_scenario("ebcc-flows-3").model_dump(exclude_none=True)
    data["duration_s"] = 6.0
    data["bottleneck"] |= bottleneck
    return Scenario.model_validate(data)


def lines(axes: Axes) -> dict[str, Any]:
    return {str(line.get_label()): line for line in axes.lines}


def test_the_queue_trace_has_the_capacity_and_the_time_that_the_queue_takes() -> None:
    steps = [{"at_s": 2.0, "rate_mbps": 0.0}, {"at_s": 3.0, "rate_mbps": 30.0}]
    queue = quicgym.run(scenario(rate_schedule=steps), "cubic").queue_trace()
    rate = queue["capacity_mbps"].to_numpy()
    time = queue["time_s"].to_numpy()
    assert rate[time < 2.0] == pytest.approx(15.0)
    assert rate[(time > 2.01) & (time < 3.0)] == pytest.approx(0.0)
    assert rate[time > 3.01] == pytest.approx(30.0)
    fixed = (time < 1.8) & (queue["bytes"] > 0)
    expected = queue["bytes"][fixed] * 8e-3 / 15.0
    assert queue["delay_ms"][fixed].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-6)
    # In the outage what waits has to wait for its end first.
    waiting = queue[(time > 2.4) & (time < 2.6) & (queue["bytes"] > 0)]
    assert len(waiting) > 10
    expected = (3.0 - waiting["time_s"]) * 1e3 + waiting["bytes"] * 8e-3 / 30.0
    assert waiting["delay_ms"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1.5)


def test_a_trace_counts_the_opportunities_since_the_row_before() -> None:
    result = quicgym.run("beyond-ebcc-cellular", "cubic")
    queue = result.queue_trace()
    megabits = (queue["capacity_mbps"] * np.diff(queue["time_s"], prepend=0.0)).sum()
    received = result.trace(0)["received_bytes"].iloc[-1] * 8e-6
    assert 0.8 * megabits < received < megabits
    sent = np.round(queue["capacity_mbps"] * np.diff(queue["time_s"], prepend=0.0) * 1e6 / 8)
    assert (sent % 1500 == 0).all()


@pytest.mark.parametrize("engine", ["native", pytest.param("ns3", marks=pytest.mark.ns3)])
def test_traces_count_the_packets_that_the_network_drops(engine: str) -> None:
    with quicgym.Simulation(scenario(), engine, controllers="bbr") as simulation:
        simulation.run_until(5.0)  # a moment of which there is a row
        for flow in simulation.flows:
            dropped = simulation.trace(flow.index)["dropped_packets"].astype(int)
            assert (np.diff(dropped) >= 0).all()
            assert dropped[0] == 0 < dropped[-1] == flow.statistics["dropped_packets"]


def test_a_run_is_drawn_over_the_capacity_with_the_delay_below() -> None:
    result = quicgym.run(scenario(), ["cubic", "bbr", "ebcc"])
    upper, lower = result.plot().axes
    drawn = lines(upper)
    assert list(drawn) == ["flow-1: CUBIC", "flow-2: BBR", "flow-3: eBCC"]
    for (name, line), controller in zip(drawn.items(), ("cubic", "bbr", "ebcc"), strict=True):
        assert line.get_color() == look_of(controller).colour
        rates = line.get_ydata()
        flow = name.split(":")[0]
        received = result.trace(flow)["received_bytes"].iloc[-1] * 8e-6
        assert np.mean(rates) * (6.0 - 1.0) == pytest.approx(received, rel=0.1)
    (capacity,) = upper.collections
    assert capacity.get_label() == "capacity"
    assert capacity.get_datalim(upper.transData).y1 == pytest.approx(15.0)
    delay, *drops = lower.lines
    assert delay.get_ydata().max() == pytest.approx(result.queue_trace()["delay_ms"].max())
    assert len(drops) == 3 and sum(len(mark.get_xdata()) for mark in drops) > 0
    assert result.plot().legends[0].get_texts()[-1].get_text() == "drops"


def test_a_run_without_traces_cannot_be_drawn() -> None:
    result = quicgym.run(scenario(), "bbr", trace_interval_ms=None)
    with pytest.raises(ValueError, match="no traces to draw; run it with trace_interval_ms"):
        result.plot()


def test_the_plane_has_the_mean_and_the_standard_deviations_of_each_controller() -> None:
    numbers = {"cubic": [(50.0, 9.0), (60.0, 9.0), (70.0, 9.0)], "ebcc": [(10.0, 8.0)]}
    runs = [
        {"controller": name, "mean_queue_delay_ms": delay, "goodput_mbps": rate}
        for name, places in numbers.items()
        for delay, rate in places
    ]
    (axes,) = draw_plane(runs).axes
    assert axes.xaxis_inverted()
    means = [tuple(line.get_xydata()[0]) for line in axes.lines if len(line.get_xdata())]
    assert means == [(60.0, 9.0), (10.0, 8.0)]
    ellipses = [patch for patch in axes.patches if isinstance(patch, Ellipse)]
    assert len(ellipses) == 2  # an area and its edge; one run has none
    deviation = float(np.std([50.0, 60.0, 70.0]))
    assert max(ellipses[0].width, ellipses[0].height) == pytest.approx(2 * deviation)
    assert axes.get_xlim()[1] == axes.get_ylim()[0] == 0
    assert axes.get_xlim()[0] > 70 and axes.get_ylim()[1] > 9
    with pytest.raises(ValueError, match="which the plane shows"):
        draw_plane([{"controller": "cubic", "goodput_mbps": None}])


def test_next_to_others_a_controller_keeps_its_colour_in_the_plane() -> None:
    place = {"goodput_mbps": 9.0, "mean_queue_delay_ms": 50.0}
    runs = [{"controller": "cubic", **place}, {"controller": "cubic", "next_to": ["bbr3"], **place}]
    figure = draw_plane(runs)
    labelled = lines(figure.axes[0])
    assert {"CUBIC", "CUBIC next to BBRv3"} <= set(labelled)
    plain, next_to = labelled["CUBIC"], labelled["CUBIC next to BBRv3"]
    assert plain.get_color() == next_to.get_color() == look_of("cubic").colour
    assert plain.get_linestyle() != next_to.get_linestyle()


def test_the_overview_has_a_dot_for_each_network_and_their_median() -> None:
    runs = [
        {"controller": name, "scenario": network, "seed": seed, "reward": reward + 0.1 * seed}
        for name, rewards in {"cubic": (0.1, 0.2, 0.6), "mine": (0.4, 0.5, 0.6)}.items()
        for network, reward in zip("abc", rewards, strict=True)
        for seed in (0, 1)
    ]
    reward = draw_overview(runs).axes[0]
    assert [label.get_text() for label in reward.get_yticklabels()] == ["CUBIC", "mine"]
    dots, median, *_ = reward.lines
    assert list(dots.get_xdata()) == pytest.approx([0.15, 0.25, 0.65])
    assert list(median.get_xdata()) == pytest.approx([0.25])


def test_episodes_show_the_base_rtt_as_a_line() -> None:
    columns = ("time_s", "throughput_mbps", "capacity_mbps", "rtt_ms", "flow_window_bytes")
    series = pd.DataFrame(
        [[0.1, 9.0, 10.0, 60.0, 1e5], [0.2, 9.0, 10.0, 70.0, 1e5]], columns=columns
    )
    figure = draw_episodes({"cubic": series, "window": series}, base_rtt_ms=50.0)
    assert [*lines(figure.axes[1])["base RTT"].get_ydata()] == [50.0, 50.0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "capacity", "CUBIC", "Window", "base RTT",
    ]  # fmt: skip


CROSS = [{"first_hop": hop, "last_hop": hop} for hop in (1, 2, 3)]


@pytest.mark.parametrize("more", [[], CROSS], ids=["one flow", "cross traffic"])
def test_the_links_of_a_full_chain_are_drawn_as_full(more: list[dict[str, int]]) -> None:
    hop = {"rate_mbps": 10.0, "delay_ms": 5.0, "queue": {"limit": 50}}
    chain = {"name": "own", "duration_s": 20, "bottleneck": hop, "chain": [hop, hop]}
    access = {"rate_mbps": 100, "delay_ms": 1}
    network = Scenario.model_validate({**chain, "access": access, "flows": [{}, *more]})
    series = play(find_policy("cubic"), network).series_table()
    upper = draw_episodes({"cubic": series}).axes[0]
    assert upper.collections[0].get_datalim(upper.transData).ymax == pytest.approx(10)
    assert lines(upper)["CUBIC"].get_ydata()[-1] == pytest.approx(10, rel=0.05)
    take = Take.of_episode("cubic", series)
    assert take.capacity_megabits[-1] == pytest.approx(10 * 20, rel=0.01)
    assert take.megabits[-1] == pytest.approx(10 * 20, rel=0.05)


def test_the_film_shows_the_queue_the_rate_and_the_windows_of_both_runs(tmp_path: Path) -> None:
    takes = []
    for controller in ("cubic", "bbr"):
        run = quicgym.run(scenario(), controller)
        flows = {flow: run.trace(flow) for flow in ("flow-1", "flow-2", "flow-3")}
        traces = RunTraces(flows, dict.fromkeys(flows, controller), [run.queue_trace()], 6.0)
        takes.append(Take.of_run(controller, traces))
        assert takes[-1].megabits[-1] == pytest.approx(
            sum(trace["received_bytes"].iloc[-1] for trace in flows.values()) * 8e-6
        )
        assert takes[-1].capacity_megabits[-1] == pytest.approx(15.0 * 6.0)
        assert len(takes[-1].windows) == 3
    write_film(takes, tmp_path / "film.gif", frames=3)
    with Image.open(tmp_path / "film.gif") as film:
        assert film.n_frames == 3
        pictures = [frame.convert("RGB").tobytes() for frame in ImageSequence.Iterator(film)]
    assert len(set(pictures)) == 3


def test_the_base_rtt_is_the_least_that_propagation_takes() -> None:
    flows = scenario()
    assert flows.base_rtt_ms == 2 * (2 * flows.access.delay_ms) + 2 * flows.bottleneck.delay_ms
    slower = scenario(delay_schedule=[{"at_s": 1.0, "delay_ms": 2.0}])
    assert slower.base_rtt_ms == pytest.approx(
        flows.base_rtt_ms - (flows.bottleneck.delay_ms - 2.0)
    )
    with quicgym.Simulation(flows, controllers="vegas") as simulation:
        simulation.run()
        rtt = simulation.trace(0)["rtt"]
    assert flows.base_rtt_ms <= rtt[rtt > 0].min() * 1e-6 < 1.1 * flows.base_rtt_ms
