"""Learning curves of training runs: a panel for each environment, a line for each seed.

    python benchmarks/studies/learning_curves.py results/train/*-seed[012]

draws docs/figures/learning-curves.svg for docs/reports/training.md. The runs are of configurations
that are named ENVIRONMENT-ALGORITHM.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.agents.evaluation.run_folders import Run, read_runs
from quicgym.plot_style import BLUE, GREEN, ORANGE, STYLE, TWO_COLUMNS, VERMILION, save

COLOURS = {"ppo": BLUE, "sac": ORANGE, "td3": GREEN, "dqn": VERMILION}


def draw(runs: list[Run], out: Path) -> None:
    """Draws the mean reward of each run over its steps."""
    import matplotlib
    from matplotlib.figure import Figure

    environments = sorted({run.policy.partition("-")[0] for run in runs})
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(TWO_COLUMNS, 2.2))
        panels = figure.subplots(1, len(environments), sharey=True, squeeze=False)[0]
        for axes, environment in zip(panels, environments, strict=True):
            axes.set_title(f"{environment.capitalize()}-v1")
            axes.set_xlabel("thousand steps")
            for run in runs:
                of, _, algorithm = run.policy.partition("-")
                if of == environment:
                    curve = run.results.groupby("step")["reward"].mean()
                    known = {line.get_label() for line in axes.lines}
                    axes.plot(
                        curve.index / 1000,
                        curve,
                        color=COLOURS[algorithm],
                        label="_" * (algorithm.upper() in known) + algorithm.upper(),
                    )
            axes.legend()
        panels[0].set_ylabel("mean reward")
        save(figure, out.with_suffix(""), out.suffix[1:])


def main(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of `quicgym train`.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Draw into this file.")] = Path(
        "docs/figures/learning-curves.svg"
    ),
) -> None:
    """Draw the mean reward of trainings over their steps, on the networks of their evaluations."""
    found = (run for folder in runs for run in read_runs(folder))
    draw([run for run in found if run.origin == "training"], out)


if __name__ == "__main__":
    typer.run(main)
