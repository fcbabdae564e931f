"""How stacks and kernels are found, and what is said of those that are not there."""

from importlib.metadata import EntryPoint

import pytest

from quicgym import plugins
from quicgym.errors import UserError
from quicgym.real.kernels import find_kernel
from quicgym.real.stacks import find_stack, stack_names

STACK = {"name": "the stack"}


@pytest.fixture
def install(monkeypatch):
    """Installs stacks in place of those that are there: name=value."""

    def install(**stacks):
        found = {
            name: (EntryPoint(name, stacks[name], "quicgym.stacks"),) for name in sorted(stacks)
        }
        monkeypatch.setattr(plugins, "installed", lambda kind: found)

    return install


def test_a_stack_is_found_by_its_entry_point(install):
    install(own=f"{__name__}:STACK", another="nowhere:STACK")
    assert stack_names() == ["another", "own"]
    assert find_stack("own") is STACK


def test_without_a_name_the_first_stack_is_taken(install):
    install(own=f"{__name__}:STACK", own2="nowhere:STACK")
    assert find_stack(None) is STACK


@pytest.mark.parametrize(
    ("installed", "name", "said"),
    [
        ({}, "noq", r"'noq' is not installed.*pip install \. \./real/noq"),
        ({"own": "nowhere:STACK"}, "noq", r"'noq' is not installed.*pip install \. \./real/noq"),
        ({}, None, r"no QUIC stack is installed\. .*/real/NAME"),
        ({"noq": "nowhere:STACK"}, "nog", "did you mean noq"),
        (
            {"broken": "no_such_package.stack:STACK"},
            "broken",
            r"no_such_package\.stack:STACK of .* cannot be loaded",
        ),
    ],
)
def test_a_stack_that_cannot_be_had_is_named_with_the_remedy(install, installed, name, said):
    install(**installed)
    with pytest.raises(UserError, match=said):
        find_stack(name)


def test_a_kernel_that_is_missing_names_its_package(install):
    install()
    with pytest.raises(UserError, match=r"pip install \. \./real/linux"):
        find_kernel()
