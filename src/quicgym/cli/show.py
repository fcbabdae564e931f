"""`quicgym show`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from quicgym import controllers
from quicgym.benchmarks.options import completing
from quicgym.console import wide_console
from quicgym.envs import load_scenario, scenario_names
from quicgym.envs.registration import environment_ids, find_environment
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.yaml_files import closest

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = (
    "quicgym show controllers",
    "quicgym show controllers bbr3 'copa*'",
    "quicgym show scenarios 'ibcca-*'",
    "quicgym show suites",
)


class Kind(StrEnum):
    """What has names."""

    controllers = "controllers"
    policies = "policies"
    environments = "environments"
    scenarios = "scenarios"
    suites = "suites"
    distributions = "distributions"


def _names(kind: str) -> list[str]:
    if kind == Kind.policies:
        from quicgym.agents.policies.by_name import pretrained_names

        return pretrained_names()
    if kind == Kind.environments:
        return [*environment_ids()]
    if kind == Kind.scenarios:
        return scenario_names()
    if kind == Kind.suites:
        from quicgym.envs.scenarios.suites import suite_names

        return suite_names()
    if kind == Kind.distributions:
        from quicgym.envs.scenarios.distributions import distribution_names

        return distribution_names()
    return controllers.names()


def _complete(context: typer.Context, incomplete: str) -> list[str]:
    return [name for name in _names(context.params["kind"]) if name.startswith(incomplete)]


def show(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            autocompletion=completing(lambda: Kind),
            help=f"What to list: {', '.join(Kind)}.",
        ),
    ],
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            autocompletion=_complete,
            help="List only these; 'bbr*' is every one that begins with bbr. Default: all.",
        ),
    ] = None,
) -> None:
    """List the names that other commands take, and what each stands for.

    Controllers have their parameters with defaults, ranges and units. Those that other installed
    packages bring stand at the end.
    """
    if kind not in list(Kind):
        raise ScenarioError(f"{kind!r} is nothing that has names; {closest(kind, Kind)}")
    known = _names(kind)
    chosen = [one for one in known if any(fnmatchcase(one, pattern) for pattern in name or "*")]
    for pattern in name or ():
        if not any(fnmatchcase(one, pattern) for one in known):
            raise ScenarioError(f"{pattern!r} is none of the {kind}; {closest(pattern, known)}")
    tables: dict[str, Callable[[Iterable[str]], None]] = {
        Kind.controllers: _controllers,
        Kind.scenarios: _scenarios,
    }
    if kind in tables:
        tables[kind](chosen)
        return
    output = _table(kind, "what it is")
    for one in chosen:
        output.add_row(one, _about(kind, one))
    wide_console().print(output)


def _table(*headings: str) -> Table:
    from rich.table import Table

    output = Table(box=None, pad_edge=False)
    for heading in headings:
        output.add_column(
            heading,
            no_wrap=heading not in ("what it is", "source"),
            justify="right" if heading == "flows" else "left",
        )
    return output


def _about(kind: str, name: str) -> str:
    """Returns a sentence about a name."""
    if kind == Kind.policies:
        from quicgym.agents.policies.by_name import PRETRAINED
        from quicgym.agents.policies.learned import PolicyDescription

        return PolicyDescription.of_json((PRETRAINED / f"{name}.json").read_bytes()).description
    if kind == Kind.environments:
        return (find_environment(name).__doc__ or "").partition("\n")[0]
    from quicgym.envs.scenarios.distributions import Distribution
    from quicgym.envs.scenarios.mixtures import Mixture
    from quicgym.envs.scenarios.suites import about_suite, load_entry

    if kind == Kind.suites:
        return about_suite(name)
    entry = load_entry(name)
    assert isinstance(entry, Distribution | Mixture)
    return entry.description


def _scenarios(names: Iterable[str]) -> None:
    output = _table("scenario", "flows", "what it is", "source")
    for name in names:
        scenario = load_scenario(name)
        flows = len(list(scenario.single_flows()))
        output.add_row(name, str(flows), scenario.description, scenario.source)
    wide_console().print(output)
    print(
        "\nTo change one, write a file with `base: NAME`, a name of its own and the fields that "
        "differ, and pass the file's path."
    )


def _controllers(names: Iterable[str]) -> None:
    output = _table("controller, parameter", "default", "range", "unit", "what it is")
    unusable = []
    for name in names:
        try:
            entry = controllers.find(name)
        except ImportError as error:
            unusable.append(str(error))
            continue
        output.add_row(entry.name, "", "", "", _with_source(entry.description, entry.source))
        for parameter in entry.parameters:
            default = ", ".join(
                parameter.choices[int(number)] if parameter.choices else f"{number:g}"
                for number in parameter.default
            )
            limits = f"{parameter.minimum:g} to {parameter.maximum:g}"
            if parameter.choices:
                limits = "a name"  # the description has all of them
            text = _with_source(parameter.description, parameter.source)
            output.add_row(f"  {parameter.name}", default, limits, parameter.unit, text)
    wide_console().print(output)
    for problem in unusable:
        print(f"quicgym: {problem}", file=sys.stderr)


def _with_source(description: str, source: str) -> str:
    return f"{description} ({source})" if source else description
