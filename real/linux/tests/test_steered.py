"""Controllers and policies of the C interface drive kernel TCP by the agent."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time

import pytest
from behind_link import NETWORK, TRANSFER, ours, transfer
from helpers.packages import compile_example

from quicgym.envs import Scenario
from quicgym.errors import UserError
from quicgym.real import run_link

kernel = pytest.importorskip("quicgym_linux.kernel")
holder = pytest.importorskip("quicgym_linux.holder")
pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("name", ["agent:cubic", "copa", "ebcc:gamma=60", "window"])
def test_the_agent_steers_a_transfer_and_leaves_nothing_behind(name, tmp_path):
    received, said = transfer(tmp_path, name)
    assert "steered by the agent" in said
    assert 0.5 < received["bytes"] * 8e-6 / received["seconds"] <= 8.0
    assert received["controller"] not in ours()


def test_a_small_window_holds_the_kernel_back(tmp_path):
    # 8 Mbps and 24 ms hold 20 packets; a window of 4 lets a fifth of the rate pass.
    received, _ = transfer(tmp_path, "guided:window_bytes=5000", 2.0)
    assert received["bytes"] * 8e-6 / received["seconds"] < 3.0


def test_users_controllers_steer_from_a_library_and_with_a_warning_from_python(tmp_path):
    compile_example(tmp_path / "libmine.so")
    received, said = transfer(tmp_path, f"{tmp_path}/libmine.so:aimd")
    assert "steered by the agent" in said
    assert received["bytes"] * 8e-6 / received["seconds"] > 0.5
    (tmp_path / "mine.py").write_text(
        "import quicgym\n"
        "class Small(quicgym.Controller):\n"
        "    def on_ack(self, event):\n"
        "        self.window_bytes = 5000\n"
        "    def on_loss(self, event):\n"
        "        pass\n"
    )
    received, said = transfer(tmp_path, f"{tmp_path}/mine.py:Small", 2.0)
    assert "is in Python" in said
    assert received["bytes"] * 8e-6 / received["seconds"] < 3.0


def test_a_transfer_goes_on_when_the_agent_is_killed(tmp_path):
    name = kernel.KERNEL.load_for_system("agent:cubic")
    process = holder._records()[holder.FOLDER / f"{name}.json"]["process"]

    def kill_agent() -> None:
        time.sleep(1.5)
        os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill_agent)
    output = tmp_path / "received"
    receive = shlex.join([sys.executable, str(TRANSFER), "receive"])
    killer.start()
    result = run_link(
        Scenario.model_validate(NETWORK),
        ["sh", "-c", f"{receive} > {output}"],
        peer=[sys.executable, str(TRANSFER), "send", "5"],
        limit_s=40.0,
        congestion_control=name,
    )
    killer.join()
    assert result.exit_status == 0
    assert name in output.read_text()
    assert name not in ours()
    # 8 Mbps for 5 s are 5 MB: the last 3.5 s had no agent.
    assert result.report.forward.delivered_bytes > 3e6


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cubik", "unknown controller 'cubik'; did you mean cubic"),
        ("ebcc:gamma=-1", "gamma"),
        ("ebcc:gama=1", "gama"),
        ("agent:nothing.json", "nothing.json: No such file"),
        ("mine.py:Aimd", "mine.py: No such file"),
    ],
)
def test_what_cannot_steer_is_an_error_before_any_connection(name, said):
    with pytest.raises(UserError, match=said):
        kernel.KERNEL.load(name)
    assert ours() == [] or not any("ebcc" in one or "cubik" in one for one in ours())


def test_a_damaged_policy_is_an_error_that_says_what_is_wrong(tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text('{"format": "quicgym-policy-1"}')
    with pytest.raises(UserError, match="policy.json.*name"):
        kernel.KERNEL.load(str(policy))
