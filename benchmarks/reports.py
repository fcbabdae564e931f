"""The reports of quicgym, into results/reports: `make reports`, or one with `ARGS=leagues`.

    python -m quicgym.benchmarks.reports                         # those of simulations
    python -m quicgym.benchmarks.reports leaderboard --engine native --seeds 2
    python -m quicgym.benchmarks.reports publish RUN             # a policy, with its line there

Each report is a command with its own options. They take hours, and `--resume` continues
after an interruption. docs/reports keeps the pages whose numbers a release publishes.
"""

from __future__ import annotations

import subprocess
import sys

import typer

from quicgym import plugins
from quicgym.benchmarks.attacks import attacks
from quicgym.benchmarks.checklist.checklist_reports import checklists
from quicgym.benchmarks.coexistence.coexistence_report import coexistence
from quicgym.benchmarks.leaderboard import leaderboard
from quicgym.benchmarks.league.league_report import leagues
from quicgym.benchmarks.publish import publish
from quicgym.console import show_warnings_as_notes
from quicgym.errors import UserError

# The leaderboard shows what attacks have found.
SIMULATED = (attacks, leaderboard, checklists, coexistence, leagues)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
for report in (*SIMULATED, publish):
    app.command(report.__name__)(report)
# Those of other packages need a real stack or a kernel, so they run only by name.
for name, report in plugins.load_all("report").items():
    app.command(name)(report)


@app.callback(invoke_without_command=True)
def reports(context: typer.Context) -> None:
    """Write the reports into results/reports; without a name, all that simulations alone make."""
    if context.invoked_subcommand is None:
        for report in SIMULATED:
            command = [sys.executable, "-m", "quicgym.benchmarks.reports", report.__name__]
            if status := subprocess.run([*command, "--resume"]).returncode:
                raise typer.Exit(status)


def main() -> None:
    """Runs a report; bad input ends with exit status 2 and a message, no traceback."""
    show_warnings_as_notes()
    try:
        app()
    except UserError as error:
        print(f"quicgym: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
