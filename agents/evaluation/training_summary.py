"""The summary that `quicgym train` ends with: what start, best and last policy are worth.

quicgym.agents.training.comparison makes it. It is kept in the run's folder as summary.json.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from quicgym import __version__, _core
from quicgym.errors import RunError
from quicgym.output_folders import read_json, write_atomically

SUMMARY_FORMAT = "quicgym-training-summary-1"
SUMMARY_FILE = "summary.json"
ENOUGH_PATHS = 1000
"""Paths of a full comparison; fewer are for quick trials."""
_DIGITS = 4  # of a difference, after the point


@dataclass(frozen=True)
class Compared:
    """The "start", "best" or "last" policy, with its mean reward over the paths.

    `gain` is the mean of the reward minus the start's on the same path, with its 95% interval.
    """

    policy: str
    step: int
    sha256: str
    reward: float
    gain: float
    low: float
    high: float

    @property
    def improved(self) -> bool:
        """Whether the gain's interval is above 0, rounded as it is shown."""
        return round(self.low, _DIGITS) > 0


@dataclass(frozen=True)
class Summary:
    """Content of summary.json.

    The paths are drawn from a distribution or a suite, with seeds from `first_seed` on. `identity`
    is the digest of everything that the numbers depend on, besides the version.
    """

    paths: int
    drawn_from: str
    first_seed: int
    identity: str
    policies: tuple[Compared, ...]
    version: str = __version__
    commit: str = _core.commit

    def __getitem__(self, policy: str) -> Compared:
        """Returns "start", "best" or "last"."""
        return next(entry for entry in self.policies if entry.policy == policy)

    @property
    def learned(self) -> bool:
        """Whether the best policy is ahead of the start."""
        return self["best"].improved

    def write(self, path: Path) -> None:
        """Writes summary.json."""
        about = {"format": SUMMARY_FORMAT, "learned": self.learned, "verdict": verdict(self)}
        document = {**about, **asdict(self)}
        write_atomically({path: json.dumps(document, indent=1) + "\n"})

    @classmethod
    def read(cls, path: Path) -> Summary | None:
        """Reads summary.json; None where there is none, RunError where it is something else."""
        if not path.exists():
            return None
        data = read_json(path, ("format", "policies"))
        try:
            if data["format"] != SUMMARY_FORMAT:
                raise ValueError(f"its format is not {SUMMARY_FORMAT!r}")
            policies = tuple(Compared(**entry) for entry in data["policies"])
            numbers = {name: data[name] for name in cls.__dataclass_fields__ if name != "policies"}
            summary = cls(policies=policies, **numbers)
            _ = [summary[name] for name in ("start", "best", "last")]
        except (KeyError, TypeError, ValueError, StopIteration) as error:
            raise RunError(
                f"{path}: is no summary of a training ({error}); remove it, and "
                "`quicgym train` with --resume makes it again"
            ) from None
        return summary


def print_summary(summary: Summary) -> None:
    """Prints the table, and whether something was learned."""
    console = Console()
    table = Table(box=None, pad_edge=False)
    for heading in ("policy", "step", "mean reward", "minus start", "95% interval"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for entry in summary.policies:
        ends = f"{entry.low:+.4f} to {entry.high:+.4f}" if entry.low < entry.high else ""
        rest = ("", "") if entry.policy == "start" else (f"{entry.gain:+.4f}", ends)
        table.add_row(entry.policy, f"{entry.step:,}", f"{entry.reward:.4f}", *rest)
    console.print(
        f"\nThe same {summary.paths:,} paths of {summary.drawn_from} for each policy, seeds from "
        f"{summary.first_seed:,} on, none of which was evaluated before:\n",
        highlight=False,
        soft_wrap=True,
    )
    console.print(table, "")
    for line in verdict(summary):
        loud = "" if summary.learned else "bold red"
        console.print(line, style=loud, highlight=False, soft_wrap=True, markup=False)


def difference_in_words(entry: Compared) -> str:
    """Returns the difference to the start and its interval."""
    gain, *ends = (f"{value:+.{_DIGITS}f}" for value in (entry.gain, entry.low, entry.high))
    return f"{gain} [{', '.join(ends)}]"


def verdict(summary: Summary) -> list[str]:
    """Returns lines that say whether something was learned, and if not, what to try."""
    best, last = summary["best"], summary["last"]
    lines = []
    if summary.learned:
        lines.append(f"Learned: best − start is {difference_in_words(best)}.")
    else:
        shown = f"best − start is {difference_in_words(best)}, and that interval is not above 0"
        lines += [
            "Nothing was learned: the best policy is the one at step 0."
            if best.sha256 == summary["start"].sha256
            else f"No gain is shown: {shown}.",
            "Try more steps, a smaller hyperparameters.learning_rate or start.std, another seed, "
            "or an algorithm that replays paths (grpo, aggrevate). More "
            "evaluation.comparison_paths make the interval smaller.",
        ]
        if last.improved:
            lines.append(
                f"But last − start is {difference_in_words(last)}: the evaluations on the way have "
                "chosen another policy. Give them more evaluation.seeds."
            )
    if summary.paths < ENOUGH_PATHS:
        lines.append(
            f"These are only {summary.paths} paths, for a quick trial; a statement needs "
            f"{ENOUGH_PATHS:,} or more (evaluation.comparison_paths)."
        )
    return lines
