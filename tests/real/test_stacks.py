"""How stacks are found, and what is said of those that are not there."""

from importlib import metadata

import pytest

from quicgym.errors import UserError
from quicgym.real.stacks import find_stack, stack_names


class _Entry:
    name, group, value = "own", "quicgym.stacks", "somewhere:STACK"

    def load(self):
        return "the stack"


def test_stack_of_another_distribution_is_found_by_its_entry_point(monkeypatch):
    monkeypatch.setattr(
        "quicgym.real.stacks.entry_points",
        lambda group: [_Entry()] if group == "quicgym.stacks" else [],
    )
    assert stack_names() == ["own"]
    assert find_stack("own") == "the stack"


def test_missing_distribution_is_named(monkeypatch):
    monkeypatch.setattr("quicgym.real.stacks.entry_points", lambda group: [])
    with pytest.raises(UserError, match="pip install quicgym-noq"):
        find_stack("noq")


def test_misspelt_stack_names_the_nearest(monkeypatch):
    monkeypatch.setattr("quicgym.real.stacks.entry_points", lambda group: [])
    with pytest.raises(UserError, match="did you mean noq"):
        find_stack("nog")


def test_stack_that_cannot_be_imported_is_an_error_of_the_user(monkeypatch):
    broken = metadata.EntryPoint("broken", "no_such_package.stack:STACK", "quicgym.stacks")
    monkeypatch.setattr("quicgym.real.stacks.entry_points", lambda group: [broken])
    with pytest.raises(UserError, match=r"no_such_package\.stack:STACK cannot be loaded"):
        find_stack("broken")
