"""All baselines, static and learned policies on both engines: `make reports ARGS=leaderboard`.

The policies are those of configs/leaderboard.yaml, the suites those of SUITES. Each suite and
engine is a separate evaluation with a folder in the results, so --resume continues after an
interruption.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from quicgym import html_pages
from quicgym.agents.evaluation.evaluate import number
from quicgym.agents.evaluation.jobs import RunJob, make_jobs
from quicgym.agents.evaluation.summary import evaluate, scores_of
from quicgym.agents.policies.by_name import policy_kind
from quicgym.benchmarks import options
from quicgym.benchmarks.attacks import read_attacks, worst_difference
from quicgym.benchmarks.leaderboard_data import (
    BEST,
    ENGINES,
    Entry,
    Result,
    draw_leaderboard,
    leaderboard_data,
)
from quicgym.console import say
from quicgym.envs.scenarios.suites import load_suite
from quicgym.envs.simulation.simulation import check_engine
from quicgym.errors import UserError
from quicgym.jobs import Workers, read_finished, workers_of
from quicgym.output_folders import locked, write_atomically
from quicgym.plot_style import save
from quicgym.validation import validated
from quicgym.yaml_files import CONFIGS, read_yaml_file

LEADERBOARD = Path(str(CONFIGS / "leaderboard.yaml"))


@dataclass(frozen=True)
class LeaderboardSuite:
    """How the leaderboard evaluates a suite: engine -> seeds.

    Policies of `also` run here on every engine, whatever their `engines` say.
    """

    seeds: Mapping[str, int]
    about: str = ""
    also: tuple[str, ...] = ()


SUITES = {
    "papers": LeaderboardSuite(
        {"native": 10, "ns3": 2},
        "The papers' wired experiments: 1 to 17.5 Mbps, one to five flows.",
    ),
    "heldout": LeaderboardSuite(
        {"native": 4, "ns3": 2},
        "Paths of 1 to 200 Mbps and 10 to 600 ms that training never draws.",
    ),
    "stress": LeaderboardSuite(
        {"native": 2},
        "The widest networks: 0.1 to 500 Mbps, 2 ms to 1.5 s, all queue disciplines, cellular "
        "traces, outages, reordering, policers, short flows, up to 16 flows. Training never draws "
        "these paths.",
    ),
    "ibcca-wireless": LeaderboardSuite(
        {"ns3": 2},
        "The IBCCA paper's experiments over its wireless LAN, shortened; ns-3 only. The throughput "
        "share is the share of the 135 Mbps at which 802.11n sends a frame. About 102 Mbps of data "
        "fit in. BBR and eBCC run here beside those that ns-3 runs anyway.",
        also=("bbr", "ebcc"),
    ),
    "heldout-coexistence": LeaderboardSuite(
        {"native": 2},
        "Next to CUBIC, BBR, BBRv3 and NewReno: 2 to 100 Mbps, queues of 0.3 to 16 BDP.",
    ),
    "heldout-changing": LeaderboardSuite(
        {"native": 2},
        "Another rate, another delay or both every few seconds.",
    ),
    "heldout-cellular": LeaderboardSuite(
        {"native": 2},
        "Rates that move at random, with outages, before queues of up to 60 BDP.",
    ),
    "heldout-satellite": LeaderboardSuite(
        {"native": 2},
        "Low-orbit satellites: another rate and another delay about every 15 s.",
    ),
    "heldout-wireless": LeaderboardSuite(
        {"native": 2},
        "Fast moving rates, aggregation and the jitter of retransmissions.",
    ),
    "heldout-lan": LeaderboardSuite(
        {"native": 2},
        "Local networks: 0.2 to 10 ms, up to 1 Gbps.",
    ),
    "heldout-long-fat": LeaderboardSuite(
        {"native": 1},
        "20 to 500 Mbps at 100 to 600 ms.",
    ),
}
OTHER_SUITE = LeaderboardSuite({"native": 40, "ns3": 2})
"""How a suite is evaluated that the list does not have."""
COMMAND = "python -m quicgym.benchmarks.reports leaderboard"
ATTACKS_FOLDER = "attacks"
"""Folder next to the page with the results of attacks."""


class LeaderboardError(UserError, ValueError):
    """The list of policies is not valid; the text says where."""


def load_entries(path: Path) -> list[Entry]:
    """Loads the list of policies; LeaderboardError names file, field, value and remedy."""
    file = read_yaml_file(path, LeaderboardError)
    entries = validated(list[Entry], file.data, file.name, LeaderboardError)
    if not entries:
        raise LeaderboardError(f"{path}: has no policy; list at least one")
    for index, entry in enumerate(entries):
        kind = policy_kind(entry.policy)
        if kind != entry.kind:
            raise LeaderboardError(
                f"{path}: {index}.kind = {entry.kind!r}: {entry.policy} is {kind}"
            )
        for field in ("name", "policy"):
            if sum(getattr(other, field) == getattr(entry, field) for other in entries) > 1:
                raise LeaderboardError(
                    f"{path}: {index}.{field} = {getattr(entry, field)!r}: is there twice; "
                    "leave one out"
                )
    return entries


@dataclass(frozen=True)
class Section:
    """A suite on an engine: a separate evaluation in `results`, and a section of the page."""

    suite: str
    engine: str
    seeds: int
    entries: Sequence[Entry]
    results: Path

    @property
    def title(self) -> str:
        """Suite and engine, for readers."""
        return f"{self.suite}, {ENGINES[self.engine]}"

    @property
    def folder(self) -> Path:
        """Where the evaluation is written."""
        return self.results / f"{Path(self.suite).stem}-{self.engine}"

    @property
    def policies(self) -> list[str]:
        """The entries' policies, as `find_policy` takes them."""
        return [entry.policy for entry in self.entries]

    def jobs(self) -> list[RunJob]:
        """Returns all episodes."""
        return make_jobs(self.policies, load_suite(self.suite), self.seeds, engine=self.engine)

    @property
    def command(self) -> str:
        """The command that does the same evaluation alone."""
        options = ["--suite", self.suite, "--engine", self.engine, "--seeds", str(self.seeds)]
        return shlex.join(["quicgym", "evaluate", "--policy", *self.policies, *options])

    def evaluate(self, workers: Workers, resume: bool) -> Result:
        """Runs the episodes and returns what they say; ends where it was interrupted."""
        say(self.title)
        evaluation = evaluate(
            self.policies,
            self.suite,
            self.seeds,
            self.folder,
            engine=self.engine,
            workers=workers,
            resume=resume and self.folder.exists(),
            keep_series=False,
            command=self.command,
            again=f"{COMMAND} {shlex.join(sys.argv[2:])}",
        )
        document = evaluation.document
        if document is None:
            raise typer.Exit(130)
        ranked = [row["policy"] for row in document["policies"]]
        scenarios = [cell["scenario"] for cell in document["policies"][0]["scenarios"]]
        scores = scores_of(evaluation.runs, ranked, scenarios, document["seeds"])
        return Result(document, scores)


def make_sections(
    entries: Sequence[Entry],
    suites: Sequence[str],
    engines: Sequence[str],
    seeds: Mapping[str, int | None],
    results: Path,
) -> list[Section]:
    """Returns what is evaluated, in the order of the page.

    No suites means those of SUITES, and no engines both; a suite of SUITES runs only on its own
    ones. Seeds None: as many as the suite has on the engine. Each evaluation has a folder in
    `results`. LeaderboardError where no suite runs on the engines, or an engine has no policy.
    """
    sections = []
    for known in dict.fromkeys(engines or ENGINES):
        for name in dict.fromkeys(suites or SUITES):
            suite = SUITES.get(name, OTHER_SUITE)
            if known not in suite.seeds:
                continue
            chosen = [
                entry for entry in entries if known in entry.engines or entry.policy in suite.also
            ]
            if not chosen:
                raise LeaderboardError(f"no policy of the list has {known} among its engines")
            count = seeds[known] or suite.seeds[known]
            sections.append(Section(name, known, count, chosen, results))
    if not sections:
        raise LeaderboardError(
            f"--suite {', '.join(suites)}: does not run on {', '.join(engines)}; "
            "leave out --engine, or use `quicgym evaluate`"
        )
    return sections


def _default_seeds(engine: str) -> str:
    """Says how many seeds the suites have on an engine."""
    suites: dict[int, list[str]] = {}
    for name, suite in SUITES.items():
        if engine in suite.seeds:
            suites.setdefault(suite.seeds[engine], []).append(name)
    return "; ".join(f"{seeds} for {', '.join(names)}" for seeds, names in suites.items())


def leaderboard(
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Evaluate on this suite. You may repeat it. Default: {', '.join(SUITES)}.",
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="native|ns3",
            help="Evaluate on this engine. You may repeat it. Default: those of each suite.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help=f"Run N seeds on the native engine. Default: {_default_seeds('native')}.",
        ),
    ] = None,
    ns3_seeds: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Run N seeds on ns-3, which is over 100 times as slow. Default: "
            f"{_default_seeds('ns3')}.",
        ),
    ] = None,
    policies: Annotated[
        Path, typer.Option(metavar="YAML", help="Evaluate the policies of this list.")
    ] = LEADERBOARD,
    jobs: options.Jobs = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the page to this file.")] = Path(
        "results/reports/leaderboard.md"
    ),
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Write the evaluations to this folder.")
    ] = Path("results/leaderboard"),
    resume: options.Resume = False,
    address: options.Address = None,
) -> None:
    """Evaluate the leaderboard's policies, and write its page, JSON and picture."""
    entries = load_entries(policies)
    workers = workers_of(jobs, address)
    seeds_on = {"native": seeds, "ns3": ns3_seeds}
    for known in engine or ():
        check_engine(known)
    sections = make_sections(entries, suite or (), engine or (), seeds_on, results)
    _announce(sections, workers.count, resume)
    with locked(results, "--results"):
        found = [section.evaluate(workers, resume) for section in sections]
    if any(result.document["missing"] for result in found):
        say(f"{out} is not written, because runs are missing")
        raise typer.Exit(1)
    changed = [word for name in suite or () for word in ("--suite", name)]
    changed += [word for name in engine or () for word in ("--engine", name)]
    changed += ["--seeds", str(seeds)] if seeds else []
    changed += ["--ns3-seeds", str(ns3_seeds)] if ns3_seeds else []
    changed += ["--policies", str(policies)] if policies != LEADERBOARD else []
    command = f"{COMMAND} {shlex.join(changed)}" if changed else "make reports ARGS=leaderboard"
    attacks = read_attacks(out.parent / ATTACKS_FOLDER)
    worst = {attack["policy"]: worst_difference(attack) for attack in attacks}
    data = leaderboard_data(entries, found, command, worst)
    try:
        write_atomically(
            {out: page(data, out.stem), out.with_suffix(".json"): json.dumps(data) + "\n"}
        )
        save(draw_leaderboard(data), out.with_suffix(""), "svg")
    except OSError as error:
        raise LeaderboardError(f"{out}: {error.strerror}; give another file with --out") from None
    print(data["finding"])
    say(f"the leaderboard is {out}; its evaluations are in {results}")


def page(data: Mapping[str, Any], stem: str = "leaderboard") -> str:
    """Returns the page of what `leaderboard_data` returns; files next to it have its `stem`."""
    return html_pages.render(
        "quicgym.benchmarks",
        "leaderboard.md.jinja",
        **data,
        about={name: suite.about for name, suite in SUITES.items()},
        best=BEST,
        engines=ENGINES,
        number=number,
        stem=stem,
    )


def _announce(sections: list[Section], workers: int, resume: bool) -> None:
    """Says how many episodes are to run."""
    wanted = [(section, {job.key for job in section.jobs()}) for section in sections]
    say(f"{sum(len(keys) for _, keys in wanted)} episodes with {workers} processes:")
    for section, keys in wanted:
        kept = keys & read_finished(section.folder).keys() if resume else ()
        say(f"  {section.title}: {len(keys) - len(kept)} to run of {len(keys)}")
