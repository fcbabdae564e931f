"""Trials on Ray Tune, of a function that takes no time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.train, pytest.mark.xdist_group("ray")]


def test_optuna_goes_on_from_the_settings_that_it_chose_before_a_kill(tmp_path: Path) -> None:
    from quicgym.agents.tuning.space import ValueRange
    from quicgym.agents.tuning.trials import Plan, run_trials, running_ray

    space = {"size": ValueRange(minimum=1, maximum=9), "kind": ValueRange(values=((1, 2), (3,)))}
    before = {0: {"size": 2.5, "kind": (3,)}, 2: {"size": 7.0, "kind": (1, 2)}}

    def trial(chosen: dict[str, Any], folder: Path) -> dict[str, float]:
        number, setting = chosen["trial"]["number"], chosen["trial"]["setting"]
        (folder / f"{number}.json").write_text(json.dumps(setting))
        if number == 3:
            raise ValueError("too small")
        return {"value": setting["size"]}

    plan = Plan("mine", "value", "max", before, range(4), space, seed=1)
    with running_ray(None, 1):
        failed = run_trials(trial, plan, tmp_path / "ray", 1, given={"folder": tmp_path})
    assert not (tmp_path / "ray").exists()
    ran = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert sorted(ran) == ["0", "1", "2", "3"]
    assert ran["0"] == {"size": 2.5, "kind": [3]} and ran["2"] == {"size": 7.0, "kind": [1, 2]}
    assert all(1 <= ran[name]["size"] <= 9 and ran[name]["kind"] in ([1, 2], [3]) for name in ran)
    ((name, (setting, error)),) = failed.items()
    assert name == "00003" and setting["size"] == ran["3"]["size"]
    assert error == "ValueError: too small (tried 3 times)"
