"""Spaces as SpaceDescriptions and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from reprlib import repr as show
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from quicgym.envs.ns3gym import messages
from quicgym.envs.ns3gym.codecs import (
    NUMPY_DTYPES,
    BoxCodec,
    DictCodec,
    DiscreteCodec,
    SpaceCodec,
    TupleCodec,
    enum_name,
)
from quicgym.envs.ns3gym.errors import MessageError
from quicgym.envs.ns3gym.fixed_point import LARGEST, FixedPoint
from quicgym.envs.ns3gym.messages import Dtype, SpaceType, unpack

MAXIMUM_NUMBERS = 2**20
"""Numbers that a described space may have in all; beyond, its Boxes alone fill the memory."""
MAXIMUM_DEPTH = 16
"""Levels of Tuples and Dicts in each other."""

_NUMBERS_PER_SPACE = 256  # memory of an empty space, counted in numbers


def codec_of_space(
    space: gymnasium.Space[Any], where: str, fixed_point: bool, name: str = ""
) -> SpaceCodec:
    """Returns the codec of an environment's space, as a simulation describes it.

    With `fixed_point` every Box is sent in unsigned integers; its name then says how. MessageError,
    whose text begins with `where`, for a space that the protocol has not.
    """
    if isinstance(space, spaces.Box):
        return _codec_of_box(space, where, fixed_point, name)
    if isinstance(space, spaces.Discrete):
        if space.n >= 2**31:
            raise MessageError(f"{where}.n = {space.n}: is not below 2^31")
        return DiscreteCodec(space, name)
    if isinstance(space, spaces.Tuple):
        return TupleCodec(
            [
                codec_of_space(element, f"{where}[{index}]", fixed_point)
                for index, element in enumerate(space.spaces)
            ],
            name,
        )
    if isinstance(space, spaces.Dict):
        elements = {}
        for key, element in space.spaces.items():
            if not isinstance(key, str) or not key:
                raise MessageError(f"{where}: key {key!r} is not a text; name its elements")
            elements[key] = codec_of_space(element, f"{where}[{key!r}]", fixed_point, key)
        return DictCodec(elements, name)
    raise MessageError(
        f"{where}: ns3-gym's protocol has no {type(space).__name__}, only Box, Discrete, Tuple and "
        "Dict; wrap the environment"
    )


def _codec_of_box(space: spaces.Box, where: str, fixed_point: bool, name: str) -> BoxCodec:
    kind = np.dtype(space.dtype).kind
    if kind not in "fiub":
        raise MessageError(f"{where}: ns3-gym's protocol has no Box of {space.dtype}")
    if fixed_point and kind in "fi":
        fixed = FixedPoint.of(space)
        return BoxCodec(
            space,
            f"{name} {fixed}".strip(),
            Dtype.UINT,
            0.0,
            float(LARGEST),
            sent_dtype=Dtype.UINT,
            sent_shape=space.shape,
            fixed_point=fixed,
        )
    if kind == "f":
        dtype = Dtype.DOUBLE if space.dtype == np.float64 else Dtype.FLOAT
    else:
        dtype = Dtype.INT if kind == "i" else Dtype.UINT
    return BoxCodec(
        space,
        name,
        dtype,
        _round_out(space.low.min(), -math.inf),
        _round_out(space.high.max(), math.inf),
        sent_dtype=dtype,
        sent_shape=space.shape,
    )


def _round_out(bound: Any, direction: float) -> float:
    """The nearest float32 that leaves every value inside."""
    with np.errstate(over="ignore"):
        rounded = np.float32(bound)
    inside = rounded <= bound if direction < 0 else rounded >= bound
    return float(rounded if inside else np.nextafter(rounded, np.float32(direction)))


@dataclass
class _Budget:
    """Counts how many numbers a description may still have."""

    numbers: int = MAXIMUM_NUMBERS

    def spend(self, numbers: int, where: str) -> None:
        self.numbers -= numbers
        if self.numbers < 0:
            raise MessageError(
                f"{where}: is too large: a space may have {MAXIMUM_NUMBERS} numbers in all, "
                f"each part of it counting as {_NUMBERS_PER_SPACE} at least"
            )


def codec_of_description(description: Any, where: str) -> SpaceCodec:
    """Returns the codec of a space that a simulation describes, as an agent uses it.

    Boxes get int32, uint32, float32 or float64. Actions are sent as ns3-gym's client sends them:
    flat, and float64 as FLOAT. MessageError names the field where the description is of no space,
    or of too large a one.
    """
    return _codec_of_description(description, where, _Budget(), MAXIMUM_DEPTH)


def _codec_of_description(description: Any, where: str, budget: _Budget, depth: int) -> SpaceCodec:
    inner = f"{where}.space"
    name = description.name
    if depth == 0:
        raise MessageError(f"{where}: is nested deeper than {MAXIMUM_DEPTH} levels")
    budget.spend(_NUMBERS_PER_SPACE, where)
    if description.type == SpaceType.Discrete:
        n = unpack(description.space, messages.DiscreteSpace, inner).n
        if n < 1:
            raise MessageError(f"{inner}.n = {n}: is not above 0")
        return DiscreteCodec(spaces.Discrete(n), name)
    if description.type == SpaceType.Box:
        box = unpack(description.space, messages.BoxSpace, inner)
        return _codec_of_box_description(box, inner, budget, name)
    if description.type == SpaceType.Tuple:
        elements = unpack(description.space, messages.TupleSpace, inner).element
        return TupleCodec(
            [
                _codec_of_description(element, f"{inner}.element[{index}]", budget, depth - 1)
                for index, element in enumerate(elements)
            ],
            name,
        )
    if description.type == SpaceType.Dict:
        named: dict[str, SpaceCodec] = {}
        elements = unpack(description.space, messages.DictSpace, inner).element
        for index, element in enumerate(elements):
            field = f"{inner}.element[{index}]"
            if not element.name or element.name in named:
                problem = "is there twice" if element.name else "is missing"
                raise MessageError(f"{field}.name = {show(element.name)}: {problem}")
            named[element.name] = _codec_of_description(element, field, budget, depth - 1)
        return DictCodec(named, name)
    found = enum_name(SpaceType, description.type)
    raise MessageError(f"{where}.type = {found}: is no space; it is Discrete, Box, Tuple or Dict")


def _codec_of_box_description(box: Any, where: str, budget: _Budget, name: str) -> BoxCodec:
    if box.dtype not in NUMPY_DTYPES:
        found = enum_name(Dtype, box.dtype)
        raise MessageError(f"{where}.dtype = {found}: is not INT, UINT, FLOAT or DOUBLE")
    shape = tuple(box.shape)
    if len(shape) > MAXIMUM_DEPTH or 0 in shape:
        raise MessageError(
            f"{where}.shape = {show(shape)}: has a 0, or more than {MAXIMUM_DEPTH} dimensions"
        )
    budget.spend(math.prod(shape), f"{where}.shape = {show(shape)}")
    if not (-math.inf <= box.low <= box.high and box.low < math.inf and box.high > -math.inf):
        raise MessageError(f"{where}: no number is in low = {box.low} to high = {box.high}")
    dtype = NUMPY_DTYPES[box.dtype]
    low: float = box.low
    high: float = box.high
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low = math.ceil(max(low, limits.min))
        high = math.floor(min(high, limits.max))
        if low > high:
            raise MessageError(f"{where}: no {dtype} is in low = {box.low} to high = {box.high}")
    dtype_sent = Dtype.FLOAT if box.dtype == Dtype.DOUBLE else Dtype(box.dtype)
    return BoxCodec(
        spaces.Box(low, high, shape, dtype.type),
        name,
        Dtype(box.dtype),
        box.low,
        box.high,
        sent_dtype=dtype_sent,
        sent_shape=(math.prod(shape),),
    )
