"""Games of a league: runs, what is measured of them, scores, and who wins.

The rules are those of ccBench (arXiv 2307.10054), at 49b5ada of Soheil-ab/ccBench. r is the rate of
the judged flow in Mbps, in IP bytes that reached the receiver. d is the delay in ms: the mean of
receiving − sending time, plus the one-way delay of the way back. [x] is x rounded to a whole
number, halves up.

    power        S = [r]² / [d]; c wins where S(c) ≥ (1 − margin) · largest S of the field
    fair-share   S = |fair − [r]|, m = smallest S of the field; c wins where
                 (1 − margin) · (fair − m) ≤ [r(c)] ≤ (1 + margin) · (fair + m)

The fair share is the rate of the link over the number of flows. A controller without a packet in
the window does not win. Several controllers may win a game.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quicgym.agents.evaluation.jobs import PolicyChoice, RunJob, steering_of
from quicgym.agents.evaluation.statistics import mean_interval
from quicgym.agents.policies.by_name import policy_kind, split_alias
from quicgym.benchmarks.league.competition import JUDGED, Competition, League, Network
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.output_folders import digest

MEASURED = ("rate_mbps", "delay_ms")
FACTORS: dict[str, Callable[[Network], str]] = {
    "rate": lambda network: f"{network.rate_mbps:g} Mbps",
    "step": lambda network: "none" if network.factor == 1 else f"× {network.factor:g}",
    "delay": lambda network: f"{network.delay_ms:g} ms",
    "queue": lambda network: f"{network.queue_bdp:g} BDP",
}
"""Properties of a network by which win rates are broken down, in addition to the window."""


@dataclass(frozen=True, eq=False)
class LeagueJob(RunJob):
    """A run of a league.

    Attributes:
        windows_s: Windows of time that are a game each, in s.
    """

    windows_s: tuple[tuple[float, float], ...] = ()

    @cached_property
    def key(self) -> str:
        """The identity of the run for --resume: equal keys give equal results."""
        return digest(["league", super().key, self.windows_s])

    def run(self) -> dict[str, Any]:
        """Returns rate and delay of the judged flow in each window; None: no packet arrived."""
        done = self.carry_out()
        way_back = self.scenario.links["reverse"].delay_ms
        result: dict[str, list[float | None]] = {name: [] for name in MEASURED}
        for window_s in self.windows_s:
            (flow,) = (flow for flow in done.over(*window_s).flows if flow.name == JUDGED)
            one_way_ms = flow.mean_one_way_delay_ms
            result["rate_mbps"].append(None if one_way_ms is None else flow.ip_receive_rate_mbps)
            result["delay_ms"].append(None if one_way_ms is None else one_way_ms + way_back)
        return result


@dataclass(frozen=True)
class Participants:
    """Controllers and policies that take part, and the runs of each.

    Attributes:
        competition: The leagues.
        kinds: Kind of each participant, as `policy_kind` returns it, by the name that tables show.
        jobs: Runs by league and participant, in the order of the league's networks.
    """

    competition: Competition
    kinds: Mapping[str, str]
    jobs: Mapping[tuple[str, str], Sequence[LeagueJob]]

    @classmethod
    def of(
        cls, competition: Competition, choices: Sequence[str], *, trust_zip: bool = False
    ) -> Participants:
        """Returns the participants that a user names.

        Args:
            competition: The leagues.
            choices: Controllers and policies, as `find_policy` takes them.
            trust_zip: Whether to load models of Stable-Baselines3, which runs code in them.

        Raises:
            ScenarioError: A controller or policy does not exist, or two have one name.
            PolicyError: A policy cannot be loaded.
        """
        kinds: dict[str, str] = {}
        jobs: dict[tuple[str, str], list[LeagueJob]] = {}
        networks = [(league, scenario) for league, _, scenario in competition.scenarios()]
        for choice in dict.fromkeys(choices):
            shown, _ = split_alias(choice)
            if shown in kinds:
                raise ScenarioError(
                    f"two of the policies are shown as {shown!r}; give one of them another alias, "
                    "as in mine=runs/ppo"
                )
            by = steering_of(choice, trust_zip=trust_zip)
            kinds[shown] = policy_kind(choice)
            for league, scenario in networks:
                jobs.setdefault((league.name, shown), []).append(
                    LeagueJob(
                        scenario,
                        by,
                        "native",
                        0,
                        marks_s=league.marks_s,
                        windows_s=league.windows_s,
                    )
                )
        return cls(competition, kinds, jobs)

    @property
    def every_job(self) -> list[LeagueJob]:
        """All runs, those of one participant after those of another."""
        return [
            job
            for shown in self.kinds
            for league in self.competition.leagues
            for job in self.jobs[league.name, shown]
        ]

    @property
    def fingerprints(self) -> dict[str, str | None]:
        """The fingerprints of the learned policies, by participant."""
        return {
            shown: job.steering.fingerprint
            for (_, shown), of_league in self.jobs.items()
            for job in of_league[:1]
            if isinstance(job.steering, PolicyChoice)
        }

    def games(self, league: League, finished: Mapping[str, Mapping[str, Any]]) -> Games:
        """Returns the games of a league.

        Args:
            league: One of the competition's leagues.
            finished: Results of the runs by their key.

        Raises:
            KeyError: A run is missing.
        """
        measured = np.array(
            [
                [
                    [finished[job.key][name] for name in MEASURED]
                    for job in self.jobs[league.name, shown]
                ]
                for shown in self.kinds
            ],
            dtype=float,
        )
        return Games(
            league,
            self.competition.margin,
            tuple(self.kinds),
            measured[:, :, 0],
            measured[:, :, 1],
        )


@dataclass(frozen=True)
class Games:
    """The results of a league.

    Attributes:
        league: The league.
        margin: Margin of the competition.
        names: Names of the participants.
        rates_mbps: Rates by participant, network and window; NaN: no packet arrived.
        delays_ms: Delays, of the same shape.
    """

    league: League
    margin: float
    names: Sequence[str]
    rates_mbps: np.ndarray
    delays_ms: np.ndarray

    def wins(self, field: Sequence[str], *, rounded: bool = True) -> np.ndarray:
        """Returns which games each of a field wins, against the others of the field.

        Args:
            field: Names of those who take part.
            rounded: Whether rates and delays are rounded to whole numbers, as ccBench does.

        Returns:
            Truth values by participant of the field, network and window.
        """
        places = [self.names.index(name) for name in field]
        rates, delays = self.rates_mbps[places], self.delays_ms[places]
        if rounded:
            rates, delays = np.floor(rates + 0.5), np.floor(delays + 0.5)
        there = np.isfinite(rates)
        if self.league.score == "power":
            scores = np.where(there, rates**2 / delays, -np.inf)
            return there & (scores >= (1 - self.margin) * scores.max(axis=0))
        flows = 1 + len(self.league.beside)
        fair = np.array([network.rate_mbps / flows for network in self.league.networks])[:, None]
        nearest = np.where(there, np.abs(fair - rates), np.inf).min(axis=0)
        low, high = (1 - self.margin) * (fair - nearest), (1 + self.margin) * (fair + nearest)
        return there & (low <= rates) & (rates <= high)

    def table(self, field: Sequence[str], kinds: Mapping[str, str]) -> dict[str, Any]:
        """Returns the win rates of a field, in percent of the games, as JSON takes them.

        Args:
            field: Names of those who take part.
            kinds: Kind of each of them, as `policy_kind` returns it.
        """
        wins, unrounded = self.wins(field), self.wins(field, rounded=False)
        rows = []
        for place, name in enumerate(field):
            estimate = mean_interval(100 * wins[place].mean(axis=1), (0.0, 100.0))
            rows.append(
                {
                    "policy": name,
                    "kind": kinds[name],
                    "win_rate_percent": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "unrounded_win_rate_percent": 100 * float(unrounded[place].mean()),
                    "by": self._broken_down(wins[place]),
                }
            )
        learned = np.array([kinds[name] == "learned" for name in field])
        by_learned = wins[learned].any(axis=0)
        by_others = wins[~learned].any(axis=0)
        return {
            "league": self.league.name,
            "field": list(field),
            "networks": wins.shape[1],
            "games": wins[0].size,
            "policies": sorted(rows, key=lambda row: -row["win_rate_percent"]),
            "won_by_percent": {
                "learned alone": 100 * float((by_learned & ~by_others).mean()),
                "hand-coded alone": 100 * float((by_others & ~by_learned).mean()),
                "both": 100 * float((by_learned & by_others).mean()),
            },
        }

    def _broken_down(self, wins: np.ndarray) -> dict[str, dict[str, float]]:
        """Returns win rates in percent, by factor and its value."""
        by_window = {
            f"{begin_s:g} to {end_s:g} s": 100 * float(wins[:, place].mean())
            for place, (begin_s, end_s) in enumerate(self.league.windows_s)
        }
        result = {"window": by_window}
        for factor, value_of in FACTORS.items():
            values = np.array([value_of(network) for network in self.league.networks])
            result[factor] = {
                str(value): 100 * float(wins[values == value].mean())
                for value in dict.fromkeys(values)
            }
        return result

    def rows(self) -> list[dict[str, Any]]:
        """Returns a row per participant and game: what was measured, and whether all were beaten.

        `wins` is for the field of all participants.
        """
        wins = self.wins(self.names)
        return [
            {
                "league": self.league.name,
                "policy": name,
                **network._asdict(),
                "from_s": begin_s,
                "until_s": end_s,
                "flow_rate_mbps": float(self.rates_mbps[at]),
                "flow_delay_ms": float(self.delays_ms[at]),
                "wins": bool(wins[at]),
            }
            for place, name in enumerate(self.names)
            for row, network in enumerate(self.league.networks)
            for column, (begin_s, end_s) in enumerate(self.league.windows_s)
            for at in [(place, row, column)]
        ]
