"""A scenario's network in a few words, for figures and reports."""

from __future__ import annotations

from quicgym.console import count_of
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.traces import mean_rate_mbps


def path_in_words(scenario: Scenario) -> str:
    """Returns rate, base RTT and number of flows: "15 Mbps, 100 ms, 3 flows"."""
    if scenario.bottleneck is None:
        rate = "Wi-Fi"
    elif scenario.bottleneck.trace is not None:
        rate = f"trace of {mean_rate_mbps(scenario.bottleneck.trace):.3g} Mbps"
    else:
        rate = f"{_short(scenario.bottleneck.rate_mbps)} Mbps"
    flows = count_of(sum(flow.count for flow in scenario.flows), "flow")
    return f"{rate}, {_short(scenario.base_rtt_ms)} ms, {flows}"


def _short(number: float | None) -> str:
    """Returns a number with three digits, or with all that are before its point."""
    assert number is not None
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def network_in_words(scenario: Scenario) -> str:
    """Returns the path with its queue, losses, starts and duration, as a reviewer asks for them."""
    parts = [path_in_words(scenario)]
    if scenario.wifi is not None:
        parts.append(f"queue of {scenario.queue_limit} packets")
    elif scenario.bottleneck is not None:
        queue = scenario.bottleneck.queue
        name = "" if queue.discipline == "drop-tail" else f", {queue.discipline}"
        unit = "BDP" if queue.unit == "bdp" else queue.unit
        limit = _short(queue.limit) if queue.unit == "bdp" else f"{queue.limit:,}"
        parts.append(f"queue of {limit} {unit}{name}")
        loss = scenario.bottleneck.loss
        if loss is not None and loss.kind == "bernoulli":
            parts.append(f"{100 * loss.probability:.3g}% random loss")
        elif loss is not None:
            parts.append("loss in bursts")
        has = {
            "changing rate": scenario.bottleneck.rate_schedule,
            "changing delay": scenario.bottleneck.delay_schedule,
            "changing loss": scenario.bottleneck.loss_schedule,
            "reroutes": scenario.bottleneck.reroutes,
            "jitter": scenario.bottleneck.jitter,
            "a policer": scenario.bottleneck.policer,
            "a shaper": scenario.bottleneck.shaper,
        }
        parts += [words for words, part in has.items() if part]
    if scenario.reverse is not None and scenario.reverse.opens_every_ms is not None:
        parts.append(f"ACKs every {scenario.reverse.opens_every_ms:g} ms")
    starts = [flow.start_s for flow in scenario.flows]
    if max(starts, default=0) > min(starts, default=0):
        parts.append(f"starts over {max(starts) - min(starts):.3g} s")
    if len({flow.extra_delay_ms for flow in scenario.flows}) > 1:
        parts.append("different RTTs")
    if scenario.chain:
        parts.append(f"{1 + len(scenario.chain)} bottlenecks")
    if scenario.short_flows:
        parts.append("short flows")
    return "; ".join([*parts, f"{scenario.duration_s:g} s"])
