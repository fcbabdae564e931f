"""`quicgym checklist`, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Command
from helpers.commands import says

SMALL: dict[str, Any] = yaml.safe_load("""
name: small
title: A small checklist
scenarios:
  alone: &alone
    duration_s: 4
    bottleneck: {rate_mbps: 5, delay_ms: 10, queue: {limit: 20}}
    access: {rate_mbps: 100, delay_ms: 1}
    flows: [{name: agent}]
  beside:
    <<: *alone
    flows: [{name: agent}, {name: other, controller: cubic, start_jitter_ms: 500}]
items:
- section: "1"
  title: Use
  checks:
  - {question: "Is the link used?", scenarios: [alone], number: utilisation, from_s: 1,
     at_least: 0.5, source: ours}
  - {question: "Is twice the link used?", scenarios: [alone], number: utilisation, at_least: 2,
     source: nobody}
- section: "2"
  title: Harm
  checks:
  - {question: "Does CUBIC get what it gets beside CUBIC?", scenarios: [beside],
     number: others_goodput_mbps, relative_to: cubic, at_least: 0.1, source: ours}
- {section: "3", title: Prose, not_measured: is for the document to explain}
""")


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **changes}, sort_keys=False))
    return path


def test_json_holds_number_interval_and_verdict_of_every_check(
    quicgym: Command, tmp_path: Path
) -> None:
    done = quicgym(
        "checklist", "newreno", "--checklist", written(tmp_path), "--seeds", "3", "--format",
        "json", "--out", "here",
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert json.loads((tmp_path / "here/checklist.json").read_text()) == document
    assert document["policy"] == "newreno"
    assert document["seeds"] == [0, 1, 2]
    use, harm, prose = document["items"]
    assert [check["verdict"] for check in use["checks"]] == ["met", "missed"]
    assert use["verdict"] == "missed"
    (measured,) = use["checks"][0]["measured"]
    assert 0.5 < measured["low"] <= measured["mean"] <= measured["high"] < 1.01
    (compared,) = harm["checks"][0]["measured"]
    assert compared["low"] < compared["mean"] < compared["high"]
    assert prose["verdict"] is None
    # The part from 1 s on, and the whole, of NewReno alone; NewReno and CUBIC beside CUBIC.
    assert len((tmp_path / "here/runs.jsonl").read_text().splitlines()) == 4 * 3


def test_the_interval_of_a_bounded_number_ends_at_its_bounds(
    quicgym: Command, tmp_path: Path
) -> None:
    # One or two of a few packets are lost with some seeds, and none with others.
    link = {"rate_mbps": 1, "delay_ms": 10, "loss": {"kind": "bernoulli", "probability": 0.002}}
    checks = [
        {"question": "?", "scenarios": ["lossy"], "number": number, "at_least": 0, "source": "ours"}
        for number in ("agent_loss_percent", "loss_rate", "smallest_share")
    ]
    flows = [{"name": "agent"}, {"name": "other", "controller": "newreno", "start_jitter_ms": 500}]
    path = written(
        tmp_path,
        scenarios={"lossy": {**SMALL["scenarios"]["alone"], "bottleneck": link, "flows": flows}},
        items=[{"section": "1", "title": "Bounds", "checks": checks}],
    )
    done = quicgym("checklist", "cubic", "--checklist", path, "--seeds", "3", "--format", "json")
    measured = [check["measured"][0] for check in json.loads(done.stdout)["items"][0]["checks"]]
    loss_percent, loss_rate, share = measured
    assert loss_percent["low"] == loss_rate["low"] == 0.0 < loss_percent["mean"]
    assert share["high"] == 1.0 > share["mean"]


def test_a_controller_against_itself_does_no_harm(quicgym: Command, tmp_path: Path) -> None:
    done = quicgym(
        "checklist", "cubic", "--checklist", written(tmp_path), "--seeds", "2", "--format", "json"
    )
    harm = json.loads(done.stdout)["items"][1]["checks"][0]
    assert (harm["measured"][0]["mean"], harm["verdict"]) == (1.0, "met")
    assert (tmp_path / "results/checklists/cubic/checklist.json").exists()


def test_with_one_seed_every_check_is_open(quicgym: Command, tmp_path: Path) -> None:
    arguments = ("checklist", "cubic", "--checklist", written(tmp_path), "--seeds", "1")
    done = quicgym(*arguments, "--format", "json")
    checks = [check for entry in json.loads(done.stdout)["items"] for check in entry["checks"]]
    assert {check["verdict"] for check in checks} == {"open"}
    measured = [entry for check in checks for entry in check["measured"]]
    assert all(entry["mean"] is not None and entry["low"] is None for entry in measured)
    table = quicgym(*arguments, "--resume").stdout
    assert "0 sections met, 2 open" in table and "None" not in table


def test_the_table_and_the_page_show_every_question(quicgym: Command, tmp_path: Path) -> None:
    arguments = ("checklist", "ebcc:gamma=60", "--checklist", written(tmp_path), "--seeds", "3")
    table = quicgym(*arguments, "--out", "here")
    page = quicgym(*arguments, "--out", "here", "--resume", "--format", "html")
    assert page.stdout == ""
    html = (tmp_path / "here/checklist.html").read_text()
    for text in ("Is the link used?", "Is twice the link used?", "at least 0.5", "nobody"):
        assert text in html
    for text in ("Is the link used?", "at least 2", "met", "missed", "1 sections met"):
        assert text in table.stdout
    assert "ebcc:gamma=60" in table.stdout
    assert "rate_mbps: 5" in html


ATTACK = {
    "title": "The worst",
    "question": "Is it never far behind?",
    "against": ["cubic"],
    "distribution": "./small-paths.yaml",
    "trials": 4,
    "at_least": -0.2,
    "source": "ours",
}


@pytest.mark.train
def test_the_worst_network_is_searched_on_request_alone(quicgym: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "small-paths.yaml").write_text(
        "name: small-paths\nduration_s: 2\nrate_mbps: {minimum: 2, maximum: 4}\n"
        "rtt_ms: {minimum: 40, maximum: 80}\nqueue_bdp: {minimum: 1, maximum: 2}\n"
    )
    checklist = written(folder, attack=ATTACK)
    weak = "weak=bbr:cwnd_gain=0.1,min_window_packets=2"
    arguments = ("checklist", weak, "--checklist", checklist, "--seeds", "2", "--out", "here")
    plain = quicgym(*arguments, "--format", "json")
    assert "option --attack" in json.loads(plain.stdout)["items"][-1]["not_measured"]
    done = quicgym(*arguments, "--format", "json", "--attack", "--resume")
    worst = json.loads(done.stdout)["items"][-1]
    assert worst["verdict"] == "missed" and worst["section"] == "attack"
    (measured,) = worst["checks"][0]["measured"]
    assert measured["low"] <= measured["mean"] <= measured["high"] < -0.2
    assert "weak is" in measured["scenario"] and "behind cubic" in measured["scenario"]
    assert (tmp_path / "here/attack/worst.yaml").exists()
    quicgym(*arguments, "--format", "html", "--attack", "--resume")
    page = (tmp_path / "here/checklist.html").read_text()
    assert "Is it never far behind?" in page and "the best other&#39;s" in page


def test_a_checklist_without_an_attack_has_none_to_run(quicgym: Command, tmp_path: Path) -> None:
    arguments = ("--checklist", written(tmp_path), "--attack")
    says(quicgym("checklist", "cubic", *arguments, status=2), "has no field attack")


def item(**changes: Any) -> list[Any]:
    first = SMALL["items"][0]
    return [{**first, "checks": [{**first["checks"][0], **changes}]}, *SMALL["items"][1:]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"items": item(number="utilization")}, ["items.0.checks.0.number", "utilisation"]),
        ({"items": item(from_s=4)}, ["from_s = 4: the window of alone ends at 4 s"]),
        ({"items": item(scenarios=["alon"])}, ["'alon'", "did you mean alone?"]),
        (
            {"scenarios": {**SMALL["scenarios"], "unused": SMALL["scenarios"]["alone"]}},
            ["scenarios.unused", "no check uses it"],
        ),
    ],
)
def test_a_mistake_in_a_checklist_is_named_with_its_remedy(
    changes: dict[str, Any], words: list[str], quicgym: Command, tmp_path: Path
) -> None:
    done = quicgym("checklist", "cubic", "--checklist", written(tmp_path, **changes), status=2)
    says(done, "small.yaml", *words)
    assert not (tmp_path / "results").exists()
