"""docs/how-to/comparison.md as wandb's offline mode runs it: the values reach wandb's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.processes import run_program

pytest.importorskip("wandb", reason="no extra brings wandb")

pytestmark = pytest.mark.train
PAGE = Path(__file__).parents[2] / "docs/how-to/comparison.md"


def test_wandb_keeps_the_curves_of_stable_baselines3_and_of_quicgym_s_training(
    tmp_path: Path,
) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    program = "\n".join(block.partition("```")[0] for block in blocks)
    (tmp_path / "page.py").write_text(program, encoding="utf-8")
    done = run_program(tmp_path / "page.py", tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    runs = sorted((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert len(runs) == 2
    contents = [run.read_bytes() for run in runs]
    of_sb3 = next(content for content in contents if b"paired/minus_bbr" in content)
    assert all(tag in of_sb3 for tag in (b"rollout/ep_rew_mean", b"paired/minus_bbr_low"))
    of_training = next(content for content in contents if content is not of_sb3)
    # At step 0 and after each interval; and the configuration.
    assert of_training.count(b"evaluation/iqm") >= 3 and b"interval_steps" in of_training
