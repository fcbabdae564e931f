"""`quicgym search`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quicgym.benchmarks import options

EXAMPLES = (
    "quicgym search ppo-asha",
    "quicgym search ppo-pbt samples=4 changes.steps=2e6 --jobs 2",
    "quicgym search my-search.yaml --out results/mine --resume",
    "quicgym search my-search.yaml --address 10.0.0.1:6379",
)


def search(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG",
            autocompletion=options.complete_configs("searches"),
            help=f"The search: {options.config_names('searches')}, or a YAML file of that form.",
        ),
    ],
    changes: options.Changes = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the results to this folder.  [default: results/searches/NAME]",
        ),
    ] = None,
    jobs: options.Trials = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the search that DIR holds.")
    ] = False,
    address: options.Address = None,
) -> None:
    """Search for an agent's best hyperparameters with many trainings, ending the bad ones early.

    The search is ASHA or population-based training on Ray Tune, which needs the extra `train`. You
    get all trials (trials.parquet), TensorBoard's hparams, the best hyperparameters (search.json)
    and the best policy in DIR. Results of an earlier search are moved to DIR/previous-<time>.
    docs/how-to/hyperparameter-search.md explains it.
    """
    from quicgym.agents.tuning.search_config import load_search

    loaded = load_search(config, changes or ())  # before Ray and PyTorch, which take seconds
    from quicgym.agents.tuning.search import SearchStudy
    from quicgym.agents.tuning.study import run_study

    study = SearchStudy(loaded)
    status = run_study(
        study, out, jobs=jobs, resume=resume, address=address, command=options.command_line()
    )
    raise typer.Exit(status)
