"""Policies in ONNX files, which onnxruntime runs; no code in the file is run.

The first input takes observations, float32, shape (rows, features). The first output is an action
for each row, as of a `torch.nn.Module`: (rows, coordinates), clipped to [-1, 1]; of choices
(rows, choices), of which the largest is taken, or (rows,). Further inputs and outputs, as many of
one as of the other, are the state of a recurrent network: each output is the same input of the next
decision. States have the rows first, and begin with zeros.

The entry `quicgym.decisions` of the file's metadata has the arguments of `quicgym.Decisions` as
JSON. Without it their default holds.
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from quicgym.agents.policies.from_file import FilePolicy
from quicgym.envs.actions import action_space
from quicgym.envs.decisions import Decisions
from quicgym.errors import MissingExtraError, PolicyError
from quicgym.input_files import MOST_WEIGHTS_BYTES, read_input

METADATA = "quicgym.decisions"
MOST_SECONDS = 10.0
"""A decision that takes longer is ended at the latest after twice this time."""


class OnnxFile:
    """A network in an ONNX file, with the state that it keeps.

    Attributes:
        paths: The file alone.
        sha256: SHA-256 of the file.
        has_decisions: Whether the file names its environment.
        decisions: The environment in which the network acts.
    """

    def __init__(self, path: Path) -> None:
        """Reads the file.

        Raises:
            PolicyError: The file is not what it should be.
            MissingExtraError: onnxruntime is not installed.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError(f"{path}: needs onnxruntime", "onnx") from error
        try:
            content = read_input(path, MOST_WEIGHTS_BYTES)
        except OSError as error:
            raise PolicyError(f"{path}: {error.strerror}; give the path of an ONNX file") from None
        self.sha256 = sha256(content).hexdigest()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # of a hierarchy that onnxruntime does not publish
            raise PolicyError(f"{path}: {self.describe(error)}; export the network again") from None
        self._inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if len(self._inputs) != len(outputs):
            raise PolicyError(
                f"{path}: has {len(self._inputs)} inputs and {len(outputs)} outputs; give "
                "observations and states, and actions and the states in the same order"
            )
        for state in self._inputs[1:]:
            if not all(isinstance(size, int) for size in state.shape[1:]):
                raise PolicyError(
                    f"{path}: the state {state.name} has the shape {state.shape}; name all sizes "
                    "but the number of rows, which comes first"
                )
        described = self._session.get_modelmeta().custom_metadata_map.get(METADATA)
        self.has_decisions = described is not None
        try:
            self.decisions = Decisions(**json.loads(described or "{}"))
        except (TypeError, ValueError, RecursionError) as error:
            raise PolicyError(f"{path}: metadata {METADATA}: {error}") from None
        space = action_space(self.decisions.interface.action_space)
        self._has_choices = isinstance(space, Discrete)
        self._states: list[np.ndarray] | None = None
        self._run_options: Any = None
        self._watch: Thread | None = None

    def reset(self) -> None:
        """Forgets all flows."""
        self._states = None

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Returns an action for each row."""
        if self._states is None:
            rows = len(observations)
            self._states = [
                np.zeros((rows, *state.shape[1:]), np.float32) for state in self._inputs[1:]
            ]
        values = [observations, *self._states]
        names = [entry.name for entry in self._inputs]
        output, *self._states = self._run(dict(zip(names, values, strict=True)))
        if np.isnan(output).any():
            raise PolicyError("the network returned NaN")
        if not self._has_choices:
            return np.asarray(np.clip(output, -1.0, 1.0))
        return np.asarray(output.argmax(1) if output.ndim == 2 else output)

    def _run(self, values: dict[str, np.ndarray]) -> Any:
        """Runs the network, which may have an endless loop."""
        import onnxruntime

        self._run_options = options = onnxruntime.RunOptions()
        if self._watch is None or not self._watch.is_alive():
            self._watch = Thread(target=self._end_late_runs, daemon=True)
            self._watch.start()
        try:
            return self._session.run(None, values, options)
        except Exception as error:
            if options.terminate:
                raise PolicyError(
                    f"a decision took longer than {MOST_SECONDS:g} s, so it was ended; export a "
                    "network without such a loop"
                ) from None
            raise PolicyError(self.describe(error)) from error
        finally:
            self._run_options = None

    def _end_late_runs(self) -> None:
        """Ends the run that lasts too long; returns once nothing runs."""
        while (run := self._run_options) is not None:
            time.sleep(MOST_SECONDS)
            if run is self._run_options:
                run.terminate = True

    def describe(self, problem: BaseException) -> str:
        """Returns what an exception says, in one line."""
        return " ".join(str(problem).split())


def load_onnx(choice: str) -> FilePolicy:
    """Loads the policy of an ONNX file.

    Args:
        choice: The file's path.

    Raises:
        PolicyError: The file is not what it should be.
        MissingExtraError: onnxruntime is not installed.
    """
    file = OnnxFile(Path(choice))
    nothing: dict[str, Any] = {}
    return FilePolicy(
        choice, file.decisions, None, file, file, lambda: nothing, file.has_decisions, file.reset
    )
