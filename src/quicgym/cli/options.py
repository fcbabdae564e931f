"""Options that several commands have."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quicgym import controllers
from quicgym.envs import scenario_names
from quicgym.plot_style import FigureFormat
from quicgym.yaml_files import CONFIGS, yaml_names


class ResultFormat(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"


class DocumentFormat(StrEnum):
    """How the result of one question is printed."""

    table = "table"
    json = "json"


class ReportFormat(StrEnum):
    """How a report is shown."""

    table = "table"
    json = "json"
    html = "html"


Complete = Callable[[str], list[str]]
"""What completes a word at the shell: from what was typed to what it may become."""


def completing(names: Callable[[], Iterable[str]]) -> Complete:
    """Returns what completes a word to one of these names, which are asked for when it is."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _policies() -> list[str]:
    from quicgym.agents.policies.by_name import pretrained_names

    return [*pretrained_names(), *controllers.names()]


def _suites() -> list[str]:
    from quicgym.envs.scenarios.distributions import distribution_names
    from quicgym.envs.scenarios.suites import suite_names

    return [*suite_names(), *distribution_names(), *scenario_names()]


complete_scenarios = completing(scenario_names)
complete_controllers = completing(controllers.names)
complete_policies = completing(_policies)
complete_suites = completing(_suites)

Format = Annotated[ResultFormat, typer.Option(help="What is printed on standard output.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where results and figures are written.")]
Scenario = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_scenarios,
        help="A name from `quicgym scenarios` or a YAML's path; one or more.",
    ),
]
Suite = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_suites,
        help="heldout, papers, stress, validation, a scenario, a distribution, of which each seed "
        "draws a scenario, or a YAML's path; heldout/8 takes every 8th scenario of a suite; one or "
        "more.",
    ),
]
Seeds = Annotated[int, typer.Option(min=1, help="Runs the seeds 0 to N-1.", metavar="N")]
Jobs = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes. Default: all cores.")
]
Trials = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Trials at the same time. Default: one per core."),
]
Address = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Of a Ray cluster. Default: this machine alone."),
]
From = Annotated[
    float | None,
    typer.Option("--from-s", min=0, metavar="S", help="Measure from here. Default: the start."),
]
Until = Annotated[
    float | None,
    typer.Option("--until-s", min=0, metavar="S", help="Measure until here. Default: the end."),
]
Qlog = Annotated[
    Path | None,
    typer.Option(
        "--qlog",
        metavar="DIR",
        help="Where qlog files of the first seed go, a folder for each run; engine native only.",
    ),
]
Pcap = Annotated[
    Path | None,
    typer.Option(
        "--pcap",
        metavar="DIR",
        help="Where pcap files of the first seed go, a folder for each run; engine ns3 only.",
    ),
]
LogEvery = Annotated[
    int,
    typer.Option(
        "--log-every",
        min=1,
        metavar="N",
        help="qlog and pcap keep every Nth packet; qlog keeps all losses and changes of state.",
    ),
]
LogLimit = Annotated[
    float,
    typer.Option("--log-limit-mb", min=0.001, metavar="MB", help="A qlog or pcap file ends here."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Skip the runs that DIR already holds.")]
TrustZip = Annotated[
    bool,
    typer.Option(
        "--trust-zip",
        help="Load models that Stable-Baselines3 saved (.zip), which runs code in them.",
    ),
]
Controller = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_controllers,
        help="A name from `quicgym controllers`, also with parameters (ebcc:gamma=3), a class of "
        "yours: file.py:Class, package.module:Class, or library.so:name in C++, or an agent that "
        "`quicgym import-agent` wrote (agent.json); one or more.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="Fields of CONFIG to change, as in a=1 or a.b=1."
    ),
]
Figures = Annotated[
    FigureFormat, typer.Option(help="Of the figures' files; pdf and svg are vector graphics.")
]


def complete_configs(folder: str) -> Complete:
    """Returns what completes the names of a folder of configurations."""
    return completing(lambda: yaml_names(CONFIGS / folder))


def config_names(folder: str) -> str:
    """Returns the names of a folder of configurations, for help texts.

    The modules that read them are not asked: importing these takes a tenth of a second.
    """
    return ", ".join(yaml_names(CONFIGS / folder))


def command_line() -> str:
    """Returns the command as it was typed, to be kept with the results."""
    return shlex.join(["quicgym", *sys.argv[1:]])
