"""Statistics of policies' scores over scenarios and seeds, with their uncertainty.

Scores are an array of policies x scenarios x seeds. After Agarwal, Schwarzer, Castro, Courville and
Bellemare, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 2021):

- **Interquartile mean (IQM)**: the mean of the middle half of all scores of a policy (section 4.3).
- **Intervals**: 95%, by the percentiles of a stratified bootstrap (section 4.1): each resample
  draws as many seeds as there are, with replacement, within each scenario. Those of means need no
  resamples, and are Student's t.
- **Performance profile**: the share of a policy's scores above tau, for each tau (section 4.2).
- **Probability of improvement**: the share of scenarios and seeds in which X scores above Y, a tie
  counts one half. The paper compares every pair of seeds; here seed k of X meets seed k of Y.

Seed k is the same network for every policy, so policies are compared seed by seed, and a resample
draws the same seeds for all of them. So a difference has its own interval, narrower than those
of its two sides suggest. All intervals
are about seeds: what other seeds on the *same* scenarios would give. A scenario that draws nothing
adds no width. What other scenarios would give is another question, which a suite chosen by hand
cannot answer.

numpy and SciPy have all that this needs, so the paper's library, rliable, is no dependency.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from quicgym.envs.simulation.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 2000
CONFIDENCE_PERCENT = 95.0
_CHUNK = 50  # resamples at a time: memory is 50 times the scores of a policy


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval.

    Attributes:
        value: Number computed from all scores.
        low: Lower end of the interval; None with a single seed, which tells nothing of others.
        high: Upper end of the interval; None with a single seed.
    """

    value: float
    low: float | None
    high: float | None


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """Returns the mean of the middle half of the scores along the last axis.

    A quarter of them, rounded down to whole scores, is left out at either end.
    """
    scores = np.asarray(scores, float)
    count = scores.shape[-1]
    left_out = count // 4
    # scipy.stats has this as trim_mean, and takes longer to import than most evaluations need.
    ordered = np.partition(scores, (left_out, count - left_out - 1), axis=-1)
    return np.asarray(ordered[..., left_out : count - left_out].mean(axis=-1))


def performance_profiles(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Returns the share of each policy's scores above each threshold: policies x thresholds."""
    flat = np.sort(_checked(scores).reshape(len(scores), -1), axis=1)
    below = np.array([np.searchsorted(row, thresholds, side="right") for row in flat])
    return 1 - below / flat.shape[1]


class Bootstrap:
    """The same resamples of the seeds, for everything that is asked of some scores.

    `scores` are by policy, scenario and seed; ValueError where they have another shape, or are not
    all finite. The same scores and `seed` give the same intervals.
    """

    def __init__(self, scores: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> None:
        """Computes each policy's interquartile mean in each resample."""
        self._scores = _checked(scores)
        self._resamples = resamples
        self._seed = seed
        self._values = interquartile_mean(self._scores.reshape(len(scores), -1))
        scenarios = np.arange(self._scores.shape[1])[:, None]

        def of_all(drawn: np.ndarray) -> np.ndarray:
            return np.stack(
                [
                    interquartile_mean(policy[scenarios, drawn].reshape(len(drawn), -1))
                    for policy in self._scores
                ],
                axis=1,
            )

        self._resampled = self._each_chunk(of_all)

    def interquartile_mean(self, policy: int) -> Estimate:
        """Returns a policy's interquartile mean."""
        return self._estimate(self._values[policy], self._resampled[:, policy])

    def difference(self, first: int, second: int) -> Estimate:
        """Returns the first policy's interquartile mean minus the second's."""
        return self._estimate(
            self._values[first] - self._values[second],
            self._resampled[:, first] - self._resampled[:, second],
        )

    def probability_of_improvement(self, first: int, second: int) -> Estimate:
        """Returns how likely the first scores above the second in the same scenario and seed."""
        ahead = np.sign(self._scores[first] - self._scores[second])
        wins, scenarios = (1 + ahead) / 2, np.arange(ahead.shape[0])[:, None]
        resampled = self._each_chunk(lambda drawn: wins[scenarios, drawn].mean(axis=(1, 2)))
        return self._estimate(float(wins.mean()), resampled)

    def _each_chunk(self, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return np.concatenate([statistic(drawn) for drawn in self.draws()])

    def draws(self) -> Iterator[np.ndarray]:
        """Yields the drawn seeds: resamples x scenarios x seeds, the same ones at each call."""
        _, scenarios, seeds = self._scores.shape
        rng = np.random.default_rng(self._seed)
        for begin in range(0, self._resamples, _CHUNK):
            rows = min(_CHUNK, self._resamples - begin)
            yield rng.integers(seeds, size=(rows, scenarios, seeds))

    def _estimate(self, value: float, resampled: np.ndarray) -> Estimate:
        if self._scores.shape[2] < 2:
            return Estimate(float(value), None, None)
        return percentiles(value, resampled)


def mean_interval(
    values: Sequence[float], bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """Returns the mean of a number over seeds, with its 95% interval by Student's t.

    Args:
        values: The number with each seed.
        bounds: The least and the largest value that the number can have. The interval ends there,
            because the mean cannot lie beyond.
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, None, None)
    reach = float(_reach(np.std(values, ddof=1), len(values)))
    return Estimate(mean, max(bounds[0], mean - reach), min(bounds[1], mean + reach))


def seed_intervals(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Returns the mean of every metric over the seeds, with its interval as `mean_interval` has it.

    Args:
        runs: A row for each run, with a column for each metric.
        by: Columns that name what is run with each seed, such as policy and scenario.

    Returns:
        A row for each of these and each metric, with the columns "metric", "seeds" (those that have
        a value), "mean", "low" and "high".
    """
    metrics = [name for name in METRICS if name in runs]
    grouped = runs.groupby(list(by), sort=False, dropna=False)[metrics]
    count, mean, deviation = grouped.count(), grouped.mean().to_numpy(), grouped.std().to_numpy()
    # Exactly 0 where all are equal, which rounding may miss.
    deviation = np.where((grouped.min() == grouped.max()) & (count > 1), 0.0, deviation)
    reach = _reach(deviation, count.to_numpy())
    least, most = np.transpose([METRICS[name].bounds for name in metrics])
    columns = {
        "seeds": count.to_numpy(),
        "mean": mean,
        "low": np.maximum(mean - reach, least),
        "high": np.minimum(mean + reach, most),
    }
    rows = count.index.repeat(len(metrics)).to_frame(index=False)
    rows["metric"] = metrics * len(count)
    return rows.assign(**{name: values.ravel() for name, values in columns.items()})


def _reach(deviation: Any, count: Any) -> Any:
    """Returns how far an interval by Student's t reaches from the mean of `count` values."""
    return _quantile(np.maximum(count - 1, 1)) * deviation / np.sqrt(np.maximum(count, 1))


def _quantile(degrees: Any) -> Any:
    """Returns how many standard errors an interval reaches from its middle."""
    return stdtrit(degrees, 0.5 + CONFIDENCE_PERCENT / 200)


def mean_difference(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Returns the mean of the first scores minus the second, paired, with its 95% interval.

    Scores are by scenario and seed; ValueError where they have another shape, or are not all
    finite. The interval is Student's t for a mean over strata, the scenarios, whose seeds vary
    independently (Welch 1947; Satterthwaite 1946, for the degrees of freedom): with ten seeds the
    percentiles of a bootstrap are too narrow. A distribution is one scenario, whose paths vary.
    """
    differences = _checked(np.stack([first, second]))
    differences = differences[0] - differences[1]
    mean = float(differences.mean())
    scenarios, seeds = differences.shape
    if seeds < 2:
        return Estimate(mean, None, None)
    variances = differences.var(axis=1, ddof=1) / seeds  # of each scenario's mean
    total = variances.sum()
    degrees = (seeds - 1) * total**2 / (variances**2).sum() if total > 0 else 1.0
    reach = float(_quantile(degrees) * np.sqrt(total)) / scenarios
    return Estimate(mean, mean - reach, mean + reach)


def resampled_networks(scores: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """Returns the mean of the scores (networks x seeds) in each resample of the networks.

    This says how much the mean would differ on other networks of the same kind, where
    `mean_difference` says it for other seeds on the same networks.
    """
    means = scores.mean(axis=1)
    draws = np.random.default_rng(seed).integers(len(means), size=(resamples, len(means)))
    return np.asarray(means[draws].mean(axis=1))


def percentiles(value: float, resampled: np.ndarray) -> Estimate:
    """Returns a value with its 95% interval, by the percentiles of its resamples."""
    tail = (100 - CONFIDENCE_PERCENT) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return Estimate(float(value), float(low), float(high))


def _checked(scores: np.ndarray) -> np.ndarray:
    array = np.asarray(scores, dtype=float)
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"scores of shape {array.shape}: give policies x scenarios x seeds")
    if not np.isfinite(array).all():
        raise ValueError("scores that are not finite: leave out policies with missing runs")
    return array
