"""The playground in a browser: its numbers are Python's, bit by bit, and it says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from chromium import CHROMIUM, Chromium

import quicgym
from quicgym import _core
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.policies.by_name import find_policy
from quicgym.envs import load_scenario

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "build" / "playground" / "site" / "playground" / "index.html"

SCENARIOS = (
    "rate=20&rtt=50&queue=1bdp&flow=ebcc&flow=bbr;start=2",
    "rate=15&rtt=33&queue=100packets&seed=7&flow=bbr;gamma=12.5;beta=0.3;alpha=0.875",
    "rate=47.3&rtt=61&queue=2.5bdp&loss=0.1&changes=8:12.5,14:60&seed=3&flow=ibcca&flow=cubic;start=3;extra=10",
    "rate=30&rtt=20&queue=500packets&discipline=fq-codel&ecn=1&flow=cubic&flow=bbr3;start=1",
    "rate=40&rtt=15&queue=1bdp&discipline=pie&flow=newreno&flow=bbr&flow=cubic&flow=ebcc",
    "rate=8&rtt=300&queue=0.5bdp&duration=40&flow=bbr;gain_cycle=1.1,0.9,1,1.05&flow=bbr;start=4.321",
    "rate=100&rtt=10&queue=3bdp&duration=7&loss=1e-3&flow=cubic;beta=0.85;slow_start=standard",
    "rate=25&rtt=44&queue=1bdp&changes=5:0,6:25&seed=11&flow=cubic%2B&flow=bbr-combined",
    "rate=30&rtt=40&queue=2bdp&seed=5&flow=window;start=1&flow=cubic&flow=window;start=4;extra=20",
    "rate=20&rtt=80&queue=1bdp&loss=0.5&changes=10:5&flow=tuning&flow=newreno;start=2",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if not (shutil.which("em++") and shutil.which("npm")):
        pytest.skip("the playground needs Emscripten and npm: apt-get install emscripten npm")
    if CHROMIUM is None:
        pytest.skip("the playground is tested in Chromium: apt-get install chromium")
    subprocess.run(["make", "playground"], cwd=ROOT, check=True)
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        started.resize(1400, 1000)
        started.open(PAGE.as_uri())
        started.evaluate("playground.settle().then(() => null)")
        yield started


def simulated(browser: Chromium, address: str) -> dict[str, Any]:
    """Returns what the page shows for an address, and what it would copy."""
    script = """playground.open(%s).then(({ policy, result }) => ({
      error: result.error, problems: playground.problems(), policy, yaml: playground.toYaml(),
      command: playground.toCommand(), totals: result.flows?.map(({ totals }) => totals),
      rewards: result.rows && Array.from(result.rows).filter(
        (_, place) => place %% result.columns.length === result.columns.indexOf("reward")),
      reward: result.rows && playground.meanOf(result, "reward"),
    }))"""
    shown: dict[str, Any] = browser.evaluate(script % json.dumps(address))
    return shown


def check(browser: Chromium, address: str, folder: Path) -> dict[str, Any]:
    """Runs what the page would copy in Python, and compares."""
    page = simulated(browser, address)
    assert page["problems"] == []
    assert page.get("error") is None
    path = folder / "playground.yaml"
    path.write_text(page["yaml"], encoding="utf-8")
    scenario = load_scenario(path)
    seed = int(address.partition("seed=")[2].partition("&")[0] or 0)
    if page["policy"]:
        run = play(find_policy(page["policy"]), scenario, seed=seed)
    else:
        run = quicgym.run(scenario, seed=seed)
    assert run.totals == page["totals"]
    assert list(run.series["reward"]) == page["rewards"]
    assert run.metrics["reward"] == pytest.approx(page["reward"], rel=1e-12)
    return page


@pytest.mark.parametrize("address", SCENARIOS)
@pytest.mark.filterwarnings("ignore:.*ECN.*", "ignore:.*ecn.*", "ignore:.*marks.*")
def test_totals_are_those_of_python(browser: Chromium, address: str, tmp_path: Path) -> None:
    check(browser, address, tmp_path)


@pytest.mark.filterwarnings("ignore:.*marks.*")
def test_every_controller_and_agent_runs_as_in_python(browser: Chromium, tmp_path: Path) -> None:
    about = browser.evaluate("playground.about()")
    names = [controller["name"] for controller in about["controllers"]]
    assert names == list(_core.baselines())
    assert {"tuning", "window"} <= set(about["policies"])
    for name in (*names, *about["policies"]):
        shown = name.replace("+", "%2B")
        check(browser, f"rate=24&rtt=30&duration=10&loss=0.02&flow={shown}", tmp_path)


def test_every_queue_discipline_runs_as_in_python(browser: Chromium, tmp_path: Path) -> None:
    for discipline in browser.evaluate("playground.about().disciplines"):
        address = f"rate=24&rtt=30&queue=2bdp&discipline={discipline['name']}&duration=10&flow=bbr"
        check(browser, address, tmp_path)


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        ("rate=20&rtt=50&duration=10&flow=ebcc;gamma=12&flow=bbr", "networks"),
        ("rate=20&rtt=50&duration=10&seed=3&flow=window&flow=cubic", "evaluation"),
    ],
)
def test_the_command_prints_the_same_reward(
    browser: Chromium, address: str, folder: str, tmp_path: Path
) -> None:
    page = simulated(browser, address)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(
        ["sh", "-e"], input=page["command"], text=True, cwd=tmp_path, check=True,
        env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    (reward,) = pd.read_parquet(tmp_path / "results" / folder / "results.parquet")["reward"]
    assert reward == pytest.approx(page["reward"], rel=1e-12)


def test_a_wrong_field_says_what_is_wrong(browser: Chromium) -> None:
    page = simulated(
        browser, "rate=fast&rtt=0&changes=5:1,4:2&flow=ebcc;beta=3&flow=nobody&flow=cubic;start=20"
    )
    for expected in (
        "“fast” is not a number; give 0.1 to 1000 Mbps.",
        "0 is not possible; give 1 to 2000 ms.",
        "4 s is not after the change before it, 5 s.",
        "3 is not possible; give 0 to 1.",
        "“nobody” does not exist; choose a controller of the list.",
        "The flow starts at 20 s, and the run ends at 20 s; start it earlier.",
    ):
        assert expected in page["problems"]
    text = browser.evaluate("document.getElementById('problem').textContent")
    assert text == "The results are those before the change: mend the field that is marked."
    two_agents = simulated(browser, "flow=tuning&flow=window")["problems"]
    assert two_agents == [
        "A network has one learned agent, and flow 1 has Tuning; choose Tuning or a controller."
    ]
    tiny = simulated(browser, "rate=1&rtt=2&queue=0.1bdp&flow=cubic")
    assert (
        tiny["error"] == "queue: no packet fits, because one takes 1230 bytes; give a larger queue"
    )
    assert simulated(browser, "flow=cubic")["problems"] == []


def test_a_slider_moves_its_field_and_the_results(browser: Chromium) -> None:
    before = simulated(browser, "rate=20&rtt=50&flow=ebcc")
    browser.evaluate("""(() => {
      const slider = document.querySelector("#flows input[type=range]");
      slider.value = 0.1;
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      return playground.settle().then(() => null);
    })()""")
    assert browser.evaluate("document.querySelector('#flows input[type=text]').value") == "3.33"
    assert "gamma=3.33" in browser.evaluate("location.hash")
    after = browser.evaluate("playground.settle().then(({ result }) => result.flows[0].totals)")
    assert after != before["totals"][0]


def test_the_link_carries_every_setting(browser: Chromium) -> None:
    for address in SCENARIOS:
        page = simulated(browser, address)
        link = browser.evaluate("location.hash.slice(1)")
        assert simulated(browser, link)["yaml"] == page["yaml"]
        assert browser.evaluate("location.hash.slice(1)") == link


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone(browser: Chromium, dark: bool) -> None:
    browser.set_dark(dark)
    browser.resize(390, 844)
    simulated(browser, SCENARIOS[4])
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    browser.resize(1400, 1000)
