"""Policies of others that cannot be are refused in bounded time and memory, with the place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quicgym.agents.policies.by_name import PRETRAINED, pretrained_names
from quicgym.agents.policies.learned import load_policy
from quicgym.errors import PolicyError


def special_files(folder: Path) -> dict[str, tuple[Path, str]]:
    """Paths that are no files, and what is said of each."""
    os.mkfifo(folder / "fifo")
    return {
        "fifo": (folder / "fifo", "Is a pipe or a device, not a regular file"),
        "device": (Path("/dev/zero"), "Is a pipe or a device, not a regular file"),
        "folder": (folder, "Is a directory"),
        "missing": (folder / "none", "No such file or directory"),
    }


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "missing"])
def test_what_is_no_regular_file_is_never_read(kind: str, tmp_path: Path) -> None:
    path, text = special_files(tmp_path)[kind]
    policy = tmp_path / "policy.json"
    policy.symlink_to(path)
    if kind != "folder":  # which is a training run's
        with pytest.raises(PolicyError, match=text):
            load_policy(policy)
    name = pretrained_names()[0]
    good = tmp_path / "good.json"
    good.write_text((PRETRAINED / f"{name}.json").read_text())
    good.with_suffix(".safetensors").symlink_to(path)
    with pytest.raises(PolicyError, match=f"good.safetensors: {text}"):
        load_policy(good)


POLICIES = {
    "brackets": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "brackets in a field": '{"name": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "digits": '{"name": ' + "9" * 5_000 + "}",
}


@pytest.mark.parametrize("what", POLICIES)
def test_a_policy_s_description_that_cannot_be_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(POLICIES[what])
    with pytest.raises(PolicyError, match=r"policy\.json: not valid JSON: ") as caught:
        load_policy(path)
    assert len(str(caught.value)) < 600


def test_a_large_description_of_a_policy_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(" " * 2**20 + (PRETRAINED / f"{pretrained_names()[0]}.json").read_text())
    with pytest.raises(PolicyError, match="more than the 1048576 that are read"):
        load_policy(path)
