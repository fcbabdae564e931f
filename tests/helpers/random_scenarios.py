"""Strategies of hypothesis for wired scenarios: most are for both engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from quicgym import Scenario, controllers

# Round numbers are drawn often: equal delays and rates make much happen in the same nanosecond.
rates = st.sampled_from([5.0, 10.0, 20.0]) | st.floats(0.5, 50)
delays = st.sampled_from([0.0, 1.0, 10.0]) | st.floats(0, 50)
losses = st.none() | st.one_of(
    st.fixed_dictionaries({"kind": st.just("bernoulli"), "probability": st.floats(0, 0.05)}),
    st.fixed_dictionaries(
        {
            "kind": st.just("gilbert-elliott"),
            "good_to_bad": st.floats(0, 0.1),
            "bad_to_good": st.floats(0, 1),
            "loss_in_bad": st.floats(0, 1),
        }
    ),
)


def steps(
    field: str, values: st.SearchStrategy[Any], min_size: int = 0
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """A schedule of up to three steps in ascending order of time."""
    times = st.sampled_from([0.1, 0.25, 0.5, 1.0]) | st.floats(0.1, 2)
    return st.dictionaries(times, values, min_size=min_size, max_size=3).map(
        lambda chosen: [{"at_s": at, field: value} for at, value in sorted(chosen.items())]
    )


rate_schedules = steps("rate_mbps", rates)
queues = st.one_of(
    st.fixed_dictionaries({"limit": st.integers(1, 200)}),
    st.fixed_dictionaries({"limit": st.integers(1502, 300_000), "unit": st.just("bytes")}),
)


outages = st.just(0.0) | rates
jitters = st.one_of(
    st.fixed_dictionaries({"kind": st.just("uniform"), "max_ms": delays}),
    st.fixed_dictionaries({"kind": st.just("normal"), "mean_ms": delays, "deviation_ms": delays}),
)
policers = st.fixed_dictionaries({"rate_mbps": rates, "burst_bytes": st.integers(1502, 200_000)})
shapers = policers
reroutes = steps("path", st.tuples(rates, delays), 1).map(
    lambda chosen: [
        {"at_s": step["at_s"], "rate_mbps": step["path"][0], "delay_ms": step["path"][1]}
        for step in chosen
    ]
)


def links(**features: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Links with a rate, and in place of or beside their fields those of `features`."""
    fields: Mapping[str, st.SearchStrategy[Any]] = {
        "rate_mbps": rates,
        "delay_ms": delays,
        "queue": queues,
        "loss": losses,
        "rate_schedule": rate_schedules,
    }
    return st.fixed_dictionaries({**fields, **features})


applications = st.one_of(
    st.just({"kind": "bulk"}),
    st.fixed_dictionaries({"kind": st.just("transfer"), "size_bytes": st.integers(1, 2_000_000)}),
    st.fixed_dictionaries({"kind": st.just("constant-rate"), "rate_mbps": st.floats(0.1, 20)}),
)
flows = st.fixed_dictionaries(
    {
        "controller": st.sampled_from([entry.name for entry in controllers.catalogue()]),
        "send_buffer_bytes": st.sampled_from([10_000, 2**20]),
        "start_s": st.sampled_from([0.0, 0.5]) | st.floats(0, 0.5),
        "start_jitter_ms": st.just(0.0) | st.floats(0, 50),
        "extra_delay_ms": st.sampled_from([0.0, 1.0, 13.7]),
        "application": applications,
    }
)


def wired(
    bottleneck: st.SearchStrategy[dict[str, Any]], reverse: st.SearchStrategy[dict[str, Any] | None]
) -> st.SearchStrategy[dict[str, Any]]:
    """Dumbbells of these links, for 2 s."""
    return st.fixed_dictionaries(
        {
            "name": st.just("random"),
            "duration_s": st.just(2.0),
            "bottleneck": bottleneck,
            "reverse": reverse,
            "access": st.fixed_dictionaries({"rate_mbps": rates, "delay_ms": delays}),
            "flows": st.lists(flows, min_size=1, max_size=5),
            "max_datagram_bytes": st.integers(1200, 1472),
        }
    )


hop_links = links(
    queue=st.fixed_dictionaries(
        {
            "limit": st.integers(1, 200),
            "discipline": st.sampled_from(["drop-tail", "fifo", "codel", "fq-codel", "pie", "red"]),
        }
    ),
    rate_schedule=steps("rate_mbps", outages),
    opens_every_ms=st.none() | st.floats(0.1, 100),
    delay_schedule=steps("delay_ms", delays),
    jitter=st.none() | st.fixed_dictionaries({"kind": st.just("uniform"), "max_ms": delays}),
    policer=st.none() | policers,
    shaper=st.none() | shapers,
    loss_schedule=steps("loss", losses),
)


@st.composite
def chains(draw: st.DrawFn) -> dict[str, Any]:
    """Chains of 2 to 4 hops with every feature that a hop can have, and flows over any part."""
    hops = draw(st.integers(2, 4))
    ways = [(draw(hop_links), draw(hop_links)) for _ in range(hops)]
    chosen = []
    for flow in draw(st.lists(flows, min_size=1, max_size=6)):
        first = draw(st.integers(1, hops))
        last = draw(st.integers(first, hops))
        direction = draw(st.sampled_from(["forward", "backward"]))
        chosen.append(flow | {"first_hop": first, "last_hop": last, "direction": direction})
    return {
        "name": "chain",
        "duration_s": 2.0,
        "bottleneck": ways[0][0],
        "reverse": ways[0][1],
        "chain": [there | {"reverse": back} for there, back in ways[1:]],
        "access": {"rate_mbps": draw(rates), "delay_ms": draw(delays)},
        "flows": chosen,
    }


applications_with_an_answer = st.sampled_from(
    [
        {"kind": "bulk"},
        {"kind": "transfer", "size_bytes": 300_000},
        {"kind": "constant-rate", "rate_mbps": 3.0},
        {"kind": "on-off", "rate_mbps": 4.0, "on_s": 0.2, "off_s": 0.1},
        {"kind": "request-response", "responses": "web-search", "think_s": 0.05},
        {
            "kind": "web-page",
            "objects": [
                {"name": "page", "size_bytes": 30_000},
                {"name": "style", "size_bytes": 60_000, "after": ["page"]},
                {"name": "picture", "size_bytes": 200_000, "after": ["page", "style"]},
            ],
        },
        {"kind": "video", "rates_mbps": [0.5, 1, 2], "chunk_s": 0.2, "reservoir_s": 0.3,
         "cushion_s": 1.0, "max_buffer_s": 2.0},
        {"kind": "real-time-media", "rates_mbps": [0.3, 1, 3]},
    ]
)  # fmt: skip
short_flows = st.fixed_dictionaries(
    {
        "load_mbps": st.floats(0.5, 2),
        "sizes": st.just("web-search"),
        "controller": st.sampled_from(["cubic", "bbr", "ibcca", "newreno+"]),
    }
)


@st.composite
def networks(draw: st.DrawFn) -> Scenario:
    """Anything that the native engine simulates, with the agent's flow first."""
    kind = draw(
        st.sampled_from(["plain", "dualpi2", "sfq", "reordering", "reroutes", "fragments", "chain"])
    )
    agents: dict[str, Any] = {"application": draw(applications_with_an_answer), "start_s": 0.05}
    others = [
        {**flow, "application": draw(applications_with_an_answer),
         "direction": draw(st.sampled_from(["forward", "backward"])),
         "burst_retransmission": draw(st.booleans())}
        for flow in draw(st.lists(flows, max_size=3))
    ]  # fmt: skip
    changes: dict[str, Any] = {}
    if kind == "reordering":
        changes = {"jitter": {"kind": "uniform", "max_ms": draw(delays)}, "reordering": True}
    elif kind == "reroutes":
        changes = {"reroutes": draw(reroutes), "rate_schedule": [], "delay_schedule": []}
    elif kind in ("dualpi2", "sfq"):
        changes = {"queue": {"limit": draw(st.integers(1, 200)), "discipline": kind}}
    link = hop_links.map(lambda drawn: drawn | changes)
    return Scenario(
        name="random",
        duration_s=2.0,
        bottleneck=draw(link),
        reverse=draw(st.none() | link),
        chain=[draw(hop_links)] if kind == "chain" else (),
        access={"rate_mbps": draw(rates), "delay_ms": draw(st.sampled_from([1.0, 5.0])),
                **({"mtu_bytes": 800} if kind == "fragments" else {})},
        flows=[agents, *others],
        short_flows=draw(st.lists(short_flows, max_size=1)),
    )  # fmt: skip
