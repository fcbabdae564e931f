"""`quicgym linux`, with a kernel that only records."""

from __future__ import annotations

import pytest

from quicgym.cli import group
from quicgym.errors import UserError
from quicgym.real import kernels


class RecordingKernel:
    """Keeps what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def controllers(self):
        return {"cubic+": "a description"}

    def loaded(self):
        return {"qg1_cubic_plus": "cubic+"}

    def load_for_system(self, controller):
        self.asked.append(("load", controller))
        return "qg2_copa"

    def unload(self, kernel_name):
        self.asked.append(("unload", kernel_name))


@pytest.fixture
def kernel(monkeypatch):
    found = RecordingKernel()
    monkeypatch.setattr(kernels, "find_kernel", lambda: found)
    return found


@pytest.fixture
def linux(kernel, capsys):
    """Runs the command, and returns what it prints."""

    def run(*arguments):
        group().main(["linux", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_list_shows_what_there_is_and_what_is_loaded(linux):
    shown = linux("list")
    assert "cubic+  a description" in shown
    assert "loaded: cubic+ as qg1_cubic_plus" in shown


def test_load_prints_the_kernels_name(linux, kernel):
    assert linux("load", "copa").strip() == "qg2_copa"
    linux("unload", "qg2_copa")
    assert kernel.asked == [("load", "copa"), ("unload", "qg2_copa")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["load"], "`quicgym linux load` needs a"), (["list", "x"], "takes no CONTROLLER")],
)
def test_an_action_with_other_arguments_is_refused(linux, arguments, said):
    with pytest.raises(UserError) as error:
        linux(*arguments)
    assert said in str(error.value)
