"""Checkpoints: what is restored is what was saved, and damaged ones are left out."""

from __future__ import annotations

import pytest
from helpers.training import NEEDS_TRAIN, learned, made

from quicgym.errors import RunError

pytestmark = NEEDS_TRAIN


def saved(folder, *steps):
    """Saves a checkpoint of each step, after its evaluation; returns the last one's path."""
    from quicgym.agents.training.checkpoints import save_checkpoint

    for step in steps:
        records = [*folder.evaluations(), {"step": step, "reward": 0.5}]
        folder.write_evaluations(records)
        path = save_checkpoint(folder, step, {"step": step, "best": {}})
    return path


def leaves(state):
    """What a state holds, by its place: tensors as lists, all else as it is."""
    if isinstance(state, dict):
        children = state.items()
    elif isinstance(state, list | tuple):
        children = enumerate(state)
    else:
        return {(): state.tolist() if hasattr(state, "tolist") else state}
    return {
        (name, *place): leaf for name, child in children for place, leaf in leaves(child).items()
    }


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        *((algorithm, ()) for algorithm in ("ppo", "sac", "td3", "dqn", "grpo")),
        *((algorithm, ()) for algorithm in ("aggrevate", "coordinate-aggrevate")),
        ("grpo", ("network.privileged_critic=true",)),
    ],
)
def test_a_trainer_is_put_where_its_checkpoint_was_taken(algorithm, changes, here):
    import torch

    _, trainer = made(here, *changes, algorithm=algorithm)
    learned(trainer, 160)
    torch.save(trainer.state(), here / "state.pt")
    _, other = made(here, "seed=7", *changes, algorithm=algorithm)
    other.restore(torch.load(here / "state.pt", weights_only=True))
    assert other.step == trainer.step >= 160
    assert leaves(other.state()) == leaves(trainer.state())


def test_the_newest_two_checkpoints_are_kept(tmp_path):
    from quicgym.agents.training.checkpoints import load_newest
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(tmp_path)
    saved(folder, 0, 5, 160, 1000)
    assert [path.name for path in folder.checkpoints()] == [
        "step-000000000160.pt",
        "step-000000001000.pt",
    ]
    assert load_newest(folder) == {"step": 1000, "best": {}}


@pytest.mark.parametrize(
    "content",
    [
        b"no checkpoint",
        [],
        {"step": "x", "best": {}},
        {"step": -5, "best": {}},
        {"step": 2},
    ],
)
def test_an_older_checkpoint_takes_the_place_of_a_damaged_one(content, tmp_path, capsys):
    import torch

    from quicgym.agents.training.checkpoints import load_newest, read_checkpoint
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(tmp_path)
    newest = saved(folder, 1, 2)
    if isinstance(content, bytes):
        newest.write_bytes(content)
    else:
        torch.save(content, newest)
    with pytest.raises(RunError, match=r"step-000000000002\.pt: is no checkpoint"):
        read_checkpoint(newest)
    assert load_newest(folder) == {"step": 1, "best": {}}
    assert "step-000000000002.pt: is no checkpoint" in capsys.readouterr().err


def test_a_checkpoint_of_a_step_that_was_never_measured_is_passed_over(tmp_path, capsys):
    import torch

    from quicgym.agents.training.checkpoints import load_newest
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(tmp_path)
    torch.save({"step": 10**15, "best": {}}, saved(folder, 1, 2))
    assert load_newest(folder) == {"step": 1, "best": {}}
    assert "evaluations.jsonl has no evaluation" in capsys.readouterr().err


def test_the_checkpoint_that_was_just_written_is_kept_beside_damaged_ones_of_later_steps(tmp_path):
    from quicgym.agents.training.checkpoints import load_newest
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(tmp_path)
    saved(folder, 1, 700, 800)
    for damaged in folder.checkpoints():
        damaged.write_bytes(b"")
    saved(folder, 2)
    assert load_newest(folder) == {"step": 2, "best": {}}
