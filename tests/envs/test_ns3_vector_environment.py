"""The vector environment over ns-3: equal to the native one, and what happens to its processes."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers import environments as helper
from helpers.dying_controllers import Exits, Fails
from helpers.environments import equal

import quicgym
from quicgym.envs import ENVIRONMENTS
from quicgym.envs.ns3_workers import WorkerDiedError

pytestmark = pytest.mark.ns3
SHORT = helper.scenario(flows=2, duration_s=0.8)


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    made = []

    def make(name="quicgym/Tuning-v1", num_envs=2, **arguments):
        arguments = {"scenario": SHORT, "engine": "ns3", **arguments}
        made.append(quicgym.make_vec(name, num_envs, **arguments))
        return made[-1]

    yield make
    for vector in made:
        vector.close()


def batches(vector, count):
    vector.action_space.seed(0)
    return [vector.action_space.sample() for _ in range(count)]


@pytest.fixture
def workers(make):
    """Makes environments, and returns them with the ids of their workers, in the order of rows."""

    def begin(seed, **arguments):
        before = set(helper.child_processes())
        vector = make(**arguments)
        vector.reset(seed=seed)
        return vector, [pid for pid in helper.child_processes() if pid not in before]

    return begin


def test_a_module_of_the_current_folder_is_no_part_of_a_worker(make, tmp_path, monkeypatch):
    (tmp_path / "signal.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    make().reset(seed=0)
    assert not (tmp_path / "ran").exists()


def closes_at_once(vector):
    """Whether the workers end by themselves: after 10 s they would be killed."""
    began = time.monotonic()
    vector.close()
    return time.monotonic() - began < 5


# Each environment in one way of many, for each row is a process that has to start.
MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
MORE = ({"per_flow": False}, {"per_flow": True})
WAYS = list(zip(ENVIRONMENTS, itertools.cycle(itertools.product(MODES, MORE)), strict=False))


@pytest.mark.parametrize("name, way", WAYS, ids=str)
def test_it_gives_what_the_native_engine_gives(name, way, make):
    mode, more = way
    arguments = {"name": name, "autoreset_mode": mode, **more}
    ns3, native = make(**arguments), make(engine="native", **arguments)
    first, expected = ns3.reset(seed=5), native.reset(seed=5)
    assert equal(first[0], expected[0]) and equal(first[1], expected[1])
    ends = 0
    for batch in batches(ns3, 20):
        for ours, theirs in zip(ns3.step(batch), native.step(batch), strict=True):
            assert equal(ours, theirs)
            ends += 0 if isinstance(ours, dict) or ours.dtype != np.bool_ else int(ours.sum())
    assert ends >= 4


def test_numbers_past_the_ends_are_clipped_as_natively(make):
    ns3, native = make(), make(engine="native")
    ns3.reset(seed=5)
    native.reset(seed=5)
    batch = 2 * batches(ns3, 1)[0]
    assert (abs(batch) > 1).any()
    for ours, theirs in zip(ns3.step(batch), native.step(batch), strict=True):
        assert equal(ours, theirs)
    batch[0, 0] = np.inf
    with pytest.raises(ValueError, match="action of row 0"):
        ns3.step(batch)


def _earned(info):
    return 1 + info["throughput_mbps"]


@pytest.mark.parametrize("per_flow", [False, True])
def test_reward_functions_are_called_as_natively(per_flow, make):
    arguments = {"reward": _earned, "per_flow": per_flow}
    ns3, native = make(**arguments), make(engine="native", **arguments)
    ns3.reset(seed=5)
    native.reset(seed=5)
    asked = 0
    for batch in batches(ns3, 9):
        ours, theirs = ns3.step(batch)[1], native.step(batch)[1]
        assert equal(ours, theirs)
        assert ((ours >= 1) | (ours == 0)).all()
        asked += (ours >= 1).sum()
    assert asked == 8 * ns3.num_envs  # but for the step in which episodes begin anew


def test_a_reward_function_is_not_asked_about_a_worker_that_died(workers):
    vector, pids = workers(seed=5, reward=_earned, on_worker_death="restart")
    os.kill(pids[1], signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match="A new worker continues"):
        _, rewards, _, truncations, _ = vector.step(batches(vector, 1)[0])
    assert truncations.tolist() == [False, True]
    assert rewards[1] == 0 and rewards[0] >= 1


def test_a_killed_worker_is_reported_and_replaced_by_the_next_reset(workers):
    vector, pids = workers(seed=5)
    chosen = batches(vector, 4)
    expected = [vector.step(batch)[0] for batch in chosen]
    vector.reset(seed=5)
    vector.step(chosen[0])
    seed = vector.episode_seeds()[1]
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(WorkerDiedError) as error:
        vector.step(chosen[1])
    assert f"environment 1, scenario short, seed {seed} ended with signal 9" in str(error.value)
    assert "its output:\n(none)" in str(error.value)
    with pytest.raises(RuntimeError, match="environment 1 has no running episode; reset it"):
        vector.step(chosen[1])
    vector.reset(seed=5)
    for batch, observations in zip(chosen, expected, strict=True):
        assert np.array_equal(vector.step(batch)[0], observations)


def test_a_workers_output_is_shown(make):
    vector = make(scenario=helper.scenario(loss=0.05))
    vector.reset(seed=1, options={"controller": Exits})
    with pytest.raises(WorkerDiedError, match="(?s)exit status 3; its output:.*lights go out"):
        for _ in range(15):
            vector.step(np.zeros((2, 13), np.float32))


def test_with_restart_the_row_is_truncated_and_goes_on(make):
    vector = make(scenario=helper.scenario(loss=0.05), on_worker_death="restart")
    vector.reset(seed=1, options={"controller": Exits})
    rest = np.zeros((2, 13), np.float32)
    died = np.zeros(2, bool)
    with pytest.warns(RuntimeWarning, match="(?s)scenario short.*lights go out.*A new worker"):
        for _ in range(10):
            _, rewards, _, truncations, info = vector.step(rest)
            early = truncations & (info["time_s"] < 1.9)
            assert np.all(rewards[early] == 0)
            died |= early
    assert died.any()
    seeds = vector.episode_seeds()
    again = make(scenario=helper.scenario(loss=0.05), on_worker_death="restart")
    again.reset(seed=1, options={"controller": Exits})
    with pytest.warns(RuntimeWarning):
        for _ in range(10):
            again.step(rest)
    assert again.episode_seeds() == seeds


def test_a_failing_controller_is_named_and_its_worker_lives(make):
    vector = make(scenario=helper.scenario(loss=0.05))
    vector.reset(seed=1, options={"controller": Fails})
    rest = np.zeros((2, 13), np.float32)
    with pytest.raises(Exception, match="nothing is left") as error:
        for _ in range(15):
            vector.step(rest)
    (note,) = error.value.__notes__
    assert "scenario short, seed " in note and note.endswith("engine ns3")
    vector.reset()
    vector.step(rest)


def test_a_bad_action_moves_nothing(make):
    vector = make()
    chosen = batches(vector, 3)
    vector.reset(seed=5)
    expected = [vector.step(batch)[0] for batch in chosen]
    vector.reset(seed=5)
    for batch, observations in zip(chosen, expected, strict=True):
        bad = batch.copy()
        bad[1, 3] = np.nan
        with pytest.raises(ValueError, match=r"row 1: \[3\], entry_gain_minimum = nan"):
            vector.step(bad)
        assert np.array_equal(vector.step(batch)[0], observations)


def test_wrong_arguments_are_answered_with_the_remedy(make):
    with pytest.raises(ValueError, match="num_threads = 2: ns-3 runs in a process for each"):
        make(num_threads=2)
    with pytest.raises(ValueError, match="on_worker_death = 'ignore': give 'raise' or 'restart'"):
        make(on_worker_death="ignore")


def test_after_an_interrupted_call_no_answer_is_taken_for_another(make):
    vector, expected = make(), make()
    vector.reset(seed=3)

    def interrupt(*_):
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            for batch in batches(vector, 1000):
                vector.step(batch)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert equal(vector.reset(seed=7)[0], expected.reset(seed=7)[0])
    for batch in batches(vector, 5):
        for ours, theirs in zip(vector.step(batch), expected.step(batch), strict=True):
            assert equal(ours, theirs)


def test_ctrl_c_does_not_end_the_workers(workers):
    vector, (pid,) = workers(seed=1, num_envs=1)
    os.kill(pid, signal.SIGINT)
    for batch in batches(vector, 3):
        vector.step(batch)


def test_it_closes_while_a_forked_process_lives(workers):
    vector, (pid,) = workers(seed=1, num_envs=1)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        assert closes_at_once(vector)
        assert pid not in helper.child_processes()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_what_is_begun_after_close_is_closed_again(workers):
    vector, (first,) = workers(seed=1, num_envs=1)
    vector.close()
    before = helper.child_processes()
    vector.reset(seed=1)
    (pid,) = set(helper.child_processes()) - set(before)
    assert pid != first and closes_at_once(vector)
    assert pid not in helper.child_processes()


def test_with_restart_a_worker_that_died_between_steps_is_replaced_at_the_autoreset(workers):
    vector, pids = workers(seed=4, on_worker_death="restart")
    expected, _ = workers(seed=4)
    for one in (vector, expected):
        for batch in batches(one, 20):
            if one.step(batch)[3].all():
                break
    os.kill(pids[1], signal.SIGKILL)
    while pids[1] in helper.child_processes():
        time.sleep(0.01)
    batch = batches(vector, 1)[0]
    with pytest.warns(RuntimeWarning, match="A new worker continues"):
        ours = vector.step(batch)
    for mine, theirs in zip(ours, expected.step(batch), strict=True):
        assert equal(mine, theirs)


def test_a_distribution_of_the_script_itself_does(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Mine is defined in the script itself" in done.stdout
    assert "put it into a module" in done.stdout


SCRIPT = """
import quicgym

class Drawn:
    most_agents = 1
    def sample(self, random):
        return quicgym.load_scenario("ebcc-single").model_copy(update={"duration_s": 1.5})

class Mine(quicgym.Controller):
    def on_ack(self, event): pass
    def on_loss(self, event): pass

vector = quicgym.make_vec("quicgym/Tuning-v1", 2, scenario=Drawn(), engine="ns3")
vector.reset(seed=1)
vector.step(vector.action_space.sample())
try:
    vector.reset(seed=1, options={"controller": Mine})
except ValueError as error:
    print(error)
vector.close()
"""
