"""Policies wholly in the kernel: integers beside floats, what is refused, and transfers."""

from __future__ import annotations

import hashlib
import itertools
import json

import gymnasium
import numpy as np
import pytest
from behind_link import ours, transfer

from quicgym import _core
from quicgym.agents.policies.by_name import policy_description
from quicgym.agents.policies.learned import load_policy
from quicgym.errors import UserError

loader = pytest.importorskip("quicgym_linux._loader")
window_policy = pytest.importorskip("quicgym_linux.window_policy")
kernel = pytest.importorskip("quicgym_linux.kernel")

ONE = 1 << window_policy.FIXED_SHIFT
CHOICES = 13
SCENARIOS = {"ebcc-single": 1400, "cubic-plus-2mbps-50kb": 1470, "high-latency": 1470}
"""Scenario -> its datagram's bytes."""
POLICIES = {"window": "recent"}
BASE_RTT_AGE = 8 * 9 + 2
"""Place in `recent`: eight spans of nine features come first."""
STATE = np.dtype(_core.LAYOUTS["FlowState"])


def integers(state):
    """A state of the simulator in the units of bpf/observation.h."""
    sample = state["sample"]
    return [
        int(sample["time"]) // 1000,
        int(state["start"]) // 1000,
        int(sample["window_bytes"]),
        round(float(sample["pacing_rate"])),
        int(sample["in_flight_bytes"]),
        int(sample["sent_bytes"]),
        int(sample["delivered_bytes"]),
        int(sample["lost_bytes"]),
        int(state["ecn_marks"]),
        int(state["rtt_samples"]),
        round(float(state["rtt_sum_seconds"]) * 1e9),
        int(state["min_rtt"]),
        int(sample["smoothed_rtt"]),
        int(sample["mode"]),
    ]


def record(scenario, layout, steps):
    """Observations of an episode with drawn actions, and the states that they are of."""
    environment = gymnasium.make(
        "quicgym/Window-v1", scenario=scenario, observations=layout, decision_interval_rtts=1.0
    )
    observation, _ = environment.reset(seed=7)
    simulation = environment.unwrapped._batch._batch.simulation(0)
    draw = np.random.default_rng(3)
    observations, states = [observation], []
    for step in range(steps + 1):
        states.append(integers(np.frombuffer(simulation.state(0), STATE)[0]))
        if step == steps:
            break
        # Mostly small factors, so that windows move and stay possible.
        action = int(np.clip(round(draw.normal(6, 1.5)), 0, CHOICES - 1))
        observation, _, ended, cut, _ = environment.step(action)
        observations.append(observation)
        if ended or cut:
            states.append(integers(np.frombuffer(simulation.state(0), STATE)[0]))
            break
    return np.array(observations), states[: len(observations)]


@pytest.fixture(scope="module")
def recordings():
    return {
        (scenario, layout): record(scenario, layout, 180)
        for scenario in SCENARIOS
        for layout in ("recent", "spans")
    }


def lowest_rtt_is_shared(states):
    """Whether two intervals of late have the lowest mean RTT, to a nanosecond."""
    times, samples, sums = (np.array([state[place] for state in states]) for place in (0, 9, 10))
    counts = np.diff(samples)
    ages = np.arange(len(counts))[::-1]
    is_recent = (ages < 10) | (times[-1] - times[1:] <= 10_000_000)
    chosen = is_recent & (counts > 0)
    means = np.sort(np.diff(sums)[chosen] / counts[chosen])
    return bool(means[1] - means[0] <= 1.0)


@pytest.mark.parametrize("layout", ["recent", "spans"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_observations_in_integers_are_those_in_floats(recordings, scenario, layout):
    observations, states = recordings[scenario, layout]
    assert len(states) > 100
    for end in range(1, len(states) + 1):
        ours = np.array(loader.observe(layout == "recent", SCENARIOS[scenario], states[:end])) / ONE
        theirs = observations[end - 1][:-CHOICES].copy()
        if layout == "recent" and abs(ours[BASE_RTT_AGE] - theirs[BASE_RTT_AGE]) > 2e-3:
            # Rounding in floats decides which of two intervals with equal RTTs has the lowest.
            assert lowest_rtt_is_shared(states[:end])
            theirs[BASE_RTT_AGE] = ours[BASE_RTT_AGE]
        np.testing.assert_allclose(ours, theirs, atol=2e-3, err_msg=str(end))


def as_integers(observation):
    return [int(value) for value in np.rint(np.asarray(observation, float) * ONE)]


@pytest.mark.parametrize("name", POLICIES)
def test_the_network_in_integers_chooses_what_it_chooses_in_floats(recordings, name):
    policy = load_policy(name)
    fixed = window_policy.for_kernel(policy_description(name))
    same, steps, count = 0, 0, 0
    for scenario in SCENARIOS:
        observations, _ = recordings[scenario, POLICIES[name]]
        for observation, chosen in zip(observations, policy(observations), strict=True):
            outputs = loader.compute(fixed.network, fixed.layers, as_integers(observation))
            choice = int(np.argmax(outputs))
            same += choice == int(chosen)
            steps = max(steps, abs(choice - int(chosen)))
            count += 1
    assert count > 300
    assert same / count > 0.98
    assert steps <= 1


def test_observation_and_network_together_choose_as_in_floats(recordings):
    policy = load_policy("window")
    fixed = window_policy.for_kernel(policy_description("window"))
    same, count = 0, 0
    for scenario, datagram in SCENARIOS.items():
        observations, states = recordings[scenario, "recent"]
        for end in range(1, len(states) + 1):
            action = as_integers(observations[end - 1][-CHOICES:])
            inputs = loader.observe(True, datagram, states[:end]) + action
            outputs = loader.compute(fixed.network, fixed.layers, inputs)
            same += int(np.argmax(outputs)) == int(policy(observations[end - 1]))
            count += 1
    assert same / count > 0.97


def stored(folder, sizes, **changes):
    """A policy's files with a network of zeros; the first of the sizes is the extractor's."""
    safetensors = pytest.importorskip("safetensors.numpy")
    shapes = {"features.layers.0": (sizes[0], 102)}
    for number, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        shapes[f"hidden.{2 * number}"] = (outputs, inputs)
    shapes["action"] = (CHOICES, sizes[-1])
    tensors = {}
    for name, shape in shapes.items():
        tensors[f"{name}.weight"] = np.zeros(shape, np.float32)
        tensors[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    data = safetensors.save(tensors)
    description = json.loads(policy_description("window").read_text(encoding="utf-8"))
    description["architecture"] |= {"extractor_sizes": sizes[:1], "hidden_sizes": sizes[1:]}
    description |= changes | {"name": "zeros", "sha256": hashlib.sha256(data).hexdigest()}
    path = folder / "zeros.json"
    path.write_text(json.dumps(description), encoding="utf-8")
    path.with_suffix(".safetensors").write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([300, 64], "300 inputs or outputs of a layer, .* 256"),
        ([64, 64, 64, 64], "5 layers, .* 4"),
        ([256, 256, 256], "160512 weights, .* 131072"),
    ],
)
def test_a_network_that_is_too_large_is_refused_with_the_limit(sizes, said, tmp_path):
    with pytest.raises(UserError, match=f"zeros.json: {said}; .* the agent"):
        window_policy.for_kernel(stored(tmp_path, sizes))


def test_the_widest_network_fits(tmp_path):
    fixed = window_policy.for_kernel(stored(tmp_path, [256, 256]))
    assert len(loader.compute(fixed.network, fixed.layers, [ONE] * 102)) == CHOICES


def test_a_policy_of_another_environment_is_refused():
    path = policy_description("tuning")
    with pytest.raises(UserError, match="environment = 'tuning': policies in the kernel have"):
        window_policy.for_kernel(path)


@pytest.mark.parametrize("damage", [(b"x", [[1, 1, 0, 0, 1, 0]], [0]), (b"", [], [])])
def test_a_network_of_another_size_is_an_error(damage):
    with pytest.raises(ValueError, match="another size"):
        loader.compute(*damage)


@pytest.mark.kernel
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_in_the_kernel_carries_a_transfer(name, tmp_path):
    received, said = transfer(tmp_path, f"kernel:{name}", 2.5)
    assert f"policy {name.removesuffix('-seed2')}, wholly in the kernel" in said
    assert 2.0 < received["bytes"] * 8e-6 / received["seconds"] <= 8.0
    assert received["controller"] not in ours()


@pytest.mark.kernel
def test_the_verifier_follows_far_fewer_instructions_than_it_takes():
    with kernel.KERNEL.load("kernel:window") as loaded:
        program = loaded._parts[0]
        assert 1000 < program.verified_instructions < 100_000


@pytest.mark.kernel
def test_the_largest_network_passes_the_verifier(tmp_path):
    with kernel.KERNEL.load(f"kernel:{stored(tmp_path, [256, 256, 128])}") as loaded:
        assert loaded._parts[0].verified_instructions < 200_000


@pytest.mark.kernel
def test_a_controller_is_no_policy_for_the_kernel():
    with pytest.raises(UserError, match="there is no policy 'copa'"):
        kernel.KERNEL.load("kernel:copa")
