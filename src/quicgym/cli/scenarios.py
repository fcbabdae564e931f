"""`quicgym scenarios`."""

from __future__ import annotations

from quicgym.console import wide_console
from quicgym.envs import load_scenario, scenario_names

EXAMPLES = ("quicgym scenarios", "quicgym scenarios | grep wireless")


def scenarios() -> None:
    """List the scenarios that come with quicgym, with their flows and sources."""
    from rich.table import Table

    output = Table(box=None, pad_edge=False)
    output.add_column("scenario", no_wrap=True)
    output.add_column("flows", justify="right")
    output.add_column("what it is")
    output.add_column("source")
    for name in scenario_names():
        scenario = load_scenario(name)
        flows = len(list(scenario.single_flows()))
        output.add_row(name, str(flows), scenario.description, scenario.source)
    wide_console().print(output)
    print(
        "\nTo change one, write a file with `base: NAME`, a name of its own and the fields that "
        "differ, and pass the file's path."
    )
