"""`quicgym parity`."""

from __future__ import annotations

import typer

from quicgym.cli.options import ControllerOption, ScenarioOption

EXAMPLES = (
    "quicgym parity",
    "quicgym parity --scenario ebcc-delay-10 --controller ebcc",
)


def parity(scenario: ScenarioOption = None, controller: ControllerOption = None) -> None:
    """Compare the native engine with ns-3: every delivery must be equal to the nanosecond.

    Default: 1, 3 and 5 flows with NewReno, CUBIC, BBR and eBCC. Exit status 1 and the first
    difference where the engines differ.
    """
    from quicgym.benchmarks.parity import run_parity

    raise typer.Exit(run_parity(scenario or (), controller or ()))
