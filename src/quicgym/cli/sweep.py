"""`quicgym sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options
from quicgym.plot_style import FigureFormat

EXAMPLES = (
    "quicgym sweep ebcc-gamma-beta",
    "quicgym sweep ebcc-gamma-beta seeds=20 parameters.gamma.values=[10,20,30]",
    "quicgym sweep tuning seeds=8 --jobs 8 --out results/tuned",
    "quicgym sweep ppo-asha --jobs 8",
    "quicgym sweep my-sweep.yaml --address 10.0.0.1:6379",
)


def sweep(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            autocompletion=options.complete_configs("sweeps"),
            help=f"The sweep: {options.config_names('sweeps')}, or a YAML file of that form.",
        ),
    ],
    changes: options.Changes = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the results to this folder.  [default: results/sweeps/NAME]"
        ),
    ] = None,
    jobs: options.Trials = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the sweep that DIR holds.")
    ] = False,
    address: options.Address = None,
    figures: options.Figures = FigureFormat.png,
) -> None:
    """Find a controller's best parameters, or the best hyperparameters of a training.

    Of a controller you get the best setting, how far the published one is from it, a sensitivity
    table and heat maps. Of a training you get the best policy; ASHA or population-based training
    end bad trials early. Both run on Ray Tune, which needs the extra `sweep` (a training needs
    `train`), and write all trials (trials.parquet), the best setting (sweep.json) and TensorBoard's
    hparams to DIR. Results of an earlier sweep are moved to DIR/previous-<time>.
    """
    from quicgym.agents.tuning.sweeps import load_sweep
    from quicgym.agents.tuning.training_config import TrainingSweep

    loaded = load_sweep(config, changes or ())  # before Ray and PyTorch, which take seconds
    from quicgym.agents.tuning.parameter_sweep import ParameterStudy
    from quicgym.agents.tuning.study import run_study

    study: ParameterStudy | TrainingStudy
    if isinstance(loaded, TrainingSweep):
        from quicgym.agents.tuning.training_sweep import TrainingStudy

        study = TrainingStudy(loaded)
    else:
        study = ParameterStudy(loaded, figures.value)
    status = run_study(
        study, out, jobs=jobs, resume=resume, address=address, command=options.command_line()
    )
    raise typer.Exit(status)
