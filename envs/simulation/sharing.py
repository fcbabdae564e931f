"""How flows share a bottleneck over time: each flow's rate over its fair share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from quicgym.envs.simulation.series import Series

SECOND = 1_000_000_000
STEP = SECOND // 10
CONVERGED_WITHIN = 0.25
RESPONSE_SPAN = SECOND // 2
"""Over which a rate is taken, from each tenth of a second on."""
RESPONDED_SHARE = 0.9
"""Share of the new capacity at which flows count as having responded to a change of it."""
STABLE = 5 * SECOND
"""Flows have converged where each second's rates stay so near to the fair share for so long."""


class Member(NamedTuple):
    """A flow that shares the bottleneck.

    Attributes:
        begin: Beginning of its active time, in ns.
        end: End of its active time, in ns.
        has_policy: Whether the flow names no controller.
        wire_share: Size of a full packet on the wire over its UDP payload.
    """

    begin: int
    end: int
    has_policy: bool
    wire_share: float


class Epoch(NamedTuple):
    """The time, in ns, from an arrival or a departure of a flow to the next."""

    kind: Literal["arrival", "departure"]
    begin: int
    end: int


@dataclass(frozen=True)
class Sharing:
    """A run's flows over the bottleneck, in a window.

    The fair share of a flow is the capacity over the number of the flows that are active.

    Attributes:
        members: The flows, in the order of the scenario.
        window: Beginning and end of the window, in ns.
        times: Moments, in ns and rising, at which the totals are known.
        carried: Bytes of each flow that the bottleneck had carried then, with headers; shape
            (times, members).
        capacity: Bytes that the bottleneck could have carried until then.
        changes: Times, in ns and rising, at which rate or delay of the bottleneck change.
    """

    members: Sequence[Member]
    window: tuple[int, int]
    times: np.ndarray
    carried: np.ndarray
    capacity: np.ndarray
    changes: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        series: Series,
        members: Sequence[Member],
        places: Sequence[int],
        window: tuple[int, int],
        changes: Sequence[int] = (),
    ) -> Sharing:
        """Reads a run's series.

        Args:
            series: Series of the run.
            members: Flows that share the bottleneck.
            places: Places of the members among the flows of the series.
            window: Beginning and end of the window, in ns.
            changes: Times, in ns and rising, at which rate or delay of the bottleneck change.
        """
        times = np.asarray(series.received_times, np.int64)
        received = series.received[:, list(places)].astype(float)
        if all(member.begin >= series.begin for member in members):
            times = np.concatenate([[series.begin], times])
            received = np.concatenate([np.zeros((1, len(members))), received])
        ends = np.concatenate([[series.begin], series.columns["time_s"] * 1e9])
        bytes_of_intervals = np.diff(ends) * series.columns["capacity_mbps"] / 8e3
        capacity = np.interp(times, ends, np.concatenate([[0.0], np.cumsum(bytes_of_intervals)]))
        carried = received * [member.wire_share for member in members]
        return cls(members, window, times, carried, capacity, changes)

    @cached_property
    def _fair(self) -> tuple[np.ndarray, np.ndarray]:
        """Moments, and the bytes of a fair share that an active flow could have had until then."""
        ends = [time for member in self.members for time in (member.begin, member.end)]
        inside = [time for time in ends if self.times[0] < time < self.times[-1]]
        moments = np.unique(np.concatenate([self.times, np.array(inside, np.int64)]))
        active = sum(
            (member.begin <= moments[:-1]) & (moments[:-1] < member.end) for member in self.members
        )
        sent = np.diff(np.interp(moments, self.times, self.capacity))
        return moments, np.concatenate([[0.0], np.cumsum(sent / np.maximum(active, 1))])

    def shares(self, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Returns each flow's bytes over its fair share in spans of time; shape (spans, members).

        Args:
            begins: Beginnings of the spans, in ns.
            ends: Ends of the spans, in ns.
        """
        moments, fair = self._fair
        given = np.interp(ends, moments, fair) - np.interp(begins, moments, fair)
        carried = np.stack(
            [
                np.interp(ends, self.times, of_flow) - np.interp(begins, self.times, of_flow)
                for of_flow in self.carried.T
            ],
            axis=-1,
        )
        empty = np.full_like(carried, np.nan)
        return np.divide(carried, given[:, None], out=empty, where=given[:, None] > 0)

    @property
    def known(self) -> tuple[int, int]:
        """The part of the window, in ns, of which the totals are known."""
        if not len(self.times):
            return self.window[0], self.window[0]
        first, last = int(self.times[0]), int(self.times[-1])
        return max(first, self.window[0]), min(last, self.window[1])

    def mean_shares(self) -> np.ndarray | None:
        """Returns each flow's share while all are active; None: they never are."""
        begin = max(self.known[0], *(member.begin for member in self.members))
        end = min(self.known[1], *(member.end for member in self.members))
        if end - begin < STEP:
            return None
        (shares,) = self.shares(np.array([begin]), np.array([end]))
        return None if np.isnan(shares).any() else shares

    def mean_share(self, *, of_policy: bool) -> float | None:
        """Returns the mean share of the policy's flows, or of the others, while all are active."""
        shares = self.mean_shares()
        chosen = [member.has_policy == of_policy for member in self.members]
        return None if shares is None or not any(chosen) else float(np.mean(shares[chosen]))

    def over_time(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ends of the whole seconds of the window, in s, and each flow's shares.

        A share is NaN in a second in which the flow is not active throughout.
        """
        begin, end = self.known
        begins = np.arange(begin, end - SECOND + 1, SECOND)
        if not len(begins):
            return np.empty(0), np.empty((0, len(self.members)))
        shares = self.shares(begins, begins + SECOND)
        for place, member in enumerate(self.members):
            shares[(begins < member.begin) | (begins + SECOND > member.end), place] = np.nan
        return (begins + SECOND) * 1e-9, shares

    def epochs(self) -> Iterator[Epoch]:
        """Yields the epochs of the window that are long enough to converge in."""
        begin, end = self.known
        moments = {time for member in self.members for time in (member.begin, member.end)}
        changes = sorted(time for time in moments if self.window[0] <= time < end)
        for time, until in pairwise([*changes, end]):
            active = [member for member in self.members if member.begin <= time < member.end]
            if active and until - max(time, begin) >= STABLE:
                arrives = any(member.begin == time for member in active)
                yield Epoch("arrival" if arrives else "departure", time, until)

    def convergence_s(self, epoch: Epoch) -> float | None:
        """Returns how long the active flows took to their fair share, in s; None: they did not."""
        begins = np.arange(max(epoch.begin, self.known[0]), epoch.end - SECOND + 1, STEP)
        shares = self.shares(begins, begins + SECOND)[:, self._active(epoch)]
        near = np.all(np.abs(shares - 1) <= CONVERGED_WITHIN, axis=1)
        needed = (STABLE - SECOND) // STEP + 1
        if len(near) < needed:
            return None
        stable = np.lib.stride_tricks.sliding_window_view(near, needed).all(axis=1)
        return float(begins[np.argmax(stable)] - epoch.begin) * 1e-9 if stable.any() else None

    def _active(self, epoch: Epoch) -> list[bool]:
        return [member.begin <= epoch.begin < member.end for member in self.members]

    def convergence_after(self, kind: Literal["arrival", "departure"]) -> float | None:
        """Returns the mean convergence time after changes of a kind, in s.

        A flow that arrives where no other is has nobody to share with, and does not count. None
        where there is no such change, or the flows did not converge after one of them.
        """
        times = [
            self.convergence_s(epoch)
            for epoch in self.epochs()
            if epoch.kind == kind and (kind == "departure" or sum(self._active(epoch)) > 1)
        ]
        known = [time for time in times if time is not None]
        return float(np.mean(known)) if known and len(known) == len(times) else None

    def deviation(self) -> float | None:
        """Returns the mean over flows of the standard deviation of the share after convergence."""
        found = []
        for epoch in self.epochs():
            converged_s = self.convergence_s(epoch)
            if converged_s is not None:
                first = epoch.begin + round(converged_s * SECOND)
                begins = np.arange(first, epoch.end - SECOND + 1, SECOND)
                shares = self.shares(begins, begins + SECOND)[:, self._active(epoch)]
                found.append(float(np.mean(np.std(shares, axis=0))))
        return float(np.mean(found)) if found else None

    def responses(self) -> Iterator[tuple[float, float | None]]:
        """Yields for each change of the path how the flows that are active then respond.

        The first number is the time from the change until all flows together have 90% of the
        capacity, in s; the time to the next change where they never have. The second one is the
        standard deviation of their share of the capacity from then on; None where there is none.
        The beginning of an outage is left out: there is nothing to respond with.
        """
        begin, end = self.known
        inside = [time for time in self.changes if begin <= time < end]
        for time, until in pairwise([*inside, end]):
            active = any(member.begin <= time < member.end for member in self.members)
            begins = np.arange(time, until - RESPONSE_SPAN + 1, STEP)
            if not active or not len(begins) or not self._capacity_at(time):
                continue
            used = self._used(begins)
            reached = np.flatnonzero(used >= RESPONDED_SHARE)
            if not len(reached):
                yield (until - time) * 1e-9, None
                continue
            later = begins[reached[0] :: RESPONSE_SPAN // STEP]
            yield float(begins[reached[0]] - time) * 1e-9, float(np.std(self._used(later)))

    def _capacity_at(self, time: int) -> float:
        """Returns the bytes that the bottleneck can carry in the tenth of a second from then on."""
        now, then = np.interp([time, time + STEP], self.times, self.capacity)
        return float(then - now)

    def _used(self, begins: np.ndarray) -> np.ndarray:
        """Returns the share of the capacity that all flows have from each moment on."""
        ends = begins + RESPONSE_SPAN
        carried = self.carried.sum(axis=1)
        sent, could = (
            np.interp(ends, self.times, total) - np.interp(begins, self.times, total)
            for total in (carried, self.capacity)
        )
        return np.divide(sent, could, out=np.ones_like(sent), where=could > 0)

    def response_s(self) -> float | None:
        """Returns the mean response time, in s; None without a change."""
        times = [time_s for time_s, _ in self.responses()]
        return float(np.mean(times)) if times else None

    def response_deviation(self) -> float | None:
        """Returns the mean deviation after responses; None without a response."""
        found = [deviation for _, deviation in self.responses() if deviation is not None]
        return float(np.mean(found)) if found else None
