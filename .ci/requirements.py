"""Prints what pip must install before `quicgym` itself, one requirement a line.

Usage: requirements.py EXTRA,EXTRA,...

That is what the distributions need, without them: they are built from this checkout.
"""

import platform
import re
import sys
import tomllib

OWN = re.compile(r"(quicgym(?:-\w+)?)(?:\[([\w,-]+)\])?")

NS3_PLATFORM = ("linux", "x86_64")  # the only one with wheels of ns3, and our only marker


def requirements(extras: list[str]) -> set[str]:
    """Returns the requirements of the core, of the extras, and of the builds."""
    projects = {}
    found = {"cmake>=3.20", "ninja>=1.11"}
    for path in ("pyproject.toml", "sim/ns3/pyproject.toml", "real/aioquic/pyproject.toml"):
        with open(path, "rb") as file:
            content = tomllib.load(file)
        projects[content["project"]["name"]] = content
    remaining = [("quicgym", extra) for extra in ["", *extras]]
    while remaining:
        name, extra = remaining.pop()
        project = projects[name]["project"]
        listed = project["optional-dependencies"][extra] if extra else project["dependencies"]
        if not extra:
            listed = listed + projects[name]["build-system"]["requires"]
        for requirement in listed:
            if ";" in requirement and (sys.platform, platform.machine()) != NS3_PLATFORM:
                continue
            own = OWN.match(requirement)
            if own is None:
                found.add(requirement)
            elif own[2]:
                remaining += [(own[1], inner) for inner in own[2].split(",")]
            elif own[1] not in (name, "quicgym"):
                remaining.append((own[1], ""))
    return found


if __name__ == "__main__":
    print(*sorted(requirements(sys.argv[1].split(","))), sep="\n")
