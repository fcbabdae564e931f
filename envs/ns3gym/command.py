"""The command `quicgym serve`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import yaml

from quicgym.envs.ns3gym.errors import Ns3GymError
from quicgym.envs.ns3gym.server import serve
from quicgym.envs.simulation.simulation import Ns3MissingError
from quicgym.yaml_loader import parse_yaml


def run_serve(
    env_id: str,
    env_arguments: Sequence[str],
    *,
    port: int,
    host: str,
    dtype: Literal["float", "uint"],
    episodes: int | None,
    seed: int | None,
    timeout_s: float,
) -> int:
    """Makes an environment and serves it to an agent; the arguments are those of `quicgym serve`.

    Environments of quicgym run on ns-3 unless told otherwise. Returns the exit status: 0, 1 if the
    agent failed, 2 for bad input, 130 after Ctrl-C.
    """
    try:
        arguments = _parse(env_arguments)
        if env_id.startswith("quicgym/"):
            arguments.setdefault("engine", "ns3")
        env = gymnasium.make(env_id, **arguments)
    except (gymnasium.error.Error, ImportError, Ns3MissingError, ValueError, TypeError) as error:
        print(f"quicgym: environment {env_id!r}: {error}", file=sys.stderr)
        return 2
    try:
        print(f"serving {env_id} to an agent at tcp://{host}:{port}; Ctrl-C ends it", flush=True)
        served = serve(env, port, dtype, episodes, host, timeout_s=timeout_s, seed=seed)
    except Ns3GymError as error:
        print(f"quicgym: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped")
        return 130
    finally:
        env.close()
    print(f"served {served} episode{'' if served == 1 else 's'}")
    return 0


def _parse(env_arguments: Sequence[str]) -> dict[str, Any]:
    arguments = {}
    for text in env_arguments:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f"--env-arg {text!r}: is not key=value")
        try:
            arguments[key] = parse_yaml(value)
        except yaml.YAMLError:
            raise ValueError(f"--env-arg {text!r}: {value!r} is not valid YAML") from None
    return arguments
