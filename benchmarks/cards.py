"""The model cards of the policies that quicgym brings, beside their descriptions.

    python -m quicgym.benchmarks.cards        # in a checkout; `make leaderboard` runs it

A card has the numbers of the policy's description and of docs/reports/leaderboard.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quicgym.agents.policies.card import model_card
from quicgym.agents.policies.learned import PolicyDescription, load_policy
from quicgym.benchmarks.publish import POLICIES
from quicgym.console import run_program, say
from quicgym.errors import UserError
from quicgym.output_folders import write_atomically

LEADERBOARD_DATA = Path("docs/reports/leaderboard.json")
LICENSE = "mit"


def card(checkout: Path | None, name: str, description: PolicyDescription) -> str:
    """Returns a policy's card.

    Args:
        checkout: quicgym's repository, whose licence and leaderboard the card then has; None: the
            policy is a user's.
        name: The policy's name.
        description: Content of the JSON beside the weights.
    """
    if checkout is None:
        return model_card(name, description)
    leaderboard: dict[str, Any] | None = None
    if (checkout / LEADERBOARD_DATA).is_file():
        leaderboard = json.loads((checkout / LEADERBOARD_DATA).read_text(encoding="utf-8"))
    return model_card(name, description, leaderboard=leaderboard, license=LICENSE)


def cards(checkout: Path) -> dict[Path, str]:
    """Returns the card of each policy of a checkout by its path; UserError where this is none."""
    policies = checkout / POLICIES
    if not policies.is_dir():
        raise UserError(f"{checkout}: has no {POLICIES}; go to a checkout of quicgym")
    return {
        path.with_suffix(".md"): card(checkout, path.stem, load_policy(path).description)
        for path in sorted(policies.glob("*.json"))
    }


def write_cards() -> None:
    """Write the model card of each published policy of this checkout."""
    written = cards(Path.cwd())
    write_atomically(written)
    say(f"{len(written)} model cards are in {POLICIES}")


def main() -> None:
    """Runs the command."""
    run_program(write_cards)


if __name__ == "__main__":
    main()
