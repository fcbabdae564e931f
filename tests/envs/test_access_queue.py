"""What waits before the access link of an agent's host, in `info` and in pictures."""

from __future__ import annotations

import gymnasium
import numpy as np

import quicgym
from quicgym import Scenario
from quicgym.envs.render import EpisodePlot
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.links import Access, Link, Queue

PACKET_BYTES = 1230
"""On the wire: 1200 of UDP payload, and the headers of UDP, IPv4 and PPP."""


def scenario(access_mbps: float) -> Scenario:
    return Scenario(
        name="access",
        duration_s=4.0,
        max_datagram_bytes=1200,
        bottleneck=Link(rate_mbps=8.0, delay_ms=10, queue=Queue(limit=200)),
        access=Access(rate_mbps=access_mbps, delay_ms=5),
        flows=(Flow(start_s=0.1),),
    )


def queues(access_mbps: float, engine: str = "native") -> np.ndarray:
    """Returns, by decision, the bytes before access link and bottleneck, and those in flight."""
    environment = gymnasium.make("quicgym/Rate-v1", scenario=scenario(access_mbps), engine=engine)
    names = ("flow_access_queue_bytes", "queue_bytes", "flow_in_flight_bytes")
    _, info = environment.reset(seed=1, options={"controller": "newreno"})
    rows = [[info[name] for name in names]]
    is_over = False
    while not is_over:
        _, _, terminated, truncated, info = environment.step(environment.action_space.sample())
        rows.append([info[name] for name in names])
        is_over = terminated or truncated
    environment.close()
    return np.array(rows)


def test_the_slower_link_has_the_queue() -> None:
    access, bottleneck, in_flight = queues(access_mbps=4.0).T
    assert access.max() > 50 * PACKET_BYTES and bottleneck.max() == 0
    assert np.all(access <= in_flight / 1200 * PACKET_BYTES)
    # What does not wait is on the path: 4 Mbps for the 40 ms there and back.
    on_path = in_flight[20:] / 1200 * PACKET_BYTES - access[20:]
    assert np.all(np.abs(on_path - 4e6 / 8 * 0.040) <= 5 * PACKET_BYTES)

    access, bottleneck, _ = queues(access_mbps=100.0).T
    assert bottleneck.max() > 50 * PACKET_BYTES and access.max() <= 2 * PACKET_BYTES


def test_pictures_have_it_beside_the_bottleneck_s() -> None:
    environment = gymnasium.make(
        "quicgym/Tuning-v1", scenario=scenario(4.0), render_mode="rgb_array"
    )
    _, info = environment.reset(seed=1)
    plot = EpisodePlot("rgb_array")
    frames = []
    for bytes_waiting in (0.0, 90_000.0):
        plot.begin(info, "title")
        plot.add({**info, "time_s": 1.0, "flow_access_queue_bytes": bytes_waiting})
        frame = plot.draw()
        assert frame is not None
        frames.append(frame)
    assert not np.array_equal(*frames)
    labels = [axes.get_ylabel() for axes in plot.figure.axes]
    changed = np.flatnonzero(np.any(frames[0] != frames[1], axis=(1, 2)))
    panel = plot.figure.axes[labels.index("queue (kB)")].get_window_extent()
    height = frames[0].shape[0]
    assert changed.min() >= height - panel.y1 - 10 and changed.max() <= height - panel.y0 + 10


def test_legends_of_pictures_are_outside_the_data_and_there_are_a_title_and_the_reward() -> None:
    plot = EpisodePlot("rgb_array")
    environment = quicgym.make_vec("quicgym/Tuning-v1", 1, scenario=scenario(4.0))
    _, info = environment.reset(seed=1)
    plot.begin({name: float(values[0]) for name, values in info.items()}, "who, where")
    plot.draw()
    axes = plot.figure.axes
    assert axes[0].get_title(loc="left") == "who, where"
    assert axes[-1].get_ylabel() == "reward"
    legends = [(one, one.get_legend()) for one in axes if one.get_legend() is not None]
    assert len(legends) == 3
    for one, legend in legends:
        assert legend.get_window_extent().x0 >= one.get_window_extent().x1
        assert legend.get_window_extent().x1 <= plot.figure.bbox.x1
