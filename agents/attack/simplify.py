"""Steps from a network to a simpler one: parts are left out, and numbers are rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from quicgym.envs.scenarios.links import DelayStep, Link, Queue, RateStep
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.traces import mean_rate_mbps

SHORTEST_S = 5.0
"""A network is not shortened below this."""
Step = Callable[[Scenario], Scenario]
_AnyStep = TypeVar("_AnyStep", RateStep, DelayStep)


def parts(network: Scenario) -> dict[str, Step]:
    """Returns the steps that leave something out, by what they do."""
    return _fitting(network, _leave_out(network))


def roundings(network: Scenario) -> dict[str, Step]:
    """Returns the steps that round a number, by what they do."""
    return _fitting(network, _round())


def _fitting(network: Scenario, steps: Iterator[tuple[str, Step]]) -> dict[str, Step]:
    return {what: step for what, step in steps if changed(network, step) is not None}


def changed(network: Scenario, step: Step) -> Scenario | None:
    """Returns a network after a step; None where the step changes nothing, or does not fit."""
    try:
        after = step(network)
    except ValidationError:
        return None
    return None if after == network else after


def _leave_out(network: Scenario) -> Iterator[tuple[str, Step]]:
    yield "no short flows", lambda of: of.model_copy(update={"short_flows": ()})
    for name, _ in list(network.single_flows())[:0:-1]:
        yield f"no flow {name}", partial(_without_flow, name=name)
    yield "no random loss", lambda of: _link(of, loss=None)
    yield "no jitter", lambda of: _link(of, jitter=None, reordering=False)
    yield "no policer", lambda of: _link(of, policer=None)
    yield "a drop-tail queue", _drop_tail
    yield "no bursts of ACKs", lambda of: of.model_copy(update={"reverse": None})
    yield "a way back like the way there", lambda of: _link(of)
    yield "a constant rate", _without_trace
    for field in ("rate_schedule", "delay_schedule"):
        yield f"no {field}", partial(_without, field=field)
        yield f"the first half of {field}", partial(_half, field=field, first=True)
        yield f"the second half of {field}", partial(_half, field=field, first=False)
    yield "no extra RTT", lambda of: _flows(of, extra_delay_ms=0.0)
    yield "all flows start at once", lambda of: _flows(of, start_s=0.0)
    yield "half the time", _halve_time


def _round() -> Iterator[tuple[str, Step]]:
    for digits in (1, 2):
        yield f"rate of {digits} digits", partial(_round_rate, digits=digits)
        yield f"RTT of {digits} digits", partial(_round_rtt, digits=digits)
        yield f"queue of {digits} digits", partial(_round_queue, digits=digits)
        for part in ("loss", "jitter", "policer", "rate_schedule", "delay_schedule"):
            yield f"{part} of {digits} digits", partial(_round_part, part=part, digits=digits)
        yield f"bursts of {digits} digits", partial(_round_bursts, digits=digits)
        yield f"flows of {digits} digits", partial(_round_flows, digits=digits)


def _round_part(network: Scenario, part: str, digits: int) -> Scenario:
    rounded = _round_all(getattr(network.bottleneck, part), digits)
    if part in ("rate_schedule", "delay_schedule"):
        rounded = _before(rounded, network.duration_s)
    return _link(network, **{part: rounded})


def _link(network: Scenario, **update: Any) -> Scenario:
    """Returns the network with another bottleneck, and a way back of its rate, delay and queue."""
    assert network.bottleneck is not None
    link = network.bottleneck.model_copy(update=update)
    back = network.reverse
    if back is not None and link.rate_mbps is not None:
        back = Link(
            rate_mbps=link.rate_mbps,
            delay_ms=link.delay_ms,
            queue=Queue(limit=link.queue.limit),
            opens_every_ms=back.opens_every_ms,
        )
    return network.model_copy(update={"bottleneck": link, "reverse": back})


def _without(network: Scenario, field: str) -> Scenario:
    return _link(network, **{field: ()})


def _flows(network: Scenario, **update: Any) -> Scenario:
    flows = tuple(flow.model_copy(update=update) for flow in network.flows)
    return network.model_copy(update={"flows": flows})


def _without_flow(network: Scenario, name: str) -> Scenario:
    flows = tuple(flow for flow in network.flows if flow.name != name)
    return network.model_copy(update={"flows": flows})


def _drop_tail(network: Scenario) -> Scenario:
    assert network.bottleneck is not None
    short = tuple(entry.model_copy(update={"ecn": False}) for entry in network.short_flows)
    plain = _flows(network, ecn=False).model_copy(update={"short_flows": short})
    return _link(plain, queue=Queue(limit=network.bottleneck.queue.limit))


def _without_trace(network: Scenario) -> Scenario:
    assert network.bottleneck is not None
    trace = network.bottleneck.trace
    return network if trace is None else _link(network, trace=None, rate_mbps=mean_rate_mbps(trace))


def _halve_time(network: Scenario) -> Scenario:
    duration_s = network.duration_s / 2
    if duration_s < SHORTEST_S:
        return network
    return _until(network, duration_s)


def _until(network: Scenario, end_s: float) -> Scenario:
    """Ends at this time, without changes then or later."""
    assert network.bottleneck is not None
    shorter = _link(
        network,
        rate_schedule=_before(network.bottleneck.rate_schedule, end_s),
        delay_schedule=_before(network.bottleneck.delay_schedule, end_s),
    )
    return shorter.model_copy(update={"duration_s": end_s})


def _before(steps: tuple[_AnyStep, ...], end_s: float) -> tuple[_AnyStep, ...]:
    return tuple(step for step in steps if step.at_s < end_s)


def _half(network: Scenario, field: str, *, first: bool) -> Scenario:
    steps = getattr(network.bottleneck, field)
    middle = len(steps) // 2
    return _link(network, **{field: steps[:middle] if first else steps[middle:]})


def _round_rate(network: Scenario, digits: int) -> Scenario:
    assert network.bottleneck is not None
    if network.bottleneck.rate_mbps is None:
        return network
    access_mbps = _rounded(network.access.rate_mbps, digits)
    rounded = _link(network, rate_mbps=_rounded(network.bottleneck.rate_mbps, digits))
    return rounded.model_copy(
        update={"access": network.access.model_copy(update={"rate_mbps": access_mbps})}
    )


def _round_rtt(network: Scenario, digits: int) -> Scenario:
    assert network.bottleneck is not None
    access_ms = 2 * network.access.delay_ms
    delay_ms = _rounded(2 * (network.bottleneck.delay_ms + access_ms), digits) / 2 - access_ms
    return _link(network, delay_ms=_rounded(delay_ms, 9))


def _round_queue(network: Scenario, digits: int) -> Scenario:
    assert network.bottleneck is not None
    queue = network.bottleneck.queue
    limit = int(_rounded(queue.limit, digits))
    return _link(network, queue=queue.model_copy(update={"limit": limit}))


def _round_bursts(network: Scenario, digits: int) -> Scenario:
    back = network.reverse
    if back is None or back.opens_every_ms is None:
        return network
    every_ms = _rounded(back.opens_every_ms, digits)
    return network.model_copy(
        update={"reverse": back.model_copy(update={"opens_every_ms": every_ms})}
    )


def _round_flows(network: Scenario, digits: int) -> Scenario:
    """Rounds the flows' times, short flows and the duration."""
    flows = tuple(
        flow.model_copy(
            update={
                "start_s": _rounded(flow.start_s, digits),
                "extra_delay_ms": _rounded(flow.extra_delay_ms, digits),
            }
        )
        for flow in network.flows
    )
    shorter = _until(network, _rounded(network.duration_s, digits))
    return shorter.model_copy(
        update={"flows": flows, "short_flows": _round_all(network.short_flows, digits)}
    )


def _round_all(part: Any, digits: int) -> Any:
    """Rounds the numbers of a part of a scenario, or of several parts."""
    if isinstance(part, tuple):
        return tuple(_round_all(entry, digits) for entry in part)
    if part is None:
        return None
    return part.model_copy(
        update={
            name: type(value)(_rounded(value, digits))
            for name in part.model_fields_set
            if isinstance(value := getattr(part, name), int | float) and not isinstance(value, bool)
        }
    )


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
