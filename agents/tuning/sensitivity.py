"""How much each swept parameter matters, alone.

For each parameter: the means of the objective given its value, or given the bin of its value; their
range; the share of the objective's variance that they explain (the first-order Sobol index); and
Spearman's rank correlation with the objective. In a grid the share is exact; in random draws
noise alone would explain (bins - 1) / (trials - 1), which is taken off. Optuna draws near the best
it knows, so its shares are of the region where it looked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from quicgym.agents.tuning.parameter_config import ParameterSweep, Value, label
from quicgym.agents.tuning.parameter_trial import ParameterTrial

MOST_BINS = 8


def sensitivity(config: ParameterSweep, trials: Sequence[ParameterTrial]) -> pd.DataFrame:
    """Returns a row per parameter: parameter, marginal_range, variance_share, rank_correlation.

    None where it is not defined: the share where the objective does not vary, the correlation of
    lists.
    """
    objectives = np.array([trial.objective for trial in trials])
    rows = []
    for name, swept in config.parameters.items():
        values = [trial.setting[name] for trial in trials]
        if swept.values is not None or config.search == "grid":
            groups = np.unique([label(value) for value in values], return_inverse=True)[1]
        else:
            groups = _bins(np.array(values, dtype=float))
        means = pd.Series(objectives).groupby(groups).transform("mean").to_numpy()
        rows.append(
            {
                "parameter": name,
                "marginal_range": float(np.ptp(means)) if len(means) else math.nan,
                "variance_share": explained_share(
                    objectives, means, len(np.unique(groups)), exact=config.search == "grid"
                ),
                "rank_correlation": _correlation(values, objectives),
            }
        )
    return pd.DataFrame(rows)


def _bins(values: np.ndarray) -> np.ndarray:
    """Equally filled ones, of as many values as there are bins at least."""
    count = max(1, min(MOST_BINS, math.isqrt(len(values))))
    ranks = stats.rankdata(values, method="ordinal") - 1
    return (ranks * count / len(values)).astype(int)


def explained_share(
    objectives: np.ndarray, means: np.ndarray, groups: int, *, exact: bool
) -> float | None:
    """Returns the share of the objectives' variance that the means of groups explain, 0 to 1.

    `means` has the mean objective of each trial's group. Unless all combinations were tried
    (`exact`), the share that noise alone would explain is subtracted. None where the objectives do
    not vary, or there are as many groups as trials.
    """
    total = float(np.sum((objectives - objectives.mean()) ** 2)) if len(objectives) else 0.0
    if total == 0:
        return None
    between = float(np.sum((means - objectives.mean()) ** 2))
    if exact:
        return between / total
    if len(objectives) <= groups:
        return None
    noise = (total - between) / (len(objectives) - groups)
    return max(0.0, (between - (groups - 1) * noise) / total)


def _correlation(values: Sequence[Value], objectives: np.ndarray) -> float | None:
    if any(isinstance(value, tuple) for value in values):
        return None
    numbers = np.array(values, dtype=float)
    if len(set(numbers)) < 2 or len(set(objectives)) < 2:
        return None
    return float(stats.spearmanr(numbers, objectives).statistic)
