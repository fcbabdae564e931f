"""The command `quicgym attack`: finds the network on which a policy loses most against others.

Three stages, each of runs that --resume finds again:

1. Optuna searches networks for the least reward(policy) − max reward(others), with seed 0. The
   worst of them are run with ten other seeds, and the worst by the mean stays, with the best of
   the others there.
2. The network is made simpler, step by step, while half of the difference to that one is left.
3. The network as found and the simplest one are run with ten more seeds, by which nothing was
   chosen. What is reported is of these.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np

from quicgym.agents.attack import simplify
from quicgym.agents.attack.networks import draw_network, load_networks, may_have
from quicgym.agents.evaluation.jobs import PolicyChoice, make_jobs
from quicgym.agents.evaluation.run_folders import read_series, series_path
from quicgym.agents.evaluation.statistics import Estimate, mean_difference
from quicgym.agents.policies.by_name import split_alias
from quicgym.console import say
from quicgym.envs.scenarios.distributions import Distribution
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.files import as_yaml
from quicgym.envs.scenarios.mixtures import Mixture
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.scenarios.words import network_in_words
from quicgym.envs.simulation.plots import draw_episodes
from quicgym.errors import MissingExtraError
from quicgym.jobs import RUNS_FILE, report_failures, run_jobs
from quicgym.output_folders import output_folder
from quicgym.plot_style import save
from quicgym.studies import Findings, Study

try:
    import optuna
except ImportError as error:
    raise MissingExtraError("attacks need Optuna", "sweep") from error

Format = Literal["table", "json"]
AGAINST = ("cubic", "bbr", "bbr3")
DISTRIBUTION = "worlds"
BUDGET_S = 600.0
SEEDS = range(11, 21)
"""Seeds that a difference is reported over."""
ATTACK_FILE = "attack.json"
WORST_FILE, FOUND_FILE = "worst.yaml", "found.yaml"
RESULTS = (RUNS_FILE, ATTACK_FILE, WORST_FILE, FOUND_FILE, "series")
_BATCH = 16
"""Trials that are suggested at once: with any number of processes the search is the same."""
_AT_RANDOM = 2 * _BATCH
"""Trials before Optuna's sampler learns from results."""
_REPLAYED = 4
"""Worst trials, of which the worst is chosen."""
_SEARCH_SEEDS, _CHOICE_SEEDS, _STEP_SEEDS = range(1), range(1, 11), range(2)
"""Seeds of the search, of the choice among the worst trials, and of simpler networks."""
_KEPT = 1 / 2
"""Share of the difference that a simpler network keeps."""
_TERMS = {
    "throughput_share": ("throughput share", 1.0, "{:.2f}"),
    "loss_rate": ("loss rate", -5.0, "{:.1%}"),
    "jain_of_intervals": ("Jain's index", 1.0, "{:.2f}"),
}
"""Metric of each term of the reward, with its words, weight and format."""


class Interrupted(Exception):
    """Ctrl-C ended the runs; those that are finished are kept."""


@dataclass(frozen=True)
class Comparison:
    """A policy and others on one network.

    Attributes:
        network: The network.
        runs: Metrics of the runs of each policy, seed by seed; the attacked policy is the first.
        chosen: The other policy that counts; None: the one that is best in these runs.
    """

    network: Scenario
    runs: Mapping[str, Sequence[Mapping[str, Any]]]
    chosen: str | None = None

    @property
    def policy(self) -> str:
        """The attacked policy, as results show it."""
        return next(iter(self.runs))

    @cached_property
    def best(self) -> str:
        """The other policy that counts, or else the one with the highest mean reward."""
        if self.chosen is not None:
            return self.chosen
        others = [name for name in self.runs if name != self.policy]
        return max(others, key=lambda name: self.mean(name, "reward"))

    def mean(self, policy: str, metric: str) -> float:
        """Returns the mean of a metric over the seeds."""
        return float(np.mean([run[metric] for run in self.runs[policy]]))

    @cached_property
    def difference(self) -> Estimate:
        """The mean reward of the policy minus that of the best other, with its 95% interval."""
        own, other = (
            [run["reward"] for run in self.runs[name]] for name in (self.policy, self.best)
        )
        return mean_difference(np.array([own]), np.array([other]))

    @property
    def is_sure(self) -> bool:
        """Whether the interval says that the policy is behind."""
        return self.difference.high is not None and self.difference.high < 0

    @property
    def cause(self) -> str:
        """The term of the reward that the policy loses most by, in words."""
        means = {
            metric: [self.mean(name, metric) for name in (self.policy, self.best)]
            for metric in _TERMS
        }
        lost = {metric: _TERMS[metric][1] * (own - other) for metric, (own, other) in means.items()}
        words, _, form = _TERMS[metric := min(lost, key=lost.__getitem__)]
        own, other = (form.format(value) for value in means[metric])
        return f"its {words} is {own}, and {self.best}'s is {other}"

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        low, high = self.difference.low, self.difference.high
        beside = [flow.controller for flow in self.network.flows if flow.controller is not None]
        others = f", next to {', '.join(beside)}" if beside else ""
        return (
            f"{self.policy} is {-self.difference.value:.2f} [{-(high or 0):.2f}, {-(low or 0):.2f}]"
            f" behind {self.best} on {network_in_words(self.network)}{others}: {self.cause}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns what attack.json has of it."""
        return {
            "sentence": self.sentence,
            "best": self.best,
            "difference": self.difference.value,
            "low": self.difference.low,
            "high": self.difference.high,
            "means": {
                name: {metric: self.mean(name, metric) for metric in ("reward", *_TERMS)}
                for name in self.runs
            },
        }


@dataclass
class Attack:
    """A search for the network on which a policy is worst.

    Attributes:
        policy: The attacked policy, as `find_policy` takes it.
        others: Policies that it is compared with, as `find_policy` takes them.
        networks: Distribution or mixture that networks are drawn from.
        seed: Seed of the search.
        directory: Folder of the results.
        workers: Number of processes.
        trust_zip: Whether to load a model that Stable-Baselines3 saved, which runs code in it.
        trials: Networks that were searched, in order.
        failures: Runs that failed, with the reason.
    """

    policy: str
    others: Sequence[str]
    networks: Distribution | Mixture
    seed: int
    directory: Path
    workers: int
    trust_zip: bool = False
    trials: list[Comparison] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _parts: dict[str, str] = field(default_factory=dict)
    """Name of the distribution that a trial's network was drawn from, by the network's name."""
    _steps: int = 0

    def compare(
        self,
        networks: Sequence[Scenario],
        seeds: range,
        title: str,
        *,
        chosen: str | None = None,
        series: bool = False,
    ) -> list[Comparison | None]:
        """Runs all policies on networks, which have different names.

        Args:
            networks: The networks.
            seeds: The seeds.
            title: Words of the progress bar.
            chosen: The other policy that counts; None: the best.
            series: Whether the time series of the first seed are kept.

        Returns:
            A comparison for each network; None where a run of it failed.

        Raises:
            Interrupted: Ctrl-C was pressed.
        """
        policies = [self.policy, *self.others]
        jobs = make_jobs(
            policies, networks, len(seeds), first_seed=seeds.start, trust_zip=self.trust_zip,
            series_in=self.directory if series else None,
        )  # fmt: skip
        outcome = run_jobs(jobs, self.directory, self.workers, resume=True, title=title)
        self.failures += outcome.failures
        report_failures(outcome.failures)
        if outcome.interrupted:
            raise Interrupted
        runs: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
        for job in jobs:
            if job.key in outcome.finished:
                cell = (job.scenario.name, job.shown)
                runs.setdefault(cell, []).append(outcome.finished[job.key])
        shown = [split_alias(choice)[0] for choice in policies]
        found: list[Comparison | None] = []
        for network in networks:
            of_network = {name: runs.get((network.name, name), []) for name in shown}
            complete = all(len(rows) == len(seeds) for rows in of_network.values())
            found.append(Comparison(network, of_network, chosen) if complete else None)
        return found

    def search(self, trials: int | None, budget_s: float | None) -> None:
        """Searches networks, in batches, until a number of them or the time is reached.

        One batch is searched in any case.
        """
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(
            seed=self.seed, n_startup_trials=_AT_RANDOM, constant_liar=True
        )
        study = optuna.create_study(sampler=sampler)
        end_s = time.monotonic() + budget_s if budget_s is not None else None
        done = 0
        while not done or (
            (trials is None or done < trials) and (end_s is None or time.monotonic() < end_s)
        ):
            asked = [study.ask() for _ in range(min(_BATCH, (trials or done + _BATCH) - done))]
            networks = []
            for trial in asked:
                drawn = draw_network(self.networks, trial, self.seed)
                name = f"trial-{trial.number}"
                self._parts[name] = drawn.name
                networks.append(drawn.model_copy(update={"name": name}))
            title = f"networks {done + 1} to {done + len(asked)}"
            for trial, found in zip(
                asked, self.compare(networks, _SEARCH_SEEDS, title), strict=True
            ):
                if found is None:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    study.tell(trial, found.difference.value)
                    self.trials.append(found)
            done += len(asked)

    def worst(self) -> Comparison | None:
        """Returns the worst network; None: the policy was behind for sure on none."""
        behind = [trial for trial in self.trials if trial.difference.value < 0]
        behind.sort(key=lambda trial: trial.difference.value)
        networks = [trial.network for trial in behind[:_REPLAYED]]
        replayed = self.compare(networks, _CHOICE_SEEDS, "worst networks") if networks else []
        complete = [found for found in replayed if found is not None]
        worst = min(complete, key=lambda found: found.difference.value, default=None)
        return worst and self._judge(worst.network, worst.best)

    def _judge(self, network: Scenario, chosen: str, *, series: bool = False) -> Comparison | None:
        """Compares with one other over the seeds of the report; None: not behind for sure."""
        (judged,) = self.compare([network], SEEDS, network.name, chosen=chosen, series=series)
        return judged if judged is not None and judged.is_sure else None

    def simplest(self, found: Comparison) -> Comparison:
        """Returns the simplest network that keeps half of a difference."""
        reached = [found.network]
        for steps_of in (simplify.parts, simplify.roundings):
            while next_one := self._simpler(reached[-1], steps_of(reached[-1]), found):
                reached.append(next_one)
        for network in reversed(reached):
            name = re.sub(r"[^\w.+-]", "-", f"worst-of-{split_alias(self.policy)[0]}", flags=re.A)
            named = network.model_copy(update={"name": name[:80], "description": ""})
            checked = self._judge(named, found.best, series=True)
            if checked is not None and _keeps(checked, found):
                return checked
        raise AssertionError("the network as found has the difference")

    def _simpler(
        self, network: Scenario, steps: Mapping[str, simplify.Step], found: Comparison
    ) -> Scenario | None:
        """Returns the network after all steps that keep the difference, or after the first one."""
        part = self._parts[found.network.name]
        after = {what: simplify.changed(network, step) for what, step in steps.items()}
        allowed = {
            what: each
            for what, each in after.items()
            if each is not None and may_have(self.networks, part, each)
        }
        kept = self._keep(allowed, found)
        if not kept:
            return None
        together = network
        for what in kept:
            together = simplify.changed(together, steps[what]) or together
        is_allowed = len(kept) > 1 and may_have(self.networks, part, together)
        if is_allowed and self._keep({"all of these": together}, found):
            return together
        return allowed[kept[0]]

    def _keep(self, networks: Mapping[str, Scenario], found: Comparison) -> list[str]:
        """Returns the keys of the networks that keep half of a difference."""
        if not networks:
            return []
        named = []
        for network in networks.values():
            self._steps += 1
            named.append(network.model_copy(update={"name": f"step-{self._steps}"}))
        compared = self.compare(named, _STEP_SEEDS, "simpler networks", chosen=found.best)
        return [
            what
            for what, each in zip(networks, compared, strict=True)
            if each is not None and _keeps(each, found)
        ]


def _keeps(simpler: Comparison, found: Comparison) -> bool:
    """Returns whether a simpler network has enough of the difference that was found."""
    return simpler.difference.value <= _KEPT * found.difference.value


def attack_policy(
    policy: str,
    *,
    directory: Path,
    against: Sequence[str] = AGAINST,
    distribution: str = DISTRIBUTION,
    trials: int | None = None,
    budget_s: float | None = None,
    seed: int = 0,
    workers: int = 1,
    figure_format: str = "png",
    resume: bool = False,
    trust_zip: bool = False,
    command: str = "",
) -> Findings | None:
    """Searches, simplifies, writes and draws.

    The arguments are the options of `quicgym attack`. Without `trials` and `budget_s` the search
    takes BUDGET_S.

    Returns:
        What goes into attack.json; None where no network could be compared.

    Raises:
        Interrupted: Ctrl-C was pressed.
        ScenarioError: A policy or a distribution does not exist.
        PolicyError: A learned policy cannot be loaded.
        RunError: The folder cannot be used.
    """
    others = [name for name in dict.fromkeys(against) if name != policy]
    if not others:
        raise ScenarioError(f"--against: names only {policy} itself; give another policy")
    networks = load_networks(distribution)
    for choice in (policy, *others):
        PolicyChoice.of(choice, trust_zip=trust_zip)
    if trials is None and budget_s is None:
        budget_s = BUDGET_S
    attack = Attack(policy, others, networks, seed, directory, workers, trust_zip)
    study = Study(directory, RESULTS, command, workers, resume=resume)
    with output_folder(directory, RESULTS, resume=resume):
        attack.search(trials, budget_s)
        found = attack.worst()
        worst = found and attack.simplest(found)
        if attack.failures and not attack.trials:
            return None
        content = {
            "policy": split_alias(policy)[0],
            "against": [split_alias(choice)[0] for choice in others],
            "distribution": networks.name,
            "seed": seed,
            "trials": len(attack.trials),
            "failures": attack.failures,
            "found": found and found.to_dict(),
            "worst": worst and worst.to_dict(),
        }
        texts = {}
        if found is not None and worst is not None:
            texts = {
                name: as_yaml(network, lambda trace: os.path.relpath(trace, directory))
                for name, network in ((FOUND_FILE, found.network), (WORST_FILE, worst.network))
            }
        findings = Findings(
            ATTACK_FILE,
            study.about(len(SEEDS), SEEDS.start),
            content,
            f"the results of {len(attack.trials)} trials",
            print_table=lambda document: print(words(document)),
            texts=texts,
        )
        findings.write(directory)
        if worst is not None:
            _draw(worst, directory, figure_format)
    return findings


def run_attack(
    policy: str,
    *,
    directory: Path,
    format: Format = "table",
    resume: bool = False,
    command: str = "",
    **options: Any,
) -> int:
    """Runs `attack_policy` with its arguments, and prints the result; returns the exit status."""
    try:
        findings = attack_policy(
            policy, directory=directory, resume=resume, command=command, **options
        )
    except Interrupted:
        again = command if resume else f"{command} --resume"
        say(f"interrupted: what was run is kept in {directory}; continue with\n  {again}")
        return 130
    if findings is None:
        say("quicgym: no network could be compared; the reasons are above")
        return 1
    findings.print(format)
    say(f"{findings.closing} are in {directory}")
    return 1 if findings.content["failures"] else 0


def words(document: Mapping[str, Any]) -> str:
    """Returns what an attack.json says, in one sentence."""
    if document["worst"] is not None:
        return str(document["worst"]["sentence"])
    return (
        f"{document['policy']} is not behind the best of {', '.join(document['against'])} for sure "
        f"on the worst of {document['trials']} networks."
    )


def _draw(worst: Comparison, directory: Path, format: str) -> None:
    matplotlib.use("Agg")
    paths = {
        name: series_path(directory, name, worst.network.name)
        for name in (worst.policy, worst.best)
    }
    figure = draw_episodes(
        {name: read_series(path) for name, path in paths.items()},
        base_rtt_ms=worst.network.base_rtt_ms,
    )
    save(figure, directory / "worst", format)
