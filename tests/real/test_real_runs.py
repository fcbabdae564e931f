"""Runs over real stacks in real time, their audit, and what `quicgym real` refuses."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from helpers.scenarios import short, write_short

import quicgym
from quicgym import ScenarioError, load_scenario, plugins
from quicgym.errors import RunError, UserError
from quicgym.real import InvalidRunError, run_stack
from quicgym.real.comparison import check_audited, gap, run_real
from quicgym.real.runs import ATTEMPTS

SCENARIO = load_scenario("ebcc-single")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the relay needs Linux")


def audited(scenario, controller, stack):
    """A run in real time, where the machine is quiet enough for one."""
    try:
        return run_stack(scenario, controller, stack, "real")
    except InvalidRunError as error:
        pytest.skip(f"this machine is too busy for a valid run: {error}")


@linux
@pytest.mark.parametrize("controller", ["newreno", "window"])
def test_tls_over_sockets_brings_the_bytes_that_were_sent(controller, tmp_path):
    pytest.importorskip("quicgym_aioquic")
    result = audited(short(tmp_path), controller, "aioquic")
    assert result.engine == "aioquic-real"
    audit = result.to_dict()["audit"]
    assert (audit["decisions"] > 10) == (controller == "window")
    if controller == "newreno":
        virtual = run_stack(result.scenario, controller, "aioquic", "virtual")
        goodput = virtual.metrics["goodput_mbps"]
        assert result.metrics["goodput_mbps"] == pytest.approx(goodput, rel=0.1)


@linux
def test_runs_whose_relay_stalls_are_repeated_and_rejected(tmp_path):
    pytest.importorskip("quicgym_aioquic")
    scenario = write_short(tmp_path / "short.yaml", duration_s=0.6)
    command = [sys.executable, "-m", "quicgym_start", "real", "--scenario", str(scenario),
               "--controller", "cubic", "--clock", "real",
               "--out", str(tmp_path / "out")]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None:
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(0.3)
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 1, errors
    assert "run 1 is invalid" in errors
    assert f"all {ATTEMPTS} runs in real time were invalid" in errors
    assert output == ""
    assert not (tmp_path / "out" / "aioquic-real").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"stack": "aioqic"}, "did you mean aioquic"),
        ({"stack": "aioquic", "clock": "sundial"}, "unknown clock 'sundial'"),
        ({"stack": "aioquic", "controller": ["bbr", "bbr"]}, "and 2 are given"),
        ({"stack": "aioquic", "engine": "ns3"}, "leave out one of the two"),
        ({"stack": "aioquic", "trace_interval_ms": 5.0}, "a row every 10 ms"),
        ({"clock": "real"}, "belongs to a stack"),
        ({"stack": "aioquic", "until_s": 1.005}, "until_s = 1.005: .* a row every 10 ms"),
    ],
)
def test_bad_arguments_say_what_is_wrong(arguments, text):
    given = {"controller": "cubic", **arguments}
    with pytest.raises((UserError, ScenarioError), match=text):
        quicgym.run(SCENARIO, **given)


def test_the_controller_of_another_stack_is_refused(monkeypatch):
    installed = plugins.installed
    stacks = {**installed("stack"), "other": ()}
    monkeypatch.setattr(
        plugins, "installed", lambda kind: stacks if kind == "stack" else installed(kind)
    )
    with pytest.raises(ScenarioError, match="of the stack other, and not of aioquic"):
        quicgym.run(SCENARIO, "other-cubic", stack="aioquic")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("application", {"kind": "constant-rate", "rate_mbps": 1.0}),
        ("burst_retransmission", True),
        ("offload_packets", 16),
        ("direction", "backward"),
    ],
)
def test_what_only_a_simulation_can_do_is_named(field, value):
    flow = SCENARIO.flows[0]
    fields = {**flow.model_dump(), field: value, "controller": "cubic"}
    changed = type(flow).model_validate(fields)
    scenario = SCENARIO.model_copy(update={"flows": (changed,)})
    with pytest.raises(ScenarioError, match=field):
        quicgym.run(scenario, stack="aioquic")


def test_a_controller_in_python_is_named_by_its_file():
    class Mine(quicgym.Controller):
        pass

    with pytest.raises(ScenarioError, match="name a class by its file, as in mine.py:Aimd"):
        quicgym.run(SCENARIO, Mine, stack="aioquic")


def test_rows_in_real_time_without_a_valid_audit_are_not_stored():
    row = {"scenario": "a", "policy": "bbr", "seed": 0, "engine": "aioquic-real", "audit": None}
    with pytest.raises(UserError, match="a, bbr, seed 0, aioquic-real: has no audit"):
        check_audited([row])
    assert check_audited([{**row, "engine": "aioquic-virtual"}])


def test_a_result_in_real_time_needs_an_audit():
    from quicgym.envs.simulation.window import WHOLE
    from quicgym.real.runs import RealRun

    with pytest.raises(RunError, match="without an audit"):
        RealRun(None, WHOLE, "aioquic", "real", None, 1)


def test_gaps_are_in_percent_or_differences():
    assert gap("goodput_mbps", 9.9, 10.0) == pytest.approx(-1.0)
    assert gap("reward", 0.7, 0.8) == pytest.approx(-0.1)
    assert gap("mean_rtt_ms", None, 10.0) is None


def test_the_command_compares_and_stores_for_quicgym_compare(tmp_path, capsys):
    pytest.importorskip("quicgym_aioquic")
    scenario = write_short(tmp_path / "short.yaml", duration_s=1.0)
    status = run_real(
        scenarios=[str(scenario)],
        controllers=["newreno", "aioquic-reno"],
        stack="aioquic",
        clock="virtual",
        compare=True,
        directory=tmp_path / "out",
    )
    assert status == 0
    printed = capsys.readouterr().out
    assert "implementation gap" in printed
    evaluation = json.loads((tmp_path / "out" / "aioquic-virtual" / "evaluation.json").read_text())
    assert {entry["policy"] for entry in evaluation["policies"]} == {"newreno", "aioquic-reno"}
    from quicgym.agents.evaluation.run_folders import read_runs

    runs = read_runs(tmp_path / "out" / "native")
    assert [run.policy for run in runs] == ["newreno"]
