"""Which runs a paper's file needs, and whether quicgym has what it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quicgym.benchmarks.papers.drawings import SERIES
from quicgym.benchmarks.papers.measurements import problem_with, split
from quicgym.benchmarks.papers.paper import Paper, PaperError
from quicgym.envs import Scenario, ScenarioError
from quicgym.envs.simulation.controller_choice import find_controller
from quicgym.envs.simulation.metrics import ASKED_FOR
from quicgym.yaml_files import closest


def needs(paper: Paper) -> Iterator[tuple[str, str]]:
    """Yields scenario and algorithm of every run that tables, figures and claims need."""
    everyone = tuple(paper.algorithms)
    for table in paper.tables:
        for row in table.rows:
            yield from ((row.scenario, name) for name in table.algorithms or everyone)
    for figure in paper.figures:
        for scenario in (*figure.scenarios, *(row.scenario for row in figure.rows)):
            yield from ((scenario, name) for name in figure.algorithms or everyone)
    yield from claim_needs(paper)


def claim_needs(paper: Paper) -> Iterator[tuple[str, str]]:
    """Yields scenario and algorithm of every run that the claims need."""
    for claim in paper.claims:
        for check in claim.checks:
            yield from ((scenario, name) for scenario in check.within for name in check.of)
            for scenario in check.to_in or check.within:
                yield from ((scenario, name) for name in check.to)


def scenarios_of(paper: Paper) -> Iterator[str]:
    """Yields the scenarios of those runs, each once."""
    yield from dict.fromkeys(scenario for scenario, _ in needs(paper))


def measures_of(papers: Iterable[Paper]) -> dict[str, tuple[str, ...]]:
    """Returns by scenario the metrics that runs have only where they are asked for, each once."""
    wanted: dict[str, dict[str, None]] = {}
    for paper in papers:
        for _, scenario, quantity in _quantities(paper):
            metric = split(quantity)[0]
            if metric in ASKED_FOR:
                wanted.setdefault(scenario, {})[metric] = None
    return {scenario: tuple(names) for scenario, names in wanted.items()}


def _quantities(paper: Paper) -> Iterator[tuple[str, str, str]]:
    """Yields field, scenario and quantity of everything that a paper's file asks for."""
    for number, table in enumerate(paper.tables):
        for word, metric in table.metrics.items():
            for row in table.rows:
                yield f"tables.{number}.metrics.{word}", row.scenario, metric
    for number, figure in enumerate(paper.figures):
        for label, metric in figure.bars.items():
            for group in figure.rows:
                yield f"figures.{number}.bars.{label}", group.scenario, metric
    for claim in paper.claims:
        for number, check in enumerate(claim.checks):
            where = f"claim {claim.id}: checks.{number}"
            for scenario in check.within:
                yield f"{where}.metric", scenario, check.metric
            for scenario in (check.to_in or check.within) if check.to else ():
                yield f"{where}.to_metric", scenario, check.to_metric or check.metric


def check_names(file: str, paper: Paper, scenarios: dict[str, Scenario]) -> None:
    """Raises PaperError where the file asks for what quicgym does not have."""
    for scenario, algorithm in needs(paper):
        if scenarios[scenario].name != scenario:
            raise PaperError(
                f"{file}: scenario {scenario!r} has the name {scenarios[scenario].name!r}; a paper "
                "names quicgym's own scenarios, which are found by their names"
            )
        try:
            find_controller(algorithm)
        except ScenarioError as error:
            raise PaperError(f"{file}: {scenario}: {error}") from None
    for field, scenario, quantity in _quantities(paper):
        flows = [name for name, _ in scenarios[scenario].single_flows()]
        problem = problem_with(quantity, flows)
        if problem:
            raise PaperError(f"{file}: {field} = {quantity!r} ({scenario}): {problem}")
    for number, figure in enumerate(paper.figures):
        if figure.over_time not in (None, *SERIES):
            raise PaperError(
                f"{file}: figures.{number}.over_time = {figure.over_time!r}: no such time series; "
                f"{closest(figure.over_time or '', SERIES)}"
            )
