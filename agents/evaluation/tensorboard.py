"""Writes for TensorBoard, with the same tags for agents and for hand-coded controllers.

| tag | x | value |
|---|---|---|
| `evaluation/reward` | environment steps | interquartile mean over the runs of the suite |
| `evaluation/METRIC` | environment steps | mean over the suite's scenarios |
| `scenario/SCENARIO/METRIC` | environment steps | mean over the seeds |
| `scenario-episode/SCENARIO/COLUMN` | simulated milliseconds | at that decision |
| `picture/SCENARIO` | | the same episode as a picture |

TensorBoard sorts groups of tags by name: those of single scenarios come after those of the suite.
METRIC is one of `quicgym.envs.simulation.metrics.EVALUATED`, or of the scenarios' traffic; COLUMN
is `reward` or a column of `info`. Names say the units. Values that are not finite are left out.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from quicgym.agents.evaluation.statistics import interquartile_mean
from quicgym.envs.simulation.metrics import EVALUATED, evaluated_names
from quicgym.errors import MissingExtraError

try:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.plugins.custom_scalar import layout_pb2
    from tensorboard.plugins.custom_scalar import metadata as custom_scalars
    from tensorboard.plugins.hparams import summary_v2 as hparams
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError as error:
    raise MissingExtraError("event files need TensorBoard", "reports") from error


SETTING_TYPES = (bool, float, int, str)
_EVALUATION_CHARTS = {
    "reward": "Reward",
    "throughput_share": "Throughput share",
    "loss_rate": "Loss rate",
    "jain": "Jain's index",
    "goodput_mbps": "Goodput (Mbps)",
    "mean_rtt_ms": "RTT (ms)",
    "mean_queue_delay_ms": "Queueing delay (ms)",
}
_EPISODE_CHARTS = {
    "reward": "Reward",
    "throughput_mbps": "Throughput of all flows (Mbps)",
    "loss_rate": "Loss rate",
    "jain": "Jain's index",
    "rtt_ms": "RTT (ms)",
    "queue_packets": "Queue (packets)",
    "flow_throughput_mbps": "Throughput of the first flow (Mbps)",
    "flow_window_bytes": "Congestion window of the first flow (bytes)",
}


def run_folder(name: str) -> str:
    """Returns a run's folder, whose name TensorBoard shows: it keeps the : and = of parameters."""
    return re.sub(r"[^\w.,+@=:-]", "-", name).lstrip(".") or "-"


class EvaluationWriter:
    """Writes one run's event file.

    TensorBoard's own classes write in a thread, where a full disk gives a traceback but the caller
    continues. Any method of this one may raise OSError. At `purge_step`, where an interrupted run
    continues, TensorBoard forgets what the folder's earlier event files have from that step on.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        """Begins a new event file."""
        folder.mkdir(parents=True, exist_ok=True)
        self._name = folder.name
        # TensorBoard reads a folder's files in the order of their names.
        seconds, rest = divmod(time.time_ns(), 10**9)
        path = folder / f"events.out.tfevents.{seconds:010d}.{rest:09d}.{os.getpid()}"
        self._file = RecordWriter(path.open("xb"))
        self._write(Event(file_version="brain.Event:2"))
        if purge_step is not None:
            self._write(Event(session_log=SessionLog(status=SessionLog.START)), purge_step)
        self._file.flush()

    def scalars(self, step: int, values: Mapping[str, float | None]) -> None:
        """Writes a value for each tag; what is None or not finite is left out."""
        summary = Summary(
            value=[
                Summary.Value(tag=tag, simple_value=value)
                for tag, value in values.items()
                if value is not None and math.isfinite(value)
            ]
        )
        if summary.value:
            self._write(Event(summary=summary), step)

    def evaluation(self, step: int, records: pd.DataFrame | Iterable[Mapping[str, Any]]) -> None:
        """Writes the metrics of a suite, and of each of its scenarios, at a step of training.

        `records` have the keys "scenario" and EVALUATED, one for each scenario and seed.
        """
        self.scalars(step, evaluation_values(records))
        self._file.flush()

    def episode(self, scenario: str, series: Mapping[str, np.ndarray] | pd.DataFrame) -> None:
        """Writes an episode's `series`, arrays by column, over its "time_s" in ms."""
        times = np.round(np.asarray(series["time_s"], dtype=float) * 1e3).astype(int).tolist()
        curves = {name: values for name, values in series.items() if name != "time_s"}
        tags = [f"scenario-episode/{scenario}/{name}" for name in curves]
        columns = [np.asarray(values, dtype=float).tolist() for values in curves.values()]
        for time_ms, values in zip(times, zip(*columns, strict=True), strict=True):
            self.scalars(time_ms, dict(zip(tags, values, strict=True)))
        self._file.flush()

    def picture(self, scenario: str, series: pd.DataFrame) -> None:
        """Writes an episode's `series`, arrays by column, as environments render it."""
        from matplotlib.image import imsave

        from quicgym.envs.render import EpisodePlot

        plot = EpisodePlot("rgb_array")
        rows: Any = series.to_dict("records")  # whose keys pandas calls any hashable
        plot.go_on(rows, f"{self._name}, {scenario}", series.attrs.get("hops", 1))
        pixels = plot.draw()
        assert pixels is not None, "the mode is rgb_array"
        content = io.BytesIO()
        imsave(content, pixels, format="png")
        image = Summary.Image(
            height=pixels.shape[0],
            width=pixels.shape[1],
            colorspace=3,
            encoded_image_string=content.getvalue(),
        )
        value = Summary.Value(tag=f"picture/{scenario}", image=image)
        self._write(Event(summary=Summary(value=[value])), 0)
        self._file.flush()

    def layout(self, scenarios: Iterable[str], episodes: Iterable[str] = ()) -> None:
        """Writes the page "Custom Scalars": a chart for each metric, with all runs in it.

        TensorBoard merges the layouts of all runs, so each may have its own. `episodes` are the
        scenarios that have the time series of an episode.
        """
        categories = [_category("All scenarios", "evaluation", _EVALUATION_CHARTS, closed=False)]
        # A page with an open category for each scenario would load every value there is.
        for name in scenarios:
            title, prefix = f"Scenario {name}", f"scenario/{name}"
            categories.append(_category(title, prefix, _EVALUATION_CHARTS, closed=True))
        for name in episodes:
            title, prefix = f"Episode of {name}, over milliseconds", f"scenario-episode/{name}"
            categories.append(_category(title, prefix, _EPISODE_CHARTS, closed=True))
        value = Summary.Value(
            tag=custom_scalars.CONFIG_SUMMARY_TAG,
            metadata=custom_scalars.create_summary_metadata(),
            tensor=TensorProto(
                dtype=DT_STRING,
                string_val=[layout_pb2.Layout(category=categories).SerializeToString()],
            ),
        )
        self._write(Event(summary=Summary(value=[value])))
        self._file.flush()

    def hparams(
        self,
        settings: Mapping[str, Any],
        everyones: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Writes the run's row of the page "HParams"; its metrics are the `evaluation` tags.

        TensorBoard takes the columns from any one run, so each has those of `everyones` settings,
        of all runs that are shown together.
        """
        columns: dict[str, list[Any]] = {}
        for given in everyones or [settings]:
            for name, value in given.items():
                columns.setdefault(name, []).append(value)
        metrics = [hparams.Metric(f"evaluation/{metric}") for metric in EVALUATED]
        domains = [hparams.HParam(name, _domain(values)) for name, values in columns.items()]
        own = {
            name: value if _type_of(columns[name]) is not str else str(value)
            for name, value in settings.items()
        }
        self._write(Event(summary=hparams.hparams_config_pb(domains, metrics)))
        self._write(Event(summary=hparams.hparams_pb(own, trial_id=self._name)))
        self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        self._file.close()

    def _write(self, event: Event, step: int | None = None) -> None:
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self._file.write(event.SerializeToString())


def evaluation_values(records: pd.DataFrame | Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Returns tag -> value of an evaluation's records; NaN where nothing was measured."""
    frame = records if isinstance(records, pd.DataFrame) else pd.DataFrame(list(records))
    names = evaluated_names(frame)
    metrics = frame[names].astype(float)
    scenarios = metrics.groupby(frame["scenario"], sort=False).mean()
    suite = scenarios.mean()
    suite["reward"] = interquartile_mean(metrics["reward"].dropna().to_numpy())
    values = {f"evaluation/{metric}": float(suite[metric]) for metric in names}
    for name, row in scenarios.iterrows():
        values |= {f"scenario/{name}/{metric}": float(row[metric]) for metric in names}
    return values


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns a nested configuration as settings for `hparams`: {"a": {"b": 1}} as {"a.b": 1}.

    Lists and None become texts, as JSON has them.
    """
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            known = isinstance(value, SETTING_TYPES)
            flat[f"{prefix}{key}"] = value if known else json.dumps(value, default=str)
    return flat


def _category(title: str, prefix: str, charts: Mapping[str, str], *, closed: bool) -> Any:
    # The page takes tags as regular expressions, and would show `jain_of_intervals` with `jain`.
    return layout_pb2.Category(
        title=title,
        closed=closed,
        chart=[
            layout_pb2.Chart(
                title=name,
                multiline=layout_pb2.MultilineChartContent(
                    tag=[f"^{re.escape(f'{prefix}/{column}')}$"]
                ),
            )
            for column, name in charts.items()
        ],
    )


def _type_of(values: Sequence[Any]) -> type:
    """Returns what a column holds; where runs disagree, all of them are shown as texts."""
    if all(isinstance(value, bool) for value in values):
        return bool
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return float
    return str


def _domain(values: Sequence[Any]) -> hparams.Domain:
    column = _type_of(values)
    if column is float:
        return hparams.RealInterval(float(min(values)), float(max(values)))
    return hparams.Discrete(sorted({column(value) for value in values}), column)
