"""The compiled programs in the package, without privileges."""

from __future__ import annotations

import struct

import pytest

programs = pytest.importorskip("quicgym_linux.programs")

OBJECTS = sorted({program.object for program in programs.PROGRAMS.values()})
EM_BPF = 247


@pytest.mark.parametrize("name", [*OBJECTS, "steered", "window_policy"])
def test_an_object_finds_its_way_in_any_kernel_and_has_one_place_for_its_name(name):
    content = programs.read_object(name)
    assert content.startswith(b"\x7fELF")
    assert struct.unpack_from("<H", content, 18) == (EM_BPF,)
    # The types of the program, and where those of the running kernel go: CO-RE.
    for section in (".BTF", ".BTF.ext", ".struct_ops", "license"):
        assert f"{section}\0".encode() in content, section
    assert content.count(b"quicgym-program\0") == 1


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_the_constants_of_a_controller_are_in_its_object(name):
    program = programs.PROGRAMS[name]
    content = programs.read_object(program.object)
    kind = program.object.partition("-")[0]
    for constant in {
        *program.constants,
        *(place for place, _ in programs.PARAMETERS[kind].values()),
    }:
        assert f"\0{constant}\0".encode() in content, constant
