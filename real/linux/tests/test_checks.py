"""What is missing on a system is named, with the remedy."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from quicgym.errors import UserError

checks = pytest.importorskip("quicgym_linux.checks")


def status_with(folder: Path, *numbers: int) -> Path:
    """A file like /proc/self/status with these capabilities."""
    file = folder / "status"
    file.write_text(f"Name:\tx\nCapEff:\t{sum(1 << number for number in numbers):016x}\n")
    return file


@pytest.mark.parametrize("release", ["6.9.12-generic", "5.15.0", "4.4", "unknown"])
def test_an_old_kernel_is_named_with_the_version_that_is_needed(release):
    with pytest.raises(UserError, match=rf"kernel is {release}.*Linux 6\.10 or newer"):
        checks.check_system(release)


@pytest.mark.parametrize("release", ["6.10.0", "6.18.44-fc", "7.0-rc1", "10.1"])
def test_a_newer_kernel_is_taken(release, tmp_path):
    btf = tmp_path / "vmlinux"
    btf.touch()
    checks.check_system(release, btf, status_with(tmp_path, 12, 38, 39))


def test_a_kernel_without_types_is_named(tmp_path):
    with pytest.raises(UserError, match="nothing is not there.*CONFIG_DEBUG_INFO_BTF"):
        checks.check_system("6.18.0", tmp_path / "nothing")


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [
        ((), "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"),
        ((12, 39), "CAP_PERFMON"),
        ((38, 39), "CAP_NET_ADMIN"),
        ((21,), "CAP_NET_ADMIN"),
        ((12,), "CAP_BPF, CAP_PERFMON"),
    ],
)
def test_missing_capabilities_are_named_with_the_remedy(numbers, missing, tmp_path):
    btf = tmp_path / "vmlinux"
    btf.touch()
    with pytest.raises(UserError, match=f"lacks {missing}; run the command with sudo"):
        checks.check_system("6.18.0", btf, status_with(tmp_path, *numbers))


def test_sys_admin_stands_for_the_capabilities_of_bpf(tmp_path):
    assert checks.missing_capabilities(status_with(tmp_path, 12, 21)) == []


def test_a_refusal_of_the_kernel_keeps_the_verifiers_words():
    error = OSError(errno.EINVAL, "the kernel refuses the program\nR1 invalid mem access")
    text = str(checks.explain(error, "cubic+"))
    assert "'cubic+'" in text
    assert "R1 invalid mem access" in text
