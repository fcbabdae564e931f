"""Networks in ONNX files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from quicgym import Decisions
from quicgym.agents.policies.onnx import METADATA


def write_onnx(
    path: Path,
    *,
    recurrent: bool = False,
    endless: bool = False,
    seed: int = 0,
    **decisions: object,
) -> Path:
    """Writes a linear layer for Window-v1 with drawn weights; skips the test without onnx.

    Args:
        path: Path of the file.
        recurrent: Whether the network has a state, the mean of its outputs so far.
        endless: Whether the network has a loop without an end.
        seed: Seed of the weights.
        decisions: Arguments of Decisions beside the environment.
    """
    onnx = pytest.importorskip("onnx", reason="needs the extra `dev`")
    pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
    from onnx import helper, numpy_helper

    known = {"environment": "window", "history_length": 8, **decisions}
    features = Decisions(**known).observation_space.shape[0]  # type: ignore[arg-type]
    choices = 7
    weights = np.random.default_rng(seed).normal(size=(features, choices)).astype(np.float32)

    def tensor(name: str, size: int) -> object:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", size])

    nodes = [helper.make_node("MatMul", ["observations", "weights"], ["now"])]
    inputs, outputs = [tensor("observations", features)], [tensor("scores", choices)]
    if recurrent:
        nodes.append(helper.make_node("Add", ["now", "state"], ["next"]))
        nodes.append(helper.make_node("Identity", ["next"], ["scores"]))
        inputs.append(tensor("state", choices))
        outputs.append(tensor("next", choices))
    elif endless:
        turn = helper.make_tensor_value_info("turn", onnx.TensorProto.INT64, [])
        goes_on, still = (
            helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, [])
            for name in ("goes_on", "still")
        )
        body = helper.make_graph(
            [
                helper.make_node("Identity", ["goes_on"], ["still"]),
                helper.make_node("Identity", ["before"], ["after"]),
            ],
            "body",
            [turn, goes_on, tensor("before", choices)],
            [still, tensor("after", choices)],
        )
        nodes.append(helper.make_node("Loop", ["", "true", "now"], ["scores"], body=body))
    else:
        nodes.append(helper.make_node("Identity", ["now"], ["scores"]))
    initial = [numpy_helper.from_array(weights, "weights")]
    if endless:
        initial.append(numpy_helper.from_array(np.array(True), "true"))
    graph = helper.make_graph(nodes, "policy", inputs, outputs, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    helper.set_model_props(model, {METADATA: json.dumps(known)})
    onnx.save(model, str(path))
    return path
