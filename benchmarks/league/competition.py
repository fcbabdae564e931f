"""A competition as data: leagues with their networks, windows of time and scores, in one YAML."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from quicgym.envs.scenarios.fields import LINK_HEADER_BYTES, ScenarioError
from quicgym.envs.scenarios.flows import Flow
from quicgym.envs.scenarios.model import Scenario
from quicgym.errors import UserError
from quicgym.validation import StrictModel, problem, validated
from quicgym.yaml_files import CONFIGS, read_yaml

LEAGUES = CONFIGS / "leagues"
PACKET_BYTES = 1500
"""Size of a full packet on the wire, in which queues are counted."""
JUDGED = "agent"
"""Name of the flow that is judged."""


class LeagueError(UserError, ValueError):
    """A competition cannot be used; the text names file, field, value and remedy."""


class Rates(StrictModel):
    """Links with one first rate."""

    rate_mbps: float = Field(gt=0)
    factors: tuple[float, ...] = Field(min_length=1)
    """Second rate / first rate; 1: the rate does not change."""


class Network(NamedTuple):
    """The factors of a scenario, by which win rates are broken down."""

    rate_mbps: float
    factor: float
    delay_ms: float
    queue_bdp: float

    def __str__(self) -> str:
        """Returns the network as a part of a scenario's name."""
        return f"{self.rate_mbps:g}mbps-x{self.factor:g}-{self.delay_ms:g}ms-{self.queue_bdp:g}bdp"


class League(StrictModel):
    """Networks and windows of time; a game is a network in one window."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    score: Literal["power", "fair-share"]
    beside: tuple[Flow, ...] = ()
    """Flows that compete with the judged one, as scenarios have them, each with a controller."""
    start_s: float = Field(default=0.0, ge=0)
    """When the judged flow starts."""
    rates: tuple[Rates, ...] = Field(min_length=1)
    changes_s: tuple[float, ...] = ()
    """When the rate becomes the second rate, then the first again, and so on."""
    delays_ms: tuple[float, ...] = Field(min_length=1)
    """One way; the RTT is twice as long."""
    queues_bdp: tuple[float, ...] = Field(min_length=1)
    """Limits of the queues, in BDP of the first rate."""
    windows_s: tuple[tuple[float, float], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> League:
        if bool(self.beside) != (self.score == "fair-share"):
            raise problem(
                "score", self.score, "does not fit the number of flows",
                "take power for a flow alone, and fair-share with flows in beside",
            )  # fmt: skip
        for index, flow in enumerate(self.beside):
            if flow.controller is None or flow.count != 1:
                raise problem(
                    f"beside.{index}.controller", flow.controller,
                    "is missing, or the flow is more than one",
                    "name a controller for each flow, and leave out count",
                )  # fmt: skip
        changing = any(factor != 1 for entry in self.rates for factor in entry.factors)
        if changing != bool(self.changes_s):
            raise problem(
                "changes_s", list(self.changes_s), "has to say when rates change",
                "give times, and factors other than 1; or neither",
            )  # fmt: skip
        for index, (begin_s, end_s) in enumerate(self.windows_s):
            if not self.start_s <= begin_s < end_s:
                raise problem(
                    f"windows_s.{index}", [begin_s, end_s], "is no time of the judged flow",
                    f"give two rising times from {self.start_s:g} s on",
                )  # fmt: skip
        for index, (earlier, later) in enumerate(pairwise(self.changes_s)):
            if later <= earlier:
                raise problem(
                    f"changes_s.{index + 1}", later, "is not after the change before it",
                    "list the times in ascending order",
                )  # fmt: skip
        return self

    @property
    def marks_s(self) -> tuple[float, ...]:
        """The ends of all windows, without 0."""
        return tuple(sorted({time_s for window in self.windows_s for time_s in window} - {0.0}))

    @property
    def networks(self) -> list[Network]:
        """Every network of the league."""
        links = [(entry.rate_mbps, factor) for entry in self.rates for factor in entry.factors]
        return [
            Network(*link, delay_ms, queue_bdp)
            for link, delay_ms, queue_bdp in product(links, self.delays_ms, self.queues_bdp)
        ]

    def scenario(self, network: Network) -> Scenario:
        """Returns the scenario of a network: both directions have the same rates and queues."""
        link: dict[str, Any] = {
            "rate_mbps": network.rate_mbps,
            "delay_ms": network.delay_ms,
            "queue": {"limit": queue_packets(network)},
        }
        if network.factor != 1:
            rates = (network.rate_mbps * network.factor, network.rate_mbps)
            link["rate_schedule"] = [
                {"at_s": at_s, "rate_mbps": rates[index % 2]}
                for index, at_s in enumerate(self.changes_s)
            ]
        description = {
            "name": f"{self.name}-{network}",
            "duration_s": max(end_s for _, end_s in self.windows_s),
            "bottleneck": link,
            "reverse": link,
            "access": {"rate_mbps": 10_000, "delay_ms": 0},
            "max_datagram_bytes": PACKET_BYTES - LINK_HEADER_BYTES,
            "flows": [
                *self.beside,
                {"name": JUDGED, "start_s": self.start_s},
            ],
        }
        return validated(Scenario, description, f"{self.name}, {network}", ScenarioError)


class Competition(StrictModel):
    """Leagues whose results are reported together; see configs/leagues/ccbench.yaml."""

    name: str = Field(min_length=1)
    source: str = Field(min_length=1)
    margin: float = Field(gt=0, lt=1)
    """How far from the best score, or from the fair share, a winner may be, as a share of it."""
    leagues: tuple[League, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Competition:
        names = [league.name for league in self.leagues]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise problem(
                    f"leagues.{index}.name", name, "is there twice", "give it another name"
                )
        return self

    def scenarios(self) -> Iterator[tuple[League, Network, Scenario]]:
        """Yields every scenario of every league."""
        for league in self.leagues:
            for network in league.networks:
                yield league, network, league.scenario(network)


def queue_packets(network: Network) -> int:
    """Returns the limit of the queues: a whole number of packets per BDP, and at least one."""
    bdp = int(network.rate_mbps * 2 * network.delay_ms * 1e3 / 8 / PACKET_BYTES)
    return max(1, int(bdp * network.queue_bdp))


def load_competition(name_or_path: str | Path) -> Competition:
    """Loads a competition by its name or from a YAML file.

    Raises:
        LeagueError: No such competition exists, or the file is not valid.
    """
    file = read_yaml(name_or_path, LEAGUES, "league", LeagueError)
    return validated(Competition, file.data, file.name, LeagueError)
