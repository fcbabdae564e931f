"""Values of a space as DataContainers and back, each checked against the space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from reprlib import repr as show
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from quicgym.envs.ns3gym import messages
from quicgym.envs.ns3gym.errors import MessageError
from quicgym.envs.ns3gym.fixed_point import FixedPoint
from quicgym.envs.ns3gym.messages import Dtype, SpaceType, pack, unpack

NUMPY_DTYPES: dict[int, np.dtype[Any]] = {
    Dtype.INT: np.dtype(np.int32),
    Dtype.UINT: np.dtype(np.uint32),
    Dtype.FLOAT: np.dtype(np.float32),
    Dtype.DOUBLE: np.dtype(np.float64),
}
_FLOATS = (Dtype.FLOAT, Dtype.DOUBLE)
_LISTS = {
    Dtype.INT: "intData",
    Dtype.UINT: "uintData",
    Dtype.FLOAT: "floatData",
    Dtype.DOUBLE: "doubleData",
}


Outside = Callable[[str], None]
"""Is told, with a text that names the field, of a value outside of its space; may raise."""


def refuse(text: str) -> None:
    """Raises a MessageError."""
    raise MessageError(text)


def enum_name(enum: Any, number: int) -> str:
    """Returns a value of an enum as an error shows it."""
    return enum(number).name if number in list(enum) else str(number)


class SpaceCodec(ABC):
    """A space on this side, and its way over the wire, where it has a name."""

    type: ClassVar[Any]
    container_class: ClassVar[Any]

    def __init__(self, space: gymnasium.Space[Any], name: str) -> None:
        """Keeps the space."""
        self.space = space
        self.name = name

    def description(self) -> Any:
        """Returns the SpaceDescription."""
        description = messages.SpaceDescription(type=self.type, name=self.name)
        pack(description.space, self._describe())
        return description

    def encode(self, value: Any, where: str) -> Any:
        """Returns the DataContainer of a value.

        MessageError, whose text begins with `where`: the value is not in the space.
        """
        container = messages.DataContainer(type=self.type, name=self.name)
        pack(container.data, self._encode(value, where))
        return container

    def decode(self, container: Any, where: str, outside: Outside = refuse) -> Any:
        """Returns the value in a DataContainer.

        `outside` is told of a number beyond the space's bounds; the value is returned as it is if
        this does not raise. MessageError, whose text begins with `where`, names the field that is
        wrong.
        """
        if container.type != self.type:
            found = enum_name(SpaceType, container.type)
            raise MessageError(f"{where}.type = {found}: the space is a {self.type.name}")
        data = unpack(container.data, self.container_class, f"{where}.data")
        return self._decode(data, f"{where}.data", outside)

    @abstractmethod
    def _describe(self) -> Any: ...

    @abstractmethod
    def _encode(self, value: Any, where: str) -> Any: ...

    @abstractmethod
    def _decode(self, data: Any, where: str, outside: Outside) -> Any: ...


class DiscreteCodec(SpaceCodec):
    """A Discrete space; on the wire it begins at 0."""

    type = SpaceType.Discrete
    container_class = messages.DiscreteDataContainer
    space: spaces.Discrete

    def _describe(self) -> Any:
        return messages.DiscreteSpace(n=int(self.space.n))

    def _encode(self, value: Any, where: str) -> Any:
        if not self.space.contains(value):
            raise MessageError(f"{where} = {show(value)}: is not in {self.space}")
        return messages.DiscreteDataContainer(data=int(value) - int(self.space.start))

    def _decode(self, data: Any, where: str, outside: Outside) -> np.int64:
        if not 0 <= data.data < self.space.n:
            outside(f"{where}.data = {data.data}: is not in 0 to {self.space.n - 1}")
        return np.int64(data.data + self.space.start)


class BoxCodec(SpaceCodec):
    """A Box; the wire has one lower and one upper bound for all its elements, in float32.

    The description states `dtype`, `low` and `high`; this side sends values in `sent_dtype` and
    states `sent_shape` with them. With `fixed_point` numbers become unsigned integers.
    """

    type = SpaceType.Box
    container_class = messages.BoxDataContainer
    space: spaces.Box

    def __init__(
        self,
        space: spaces.Box,
        name: str,
        dtype: Any,
        low: float,
        high: float,
        *,
        sent_dtype: Any,
        sent_shape: Sequence[int],
        fixed_point: FixedPoint | None = None,
    ) -> None:
        """Keeps them."""
        super().__init__(space, name)
        self.dtype = dtype
        self.low = low
        self.high = high
        self.fixed_point = fixed_point
        self._sent_dtype = sent_dtype
        self._sent_shape = list(sent_shape)
        # The clients of float64 spaces send FLOAT.
        self._received_dtypes = _FLOATS if dtype in _FLOATS else (dtype,)
        self._size = int(np.prod(space.shape))

    def _describe(self) -> Any:
        return messages.BoxSpace(
            low=self.low, high=self.high, dtype=self.dtype, shape=self.space.shape
        )

    def _encode(self, value: Any, where: str) -> Any:
        data = messages.BoxDataContainer(dtype=self._sent_dtype, shape=self._sent_shape)
        numbers = self._to_wire(self._checked(value, where), where)
        getattr(data, _LISTS[self._sent_dtype]).extend(numbers.tolist())
        return data

    def _checked(self, value: Any, where: str) -> np.ndarray:
        """The value as a flat array, if it is in the space."""
        space = self.space
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise MessageError(f"{where} = {show(value)}: is no array: {error}") from None
        integer = np.issubdtype(space.dtype, np.integer)
        if array.shape != space.shape or array.dtype.kind not in ("iub" if integer else "fiub"):
            raise MessageError(
                f"{where}: is of shape {array.shape} and {array.dtype}; "
                f"give shape {space.shape} and {space.dtype}"
            )
        if not integer:
            array = _narrow(array, np.dtype(space.dtype), where)
        inside = (array >= space.low) & (array <= space.high)  # False for NaN
        if not inside.all():
            index = tuple(map(int, np.argwhere(~inside)[0]))
            raise MessageError(
                f"{where}{list(index) or ''} = {array[index]}: "
                f"is not in {space.low[index]} to {space.high[index]}"
            )
        return array.ravel()

    def _to_wire(self, numbers: np.ndarray, where: str) -> np.ndarray:
        """The numbers in the dtype that is sent."""
        dtype = NUMPY_DTYPES[self._sent_dtype]
        if self._sent_dtype in _FLOATS:
            return _narrow(numbers, dtype, where)
        smallest: float = np.iinfo(dtype).min
        largest: float = np.iinfo(dtype).max
        remedy = f"the wire has no wider integers than {dtype}"
        original = numbers
        if self.fixed_point is not None:
            numbers = self.fixed_point.encode(numbers)
            smallest, largest = self.low, self.high
            remedy = (
                f"fixed point covers {self.fixed_point.offset:g} to "
                f"{self.fixed_point.largest_number:g} here; give the space bounds, or use dtype "
                "float"
            )
        inside = (numbers >= smallest) & (numbers <= largest)
        if not inside.all():
            index = int(np.flatnonzero(~inside)[0])
            raise MessageError(f"{where}[{index}] = {original[index]}: {remedy}")
        return numbers.astype(dtype)

    def _decode(self, data: Any, where: str, outside: Outside) -> np.ndarray:
        if data.dtype not in self._received_dtypes:
            found = enum_name(Dtype, data.dtype)
            raise MessageError(f"{where}.dtype = {found}: the space is of {self.dtype.name}")
        for dtype, other in _LISTS.items():
            if dtype != data.dtype and len(getattr(data, other)) > 0:
                raise MessageError(
                    f"{where}.{other}: holds numbers, and dtype is {Dtype(data.dtype).name}"
                )
        field = f"{where}.{_LISTS[data.dtype]}"
        received = getattr(data, _LISTS[data.dtype])
        if len(received) != self._size:
            raise MessageError(
                f"{field}: holds {len(received)} numbers; the space has {self._size}"
            )
        shape = tuple(data.shape)
        # Existing clients and simulations send flat arrays, some without any shape.
        if shape not in ((), (self._size,), self.space.shape):
            raise MessageError(f"{where}.shape = {show(shape)}: the space is {self.space.shape}")
        numbers = np.fromiter(received, NUMPY_DTYPES[data.dtype], self._size)
        inside = self._inside(numbers, field, outside)
        if self.fixed_point is not None:
            numbers = self.fixed_point.decode(numbers)
            if np.issubdtype(self.space.dtype, np.integer):
                numbers = np.rint(numbers)
        # An element's own bounds may be narrower than those that the other side was told.
        within = np.clip(numbers, self.space.low.ravel(), self.space.high.ravel())
        numbers = np.where(inside, within, numbers)
        return numbers.astype(self.space.dtype).reshape(self.space.shape)

    def _inside(self, numbers: np.ndarray, field: str, outside: Outside) -> np.ndarray:
        # A float64 at its bound may be beyond the float32 that the bound is on the wire.
        with np.errstate(over="ignore"):
            rounded = numbers.astype(np.float32) if numbers.dtype.kind == "f" else numbers
        inside: np.ndarray = (rounded >= self.low) & (rounded <= self.high)  # False for NaN
        if not inside.all():
            not_numbers = np.isnan(numbers)
            index = int(np.flatnonzero(not_numbers if not_numbers.any() else ~inside)[0])
            report = refuse if not_numbers.any() else outside
            report(f"{field}[{index}] = {numbers[index]}: is not in {self.low:g} to {self.high:g}")
        return inside


class TupleCodec(SpaceCodec):
    """A Tuple."""

    type = SpaceType.Tuple
    container_class = messages.TupleDataContainer

    def __init__(self, elements: Sequence[SpaceCodec], name: str) -> None:
        """Makes the space of its elements."""
        super().__init__(spaces.Tuple([element.space for element in elements]), name)
        self.elements = tuple(elements)

    def _describe(self) -> Any:
        return messages.TupleSpace(element=[element.description() for element in self.elements])

    def _encode(self, value: Any, where: str) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(self.elements):
            raise MessageError(
                f"{where} = {show(value)}: is not a tuple of {len(self.elements)} values"
            )
        return messages.TupleDataContainer(
            element=[
                element.encode(item, f"{where}[{index}]")
                for index, (element, item) in enumerate(zip(self.elements, value, strict=True))
            ]
        )

    def _decode(self, data: Any, where: str, outside: Outside) -> tuple[Any, ...]:
        if len(data.element) != len(self.elements):
            raise MessageError(
                f"{where}.element: holds {len(data.element)} values; "
                f"the space has {len(self.elements)}"
            )
        return tuple(
            element.decode(item, f"{where}.element[{index}]", outside)
            for index, (element, item) in enumerate(zip(self.elements, data.element, strict=True))
        )


class DictCodec(SpaceCodec):
    """A Dict; an element's name on the wire is its key, with its fixed point behind it if any."""

    type = SpaceType.Dict
    container_class = messages.DictDataContainer

    def __init__(self, elements: Mapping[str, SpaceCodec], name: str) -> None:
        """Makes the space of its elements, by their keys on this side."""
        super().__init__(
            spaces.Dict([(key, element.space) for key, element in elements.items()]), name
        )
        self.elements = dict(elements)

    def _describe(self) -> Any:
        return messages.DictSpace(
            element=[element.description() for element in self.elements.values()]
        )

    def _encode(self, value: Any, where: str) -> Any:
        if not isinstance(value, Mapping) or set(value) != set(self.elements):
            raise MessageError(
                f"{where} = {show(value)}: is not a dict with the keys {list(self.elements)}"
            )
        return messages.DictDataContainer(
            element=[
                element.encode(value[key], f"{where}[{key!r}]")
                for key, element in self.elements.items()
            ]
        )

    def _decode(self, data: Any, where: str, outside: Outside) -> dict[str, Any]:
        names = [element.name for element in self.elements.values()]
        received = {item.name: item for item in data.element}
        if len(data.element) != len(names) or set(received) != set(names):
            found = show([item.name for item in data.element[: len(names) + 1]])
            raise MessageError(
                f"{where}.element: {len(data.element)} values, named {found}; "
                f"the space has {show(names)}"
            )
        return {
            key: element.decode(received[element.name], f"{where}[{element.name!r}]", outside)
            for key, element in self.elements.items()
        }


def _narrow(numbers: np.ndarray, dtype: np.dtype[Any], where: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrowed = numbers.astype(dtype)
    overflows = np.isinf(narrowed) & ~np.isinf(numbers)
    if overflows.any():
        raise MessageError(f"{where}: {numbers[overflows][0]} does not fit into {dtype}")
    return narrowed
