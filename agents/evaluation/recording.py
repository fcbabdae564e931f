"""Episodes of policies as a Minari dataset, for offline reinforcement learning.

Minari's own DataCollector wraps a single environment. Here many episodes are played side by side on
the native engine, as for an evaluation, and written as Minari's buffers. A row of an agent's flow
is an episode of the dataset.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from quicgym import __version__, _core
from quicgym.agents.evaluation.rollouts import play_all
from quicgym.agents.policies.by_name import find_policy, split_alias
from quicgym.agents.policies.policy import ConstantPolicy, Policy, RandomPolicy
from quicgym.console import progress_bar
from quicgym.envs.actions import action_space
from quicgym.envs.batch import EpisodeBatch
from quicgym.envs.decisions import Decisions
from quicgym.envs.info import INFO_COLUMNS
from quicgym.envs.registration import find_environment
from quicgym.envs.scenarios.distributions import distribution_names
from quicgym.envs.scenarios.files import scenario_names
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.suites import load_suite, parts_of, refuse_held_out, scenario_of
from quicgym.envs.simulation.simulation import REWARD_INTERVAL_MS
from quicgym.errors import MissingExtraError, RunError, UserError
from quicgym.yaml_files import closest

FIRST_SEED = 2_000_000
"""The first seed of a recording. So large that no network of a dataset is played by an evaluation,
which begins at seed 0, or by the comparison after a training."""
_AT_A_TIME = 64  # episodes side by side, which are in memory until they are written
MINARI_FOLDER = "MINARI_DATASETS_PATH"
"""The environment variable by which Minari finds its datasets."""


def record(
    policies: Sequence[str],
    suite: str,
    seeds: int,
    directory: Path,
    dataset: str | None = None,
    *,
    environment: str | None = None,
    trust_zip: bool = False,
) -> tuple[str, int, int]:
    """Writes a dataset, with a progress bar on standard error.

    Args:
        policies: Policies, as `quicgym evaluate --policy` takes them. A hand-coded controller has
            to be one of the environment's presets, because its decisions are the actions there.
        suite: Suite, scenario or distribution; not one that is held out.
        seeds: Number of seeds of each entry, from FIRST_SEED on.
        directory: Folder of Minari's datasets.
        dataset: Minari's name of the dataset; None: "quicgym/ENVIRONMENT-SUITE-v0".
        environment: Environment of policies that are none's own; None: that of the first learned
            policy, or Tuning-v1.
        trust_zip: Whether to accept a model of Stable-Baselines3, see `load_policy`.

    Returns:
        The dataset's name, its episodes and its steps.

    Raises:
        UserError: A policy has no actions in the environment, the policies are of different
            environments, or the suite is held out.
        RunError: There is a dataset of this name, or the name is not valid.
        MissingExtraError: Minari is not installed.
    """
    try:
        import minari
        from minari.data_collector import EpisodeBuffer
        from minari.dataset.minari_dataset import parse_dataset_id
    except ImportError as error:
        raise MissingExtraError("recording a dataset needs Minari", "offline") from error

    refuse_held_out("suite", suite, UserError)
    entries = parts_of(load_suite(suite))
    decisions, chosen = _policies(policies, environment, trust_zip)
    id = find_environment(decisions.environment).id
    name = dataset or f"quicgym/{decisions.environment}-{Path(suite).stem}-v0"
    try:
        parse_dataset_id(name)
    except ValueError as error:
        raise RunError(f"dataset={name!r}: {error}") from None
    os.environ[MINARI_FOLDER] = str(directory.resolve())  # Minari needs a whole path
    if name in minari.list_local_datasets():
        raise RunError(
            f"{directory}: has a dataset {name} already; give another name with dataset=, or "
            "another folder"
        )
    arguments = {key: value for key, value in decisions.arguments.items() if value is not None}
    if len(entries) == 1 and suite in (*distribution_names(), *scenario_names()):
        arguments["scenario"] = suite
    spec = gymnasium.make(id, **arguments).spec
    chosen_seeds = range(FIRST_SEED, FIRST_SEED + seeds)
    cells = [(scenario_of(entry, seed), seed) for entry in entries for seed in chosen_seeds]
    create = functools.partial(_create, minari, name, spec, suite, seeds, policies)
    try:
        written = _play_and_write(chosen, cells, create, EpisodeBuffer)
    except BaseException:
        if name in minari.list_local_datasets():  # half of a dataset looks like a whole one
            minari.delete_dataset(name)
        raise
    return name, int(written.total_episodes), int(written.total_steps)


def _play_and_write(
    policies: Mapping[str, Policy],
    cells: Sequence[tuple[Scenario, int]],
    create: Callable[[list[Any]], Any],
    buffer: Callable[..., Any],
) -> Any:
    """Returns the dataset, which `create` makes of the first buffers."""
    written = None
    with progress_bar() as progress:
        task = progress.add_task("episodes", total=len(policies) * len(cells))
        for name, policy in policies.items():
            for begin in range(0, len(cells), _AT_A_TIME):
                part = cells[begin : begin + _AT_A_TIME]
                episodes = _Episodes()
                play_all(policy, part, threads=len(os.sched_getaffinity(0)), watch=episodes)
                buffers = [buffer(**fields) for _, fields in episodes.finished()]
                before = 0
                if written is None:
                    written = create(buffers)
                else:
                    before = int(written.total_episodes)
                    written.update_dataset_from_buffer(buffers)
                about = [{"policy": name, **where} for where, _ in episodes.finished()]
                written.storage.update_episode_metadata(about, range(before, before + len(about)))
                progress.advance(task, len(part))
    return written


def _create(
    minari: Any,
    name: str,
    spec: Any,
    suite: str,
    seeds: int,
    policies: Sequence[str],
    buffers: list[Any],
) -> Any:
    with warnings.catch_warnings():  # it asks for an author and a link
        warnings.filterwarnings("ignore", "`.*` is set to None")
        return minari.create_dataset_from_buffers(
            name,
            buffers,
            env=spec,
            algorithm_name=", ".join(policies),
            description=(
                f"Episodes of {', '.join(policies)} on {suite} with {seeds} seeds from "
                f"{FIRST_SEED} on, by quicgym {__version__} at commit {_core.commit}. The "
                "reward is fair-throughput. Each episode's metadata has policy, scenario, seed and "
                "flow."
            ),
            data_format="arrow",
            requirements=[f"quicgym=={__version__}"],
        )


def _policies(
    names: Sequence[str], environment: str | None, trust_zip: bool
) -> tuple[Decisions, dict[str, Policy]]:
    """Returns what is decided in the dataset, and the policies by the names that it has."""
    found = {name: find_policy(name, trust_zip=trust_zip) for name in names}
    own = [name for name, policy in found.items() if not _is_general(policy)]
    decisions = found[own[0]].decisions if own else Decisions(environment or "tuning")
    decisions = replace(decisions, reward_interval_ms=REWARD_INTERVAL_MS)
    if environment is not None and Decisions(environment).environment != decisions.environment:
        raise UserError(
            f"environment={environment!r}: {own[0]} is a policy of {decisions.environment}; leave "
            "it out, or record the policies apart"
        )
    policies: dict[str, Policy] = {}
    for name, policy in found.items():
        if name in own:
            if replace(policy.decisions, reward_interval_ms=REWARD_INTERVAL_MS) != decisions:
                raise UserError(
                    f"{name}: decides as {policy.decisions}, and {own[0]} as "
                    f"{found[own[0]].decisions}; a dataset has one environment, so record them "
                    "apart"
                )
            policies[split_alias(name)[0]] = policy
        else:
            policies[split_alias(name)[0]] = _in_environment(name, policy, decisions)
    return decisions, policies


def _is_general(policy: Policy) -> bool:
    """Whether a policy is none of a single environment: a controller, or "random"."""
    return bool(policy.options) or type(policy) is RandomPolicy and policy.name == "random"


def _in_environment(name: str, policy: Policy, decisions: Decisions) -> Policy:
    """Returns a controller, or the random policy, as a policy that acts in an environment."""
    if not policy.options:
        space = action_space(decisions.interface.action_space)
        return RandomPolicy(space, decisions=decisions)
    environment = find_environment(decisions.environment).variant(
        decisions.controller, decisions.coordinates
    )
    controller = policy.options["controller"]
    parameters = policy.options.get("parameters") or {}
    try:
        action = environment.preset_action(controller, **parameters)
    except (TypeError, ValueError):
        known = closest(str(controller), environment.presets) if environment.presets else "none has"
        raise UserError(
            f"{name}: has no actions in {environment.id}, so nothing could be learned from them; "
            f"of the controllers {known}. Take a policy of the environment, or Tuning-v1, which "
            "has the BBR family"
        ) from None
    return ConstantPolicy(split_alias(name)[0], action, decisions=decisions)


@dataclass
class _Episodes:
    """Collects the episodes that `play_all` plays: a list of arrays for each row of a batch."""

    batches: list[_Rows] = field(default_factory=list)

    def begins(self, batch: EpisodeBatch, cells: Sequence[tuple[Scenario, int]]) -> None:
        """Keeps the first observations."""
        self.batches.append(_Rows(batch, cells))

    def stepped(self, batch: EpisodeBatch, actions: np.ndarray) -> None:
        """Keeps a step of the rows whose episode has moved on."""
        self.batches[-1].add(batch, actions)

    def finished(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yields where each episode was, and the fields of Minari's EpisodeBuffer."""
        for rows in self.batches:
            yield from zip(rows.where, rows.fields, strict=True)


class _Rows:
    def __init__(self, batch: EpisodeBatch, cells: Sequence[tuple[Scenario, int]]) -> None:
        self.where: list[dict[str, Any]] = []
        self.fields: list[dict[str, Any]] = []
        for scenario, seed in cells:
            names = [name for name, flow in scenario.single_flows() if flow.controller is None]
            self.where += [
                {"scenario": scenario.name, "seed": seed, "flow": flow} for flow in names
            ]
        for row in range(len(self.where)):
            self.fields.append(
                {
                    "observations": [batch.observations[row].copy()],
                    "actions": [],
                    "rewards": [],
                    "terminations": [],
                    "truncations": [],
                    "infos": {
                        name: [value]
                        for name, value in zip(INFO_COLUMNS, batch.info[row].tolist(), strict=True)
                    },
                }
            )

    def add(self, batch: EpisodeBatch, actions: np.ndarray) -> None:
        for row, fields in enumerate(self.fields):
            simulation = row // batch.agent_count
            if not batch.selected[simulation]:
                continue
            fields["observations"].append(batch.observations[row].copy())
            fields["actions"].append(actions[row].copy())
            fields["rewards"].append(float(batch.rewards[row]))
            fields["terminations"].append(bool(batch.terminations[simulation]))
            fields["truncations"].append(bool(batch.truncations[simulation]))
            for name, value in zip(INFO_COLUMNS, batch.info[row].tolist(), strict=True):
                fields["infos"][name].append(value)
