"""Ways into the states of BBR version 1 and of the controllers that are made from it."""

from __future__ import annotations

from helpers.ack_rounds import Driver
from quicgym import _core


def in_drain(name: str, rate: float, rtt: int, seed: int = 1, **parameters: float) -> Driver:
    """A flow in Drain, after ten rounds without growth on a path of `rate` bytes/s and `rtt` ns."""
    driver = Driver(_core.make_controller(name, parameters), rtt, seed)
    bdp = int(rate * rtt * 1e-9)
    for _ in range(10):
        driver.ack(bdp, after=rtt, rate=rate, round_start=True, in_flight=5 * bdp // 2)
    assert driver.mode == _core.ControllerMode.drain
    return driver


def in_probe_bw(name: str, rate: float, rtt: int, seed: int = 1, **parameters: float) -> Driver:
    """A flow that has just begun ProbeBW, with a BDP in flight."""
    driver = in_drain(name, rate, rtt, seed, **parameters)
    driver.ack(rate=rate, in_flight=int(rate * rtt * 1e-9))
    assert driver.mode == _core.ControllerMode.probe_bw
    return driver


def gain(driver: Driver) -> float:
    """The pacing gain in force, from the rate."""
    snapshot = driver.controller.snapshot
    margin = driver.controller.parameters["pacing_margin"][0]
    return round(snapshot.pacing_rate / snapshot.bandwidth_estimate / margin, 9)
