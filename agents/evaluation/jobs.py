"""The episodes that an evaluation asks for, as jobs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from quicgym import __version__, _core, controllers
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy, policy_file, policy_kind, split_alias
from quicgym.agents.policies.from_file import FilePolicy
from quicgym.agents.policies.policy import Policy, RandomPolicy
from quicgym.envs.actions import action_space
from quicgym.envs.rewards import Reward
from quicgym.envs.scenarios.engines import EngineName
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import SuiteEntry, scenario_of
from quicgym.envs.simulation.simulation import check_engine
from quicgym.output_folders import digest, write_atomically
from quicgym.python_files import is_python_object


@dataclass(frozen=True, eq=False)
class EvaluationJob:
    """One episode of one policy."""

    policy: str
    """As the user names it."""
    fingerprint: str | None
    """Of a learned policy's weights and description; None: its name says all."""
    scenario: Scenario
    engine: EngineName
    seed: int
    reward: Reward = field(default_factory=Reward)
    trust_zip: bool = False
    series_file: Path | None = None
    """Where to keep the time series; None: nowhere."""

    def __str__(self) -> str:
        """Returns what identifies the episode for a reader."""
        return (
            f"policy {self.policy}, scenario {self.scenario.name}, engine {self.engine}, "
            f"seed {self.seed}"
        )

    @cached_property
    def key(self) -> str:
        """What identifies the episode for --resume: equal keys give equal results."""
        parts = [
            self.policy,
            self.fingerprint,
            *self.scenario.content(),
            self.engine,
            self.seed,
            asdict(self.reward),
            __version__,
            _core.commit,
        ]
        return digest(parts)

    @property
    def files(self) -> list[Path]:
        """The user's files that it reads: the policy's, and the scenario's."""
        policy = policy_file(self.policy)
        return [*([policy] if policy else []), *self.scenario.files]

    def run(self) -> dict[str, Any]:
        """Returns the episode's metrics; writes the time series where they are wanted."""
        episode = play(
            self.load_policy(),
            self.scenario,
            self.engine,
            self.seed,
            reward=self.reward,
            keep_series=self.series_file is not None,
        )
        if self.series_file is not None and episode.series is not None:
            import pandas as pd

            write_atomically({self.series_file: pd.DataFrame(dict(episode.series)).to_parquet})
        return {
            "policy": self.shown_policy,
            "scenario": self.scenario.name,
            "engine": self.engine,
            "seed": self.seed,
            **episode.metrics,
        }

    @property
    def shown_policy(self) -> str:
        """The policy as results show it: its alias, where it has one."""
        return split_alias(self.policy)[0]

    def load_policy(self) -> Policy:
        """Returns the policy, loaded once per process.

        Raises:
            ScenarioError: Its files are not those that the job was made for.
        """
        if policy_kind(self.policy) == "random":  # its draws must not depend on what ran before
            return RandomPolicy(action_space("tuning"), self.seed)
        policy, fingerprint = _load(self.policy, self.trust_zip)
        if fingerprint != self.fingerprint:
            hint = ""
            if is_python_object(split_alias(self.policy)[1]):
                hint = (
                    ", or its weights differ from process to process: seed what is random in the "
                    "file, or load them from a file"
                )
            raise ScenarioError(f"{self.policy}: its files changed during the evaluation{hint}")
        return policy


@cache
def _load(choice: str, trust_zip: bool) -> tuple[Policy, str | None]:
    """Loads a policy once per worker process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the main process has said it
        policy = find_policy(choice, trust_zip=trust_zip)
    torch = sys.modules.get("torch")  # of a model of Stable-Baselines3, or a function
    if torch is not None:
        torch.set_num_threads(1)  # the other cores have workers of their own
    return policy, fingerprint_of(choice, policy)


def fingerprint_of(choice: str, policy: Policy) -> str | None:
    """Returns what identifies the content of a policy's files; None for one that has none."""
    _, choice = split_alias(choice)
    if isinstance(policy, FilePolicy):
        return policy.fingerprint
    if choice.endswith(".zip"):
        return sha256(Path(choice).read_bytes()).hexdigest()
    controller = (policy.options or {}).get("controller")
    if isinstance(controller, str) and controllers.is_place(controller):
        return controllers.find(controller).fingerprint
    description = getattr(policy, "description", None)  # which has the SHA-256 of the weights
    if description is None:
        return None
    return sha256(description.to_json().encode()).hexdigest()


def make_jobs(
    policies: Sequence[str],
    scenarios: Iterable[SuiteEntry],
    seeds: int,
    *,
    engine: str = "native",
    reward: Reward | None = None,
    trust_zip: bool = False,
    series_in: Path | None = None,
) -> list[EvaluationJob]:
    """Returns every combination; only seed 0 keeps its time series.

    Args:
        policies: As `find_policy` takes them.
        scenarios: To be run; of a distribution one for each seed.
        seeds: How many; from 0.
        engine: "native" or "ns3".
        reward: What is earned; None: the default.
        trust_zip: As `load_policy` has it.
        series_in: The evaluation's folder, if time series are to be kept.

    Raises:
        ScenarioError: A policy or the engine does not exist, or a scenario does not fit the engine
            or has no flow for a policy.
        PolicyError: A learned policy cannot be loaded.
        MissingExtraError: It needs the extra `train`.
        Ns3MissingError: This build has no ns-3.
    """
    known = check_engine(engine)
    scenarios = tuple(scenarios)
    names = [scenario.name for scenario in scenarios]
    for scenario in (scenario_of(entry, 0) for entry in scenarios):
        scenario.check_engine(known)
        if all(flow.controller is not None for flow in scenario.flows):
            raise ScenarioError(
                f"scenario {scenario.name}: each flow names its controller, so none is left for a "
                "policy; leave out `controller` of one"
            )
        if names.count(scenario.name) > 1:
            raise ScenarioError(
                f"two of the scenarios have the name {scenario.name!r}; change `name` of one"
            )
    shown = [split_alias(choice)[0] for choice in dict.fromkeys(policies)]
    for name in shown:
        if shown.count(name) > 1:
            raise ScenarioError(
                f"two of the policies are shown as {name!r}; give one of them another alias, as in "
                "mine=runs/ppo"
            )
    found = {choice: find_policy(choice, trust_zip=trust_zip) for choice in policies}
    fingerprints = {choice: fingerprint_of(choice, policy) for choice, policy in found.items()}
    for choice, policy in found.items():
        if (reward or Reward()).name == "preference" and policy.decisions.preference is None:
            raise ScenarioError(
                f"reward preference: {choice} has no preference to weigh by; give another reward, "
                "or policies of environments with one alone"
            )
    files = _series_files(fingerprints, names, series_in) if series_in else {}
    return [
        EvaluationJob(
            choice,
            fingerprint,
            scenario_of(entry, seed),
            known,
            seed,
            reward or Reward(),
            trust_zip,
            files.get((choice, entry.name)) if seed == 0 else None,
        )
        for choice, fingerprint in fingerprints.items()
        for entry in scenarios
        for seed in range(seeds)
    ]


def _series_files(
    policies: Iterable[str], scenarios: Sequence[str], folder: Path
) -> dict[tuple[str, str], Path]:
    from quicgym.agents.evaluation.run_folders import (
        series_path,  # pandas: a worker need not wait for it
    )

    files: dict[tuple[str, str], Path] = {}
    owners: dict[Path, tuple[str, str]] = {}
    for cell in product(policies, scenarios):
        files[cell] = series_path(folder, split_alias(cell[0])[0], cell[1])
        owner = owners.setdefault(files[cell], cell)
        if owner != cell:
            raise ScenarioError(
                f"{owner[0]} in {owner[1]} and {cell[0]} in {cell[1]}: the time series of both "
                f"would be {files[cell].name}; give one of them another name"
            )
    return files
