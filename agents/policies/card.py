"""A policy's model card: its description as Markdown, as the Hugging Face hub shows it.

The YAML at its top is the hub's metadata (https://huggingface.co/docs/hub/model-cards): library,
task, tags, and the results as `model-index`. The text says what the policy is, what it was trained
on, what it earns, and where it fails. All numbers are those of the description or of the
leaderboard's JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from quicgym.agents.policies.learned import PolicyDescription
from quicgym.envs.decisions import Decisions
from quicgym.envs.registration import find_environment

METRICS = {
    "reward": ("mean reward", ".4f"),
    "throughput_share": ("throughput share", ".3f"),
    "loss_rate": ("loss rate", ".4f"),
    "jain_of_intervals": ("Jain's index", ".3f"),
    "mean_rtt_ms": ("mean RTT (ms)", ".1f"),
    "mean_queue_delay_ms": ("mean queueing delay (ms)", ".1f"),
}
"""Means of an evaluation that a card shows, with headings and formats."""
_NAMED = 3
_USE = """\
In Python the policy is `quicgym.load_policy("{name}")`. For a policy that is not part of quicgym,
give the path of its JSON in place of the name. The weights have to be beside the JSON.

    quicgym evaluate --policy {name} cubic bbr"""
_ENGINES = {"native": "the native engine", "ns3": "ns-3"}


def model_card(
    name: str,
    description: PolicyDescription,
    *,
    leaderboard: Mapping[str, Any] | None = None,
    license: str | None = None,
) -> str:
    """Returns the card as Markdown, with YAML front matter.

    Args:
        name: The policy's name for `quicgym.load_policy`, or its file's stem.
        description: The policy's description.
        leaderboard: The content of leaderboard.json, if the policy is in there; see
            quicgym.benchmarks.leaderboard_data.leaderboard_data.
        license: The identifier of the licence on the hub, such as "mit"; None: the card names none.
    """
    sections = _sections_of(name, leaderboard)
    parts = [
        f"---\n{_front_matter(name, description, sections, license)}---",
        f"# {name}",
        *_what(description),
        "## How to use it",
        _USE.format(name=name),
        "## Trained on",
        *_training(description.training, description.architecture.output),
        "## Results",
        *_results(description.evaluation),
        *_leaderboard_results(sections, leaderboard),
        "## Where it fails",
        *_failures(name, description.evaluation, sections, leaderboard),
    ]
    return "\n\n".join(parts) + "\n"


def _sections_of(
    name: str, leaderboard: Mapping[str, Any] | None
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Returns the leaderboard's sections in which the policy is, each with its row."""
    return [
        (section, row)
        for section in (leaderboard or {"sections": []})["sections"]
        for row in section["rows"]
        if row["policy"] == name
    ]


def _front_matter(
    name: str,
    description: PolicyDescription,
    sections: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    license: str | None,
) -> str:
    measured = [(section["suite"], section["engine"], row) for section, row in sections]
    if not measured and description.evaluation is not None:
        backing = description.evaluation
        measured = [(backing["suite"], backing["engine"], backing)]
    environment = find_environment(description.decisions.environment).id
    algorithm = description.training.get("config", {}).get("algorithm")
    fields: dict[str, Any] = {"library_name": "quicgym"}
    if license is not None:
        fields["license"] = license
    fields |= {
        "pipeline_tag": "reinforcement-learning",
        "tags": [
            "reinforcement-learning", "quicgym", "congestion-control", "quic", environment,
            *([algorithm] if algorithm else []),
        ],
    }  # fmt: skip
    if measured:
        fields["model-index"] = [
            {
                "name": name,
                "results": [
                    {
                        "task": {"type": "reinforcement-learning", "name": environment},
                        "dataset": {"type": suite, "name": f"{suite} on {_ENGINES[engine]}"},
                        "metrics": [
                            {
                                "type": "iqm_reward",
                                "name": "IQM of the reward",
                                "value": round(row["iqm_reward"], 4),
                                "verified": False,
                            }
                        ],
                    }
                    for suite, engine, row in measured
                ],
            }
        ]
    text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    return text


def _what(description: PolicyDescription) -> Iterator[str]:
    decisions, network = description.decisions, description.architecture
    if description.description:
        yield f"{description.description.rstrip('.')}."
    layers = [*network.extractor_sizes, *network.hidden_sizes]
    yield _table(
        ["", ""],
        [
            ["environment", f"`{find_environment(decisions.environment).id}`"],
            ["decides every", _interval(decisions)],
            ["observation", _observation(decisions)],
            ["network", f"{' × '.join(map(str, layers))} units, {network.activation}"],
            ["SHA-256 of the weights", f"`{description.sha256}`"],
        ],
    )


def _interval(decisions: Decisions) -> str:
    text = f"{decisions.decision_interval_ms:g} ms"
    if decisions.decision_interval_rtts is None:
        return text
    rtts = f"{decisions.decision_interval_rtts:g} round-trip time(s)"
    return f"{rtts}, {text} at least"


def _observation(decisions: Decisions) -> str:
    (elements,) = decisions.observation_space.shape or (1,)
    return f"{elements} numbers, layout `{decisions.interface.observations}`"


def _training(training: Mapping[str, Any], output: str) -> Iterator[str]:
    members = training.get("members")
    if members:
        action = "sum of log-probabilities" if output == "argmax" else "mean action"
        yield f"The policy is an ensemble, which acts by the {action} of {len(members)} trainings:"
        for member in members:
            yield from _training(member, output)
        return
    config = training.get("config")
    if not config:
        yield "The description does not say how the policy was trained."
        return
    yield _table(
        ["", ""],
        [
            ["paths of the training", f"`{config['environment']['scenario']}`"],
            ["reward", f"`{config['environment']['reward']}`"],
            ["algorithm", f"`{config['algorithm']}`"],
            ["begins with", _start(config["start"])],
            ["decisions of the best policy", f"{training['step']:,} of {config['steps']:,}"],
            ["chosen by", f"`{config['evaluation']['suite']}`"],
            ["seed", str(training["seed"])],
            ["version, commit", f"quicgym {training['version']}, {training['commit']}"],
        ],
    )
    if training.get("command"):
        yield f"    {training['command']}"


def _start(start: Mapping[str, Any]) -> str:
    if start.get("policy"):
        return f"the policy `{start['policy']}`"
    return f"the action of `{start['preset']}`" if start.get("preset") else "random weights"


def _results(evaluation: Mapping[str, Any] | None) -> Iterator[str]:
    if evaluation is None:
        yield "The description has no evaluation."
        return
    seeds = len(evaluation["seeds"])
    yield (
        f"On `{evaluation['suite']}` with {_ENGINES[evaluation['engine']]}, "
        f"{evaluation['scenarios']} scenarios, {seeds} seeds, reward "
        f"`{evaluation['reward']['name']}`, by quicgym {evaluation['version']} at commit "
        f"{evaluation['commit']}:"
    )
    shown = {key: form for key, form in METRICS.items() if evaluation["mean"].get(key) is not None}
    yield _table(
        ["IQM of the reward", "95% interval", *(heading for heading, _ in shown.values())],
        [
            [
                f"{evaluation['iqm_reward']:.4f}",
                _bracket(evaluation),
                *(format(evaluation["mean"][key], form) for key, (_, form) in shown.items()),
            ]
        ],
        align="r",
    )
    yield f"    {evaluation['command']}"


def _leaderboard_results(
    sections: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    leaderboard: Mapping[str, Any] | None,
) -> Iterator[str]:
    if not sections or leaderboard is None:
        return
    yield (
        f"On the suites of the leaderboard, by `{leaderboard['command']}` with quicgym "
        f"{leaderboard['version']} at commit {leaderboard['commit']}. The last column is the IQM "
        "of the best hand-coded controller of the suite:"
    )
    yield _table(
        ["suite", "engine", "IQM of the reward", "95% interval", "best hand-coded"],
        [
            [
                f"`{section['suite']}`",
                section["engine"],
                f"{row['iqm_reward']:.4f}",
                _bracket(row),
                _best(section),
            ]
            for section, row in sections
        ],
    )


def _best(section: Mapping[str, Any]) -> str:
    best = _baseline_row(section)
    return "–" if best is None else f"{best['iqm_reward']:.4f} (`{best['policy']}`)"


def _baseline_row(section: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((row for row in section["rows"] if row["policy"] == section["best_baseline"]), None)


def _failures(
    name: str,
    evaluation: Mapping[str, Any] | None,
    sections: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    leaderboard: Mapping[str, Any] | None,
) -> Iterator[str]:
    known = False
    if evaluation is not None and evaluation.get("lowest"):
        known = True
        lowest = ", ".join(
            f"`{cell['scenario']}` ({cell['reward']:+.3f})" for cell in evaluation["lowest"]
        )
        yield f"Lowest mean rewards on `{evaluation['suite']}`: {lowest}."
    if sections:
        known = True
        yield (
            "Beside the best hand-coded controller on the suites of the leaderboard. A collapse is "
            "a network where the throughput share is below half of the larger of CUBIC's and "
            "BBR's. So is one where the loss rate is more than 10 percentage points above both. "
            "The last column names networks, with the reward minus that of the best hand-coded "
            "controller there:"
        )
        yield _table(
            ["suite", "engine", "minus the best hand-coded", "collapses", "furthest behind"],
            [_failures_on(section, row) for section, row in sections],
        )
    entries = (leaderboard or {"policies": []})["policies"]
    found = next((entry["worst_found"] for entry in entries if entry["policy"] == name), None)
    if found is not None:
        known = True
        yield (
            "`quicgym attack` found a network on which the reward minus that of the best of CUBIC, "
            f"BBR and BBRv3 is {found:+.2f}."
        )
    if not known:
        yield "Not measured."


def _failures_on(section: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    best, beside = _baseline_row(section), row.get("beside_cubic_and_bbr")
    worst = [
        f"`{cell['scenario']}` ({cell['difference']:+.3f})"
        for cell in row.get("furthest_behind", ())
    ]
    return [
        f"`{section['suite']}`",
        section["engine"],
        "–" if best is None else f"{row['iqm_reward'] - best['iqm_reward']:+.4f}",
        "–" if beside is None else f"{beside['collapses']} of {section['scenarios']}",
        ", ".join(worst[:_NAMED]) or "–",
    ]


def _bracket(row: Mapping[str, Any]) -> str:
    return "–" if row["iqm_low"] is None else f"[{row['iqm_low']:.4f}, {row['iqm_high']:.4f}]"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], align: str = "l") -> str:
    mark = "--:" if align == "r" else "---"
    lines = [headings, [mark] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
