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
        str,
        typer.Argument(
            metavar="ENV_ID", help="The environment: any that is registered with Gymnasium."
        ),
    ] = "quicgym/Tuning-v1",
    port: Annotated[
        int,
        typer.Option(min=1, max=65535, metavar="N", help="TCP port on which the agent listens."),
    ] = 5555,
    host: Annotated[str, typer.Option(help="Address of the agent.")] = "127.0.0.1",
    dtype: Annotated[
        ServeDtype,
        typer.Option(
            help="Send every Box in fixed point (uint), which ns3-gym's own client reads, or as it "
            "is (float), for Ns3GymEnv. See docs/how-to/ns3gym.md."
        ),
    ] = ServeDtype.uint,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="End after N episodes. Default: when the agent no longer connects.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="S", help="Random seed of the first episode.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option(min=0.001, metavar="T", help="Wait T seconds at most for the agent.")
    ] = 600.0,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Pass this argument to the environment. You may repeat it."
        ),
    ] = None,
) -> None:
    """Serve an environment to an ns3-gym agent; quicgym's own environments run over ns-3.

    The command connects to the agent anew for each episode. The agent may start before it or after
    it.
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
