"""Spaces and values over the wire: exact where they fit, elsewhere an error with the field."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from helpers.ns3gym_peers import NESTED, SMALL_INIT, box_state, container, description, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quicgym.envs.ns3gym import MessageError, messages
from quicgym.envs.ns3gym.codecs import SpaceCodec
from quicgym.envs.ns3gym.descriptions import (
    MAXIMUM_DEPTH,
    MAXIMUM_NUMBERS,
    codec_of_description,
    codec_of_space,
)
from quicgym.envs.ns3gym.fixed_point import LARGEST, FixedPoint
from quicgym.envs.ns3gym.messages import Dtype, SpaceType


def both_ends(space: gymnasium.Space[Any], uint: bool = False) -> tuple[SpaceCodec, SpaceCodec]:
    simulation = codec_of_space(space, "space", uint)
    return simulation, codec_of_description(simulation.description(), "space")


on_any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NUMBER_DTYPES = [np.float32, np.float64, np.int8, np.int32, np.uint8, np.uint16, np.uint32]


@st.composite
def boxes(draw: st.DrawFn) -> spaces.Box:
    dtype = draw(st.sampled_from(NUMBER_DTYPES))
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    if issubclass(dtype, np.floating):
        width = 64 if dtype == np.float64 else 32
        finite = st.floats(-(2.0**100), 2.0**100, width=width)
        # numpy refuses to sample between 0.0 and -0.0; adding 0.0 makes the latter the former.
        low, high = sorted((draw(finite) + 0.0, draw(finite) + 0.0))
        low = draw(st.sampled_from([low, -np.inf]))
        high = draw(st.sampled_from([high, np.inf]))
    else:
        limits = np.iinfo(dtype)
        whole = st.integers(int(limits.min), int(limits.max))
        low, high = sorted((draw(whole), draw(whole)))
    return spaces.Box(low, high, shape, dtype)


def leaves(space: gymnasium.Space[Any]) -> list[gymnasium.Space[Any]]:
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return [leaf for element in inner for leaf in leaves(element)]
    return [space]


LEAVES = st.one_of(
    boxes(), st.builds(spaces.Discrete, st.integers(1, 2**31 - 1), start=st.integers(-9, 9))
)
SPACES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(spaces.Tuple),
        st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3).map(spaces.Dict),
    ),
    max_leaves=5,
)


@on_any_machine
@given(SPACES, st.integers(0, 2**31))
def test_observations_arrive_as_they_were(space: gymnasium.Space[Any], seed: int) -> None:
    simulation, agent = both_ends(space)
    space.seed(seed)
    value = space.sample()
    received = agent.decode(simulation.encode(value, "observation"), "obsData")
    assert agent.space.contains(received)
    assert_equal_numbers(received, value, space)


def assert_equal_numbers(received: Any, value: Any, space: gymnasium.Space[Any]) -> None:
    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            assert_equal_numbers(received[key], value[key], inner)
    elif isinstance(space, spaces.Tuple):
        for index, inner in enumerate(space.spaces):
            assert_equal_numbers(received[index], value[index], inner)
    elif isinstance(space, spaces.Discrete):
        assert received == value - space.start
    else:
        assert received.shape == value.shape
        np.testing.assert_array_equal(received, value)


@on_any_machine
@given(SPACES, st.integers(0, 2**31), st.booleans())
def test_any_action_of_an_agent_is_one_of_the_environment_s_own_space(
    space: gymnasium.Space[Any], seed: int, uint: bool
) -> None:
    simulation, agent = both_ends(space, uint)
    if uint:
        dtypes = {leaf.dtype for leaf in leaves(agent.space) if isinstance(leaf, spaces.Box)}
        assert dtypes <= {np.dtype(np.uint32)}
    agent.space.seed(seed)
    action = agent.space.sample()
    assert space.contains(simulation.decode(agent.encode(action, "action"), "actData"))


def test_nested_spaces_keep_structure_shape_and_dtype() -> None:
    _, agent = both_ends(NESTED)
    assert agent.space == spaces.Dict(
        {
            "matrix": spaces.Box(-2.0, 2.0, (2, 3), np.float64),
            "pair": spaces.Tuple([spaces.Discrete(4), spaces.Box(0, 255, (2,), np.uint32)]),
            "scalar": spaces.Box(-5, 5, (), np.int32),
            "inner": spaces.Dict({"unbounded": spaces.Box(-np.inf, np.inf, (1,), np.float32)}),
        }
    )


def test_bounds_in_float64_leave_every_value_inside() -> None:
    space = spaces.Box(-0.7, 0.7, (1,), np.float64)
    simulation, agent = both_ends(space)
    assert simulation.low <= -0.7 and simulation.high >= 0.7  # type: ignore[attr-defined]
    for value in (-0.7, 0.7):
        encoded = simulation.encode(np.array([value]), "observation")
        assert agent.decode(encoded, "obsData") == [value]
    # The widest action of the agent is a little outside of the environment's own bounds.
    action = np.array([agent.space.high[0]])  # type: ignore[attr-defined]
    assert simulation.decode(agent.encode(action, "action"), "actData") == [0.7]


def test_an_element_s_own_bounds_clip_an_action_within_the_common_ones() -> None:
    space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 10], np.float32))
    simulation, agent = both_ends(space)
    assert agent.space == spaces.Box(-1, 10, (2,), np.float32)
    action = agent.encode(np.array([5, -1], np.float32), "action")
    assert simulation.decode(action, "actData").tolist() == [1, 0]


def test_the_agent_sends_float64_flat_and_as_float() -> None:
    _, agent = both_ends(spaces.Box(-1, 1, (2, 2), np.float64))
    data = messages.BoxDataContainer.FromString(
        agent.encode(np.full((2, 2), 0.5), "action").data.value
    )
    assert data == messages.BoxDataContainer(dtype=Dtype.FLOAT, shape=[4], floatData=[0.5] * 4)


# Fixed point.


@on_any_machine
@given(st.floats(-1e9, 1e9), st.floats(0, 4e9), st.floats(0, 1))
def test_fixed_point_is_exact_to_half_a_step(low: float, width: float, part: float) -> None:
    fixed = FixedPoint.of(spaces.Box(low, low + width, (1,), np.float64))
    number = low + part * (width if width <= 2**32 else 0)
    unsigned = fixed.encode(np.array([number]))
    assert 0 <= unsigned[0] <= LARGEST
    assert abs(fixed.decode(unsigned)[0] - number) <= fixed.scale / 2 + abs(number) * 1e-12


def test_fixed_point_is_in_the_name() -> None:
    space = spaces.Dict({"velocity": spaces.Box(-np.inf, np.inf, (2,), np.float32)})
    simulation, agent = both_ends(space, uint=True)
    (name,) = agent.space.spaces  # type: ignore[attr-defined]
    assert name == "velocity offset=-32768.0 scale=1.52587890625e-05"
    received = agent.decode(
        simulation.encode({"velocity": np.array([-1.5, 2.25], np.float32)}, "observation"), "obs"
    )
    offset, scale = -32768.0, 1.52587890625e-05
    assert (offset + scale * received[name]).tolist() == [-1.5, 2.25]
    assert LARGEST == np.float32(LARGEST) < 2**32


def test_integers_in_fixed_point_are_exact() -> None:
    space = spaces.Box(-5, 5, (11,), np.int64)
    simulation, agent = both_ends(space, uint=True)
    received = agent.decode(simulation.encode(np.arange(-5, 6), "observation"), "obs")
    assert received.tolist() == list(range(11))
    assert simulation.decode(agent.encode(received, "action"), "a").tolist() == list(range(-5, 6))


def test_what_fixed_point_does_not_cover_is_an_error() -> None:
    simulation, _ = both_ends(spaces.Box(-np.inf, np.inf, (2,), np.float32), uint=True)
    with pytest.raises(
        MessageError, match=r"observation\[1\] = 100000\.0: fixed point covers -32768 to 32768"
    ):
        simulation.encode(np.array([0, 1e5], np.float32), "observation")


# Spaces and values that an environment must not have or send.


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.MultiBinary(2), "space: ns3-gym's protocol has no MultiBinary"),
        (spaces.Tuple([spaces.MultiDiscrete([2, 2])]), r"space\[0\]: .* no MultiDiscrete"),
        (spaces.Dict({"a": spaces.Text(3)}), r"space\['a'\]: .* no Text"),
        (spaces.Dict({1: spaces.Discrete(2)}), "key 1 is not a text"),
        (spaces.Discrete(2**31), "space.n = 2147483648: is not below"),
    ],
)
def test_spaces_that_the_protocol_lacks_are_named(
    space: gymnasium.Space[Any], message: str
) -> None:
    with pytest.raises(MessageError, match=message):
        codec_of_space(space, "space", False)


@pytest.mark.parametrize(
    ("space", "value", "message"),
    [
        (spaces.Box(-1, 1, (2,)), [0.0, 1.5], r"obs\[1\] = 1\.5: is not in -1\.0 to 1\.0"),
        (spaces.Box(-1, 1, (2,)), [math.nan, 0], r"obs\[0\] = nan: is not in"),
        (spaces.Box(-1, 1, (2,)), [0.0], r"obs: is of shape \(1,\) and float64; give shape \(2,\)"),
        (spaces.Box(-1, 1, (2,)), [[0.0], [1, 2]], "obs = .*: is no array"),
        (spaces.Box(0, 9, (1,), np.int32), [1.5], "obs: is of shape .* float64"),
        (spaces.Box(0, 2**40, (1,), np.int64), [2**33], r"obs\[0\] = 8589934592: the wire has"),
        (spaces.Box(-np.inf, np.inf, (1,), np.float32), [1e300], "1e\\+300 does not fit"),
        (spaces.Discrete(3), 3, r"obs = 3: is not in Discrete\(3\)"),
        (spaces.Tuple([spaces.Discrete(2)]), (0, 1), "obs = .*: is not a tuple of 1 values"),
        (spaces.Dict({"a": spaces.Discrete(2)}), {"b": 0}, r"with the keys \['a'\]"),
        (spaces.Dict({"a": spaces.Discrete(2)}), {"a": 2}, r"obs\['a'\] = 2: is not in"),
    ],
)
def test_values_outside_of_their_space_are_named(
    space: gymnasium.Space[Any], value: Any, message: str
) -> None:
    with pytest.raises(MessageError, match=message):
        codec_of_space(space, "space", False).encode(value, "obs")


# Spaces that a peer must not describe.


def box(**fields: Any) -> Any:
    good: dict[str, Any] = {"low": 0, "high": 1, "dtype": Dtype.FLOAT, "shape": [2]}
    return description(SpaceType.Box, messages.BoxSpace(**good | fields))


def tuple_of(*elements: Any) -> Any:
    return description(SpaceType.Tuple, messages.TupleSpace(element=elements))


def dict_of(*elements: Any) -> Any:
    return description(SpaceType.Dict, messages.DictSpace(element=elements))


def nested(levels: int) -> Any:
    result = box()
    for _ in range(levels):
        result = tuple_of(result)
    return result


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (messages.SpaceDescription(), "space.type = NoSpaceType: is no space"),
        (messages.SpaceDescription(type=SpaceType.Box), r"space\.space\.type_url = '': is not"),
        (description(SpaceType.Box, messages.DiscreteSpace()), "type_url = .*DiscreteSpace'"),
        (description(SpaceType.Discrete, messages.DiscreteSpace()), r"space\.space\.n = 0"),
        (box(dtype=Dtype.NoDType), r"space\.space\.dtype = NoDType: is not INT"),
        (box(low=2), r"space\.space: no number is in low = 2\.0 to high = 1\.0"),
        (box(low=math.nan), "no number is in low = nan"),
        (box(dtype=Dtype.INT, low=0.2, high=0.8), "no int32 is in low = 0.2"),
        (box(shape=[2, 0]), r"space\.space\.shape = \(2, 0\): has a 0"),
        (box(shape=[1] * 17), "more than 16 dimensions"),
        (box(shape=[MAXIMUM_NUMBERS]), "is too large"),
        (tuple_of(*[box(shape=[2**18])] * 5), r"element\[3\].*: is too large"),
        (tuple_of(*[box()] * 5000), "is too large"),
        (nested(MAXIMUM_DEPTH), f"is nested deeper than {MAXIMUM_DEPTH} levels"),
        (dict_of(box()), r"space\.space\.element\[0\]\.name = '': is missing"),
    ],
)  # fmt: skip
def test_wrong_descriptions_are_named(space: Any, message: str) -> None:
    with pytest.raises(MessageError, match=message):
        codec_of_description(space, "space")


def test_a_name_twice_in_a_dict_is_named() -> None:
    element = box()
    element.name = "a"
    with pytest.raises(MessageError, match=r"element\[1\]\.name = 'a': is there twice"):
        codec_of_description(dict_of(element, element), "space")


def test_infinite_bounds_of_integers_are_those_of_their_dtype() -> None:
    codec = codec_of_description(box(dtype=Dtype.INT, low=-math.inf, high=math.inf), "space")
    assert codec.space == spaces.Box(-(2**31), 2**31 - 1, (2,), np.int32)


# Values that a peer must not send.


def numbers(dtype: int, *values: float, shape: tuple[int, ...] = (2,), **more: Any) -> Any:
    lists = {1: "intData", 2: "uintData", 3: "floatData", 4: "doubleData"}
    fields = {lists[dtype]: values, **more} if dtype in lists else more
    return container(
        SpaceType.Box, messages.BoxDataContainer(dtype=dtype, shape=shape, **fields), "box"
    )


FLOAT_BOX = box(low=-1)
INT_BOX = box(dtype=Dtype.INT, high=9, shape=[1])
PAIR = tuple_of(INT_BOX, FLOAT_BOX)
FLOAT_BOX.name = "box"
NAMED = dict_of(FLOAT_BOX)
FLOAT, DOUBLE, INT, UINT = Dtype.FLOAT, Dtype.DOUBLE, Dtype.INT, Dtype.UINT


def many(kind: Any, *elements: Any) -> Any:
    data = messages.TupleDataContainer if kind == SpaceType.Tuple else messages.DictDataContainer
    return container(kind, data(element=elements))


@pytest.mark.parametrize(
    ("space", "data", "message"),
    [
        (FLOAT_BOX, messages.DataContainer(), r"^x\.type = NoSpaceType: the space is a Box"),
        (FLOAT_BOX, messages.DataContainer(type=2), r"^x\.data\.type_url = ''"),
        (FLOAT_BOX, numbers(INT, 0, 0), r"^x\.data\.dtype = INT: the space is of FLOAT"),
        (FLOAT_BOX, numbers(9), r"dtype = 9: the space is of FLOAT"),
        (FLOAT_BOX, numbers(FLOAT, 0), r"^x\.data\.floatData: holds 1 numbers; the space has 2"),
        (FLOAT_BOX, numbers(FLOAT, 0, 0, shape=(1, 2)), r"^x\.data\.shape = \(1, 2\)"),
        (FLOAT_BOX, numbers(FLOAT, 0, 0, intData=[1]), r"^x\.data\.intData: holds numbers, and"),
        (FLOAT_BOX, numbers(FLOAT, 0, 2), r"^x\.data\.floatData\[1\] = 2\.0: is not in -1 to 1"),
        (FLOAT_BOX, numbers(FLOAT, math.nan, 0), r"floatData\[0\] = nan: is not in"),
        (FLOAT_BOX, numbers(DOUBLE, 0, 1e300), r"doubleData\[1\] = 1e\+300: is not in"),
        (INT_BOX, numbers(INT, -1, shape=(1,)), r"intData\[0\] = -1: is not in 0 to 9"),
        (PAIR, many(SpaceType.Tuple, numbers(INT, 1, shape=(1,))), r"holds 1 values; .* has 2"),
        (PAIR, many(SpaceType.Tuple, *[numbers(INT, 1, shape=(1,))] * 2),
         r"^x\.data\.element\[1\]\.data\.dtype = INT"),
        (NAMED, many(SpaceType.Dict, *[numbers(FLOAT, 0, 0)] * 2), r"2 values, named"),
        (NAMED, many(SpaceType.Dict, numbers(FLOAT, 0, 7)),
         r"^x\.data\['box'\]\.data\.floatData\[1\] = 7\.0"),
        (SMALL_INIT.actSpace, container(1, messages.DiscreteDataContainer(data=3)),
         r"^x\.data\.data = 3: is not in 0 to 2"),
    ],
)  # fmt: skip
def test_wrong_data_is_named(space: Any, data: Any, message: str) -> None:
    with pytest.raises(MessageError, match=message):
        codec_of_description(space, "space").decode(data, "x")


@pytest.mark.parametrize("shape", [(), (2,), (1, 2)])
def test_flat_data_and_data_without_shape_are_taken(shape: tuple[int, ...]) -> None:
    codec = codec_of_description(box(shape=[1, 2]), "space")
    received = codec.decode(numbers(FLOAT, 0.25, 1, shape=shape), "x")
    assert same(received, np.array([[0.25, 1]], np.float32))


# Whatever comes: a value of the space, or MessageError.

DATA_FIELDS = [(messages.EnvStateMsg, "obsData"), (messages.EnvActMsg, "actData")]
FRAMES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda data, place, part: data[:place] + part + data[place + len(part) :],
        st.sampled_from(
            [
                SMALL_INIT.SerializeToString(),
                box_state(0.5, -0.5, reward=1, info="x").SerializeToString(),
                messages.SimInitMsg(obsSpace=PAIR, actSpace=NAMED).SerializeToString(),
            ]
        ),
        st.integers(0, 200),
        st.binary(max_size=4),
    ),
)


@on_any_machine
@given(FRAMES)
def test_any_bytes_are_spaces_or_an_error(frame: bytes) -> None:
    with suppress(MessageError):
        init = messages.parse(messages.SimInitMsg, frame, "frame")
        codec = codec_of_description(init.obsSpace, "SimInitMsg.obsSpace")
        value = codec.space.sample()
        assert codec.space.contains(value)
        codec.encode(value, "value")  # what the space has goes over the wire


@on_any_machine
@given(FRAMES, st.sampled_from([SMALL_INIT.obsSpace, PAIR, NAMED, SMALL_INIT.actSpace]))
def test_any_bytes_are_a_value_of_the_space_or_an_error(frame: bytes, space: Any) -> None:
    codec = codec_of_description(space, "space")
    for message_class, field in DATA_FIELDS:
        with suppress(MessageError):
            message = messages.parse(message_class, frame, "frame")
            assert codec.space.contains(codec.decode(getattr(message, field), field))
