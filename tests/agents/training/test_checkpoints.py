"""Checkpoints: what is restored is what was saved, and damaged ones are left out."""

from __future__ import annotations

import pytest
from helpers.training import NEEDS_TRAIN, learned, made

from quicgym.errors import RunError

pytestmark = NEEDS_TRAIN


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
    "algorithm", ["ppo", "sac", "td3", "aggrevate", "coordinate-aggrevate", "grpo"]
)
def test_a_trainer_is_put_where_its_checkpoint_was_taken(algorithm, here):
    import torch

    _, trainer = made(here, algorithm=algorithm)
    learned(trainer, 160)
    torch.save(trainer.state(), here / "state.pt")
    _, other = made(here, "seed=7", algorithm=algorithm)
    other.restore(torch.load(here / "state.pt", weights_only=True))
    assert other.step == trainer.step >= 160
    assert leaves(other.state()) == leaves(trainer.state())


def test_the_newest_two_checkpoints_are_kept(tmp_path):
    from quicgym.agents.training.checkpoints import load_newest, save_checkpoint
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(tmp_path)
    for step in (0, 5, 160, 1000):
        save_checkpoint(folder, step, {"step": step})
    assert [path.name for path in folder.checkpoints()] == [
        "step-000000000160.pt",
        "step-000000001000.pt",
    ]
    assert load_newest(folder) == {"step": 1000}


@pytest.mark.parametrize("content", [b"", b"no checkpoint"])
def test_an_older_checkpoint_takes_the_place_of_a_damaged_one(content, tmp_path):
    from quicgym.agents.training.checkpoints import load_newest, read_checkpoint, save_checkpoint
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(tmp_path)
    save_checkpoint(folder, 1, {"step": 1})
    newest = save_checkpoint(folder, 2, {"step": 2})
    newest.write_bytes(content)
    with pytest.raises(RunError, match=r"step-000000000002\.pt: is no checkpoint"):
        read_checkpoint(newest)
    assert load_newest(folder) == {"step": 1}


def test_the_checkpoint_that_was_just_written_is_kept_beside_damaged_ones_of_later_steps(tmp_path):
    from quicgym.agents.training.checkpoints import load_newest, save_checkpoint
    from quicgym.agents.training.folder import RunFolder

    folder = RunFolder(tmp_path)
    for step in (1, 700, 800):
        save_checkpoint(folder, step, {"step": step})
    for damaged in folder.checkpoints():
        damaged.write_bytes(b"")
    save_checkpoint(folder, 2, {"step": 2})
    assert load_newest(folder) == {"step": 2}
