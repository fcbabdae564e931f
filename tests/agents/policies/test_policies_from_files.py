"""Objects of a user's Python file as policies: what they get and return, what is refused."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from conftest import Command

import quicgym
from quicgym import PolicyError, load_scenario
from quicgym.agents.evaluation.jobs import make_jobs
from quicgym.agents.evaluation.rollouts import play
from quicgym.agents.evaluation.run_folders import read_runs
from quicgym.agents.policies.by_name import PRETRAINED, find_policy, policy_kind, pretrained_names
from quicgym.agents.policies.learned import load_policy
from quicgym.agents.policies.policy import ConstantPolicy
from quicgym.envs.actions import WINDOW_EXPONENTS
from quicgym.envs.decisions import Decisions
from quicgym.envs.observations import observation_names

SCENARIO = load_scenario("ebcc-flows-3").model_copy(update={"duration_s": 2.0})
KEEP = WINDOW_EXPONENTS.index(0.0)
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and returns `file:name`."""

    def write(text: str, name: str = "policy", file: str = "agent.py") -> str:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return f"{path}:{name}"

    return write


WINDOW = """
import numpy as np
import quicgym
decisions = quicgym.Decisions("quicgym/Window-v1", history_length=2)
"""


def refused(choice: str) -> str:
    """What is said of a policy that cannot be loaded."""
    with pytest.raises(PolicyError) as failure:
        find_policy(choice)
    return str(failure.value)


def test_observations_of_another_environment_are_refused_with_the_one_that_the_file_names(
    write: Write,
) -> None:
    policy = find_policy(
        write(WINDOW + "policy = lambda observations: np.zeros(len(observations))")
    )
    observations, _ = quicgym.make_vec("window", 2, scenario=SCENARIO).reset(seed=1)
    with pytest.raises(PolicyError, match=r"Window-v1', \*\*policy\.decisions\.arguments"):
        policy(observations)


def test_a_function_gets_a_row_for_each_flow(write: Write) -> None:
    choice = write(
        WINDOW
        + f"""
seen = []
def policy(observations):
    seen.append((observations.shape, observations.dtype, observations.copy()))
    observations[:] = 9  # theirs to change
    return np.full(len(observations), {KEEP})
"""
    )
    policy = find_policy(choice)
    assert policy.name == choice and policy.options is None
    assert policy.decisions == Decisions("window", history_length=2)
    own = play(policy, SCENARIO, seed=3)
    constant = ConstantPolicy("keep", np.array(KEEP), decisions=policy.decisions)
    assert own.metrics == play(constant, SCENARIO, seed=3).metrics
    seen = policy.act.__globals__["seen"][2:]  # without those of zeros
    features = policy.decisions.observation_space.shape[0]
    assert {(shape, str(dtype)) for shape, dtype, _ in seen} == {((3, features), "float32")}
    assert max(values.max() for _, _, values in seen) < 9


def test_the_page_s_agent_runs(write: Write) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/own-agent.md").read_text(encoding="utf-8")
    (agent,) = re.findall(r"^```python\n(# agent.py\n.*?)^```", page, flags=re.S | re.M)
    episode = play(find_policy(write(agent)), SCENARIO)
    assert 0 < episode.metrics["throughput_share"] <= 1


def test_one_observation_gives_one_action(write: Write) -> None:
    policy = find_policy(
        write("import numpy as np\npolicy = lambda rows: np.zeros((len(rows), 13))")
    )
    assert policy.decisions == Decisions()
    assert policy(np.zeros(105, np.float32)).shape == (13,)


@pytest.mark.parametrize(
    "made",
    [
        "def policy():\n    return lambda rows: np.zeros(len(rows))",
        "def policy(path='weights'):\n    return lambda rows: np.zeros(len(rows))",
        "class policy:\n    def __call__(self, rows):\n        return np.zeros(len(rows))",
    ],
)
def test_what_needs_no_arguments_makes_the_policy(write: Write, made: str) -> None:
    policy = find_policy(write(f"{WINDOW}\n{made}\n"))
    features = policy.decisions.observation_space.shape[0]
    assert policy(np.zeros((5, features), np.float32)).tolist() == [0] * 5


def test_an_object_s_own_decisions_go_before_its_file_s(write: Write) -> None:
    text = f"""{WINDOW}
def policy(rows):
    return np.zeros((len(rows), 2))
policy.decisions = quicgym.Decisions("rate", decision_interval_ms=50)
def maker():
    return lambda rows: np.zeros((len(rows), 2))
maker.decisions = quicgym.Decisions("rate", history_length=7)
class Maker:
    decisions = maker.decisions
    def __call__(self, rows):
        return np.zeros((len(rows), 2))
"""
    assert find_policy(write(text)).decisions == Decisions("rate", decision_interval_ms=50)
    assert find_policy(write(text, "maker")).decisions == Decisions("rate", history_length=7)
    assert find_policy(write(text, "Maker")).decisions == Decisions("rate", history_length=7)


def test_files_of_two_folders_have_their_own_modules(write: Write, tmp_path: Path) -> None:
    act = """
        import helper
        from package import part
        policy = lambda rows: part.VALUE + helper.act(rows)
    """
    for folder, value in (("first", 0.25), ("second", -0.5)):
        write("from numpy import zeros\nact = lambda rows: zeros((len(rows), 13))",
              file=f"{folder}/helper.py")  # fmt: skip
        (tmp_path / folder / "package").mkdir()
        (tmp_path / folder / "package/__init__.py").touch()
        (tmp_path / folder / "package/part.py").write_text(f"VALUE = {value}")
        write(act, file=f"{folder}/agent.py")
    first, second = (
        find_policy(f"{tmp_path / name}/agent.py:policy") for name in ("first", "second")
    )
    assert first(np.zeros(105, np.float32)).max() == 0.25
    assert second(np.zeros(105, np.float32)).max() == -0.5
    (tmp_path / "first/package/part.py").write_text("VALUE = 0.125  # edited")
    again = find_policy(f"{tmp_path}/first/agent.py:policy")
    assert again(np.zeros(105, np.float32)).max() == 0.125
    assert len({policy.fingerprint for policy in (first, second, again)}) == 3


@pytest.mark.parametrize(
    ("arguments", "action"),
    [("'window'", 6), ("'tuning', coordinates=('beta', 'alpha')", [2.0, -0.5])],
)
def test_decisions_name_environment_and_coordinates(
    write: Write, arguments: str, action: int | list[float]
) -> None:
    choice = write(
        f"""
        import numpy as np
        import quicgym
        decisions = quicgym.Decisions({arguments})
        policy = lambda rows: np.array([{action}] * len(rows))
        """
    )
    policy = find_policy(choice)
    constant = ConstantPolicy("constant", np.array(action), decisions=policy.decisions)
    assert play(policy, SCENARIO, seed=1).metrics == play(constant, SCENARIO, seed=1).metrics
    nothing = write(f"""
        import quicgym
        decisions = quicgym.Decisions({arguments})
        policy = lambda rows: rows * float("nan")
    """)
    assert "returned actions of the shape (1, " in refused(nothing)


@pytest.mark.filterwarnings("ignore:.*Overriding environment")
def test_an_environment_of_the_file_s_own(write: Write) -> None:
    choice = write("""
        import numpy as np
        import quicgym
        from quicgym.envs.environment import CongestionControlEnv

        class FileWindowEnv(CongestionControlEnv):
            environment = "file_window"
            action_space_name = "window"
            controller = "external"

        decisions = quicgym.Decisions("file_window")
        policy = lambda rows: np.full(len(rows), 6)
    """)
    results = [play(find_policy(choice), SCENARIO).metrics["reward"] for _ in range(2)]
    assert results[0] == results[1]


STRICT = """
import quicgym
from quicgym.envs.tuning import TuningEnv

class StrictEnv(TuningEnv):
    environment = "strict_tuning"
    action_space_name = "tuning"
    out_of_range = "error"

decisions = quicgym.Decisions("strict_tuning")
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy = 3", r"agent.py:policy: is int 3; give a function of observations"),
        ("x = 1\ny = 1 /", r"agent.py:2: SyntaxError"),
        ("import sys\nsys.exit(2)", r"agent.py:2: SystemExit: 2; put what is for the script alone"),
        ("raise ModuleNotFoundError('none', name='torch')",
         r"agent.py:1: ModuleNotFoundError: none; .*pip install '\.\[train\]'"),
        ("polcy = 1", r"agent.py: has no object 'policy'; did you mean polcy\?"),
        ("decisions = 'rate'\npolicy = lambda rows: 0", r"`decisions` is 'rate'; set `decisions ="),
        ("class policy:\n    def __init__(self, size): pass", r"is a class that needs arguments"),
        ("policy = lambda rows: [[0] * 13, [0]]", r"returned list .* give numbers of the"),
        ("policy = lambda rows: [0.0] * 13",
         r"shape \(13,\) for observations of the shape \(1, 105\), which is one action; it gets a "
         r"row for each flow.*give numbers of the shape \(1, 13\)"),
        ("policy = lambda rows: [[0.0] * 13]", r"shape \(1, 13\) for .*\(2, 105\); .*\(2, 13\)"),
        ("policy = lambda rows: [[0.0] * 12 + [float('nan')]] * len(rows)",
         r"agent.py:policy: returned nan in row 0, coordinate 12 for"),
        (STRICT + "policy = lambda rows: [[1.5] * 13] * len(rows)",
         r"returned 1.5 in row 0, coordinate 0 .* give numbers from -1 to 1 of the shape"),
        (WINDOW + "policy = lambda rows: np.full(len(rows), 13)",
         r"returned 13 in row 0.*give whole numbers from 0 to 12 of the shape \(1,\); .*as its `d"),
        (WINDOW + "policy = lambda rows: np.full(len(rows), 2.5)", r"returned 2\.5 in row 0"),
        (WINDOW + "policy = lambda rows: [2] * len(rows)\npolicy.reset = 3",
         r"`reset` is 3; give a method without arguments"),
        (WINDOW + "policy = lambda rows: [2] * len(rows)\npolicy.reset = lambda: 1 / 0",
         r"reset: .*agent\.py:6: ZeroDivisionError"),
        ("def policy(rows):\n    return rows @ rows.reshape(3, 3)",
         r"agent.py:policy: \S*agent.py:2: ValueError.*\(1, 105\); they were zeros, to try it in "
         r"quicgym/Tuning-v1 with history_length = 128, the default; where it was made for "
         r"another, set `decisions = quicgym.Decisions\("),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_place(write: Write, text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=f"(?s){said}"):
        find_policy(write(text))


def test_files_and_objects_that_there_are_not() -> None:
    assert "nowhere.py: No such file" in refused("nowhere.py:policy")
    assert refused("agent.py") == "agent.py: name the object as well, such as agent.py:policy"
    assert refused("agent.py:") == "agent.py:: name the object as well, such as agent.py:policy"


@pytest.mark.parametrize(
    ("failure", "said"),
    [('LookupError("lost")', "LookupError: lost, "), ("SystemExit(0)", "SystemExit: 0; put what")],
)
def test_a_failure_in_an_episode_names_policy_and_line(
    failure: str, said: str, write: Write
) -> None:
    choice = write(
        WINDOW
        + """
def policy(rows):
    if rows[0, 0] > 0:
        raise FAILURE
    return np.zeros(len(rows))
""".replace("FAILURE", failure)
    )
    (job,) = make_jobs([choice], [SCENARIO], 1)
    with pytest.raises(PolicyError, match=rf"agent.py:policy: \S*agent.py:8: {said}"):
        job.run()


def test_on_the_command_line(quicgym: Command, write: Write, tmp_path: Path) -> None:
    write(f"{WINDOW}\npolicy = lambda rows: np.full(len(rows), {KEEP})")
    suite = tmp_path / "short.yaml"
    suite.write_text(yaml.safe_dump([json.loads(SCENARIO.model_dump_json(exclude_none=True))]))
    arguments = ("evaluate", "--policy", "agent.py:policy", "cubic", "--suite", suite)
    done = quicgym(*arguments, "--seeds", "2", "--jobs", "2")
    assert "agent.py:policy − cubic" in done.stdout or "cubic − agent.py:policy" in done.stdout
    document = json.loads((tmp_path / "results/evaluation/evaluation.json").read_text())
    entries = {entry["policy"]: entry for entry in document["policies"]}
    expected = [
        play(find_policy(f"{tmp_path}/agent.py:policy"), SCENARIO, seed=s).metrics["reward"]
        for s in (0, 1)
    ]
    assert entries["agent.py:policy"]["mean"]["reward"] == pytest.approx(
        np.mean(expected), rel=1e-12
    )
    assert entries["agent.py:policy"]["kind"] == policy_kind("agent.py:policy") == "learned"
    runs = {run.name: run for run in read_runs(tmp_path / "results/evaluation")}
    assert set(runs) == {"agent.py:policy", "cubic"}
    assert all(set(run.series) == {SCENARIO.name} for run in runs.values())


def test_resuming_runs_again_what_another_file_makes(write: Write) -> None:
    keys = []
    for value in (0, 0, 1):
        choice = write(f"{WINDOW}\npolicy = lambda rows: np.full(len(rows), {value})")
        (job,) = make_jobs([choice], [SCENARIO], 1)
        keys.append(job.key)
    assert keys[0] == keys[1] != keys[2]


NETWORK = """
import torch
import quicgym

class Network(torch.nn.Module):
    decisions = quicgym.Decisions("{environment}")
    def __init__(self, features={features}, outputs={outputs}):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(features, outputs)
        self.drop = torch.nn.Dropout(0.9)
    def forward(self, rows):
        assert torch.is_inference_mode_enabled() and rows.dtype == torch.float32
        return self.drop(self.layer(rows)) * 100

network = Network()
"""


@pytest.mark.train
def test_a_network_s_largest_output_is_its_choice(write: Write) -> None:
    import torch

    features = 98
    choice = write(NETWORK.format(environment="window", features=features, outputs=13), "network")
    rows = np.random.default_rng(1).random((6, features)).astype(np.float32)
    torch.manual_seed(0)
    layer = torch.nn.Linear(features, 13)
    expected = layer(torch.from_numpy(rows)).argmax(1).numpy()
    assert find_policy(choice)(rows).tolist() == expected.tolist()
    assert find_policy(choice.replace(":network", ":Network"))(rows).tolist() == expected.tolist()
    play(find_policy(choice), SCENARIO)


@pytest.mark.train
def test_a_network_s_outputs_are_clipped(write: Write) -> None:
    import torch

    features = 87
    choice = write(NETWORK.format(environment="rate", features=features, outputs=2), "network")
    rows = np.random.default_rng(1).random((6, features)).astype(np.float32)
    torch.manual_seed(0)
    layer = torch.nn.Linear(features, 2)
    expected = (100 * layer(torch.from_numpy(rows))).clamp(-1, 1).detach().numpy()
    assert np.abs(expected).max() == 1
    assert np.array_equal(find_policy(choice)(rows), expected)


@pytest.mark.train
@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("network = Network(9, 13)",
         r"agent.py:14: RuntimeError: .*mat1 and mat2 .*given observations of the shape \(1, 98\); "
         r"they were zeros, to try it in quicgym/Window-v1 with history_length = 128, as its"),
        ("network.layer.weight.data[:] = float('nan')",
         r"forward returned nan at \[0, 0\], given observations of the shape \(1, 98\)"),
        ("network.to('meta')", r"layer.weight is on the device 'meta'; evaluation runs on the CPU"),
        ("network.forward = lambda rows: (rows, None)", r"forward returned tuple, not a tensor"),
        ("network = Network(98, 99)\nnetwork.layer.bias.data[50] = 1e3\n", r"returned 50 in row 0"),
    ],
)  # fmt: skip
def test_a_network_that_does_not_fit_is_refused(write: Write, rest: str, said: str) -> None:
    text = NETWORK.format(environment="window", features=98, outputs=13)
    with pytest.raises(PolicyError, match=said):
        find_policy(write(f"{text}\n{rest}", "network"))


@pytest.mark.train
def test_weights_that_nobody_seeded_are_refused(write: Write) -> None:
    from quicgym.agents.evaluation.jobs import _load

    text = NETWORK.format(environment="window", features=98, outputs=13)
    choice = write(text.replace("torch.manual_seed(0)", "torch.seed()"), "network")
    (job,) = make_jobs([choice], [SCENARIO], 1)
    _load.cache_clear()  # as in a worker
    with pytest.raises(quicgym.ScenarioError, match="differ from process to process: seed what is"):
        job.run()


@pytest.mark.train
def test_a_model_of_stable_baselines3(write: Write, tmp_path: Path) -> None:
    from stable_baselines3 import PPO

    from quicgym.envs.sb3 import make_sb3

    trained = PPO("MlpPolicy", make_sb3("quicgym/Rate-v1", 1), device="cpu", seed=1)
    trained.save(tmp_path / "model.zip")
    choice = write(
        """
        from pathlib import Path
        import quicgym
        from stable_baselines3 import PPO
        decisions = quicgym.Decisions("quicgym/Rate-v1")
        def policy():
            return PPO.load(Path(__file__).with_name("model.zip"), device="cpu")
        """
    )
    rows = np.random.default_rng(1).random((4, 87)).astype(np.float32)
    policy = find_policy(choice)
    assert np.array_equal(policy(rows), trained.predict(rows, deterministic=True)[0])
    before = policy.fingerprint
    trained.policy.action_net.bias.data += 0.1
    trained.save(tmp_path / "model.zip")
    assert find_policy(choice).fingerprint != before


COUNTER = (
    WINDOW
    + """
class Counter:
    # Records for each flow how many decisions it has had.
    def __init__(self):
        self.seen = []
    def reset(self):
        self.seen.append(None)
    def __call__(self, observations):
        if self.seen[-1] is None:
            self.seen[-1] = np.zeros(len(observations), int)
        self.seen[-1] += 1
        return np.where(self.seen[-1] % 2, 3, 2)
policy = Counter()
"""
)


def test_an_object_with_reset_keeps_a_state_for_each_flow(write: Write) -> None:
    policy = find_policy(write(COUNTER))
    tried = len(policy.act.seen)
    first = play(policy, SCENARIO, seed=1)
    again = play(policy, SCENARIO, seed=1)
    states = policy.act.seen[tried:]
    assert first.to_dict() == again.to_dict()
    assert [state.tolist() for state in states] == [[10, 10, 10]] * 2


def test_an_object_that_draws_gets_the_seed_of_each_episode(write: Write) -> None:
    drawing = """
        class Drawing:
            def reset(self, seed):
                self.draws = np.random.default_rng(seed)
            def __call__(self, observations):
                return self.draws.integers(13, size=len(observations))
        policy = Drawing()
        """
    policy = find_policy(write(WINDOW + textwrap.dedent(drawing)))
    rewards = [play(policy, SCENARIO, seed=seed).metrics["reward"] for seed in (1, 2, 1)]
    assert rewards[0] == rewards[2] != rewards[1]


@pytest.mark.train
def test_the_state_of_a_recurrent_model_is_kept_and_reset(write: Write) -> None:
    policy = find_policy(
        write("""
        import quicgym
        from stable_baselines3 import PPO
        from quicgym.envs.sb3 import make_sb3
        decisions = quicgym.Decisions("quicgym/Rate-v1")
        states = []
        class Recurrent(PPO):
            def predict(self, observation, state=None, episode_start=None, deterministic=False):
                states.append(state)
                return super().predict(observation)[0], (state or 0) + 1
        policy = Recurrent("MlpPolicy", make_sb3("quicgym/Rate-v1", 1), device="cpu", n_steps=64)
        """)
    )
    states = policy.file.module.states
    states.clear()
    for _ in range(2):
        play(policy, SCENARIO.model_copy(update={"duration_s": 1.3}))
    assert states == [None, 1, 2] * 2


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_no_regular_file_is_never_read(kind: str, tmp_path: Path) -> None:
    path = {"fifo": tmp_path / "fifo", "device": Path("/dev/zero")}[kind]
    os.mkfifo(tmp_path / "fifo")
    text = "Is a pipe or a device, not a regular file"
    policy = tmp_path / "policy.json"
    policy.symlink_to(path)
    with pytest.raises(PolicyError, match=text):
        load_policy(policy)
    name = pretrained_names()[0]
    good = tmp_path / "good.json"
    good.write_text((PRETRAINED / f"{name}.json").read_text())
    good.with_suffix(".safetensors").symlink_to(path)
    with pytest.raises(PolicyError, match=f"good.safetensors: {text}"):
        load_policy(good)


POLICIES = {
    "brackets": "[" * 100_000,
    "digits": '{"name": ' + "9" * 5_000 + "}",
}


@pytest.mark.parametrize("what", POLICIES)
def test_a_policy_s_description_that_cannot_be_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(POLICIES[what])
    with pytest.raises(PolicyError, match=r"policy\.json: not valid JSON: ") as caught:
        load_policy(path)
    assert len(str(caught.value)) < 600


def test_a_large_description_of_a_policy_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(" " * 2**20 + (PRETRAINED / f"{pretrained_names()[0]}.json").read_text())
    with pytest.raises(PolicyError, match="more than the 1048576 that are read"):
        load_policy(path)


COPIES = {
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", ["window", "tuning"])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_decides_as_its_original(name, copied):
    policy = quicgym.load_policy(name)
    decisions = policy.decisions
    names = observation_names(
        decisions.history_length, decisions.interface.action_space, decisions.observations
    )
    observations = np.random.default_rng(0).normal(size=(16, len(names)))
    before = policy(observations)
    other = copied(policy)
    np.testing.assert_array_equal(other(observations), before)
    assert (other.name, other.decisions) == (policy.name, policy.decisions)
    assert other.description.sha256 == policy.description.sha256
