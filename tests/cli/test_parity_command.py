from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Command

from quicgym import Scenario, controllers, load_scenario
from quicgym.benchmarks.parity import compare, first_difference
from quicgym.benchmarks.random_networks import DISCIPLINES, DISCIPLINES_OF, FEATURES, random_network
from quicgym.cli.parity import Feature
from quicgym.envs.simulation.simulation import DELIVERY_DTYPE


def deliveries(*rows: tuple[int, int, int, int]) -> np.ndarray:
    return np.array(list(rows), DELIVERY_DTYPE)


def test_the_first_difference_is_named() -> None:
    ours = deliveries((0, 1, 100, 10), (1, 1, 100, 20), (0, 2, 200, 30))
    assert first_difference(ours, ours.copy()) is None
    assert first_difference(ours, deliveries((0, 1, 100, 10), (1, 1, 101, 20))) == (
        "delivery 1: native flow 1 packet 1, sent at 20 ns, there at 100 ns, "
        "ns-3 flow 1 packet 1, sent at 20 ns, there at 101 ns"
    )
    assert first_difference(ours, deliveries((0, 1, 100, 11))) is not None
    assert first_difference(ours, ours[:2]) == (
        "delivery 2: native flow 0 packet 2, sent at 30 ns, there at 200 ns, ns-3 has no more"
    )


@pytest.mark.ns3
def test_all_controllers_with_1_3_and_5_flows(quicgym: Command) -> None:
    done = quicgym("parity")
    assert "12 of 12 equal" in done.stdout


@pytest.mark.ns3
@pytest.mark.parametrize("scenario", ["ebcc-single", "ebcc-flows-3"])
@pytest.mark.parametrize(
    "controller", sorted({*controllers.names()} - {"newreno", "cubic", "bbr", "ebcc", "external"})
)
def test_controllers_beside_the_four_of_the_command(scenario: str, controller: str) -> None:
    # BBR's first ProbeRTT is in it, 10 s after the start.
    comparison = compare(
        load_scenario(scenario).model_copy(update={"duration_s": 12.5}), controller
    )
    assert comparison.deliveries > 10_000
    assert comparison.difference is None


@pytest.mark.ns3
def test_a_blocked_sender() -> None:
    description = load_scenario("ebcc-flows-3").model_dump(exclude_none=True)
    application = {"kind": "on-off", "rate_mbps": 20.0, "on_s": 1.0, "off_s": 1.0}
    flow = description["flows"][0] | {"application": application, "send_buffer_bytes": 50_000}
    description["flows"] = [flow]
    comparison = compare(Scenario.model_validate(description), "ibcca")
    assert comparison.difference is None


@pytest.mark.ns3
def test_a_sender_that_switches_by_itself() -> None:
    description = load_scenario("ebcc-single").model_dump(exclude_none=True)
    bursts = {
        **{"kind": "bursts", "rate_mbps": 10.0, "burst_rate_mbps": 20.0},
        **{"burst_duration_s": 1.0, "burst_period_s": 5.0, "burst_count": 3},
    }
    description["flows"] = [description["flows"][0] | {"application": bursts}]
    scenario = Scenario.model_validate(description)
    assert compare(scenario, "ibcca-cubic").difference is None


@pytest.mark.ns3
def test_a_scenario_that_one_engine_cannot_run_is_refused(quicgym: Command, tmp_path: Path) -> None:
    path = tmp_path / "tcp.yaml"
    path.write_text("{base: ebcc-single, name: tcp, flows: [{transport: tcp, controller: cubic}]}")
    done = quicgym("parity", "--scenario", path, status=2)
    assert "transport = tcp" in done.stderr and "use the engine ns3" in done.stderr


@pytest.mark.ns3
def test_random_networks_with_queue_disciplines(quicgym: Command) -> None:
    done = quicgym(*("parity", "--networks", 5, "--discipline", "pie", "--discipline", "fq-codel"))
    assert done.stdout.count("5 of 5 equal to the nanosecond") == 2


@pytest.mark.ns3
def test_random_networks_with_a_feature_and_a_discipline(quicgym: Command) -> None:
    done = quicgym(*("parity", "--networks", 2, "--feature", "jitter", "--discipline", "pie"))
    assert "jitter, pie" in done.stdout and "2 of 2 equal" in done.stdout
    assert done.stderr == ""


@pytest.mark.ns3
def test_a_number_of_networks_alone_draws_them_with_everything(quicgym: Command) -> None:
    done = quicgym("parity", "--networks", 3)
    assert "everything" in done.stdout and "3 of 3 equal" in done.stdout
    assert done.stderr == ""


def test_the_command_has_every_feature() -> None:
    assert [str(feature) for feature in Feature] == list(FEATURES)


EVERYTHING = (
    *("rate_schedule", "opens_every_ms", "delay_schedule", "jitter", "reordering", "policer"),
    *("shaper", "loss", "loss_schedule", "reroutes"),
)


@pytest.mark.parametrize("feature", FEATURES)
def test_a_random_network_of_a_feature_has_it(feature: str, tmp_path: Path) -> None:
    networks = [random_network(number, None, feature, tmp_path) for number in range(60)]
    assert networks == [random_network(number, None, feature, tmp_path) for number in range(60)]
    links = [network.links["bottleneck"] for network in networks]
    backs = [network.links["reverse"] for network in networks]
    known = DISCIPLINES_OF.get(feature, DISCIPLINES)
    assert {link.queue.discipline for link in links} == set(known)
    if feature == "short-flows":
        assert all(network.short_flows for network in networks)
        return
    if feature in ("backward", "everything"):
        of_networks = [{flow.direction for flow in network.flows} for network in networks]
        assert all("backward" in directions for directions in of_networks)
        assert any(len(directions) == 2 for directions in of_networks)
        if feature == "everything":
            assert any(network.short_flows for network in networks)
            for field in EVERYTHING:
                for ways in (links, backs):
                    assert 5 < sum(bool(getattr(link, field)) for link in ways) < 55, field
        return
    has = {
        "outage": lambda link: any(step.rate_mbps == 0 for step in link.rate_schedule),
        "trace": lambda link: link.trace is not None,
        "opening": lambda link: link.opens_every_ms is not None,
        "ack-aggregation": lambda link: link.opens_every_ms is not None,
        "delay-schedule": lambda link: bool(link.delay_schedule),
        "jitter": lambda link: link.jitter is not None and not link.reordering,
        "reordering": lambda link: link.jitter is not None and link.reordering,
        "policer": lambda link: link.policer is not None,
        "shaper": lambda link: link.shaper is not None,
        "loss-schedule": lambda link: bool(link.loss_schedule),
        "reroutes": lambda link: bool(link.reroutes),
        "ce-threshold": lambda link: link.queue.ce_threshold_ms is not None,
    }[feature]
    if feature == "ack-aggregation":
        assert all(map(has, backs)) and not any(map(has, links))
    elif feature == "ce-threshold":
        assert all(map(has, links)) and not any(map(has, backs))
    else:
        assert sum(map(has, links)) >= (30 if feature == "outage" else 60)
        assert 15 < sum(map(has, backs)) < 45


@pytest.mark.ns3
def test_random_chains(quicgym: Command) -> None:
    disciplines = ("--discipline", "drop-tail", "--discipline", "codel")
    done = quicgym("parity", "--chain", "--networks", 5, *disciplines)
    assert done.stdout.count("5 of 5 equal to the nanosecond") == 2


def test_random_chains_need_a_discipline(quicgym: Command) -> None:
    done = quicgym("parity", "--chain", status=2)
    assert "add --discipline" in " ".join(done.stderr.split())


def test_random_networks_have_controllers_of_their_own(quicgym: Command) -> None:
    done = quicgym("parity", "--discipline", "pie", "--controller", "bbr", status=2)
    assert "leave out --scenario and --controller" in " ".join(done.stderr.split())


def test_a_random_network_has_what_parity_needs_to_cover() -> None:
    networks = [random_network(number, "red") for number in range(100)]
    assert networks == [random_network(number, "red") for number in range(100)]
    links = [network.bottleneck for network in networks if network.bottleneck]
    assert {link.queue.unit for link in links} == {"packets", "bytes"}
    assert {link.queue.ecn_marking for link in links} == {True, False}
    assert {len(network.flows) for network in networks} == set(range(1, 7))
    assert any(link.loss for link in links) and any(link.rate_schedule for link in links)
