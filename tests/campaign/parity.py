"""Parity of the native engine and ns-3 on every feature that both have."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

from campaign.part import Found, Part, numbered, one_line
from quicgym.benchmarks.parity import compare
from quicgym.benchmarks.random_networks import (
    DISCIPLINES,
    DISCIPLINES_OF,
    FEATURES,
    random_chain,
    random_network,
)
from quicgym.envs.simulation.simulation import Ns3MissingError, check_engine

KINDS: tuple[tuple[str | None, str | None], ...] = (
    *((None, discipline) for discipline in DISCIPLINES),
    *((feature, None) for feature in FEATURES),
    *(
        (feature, discipline)
        for feature, discipline in product(FEATURES, DISCIPLINES)
        if discipline in DISCIPLINES_OF.get(feature, DISCIPLINES)
    ),
)
"""Features and disciplines, one by one and together; chains have every discipline besides."""


@cache
def _folder() -> Path:
    return Path(mkdtemp(prefix="quicgym-campaign-"))


def check(number: int) -> Found:
    """Compares the engines on network `number`; the kinds take turns."""
    turn, kind = divmod(number, len(KINDS) + len(DISCIPLINES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ECN where no queue marks
        if kind < len(KINDS):
            feature, discipline = KINDS[kind]
            scenario = random_network(turn, discipline, feature, _folder())
        else:
            scenario = random_chain(DISCIPLINES[kind - len(KINDS)], turn)
    result = compare(scenario, None, seed=turn)
    failures = [f"{number} ({scenario.name}): {result.difference}"] if result.difference else []
    return Found({"pairs": 1, "deliveries": result.deliveries}, failures)


def _run(first: int, until: float, jobs: int) -> tuple[Found, int]:
    return numbered(check, first, until, jobs)


def _missing() -> str | None:
    try:
        check_engine("ns3")
    except Ns3MissingError as error:
        return one_line(error)
    return None


PART = Part(
    name="parity",
    share=3.0,
    run=_run,
    missing=_missing,
)
