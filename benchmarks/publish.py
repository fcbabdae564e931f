"""A published policy from a run of `quicgym train`: its files, and its line of the leaderboard.

    make reports ARGS="publish results/train/window-seed0"

A published policy is `NAME.json` (what it is, where it comes from, the evaluation that backs it,
the checksum of its weights), `NAME.safetensors` (the weights) and a line of a `leaderboard.yaml`.
In a checkout these go where quicgym keeps its own; with a folder of the user's, all go there.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
import yaml

from quicgym import controllers
from quicgym.agents.evaluation.jobs import fingerprint_of
from quicgym.agents.evaluation.summary import evaluate
from quicgym.agents.evaluation.training_summary import (
    ENOUGH_PATHS,
    Summary,
    difference_in_words,
)
from quicgym.benchmarks import options
from quicgym.benchmarks.leaderboard import load_entries
from quicgym.benchmarks.leaderboard_data import Entry
from quicgym.console import say
from quicgym.envs.rewards import Reward
from quicgym.errors import UserError
from quicgym.input_files import read_input_json
from quicgym.output_folders import write_atomically

if TYPE_CHECKING:
    from quicgym.agents.training.folder import RunFolder

SUITE, SEEDS = "heldout", 5
"""The evaluation that backs a policy if the user names none: the default of `quicgym evaluate`."""
LOWEST = 5
"""Scenarios that the description names, those with the lowest mean reward."""
EVALUATION_FOLDER = "heldout"
"""In the run's folder: the evaluation on SUITE."""
POLICIES, LEADERBOARD = Path("agents/policies/pretrained"), Path("configs/leaderboard.yaml")
"""Where a checkout has its policies, and their list."""
HEADER = """\
# Published policies, for `python -m quicgym.benchmarks.reports leaderboard --policies THIS_FILE`.
"""


class PublishError(UserError, ValueError):
    """A run cannot be published as asked; the text says why, and what to do."""


class _Target(NamedTuple):
    """The files of a published policy: its JSON with the weights next to it, and the list."""

    description: Path
    leaderboard: Path
    policy: str
    listed: Sequence[Entry]


def publish(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder that `quicgym train` has written.")
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Publish the policy under this name. Default: the run's name with its seed.",
        ),
    ] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder of the `quicgym evaluate` that backs the policy. Default: evaluate it "
            "on --suite with --seeds, into RUN/heldout.",
        ),
    ] = None,
    suite: Annotated[
        str, typer.Option(metavar="NAME", help="Without --evaluation, evaluate the policy on this.")
    ] = SUITE,
    seeds: options.Seeds = SEEDS,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the policy and its leaderboard.yaml to this folder. Default: into the "
            "checkout of quicgym around the current folder.",
        ),
    ] = None,
    jobs: options.Jobs = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a policy that has this name.")
    ] = False,
) -> None:
    """Publish the best policy of a training run, with its line of the leaderboard.

    The command refuses a run whose summary.json shows no gain. In a checkout the files go to
    agents/policies/pretrained and the line to configs/leaderboard.yaml.
    """
    # PyTorch takes seconds, and the tables of the leaderboard are made without it.
    from quicgym.agents.policies.learned import load_policy
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(run)
    config = _config_of(folder)
    name = name or f"{config['name']}-seed{config['seed']}"
    _check_name(name)
    target = _target(name, out)
    _check_free(target, name, force)
    policy = load_policy(folder.policy_path)
    _check_learned(folder, policy.description.sha256)
    if evaluation is None:
        status = _evaluate(folder, suite, seeds, jobs or os.cpu_count() or 1)
        if status:
            raise typer.Exit(status)
        evaluation = folder.directory / EVALUATION_FOLDER
    backing = _backing(evaluation, folder, fingerprint_of("", policy))
    description = replace(policy.description, evaluation=backing)
    trained_by = folder.description().get("command", "")
    line = _line(name, target.policy, config["name"], trained_by)
    weights = folder.policy_path.with_suffix(".safetensors").read_bytes()
    contents: dict[Path, str | Callable[[Path], object]] = {
        target.description.with_suffix(".safetensors"): lambda path: path.write_bytes(weights),
        target.description: description.to_json(),
    }
    listed = _with_line(target, line)
    if listed is not None:
        contents[target.leaderboard] = listed
    try:
        write_atomically(contents)
    except OSError as error:
        raise PublishError(
            f"{target.description.parent}: cannot be written to ({error.strerror}), nothing has "
            "changed there; give another folder with --out"
        ) from None
    _report(target, description.evaluation or {})


def _config_of(folder: RunFolder) -> dict[str, Any]:
    """The configuration of a finished run."""
    if not (folder.evaluation / "evaluation.json").is_file():
        raise PublishError(
            f"{folder.directory}: its training is not finished; go on with it:\n"
            f"  {folder.resuming_command()}"
        )
    config: dict[str, Any] = folder.description()["config"]
    return config


def _check_learned(folder: RunFolder, sha256: str) -> None:
    """Raises PublishError unless the policy is ahead of the one that training started with."""
    summary = Summary.read(folder.summary_path)
    if summary is None or summary["best"].sha256 != sha256:
        raise PublishError(
            f"{folder.summary_path}: there is no comparison of this policy with the one that "
            f"training started with; make it:\n  {folder.resuming_command()}"
        )
    if summary.paths < ENOUGH_PATHS:
        raise PublishError(
            f"{folder.summary_path}: compares on {summary.paths} paths, at least {ENOUGH_PATHS:,} "
            "are needed; compare again, with evaluation.comparison_paths=1024:\n"
            f"  {folder.resuming_command()} evaluation.comparison_paths=1024"
        )
    if not summary.learned:
        raise PublishError(
            f"{folder.directory}: no gain is shown: best − start is "
            f"{difference_in_words(summary['best'])} on {summary.paths:,} paths of "
            f"{summary.drawn_from}, and that interval is not above 0; train with more steps, "
            "another seed or other hyperparameters"
        )


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", name) or name.endswith((".json", ".zip")):
        raise PublishError(
            f"--name {name!r}: is no name of a policy; give letters, digits, _, +, - and ., "
            "without the ending of a file"
        )
    if name in (*controllers.names(), "random", "baselines"):
        raise PublishError(
            f"--name {name}: `quicgym evaluate --policy {name}` means something else; give "
            "another name"
        )


def _target(name: str, out: Path | None) -> _Target:
    if out is not None:
        description = out / f"{name}.json"
        leaderboard = out / LEADERBOARD.name
        listed = load_entries(leaderboard) if leaderboard.exists() else ()
        return _Target(description, leaderboard, str(description), listed)
    for root in (Path.cwd(), *Path.cwd().parents):
        if (root / POLICIES).is_dir() and (root / LEADERBOARD).is_file():
            leaderboard = root / LEADERBOARD
            description = root / POLICIES / f"{name}.json"
            return _Target(description, leaderboard, name, load_entries(leaderboard))
    raise PublishError(
        f"the current folder is in no checkout of quicgym ({POLICIES} and {LEADERBOARD}); give a "
        "folder with --out, or go to the checkout"
    )


def _check_free(target: _Target, name: str, force: bool) -> None:
    """Raises PublishError where something is there already."""
    names = {entry.name: entry.policy for entry in target.listed}
    if names.get(name, target.policy) != target.policy:
        raise PublishError(
            f"{target.leaderboard}: the name {name!r} is that of {names[name]}; give another "
            "one with --name"
        )
    if force:
        return
    if target.description.exists():
        raise PublishError(
            f"{target.description}: is there already; give another --name, or --force to replace it"
        )
    if target.policy in names.values():
        raise PublishError(
            f"{target.leaderboard}: has {target.policy} already; give another --name, or --force "
            "to keep its line"
        )


def _evaluate(run: RunFolder, suite: str, seeds: int, workers: int) -> int:
    """Evaluates the policy into the run's folder; returns the exit status."""
    folder = run.directory / EVALUATION_FOLDER
    say(f"evaluating on {suite} with seeds 0 to {seeds - 1}, into {folder}:")
    result = evaluate(
        [str(run.policy_path)],
        suite,
        seeds,
        folder,
        reward=Reward(),
        workers=workers,
        resume=folder.exists(),
        keep_series=False,
        command=shlex.join(
            ["quicgym", "evaluate", "--policy", str(run.policy_path), "--suite", suite]
            + ["--seeds", str(seeds)]
        ),
    )
    if result.document is None:
        return 130
    if result.outcome.failures:
        say("nothing is published")
        return 1
    return 0


def _backing(evaluation: Path, run: RunFolder, fingerprint: str | None) -> dict[str, Any]:
    """Returns the description's part about the evaluation that backs the policy."""
    path = evaluation / "evaluation.json"
    try:
        document = read_input_json(path)
        entries = {entry["policy"]: entry for entry in document["policies"]}
        fingerprints = document.get("fingerprints", {})
        about = {
            key: document[key]
            for key in ("suite", "engine", "seeds", "reward", "version", "commit", "command")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PublishError(
            f"{path}: cannot be read ({error}); give the folder of a `quicgym evaluate --policy "
            f"{run.directory} --out DIR`"
        ) from None
    if evaluation.resolve() == run.evaluation.resolve():  # of this alone
        chosen = list(entries)
    else:
        chosen = [choice for choice in entries if fingerprints.get(choice) == fingerprint]
    if not chosen:
        raise PublishError(
            f"{path}: evaluates {', '.join(entries)}, none of which is the policy of "
            f"{run.directory} as it is now; run `quicgym evaluate --policy "
            f"{run.directory} --out DIR`, and give its DIR"
        )
    entry = entries[chosen[0]]
    if entry["iqm_reward"] is None:
        raise PublishError(
            f"{path}: runs of {chosen[0]} are missing; the command of the evaluation with --resume "
            "runs them"
        )
    keys = ("iqm_reward", "iqm_low", "iqm_high", "mean")
    lowest = sorted(entry["scenarios"], key=lambda cell: cell["reward"])[:LOWEST]
    return {
        **about,
        "scenarios": len(entry["scenarios"]),
        **{key: entry[key] for key in keys},
        "lowest": [{key: cell[key] for key in ("scenario", "reward")} for cell in lowest],
    }


def _line(name: str, policy: str, group: str, command: str) -> str:
    """The leaderboard's line, in the form of those that are there."""
    note = f"`{_without_out(shlex.split(command))}`" if command else ""
    fields = {
        "name": name,
        "policy": policy,
        "kind": "learned",
        "group": group,
        "engines": ["native"],  # ns-3 takes over 100 times as long
        "note": note,
    }
    line: str = yaml.safe_dump(
        [fields], default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
    )
    return f"- {line.strip().removeprefix('[').removesuffix(']')}\n"


def _without_out(arguments: Sequence[str]) -> str:
    """The command without what is of this machine alone: where the run's folder was."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if not skip and argument != "--out" and not argument.startswith("--out="):
            kept.append(argument)
        skip = argument == "--out"
    return shlex.join(kept)


def _with_line(target: _Target, line: str) -> str | None:
    """The list with the line at its end, all else as it is; None where it has the policy."""
    if not target.leaderboard.exists():
        return HEADER + line
    text = target.leaderboard.read_text(encoding="utf-8")
    if any(entry.policy == target.policy for entry in target.listed):
        return None
    return text + ("" if text.endswith("\n") else "\n") + line


def _report(target: _Target, evaluation: dict[str, Any]) -> None:
    interval = ""
    if evaluation["iqm_low"] is not None:
        interval = f" [{evaluation['iqm_low']:.4f}, {evaluation['iqm_high']:.4f}]"
    print(
        f"{target.description}: IQM reward {evaluation['iqm_reward']:.4f}{interval} on "
        f"{evaluation['suite']}, {evaluation['scenarios']} scenarios, "
        f"{len(evaluation['seeds'])} seeds"
    )
    print(f"{target.leaderboard}: has its line; see its name, group, engines and note")
    print(f"to use it:\n  quicgym evaluate --policy {shlex.quote(str(target.description))}")
