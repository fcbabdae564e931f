"""The table that `make reports ARGS=attacks` writes."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.train


def test_the_worst_comes_first_with_its_interval() -> None:
    from quicgym.benchmarks.attacks import table

    about = {"version": "1", "commit": "abc", "against": ["cubic", "bbr"], "trials": 8}
    found = {"difference": -0.5, "low": -0.75, "high": -0.25}
    worst = {"sentence": "ebcc:gamma=3 is behind."}
    page = table(
        [
            {"policy": "bbr", "found": None, "worst": None, **about},
            {"policy": "ebcc:gamma=3", "found": found, "worst": worst, **about},
        ]
    )
    rows = page.split("|---|---|---|---|\n")[1].splitlines()
    assert rows == [
        "| `ebcc:gamma=3` | 8 | 0.50 [0.25, 0.75] | ebcc:gamma=3 is behind. |",
        "| `bbr` | 8 | – | bbr is not behind the best of cubic, bbr for sure on the worst of "
        "8 networks. |",
    ]
    assert "the best of bbr, cubic minus" in page and "commit abc" in page
