"""`quicgym serve`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

EXAMPLES = (
    "quicgym serve",
    "quicgym serve quicgym/Tuning-v1 --env-arg scenario=ebcc-flows-3 --episodes 10",
    "quicgym serve CartPole-v1 --dtype float --port 5556 --seed 1",
)


class ServeDtype(StrEnum):
    """How the numbers of a Box go to an ns3-gym agent."""

    float = "float"
    uint = "uint"


def serve(
    env_id: Annotated[
        str, typer.Argument(metavar="ENV_ID", help="Any registered Gymnasium environment.")
    ] = "quicgym/Tuning-v1",
    port: Annotated[
        int, typer.Option(min=1, max=65535, metavar="N", help="The agent's TCP port.")
    ] = 5555,
    host: Annotated[str, typer.Option(help="The agent's address.")] = "127.0.0.1",
    dtype: Annotated[
        ServeDtype,
        typer.Option(
            help="uint: every Box in fixed point, which ns3-gym's own client reads; "
            "float: as it is, for Ns3GymEnv. See docs/how-to/ns3gym.md."
        ),
    ] = ServeDtype.uint,
    episodes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Default: until the agent stays away."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="S", help="Of the first episode.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option(min=0.001, metavar="T", help="How long the agent may take, in s.")
    ] = 600.0,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="An argument of the environment; may be given again."
        ),
    ] = None,
) -> None:
    """Serve an environment to an ns3-gym agent, over ns-3 if it is one of quicgym's.

    It connects to the agent, which may start before or after, and again for each episode.
    """
    from quicgym.envs.ns3gym.command import run_serve

    status = run_serve(
        env_id,
        env_arg or (),
        port=port,
        host=host,
        dtype=dtype.value,
        episodes=episodes,
        seed=seed,
        timeout_s=timeout_s,
    )
    raise typer.Exit(status)
