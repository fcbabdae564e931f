"""The part of a run that metrics are taken over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quicgym.envs.scenarios.conversion import nanoseconds
from quicgym.envs.scenarios.fields import ScenarioError
from quicgym.envs.scenarios.model import Scenario


class Window(NamedTuple):
    """A part of a run, in s; None: the run's own end."""

    from_s: float | None = None
    until_s: float | None = None

    def marks(self, more_s: Iterable[float] = ()) -> tuple[int, ...]:
        """Returns the times, in ns and rising, at which the totals of a run have to be known.

        Args:
            more_s: Ends of other windows of the run, in s.
        """
        return tuple(sorted({nanoseconds(time_s) for time_s in (*self, *more_s) if time_s}))

    def check(self, scenario: Scenario) -> None:
        """Raises ScenarioError where the window is not part of a scenario."""
        end_s = scenario.duration_s
        begin_s = self.from_s or 0.0
        if self.until_s is not None and not 0 < self.until_s <= end_s:
            raise ScenarioError(
                f"until_s = {self.until_s:g}: {scenario.name} lasts {end_s:g} s; give a time above "
                f"0 and up to {end_s:g}"
            )
        last_s = end_s if self.until_s is None else self.until_s
        if not 0 <= begin_s < last_s:
            until, later = (
                ("", "") if self.until_s is None else ("until_s = ", ", or a later until_s")
            )
            raise ScenarioError(
                f"from_s = {begin_s:g}: the window of {scenario.name} ends at {until}{last_s:g} s; "
                f"give a time from 0 to below {last_s:g}{later}"
            )

    def __str__(self) -> str:
        """Returns the window for a reader; empty for the whole run."""
        begin = f", from {self.from_s:g} s" if self.from_s else ""
        return begin if self.until_s is None else f"{begin}, until {self.until_s:g} s"


WHOLE = Window()
"""The whole run."""
