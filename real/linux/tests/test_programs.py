"""The controllers that are BPF programs by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from behind_link import AVAILABLE, link_command, ours, transfer

from quicgym.errors import UserError

kernel = pytest.importorskip("quicgym_linux.kernel")
programs = pytest.importorskip("quicgym_linux.programs")
pytestmark = pytest.mark.kernel


def settings():
    """All settings of TCP, the default controller among them, but the list of what there is."""
    files = [file for file in AVAILABLE.parent.glob("tcp_*") if file != AVAILABLE]
    return {file.name: file.read_text() for file in files if file.stat().st_mode & 0o444}


def wait_until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_carries_a_transfer_and_leaves_nothing_behind(name, tmp_path):
    before = settings()
    received, said = transfer(tmp_path, name)
    assert received["controller"].startswith("qg")
    assert f"controller {name} is {received['controller']}: " in said
    # 8 Mbps; the queue is still full when the sender stops.
    assert 0.5 < received["bytes"] * 8e-6 / received["seconds"] <= 8.0
    assert received["controller"] not in AVAILABLE.read_text().split()
    assert settings() == before


def test_two_controllers_work_side_by_side(tmp_path):
    receive = [sys.executable, str(link_command.__globals__["TRANSFER"]), "receive"]
    commands = []
    for name in ("cubic+", "bbr-combined"):
        folder = tmp_path / name
        folder.mkdir()
        commands.append(link_command(folder, name, receive, 1.5))
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    outputs = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    assert "cubic_plus" in outputs[0][0]
    assert "bbr_comb" in outputs[1][0]


@pytest.mark.parametrize("name", ["newreno+", "copa", "kernel:window"])
def test_a_killed_command_leaves_no_controller_behind(name, tmp_path):
    # Other links of this machine may have the controller, too.
    others = set(ours())
    stem = name.removeprefix("kernel:")[:6]
    command = link_command(tmp_path, name, ["sleep", "30"], 30.0)

    def registered():
        return [one for one in set(ours()) - others if stem in one]

    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_until(registered, 30.0)
        [kernel_name] = registered()
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: kernel_name not in ours())


def test_the_default_of_the_programs_stays_the_systems(tmp_path):
    default = AVAILABLE.with_name("tcp_congestion_control")
    command = link_command(tmp_path, "bbr", ["cat", str(default)], 5.0)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == default.read_text()


def test_a_name_that_is_taken_gets_the_next_number():
    with kernel.KERNEL.load("bbr") as first, kernel.KERNEL.load("bbr") as second:
        assert first.kernel_name != second.kernel_name
        assert {first.kernel_name, second.kernel_name} <= set(ours())
    assert not {first.kernel_name, second.kernel_name} & set(ours())


def test_what_is_loaded_for_the_system_stays_until_it_is_unloaded():
    before = settings()
    name = kernel.KERNEL.load_for_system("newreno+")
    try:
        assert name in ours()
        assert kernel.KERNEL.loaded()[name] == "newreno+"
        assert settings() == before
    finally:
        kernel.KERNEL.unload(name)
    assert name not in ours()
    with pytest.raises(UserError, match=f"nothing is loaded as '{name}'"):
        kernel.KERNEL.unload(name)


def test_a_killed_holder_is_not_listed():
    from quicgym_linux import holder

    name = kernel.KERNEL.load_for_system("newreno+")
    [record] = [record for file, record in holder._records().items() if file.stem == name]
    os.kill(record["process"], signal.SIGKILL)
    wait_until(lambda: name not in ours())
    assert name not in kernel.KERNEL.loaded()


def test_an_unknown_controller_is_an_error_that_lists_the_known_ones():
    with pytest.raises(UserError, match="unknown controller 'bbr-smoth'; did you mean bbr-smooth"):
        kernel.KERNEL.load("bbr-smoth")


def test_a_parameter_that_a_program_does_not_have_is_refused():
    with pytest.raises(
        UserError, match="gamma is no parameter of cubic.; did you mean theta|there are: period_ms"
    ):
        kernel.KERNEL.load("cubic+", {"gamma": 1.0})


def test_parameters_have_quicgyms_names_and_units():
    constants = programs.constants_of("cubic+", {"period_ms": 200.0, "jitter_threshold_ms": 0.6})
    assert constants == {"period_us": [200_000], "jitter_threshold_us": [600]}
