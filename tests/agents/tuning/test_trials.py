"""Trials that go on after a kill between two of Ray's writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.train, pytest.mark.xdist_group("ray")]

COUNT = 4


@pytest.fixture
def ray_here() -> Iterator[None]:
    from quicgym.agents.tuning.trials import running_ray

    with running_ray(None, 1):
        yield


def fit(folder: Path, optuna_seed: int | None = None, bar: Any = None) -> list[float]:
    """Runs the trials in a folder, or goes on with them; returns their values."""
    from quicgym.agents.tuning import trials

    def square(setting: dict[str, Any]) -> dict[str, float]:
        return {"value": 1.0 + setting["number"] ** 2}

    grid = trials.tune.grid_search(list(range(COUNT)))
    found = trials.fit(
        square,
        folder,
        {"number": grid if optuna_seed is None else trials.tune.randint(0, 100)},
        bar=(bar or trials.Bar)("mine", COUNT, "value", "max"),
        complete="value",
        jobs=1,
        optuna_seed=optuna_seed,
        tuning={
            "metric": "value",
            "mode": "max",
            "num_samples": 1 if optuna_seed is None else COUNT,
        },
    )
    return sorted((result.metrics or {})["value"] for result in found)


@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("optuna_seed", [None, 1], ids=["grid", "optuna"])
@pytest.mark.parametrize("older", ["searcher", "experiment"])
def test_trials_go_on_when_one_file_of_ray_is_older_than_the_others(
    tmp_path: Path, optuna_seed: int | None, older: str
) -> None:
    from quicgym.agents.tuning import trials

    folder, kept = tmp_path / "grid", tmp_path / "kept"

    class KeepingBar(trials.Bar):
        """Keeps Ray's files as they are when the second trial begins."""

        def on_trial_start(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            if len(trials) >= 2 and not kept.exists() and folder.exists():
                shutil.copytree(folder, kept)

    whole = fit(folder, optuna_seed, KeepingBar)
    pattern = "experiment_state*" if older == "experiment" else "*[!t]*-state-*"
    for path in kept.glob(pattern):
        shutil.copyfile(path, folder / path.name)
    assert fit(folder, optuna_seed) == whole


@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("left_bytes", [0, 100])
def test_trials_begin_where_ray_s_first_file_is_torn(tmp_path: Path, left_bytes: int) -> None:
    whole = fit(tmp_path / "whole")
    torn = tmp_path / "torn"
    torn.mkdir()
    written = (tmp_path / "whole/tuner.pkl").read_bytes()
    (torn / "tuner.pkl").write_bytes(written[:left_bytes])
    assert fit(torn) == whole
