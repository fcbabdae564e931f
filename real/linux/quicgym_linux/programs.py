"""The BPF programs: which object with which constants is which controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quicgym.errors import UserError
from quicgym.yaml_files import closest

OBJECTS = Path(__file__).parent / "bpf"
Constants = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class KernelProgram:
    """A controller that is a BPF program by itself.

    Attributes:
        object: Name of the compiled program.
        description: Kind of controller, for lists.
        constants: Values for the constants of the program, which bpf/ describes.
    """

    object: str
    description: str
    constants: Constants = field(default_factory=dict)


EXTENDED_CYCLE: Constants = {
    "gain_cycle": [1250, 1000, 1000, 750, 1000, 1000],
    "phases": [6],
    "entry_gain_minimum": [0],
    "bandwidth_window_rounds": [8],
}
"""The parameters of bbr_extended_parameters in controllers/bbr_parameters.hpp."""

PROGRAMS = {
    "newreno": KernelProgram(
        "delayed_update-reno", "the kernel's Reno with pacing", {"delays_updates": [0]}
    ),
    "cubic": KernelProgram(
        "delayed_update-cubic", "the kernel's CUBIC with pacing", {"delays_updates": [0]}
    ),
    "newreno+": KernelProgram(
        "delayed_update-reno", "the delayed window update around the kernel's Reno"
    ),
    "cubic+": KernelProgram(
        "delayed_update-cubic", "the delayed window update around the kernel's CUBIC"
    ),
    "bbr": KernelProgram("bbr", "BBR version 1, of quicgym's own"),
    "bbr-smooth": KernelProgram(
        "bbr",
        "BBR with an average of the RTT in place of its minimum in the BDP",
        {"alpha": [900], "smoothing_updates_rtprop": [0]},
    ),
    "bbr-extended": KernelProgram(
        "bbr", "BBR with plateaus in its gain cycle", EXTENDED_CYCLE
    ),
    "bbr-combined": KernelProgram(
        "bbr", "BBR with the averaged RTT and the extended gain cycle",
        {**EXTENDED_CYCLE, "alpha": [900]},
    ),
}  # fmt: skip
"""Name of quicgym's controller -> its program."""

PARAMETERS = {
    "delayed_update": {
        "period_ms": ("period_us", 1000),
        "jitter_threshold_ms": ("jitter_threshold_us", 1000),
        "utilisation_threshold": ("utilisation_threshold_permille", 1000),
        "theta": ("theta_permille", 1000),
        "min_rtt_tolerance": ("min_rtt_tolerance_permille", 1000),
    },
    "bbr": {
        "alpha": ("alpha", 1000),
        "entry_gain_minimum": ("entry_gain_minimum", 1000),
        "bandwidth_window_rounds": ("bandwidth_window_rounds", 1),
        "smoothing_updates_rtprop": ("smoothing_updates_rtprop", 1),
    },
}
"""Object -> parameter of quicgym -> constant of the program, and its units in one of quicgym's."""


def constants_of(controller: str, parameters: Mapping[str, float]) -> Constants:
    """Returns the constants of a controller's program with some parameters replaced.

    Args:
        controller: Name of the controller, a key of PROGRAMS.
        parameters: Values by the names of `quicgym show controllers`.

    Raises:
        UserError: The program does not have a parameter.
    """
    program = PROGRAMS[controller]
    known = PARAMETERS[program.object.partition("-")[0]]
    constants = dict(program.constants)
    for name, value in parameters.items():
        if name not in known:
            raise UserError(
                f"{name} is no parameter of {controller} in the kernel; {closest(name, known)}"
            )
        constant, units = known[name]
        constants[constant] = [round(value * units)]
    return constants


def read_object(name: str) -> bytes:
    """Returns the content of a compiled program.

    Args:
        name: Name of the object, as in KernelProgram.
    """
    return (OBJECTS / f"{name}.bpf.o").read_bytes()
