"""Options that several commands and reports have."""

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
"""Takes what was typed at the shell, and returns the words that it may become."""


def completing(names: Callable[[], Iterable[str]]) -> Complete:
    """Returns a function that completes a word to one of the names, read only when it is called."""

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

Format = Annotated[ResultFormat, typer.Option(help="Print the results in this form.")]
Engine = Annotated[
    str,
    typer.Option(
        metavar="native|ns3",
        help="Simulate with quicgym's own engine, or with ns-3, which is slower.",
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Write results and figures to this folder.")]
Scenario = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_scenarios,
        help="Run these networks: names from `quicgym show scenarios` or paths of YAML files.",
    ),
]
Suite = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_suites,
        help="Run these networks: a suite (heldout, papers, stress, validation), every 8th "
        "scenario of one (heldout/8), a scenario, a distribution, from which each seed draws a "
        "scenario, or the path of a YAML file.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC",
        help="Show these metrics in the table of a suite, such as p95_queue_delay_ms; one or more.",
    ),
]
Seeds = Annotated[
    int, typer.Option(min=1, help="Run everything with the seeds 0 to N-1.", metavar="N")
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Use N processes. Default: one for each core."),
]
Trials = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Run N trials at the same time. Default: one for each core."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Run on the Ray cluster at this address. Default: on this machine alone.",
    ),
]
From = Annotated[
    float | None,
    typer.Option(
        "--from-s",
        min=0,
        metavar="S",
        help="Measure from this simulated second on. Default: from the start.",
    ),
]
Until = Annotated[
    float | None,
    typer.Option(
        "--until-s",
        min=0,
        metavar="S",
        help="Measure until this simulated second. Default: until the end.",
    ),
]
Qlog = Annotated[
    Path | None,
    typer.Option(
        "--qlog",
        metavar="DIR",
        help="Write qlog files of the first seed to DIR, with a folder for each run. Needs the "
        "engine native.",
    ),
]
Pcap = Annotated[
    Path | None,
    typer.Option(
        "--pcap",
        metavar="DIR",
        help="Write pcap files of the first seed to DIR, with a folder for each run. Needs the "
        "engine ns3.",
    ),
]
LogEvery = Annotated[
    int,
    typer.Option(
        "--log-every",
        min=1,
        metavar="N",
        help="Keep only every Nth packet in qlog and pcap files. qlog files keep all losses and "
        "changes of state.",
    ),
]
LogLimit = Annotated[
    float,
    typer.Option(
        "--log-limit-mb", min=0.001, metavar="MB", help="End each qlog or pcap file at this size."
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue an interrupted run: skip what DIR already holds."),
]
TrustZip = Annotated[
    bool,
    typer.Option(
        "--trust-zip",
        help="Load models that Stable-Baselines3 saved (.zip). Loading one runs code in it, so "
        "trust its author.",
    ),
]
Controller = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_controllers,
        help="Use these controllers: names from `quicgym show controllers`, also with parameters "
        "(ebcc:gamma=3), your own classes (file.py:Class, package.module:Class, or "
        "library.so:name in C++), or agents that `quicgym import-agent` wrote (agent.json).",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="Change these fields of CONFIG, as in a=1 or a.b=1."
    ),
]
Figures = Annotated[
    FigureFormat,
    typer.Option(help="Write figures in this format; pdf and svg are vector graphics."),
]


def complete_configs(folder: str) -> Complete:
    """Returns a function that completes the names of a folder of configurations."""
    return completing(lambda: yaml_names(CONFIGS / folder))


def config_names(folder: str) -> str:
    """Returns the names of a folder of configurations, for help texts.

    It does not ask the modules that read them, because importing these takes a tenth of a second.
    """
    return ", ".join(yaml_names(CONFIGS / folder))


def command_line() -> str:
    """Returns the command as it was typed, to be kept with the results."""
    return shlex.join(["quicgym", *sys.argv[1:]])
