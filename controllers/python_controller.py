"""Controllers that users write in Python."""

from __future__ import annotations

import difflib
import inspect
import traceback
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from quicgym._core import AckEvent, EcnEvent, LossEvent
from quicgym.controllers.description import ControllerInfo, Parameter, check_name


class ControllerError(RuntimeError):
    """A controller in Python failed, and the run with it.

    The text names the class, the callback, the simulated time in s and the reason; `__cause__` is
    the exception itself.
    """


class Controller(ABC):
    """A congestion controller in Python: subclass it, and pass the class to `run` or `Simulation`.

    The sender calls the methods below while the simulation runs, one instance per flow. They set
    `window_bytes`, and `pacing_rate` and `mode` if they like; the sender reads these attributes
    after every call. A method that raises, returns anything but None or leaves a value that cannot
    be used ends the run with a ControllerError.

    Each entry of `parameters` becomes an attribute of the instance: a float, or a list of floats.
    Set up a connection's state in `on_start`. Later methods cannot add attributes: a misspelt one,
    such as `cwnd`, is an error.

    Times are int ns from the start of the simulation, sizes are int bytes of UDP payload, rates
    are bytes per second. An event shows the simulator's own values and is filled anew for each
    call: take numbers out of it, do not keep it. Changing it changes nothing. Random numbers come
    from `event.random`, so that a seed gives the same run again.

    Attributes:
        name: Under which results show it; empty: the class's name.
        source: The paper; empty: module and class.
        parameters: The parameters that scenarios and `set_parameters` may set.
        max_datagram_bytes: Size of a full packet.
        window_bytes: The congestion window, an int above 0; at first RFC 9002's initial window.
            Below one datagram nothing is sent, and with nothing in flight only a timer brings a
            further call.
        pacing_rate: Bytes per second. None: paced by the window as NewReno is, at 1.25 times
            window / smoothed RTT, and at 2 times in the mode slow_start.
        timer: When to call `on_timer` next, in ns from the start of the simulation; None: never. A
            timer is for once. Only a class that overrides `on_timer` has it.
        mode: The mode that traces show: slow_start, congestion_avoidance, recovery, startup, drain,
            probe_bw or probe_rtt.

    Example:
        class Aimd(quicgym.Controller):
            name = "aimd"
            parameters = (quicgym.controllers.Parameter("decrease", 0.5, 0.1, 0.9),)

            def on_ack(self, event):
                if event.round_start:
                    self.window_bytes += self.max_datagram_bytes

            def on_loss(self, event):
                smallest = 2 * self.max_datagram_bytes
                self.window_bytes = max(int(self.window_bytes * self.decrease), smallest)

        quicgym.run("ebcc-single", Aimd)
        quicgym.run("ebcc-single", Aimd.with_parameters(decrease=0.7))
    """

    name: ClassVar[str] = ""
    source: ClassVar[str] = ""
    parameters: ClassVar[Sequence[Parameter]] = ()

    max_datagram_bytes: int
    window_bytes: int
    pacing_rate: float | None = None
    timer: int | None
    mode: str = "congestion_avoidance"

    @classmethod
    def with_parameters(cls, **values: float | Sequence[float]) -> type[Controller]:
        """Returns a subclass with other defaults, named after them: `aimd(decrease=0.7)`.

        Raises:
            ValueError: Unknown name or value out of range.
        """
        info = describe(cls)
        defaults = info.complete(values)
        parameters = tuple(
            Parameter(
                entry.name,
                defaults[entry.name] if entry.is_list else defaults[entry.name][0],
                entry.minimum,
                entry.maximum,
                unit=entry.unit,
                description=entry.description,
                source=entry.source,
                choices=entry.choices,
            )
            for entry in info.parameters
        )
        given = ", ".join(
            f"{name}={' '.join(f'{number:g}' for number in defaults[name])}" for name in values
        )
        members: dict[str, Any] = {
            "name": f"{info.name}({given})",
            "source": info.source,
            "parameters": parameters,
            "__doc__": cls.__doc__,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
        }
        return cast(type[Controller], ABCMeta(cls.__name__, (cls,), members))

    def on_parameters(self, values: Mapping[str, float | list[float]]) -> None:
        """Takes parameters: all of them before `on_start`, later those that were changed.

        They are checked. This sets the attributes; override it to work something out from them.
        """
        for name, value in values.items():
            setattr(self, name, value)

    def on_start(self, max_datagram_bytes: int) -> None:  # noqa: B027 - may be left out
        """Called once, when the simulation is built; the attributes have their first values."""

    @abstractmethod
    def on_ack(self, event: AckEvent) -> None:
        """Called for each ACK frame that acknowledges something new, after `on_loss`.

        The first call is for the handshake, which acknowledges no data.
        """

    @abstractmethod
    def on_loss(self, event: LossEvent) -> None:
        """Called when packets are declared lost, once for all that one ACK or timer reveals."""

    def on_packet_sent(  # noqa: B027
        self, now: int, bytes: int, in_flight_bytes: int
    ) -> None:
        """Called for each packet, this one counted in `in_flight_bytes`, if overridden: slow."""

    def on_persistent_congestion(self, now: int) -> None:
        """Called after losses over a long time (RFC 9002 7.6); by default: the smallest window."""
        self.window_bytes = 2 * self.max_datagram_bytes

    def on_ecn(self, event: EcnEvent) -> None:  # noqa: B027
        """Called when the peer reports more ECN-CE marks. The default does nothing."""

    def on_timer(self, now: int) -> None:  # noqa: B027
        """Called at the time `timer`, in ns, or once connected where that is later.

        `timer` is None then. To be called again, set it to a later time.
        """

    def _new_attributes(self, known: set[str]) -> str:
        """Adds names that the class has to `known`; returns an error's text about others, or ""."""
        for name in self.__dict__:
            if name not in known and not hasattr(type(self), name):
                return (
                    f"{name!r} is neither a parameter nor set in on_start: set it there first, or "
                    f"did you mean {_intended(name, known)}?"
                )
        known.update(self.__dict__)
        return ""

    @classmethod
    def _failure(cls, callback: str, time_s: float, cause: BaseException) -> ControllerError:
        """Made by the simulator; the message alone must do, since no cause crosses processes."""
        frames = traceback.extract_tb(cause.__traceback__)
        where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
        error = ControllerError(
            f"controller {cls.__name__} failed in {callback} at {time_s:.9g} s: "
            f"{type(cause).__name__}: {cause}{where}"
        )
        error.__cause__ = cause
        return error

    @classmethod
    def _copy_failure(cls, cause: BaseException) -> ControllerError:
        """Made by the simulator where copy.deepcopy of an instance fails."""
        error = ControllerError(
            f"controller {cls.__name__} cannot be copied, as clone_state and restore_state do by "
            f"copy.deepcopy: {type(cause).__name__}: {cause}; keep it out of the attributes, or "
            "define __deepcopy__"
        )
        error.__cause__ = cause
        return error


def _intended(name: str, known: set[str]) -> str:
    """Returns the attribute, of those that may be set, that another name probably stands for."""
    if name == "timer":
        return "on_timer, which a class overrides to have a timer"
    writable = sorted({*known, "window_bytes", "pacing_rate", "mode"} - {"max_datagram_bytes"})
    similar = difflib.get_close_matches(name, writable, n=1)
    if similar:
        return similar[0]
    return "pacing_rate" if "rate" in name or "pac" in name else "window_bytes"


def describe(controller: type[Controller]) -> ControllerInfo:
    """Returns what a subclass of Controller says about itself.

    Raises:
        TypeError: The class is no subclass, lacks a method or declares parameters of another type.
        ValueError: Two parameters have one name, or one has the name of something else, or the
            class has that of a controller of quicgym.
    """
    if not (isinstance(controller, type) and issubclass(controller, Controller)):
        raise TypeError(f"{controller!r} is not a subclass of quicgym.Controller")
    title = f"controller {controller.__name__}"
    if inspect.isabstract(controller):
        lacking = ", ".join(sorted(controller.__abstractmethods__))
        raise TypeError(f"{title} lacks the method {lacking}")
    parameters = tuple(controller.parameters)
    names = []
    for parameter in parameters:
        if not isinstance(parameter, Parameter):
            raise TypeError(f"{title}: {parameter!r} in `parameters` is not a Parameter")
        if parameter.name in names or parameter.name in dir(Controller) + list(
            Controller.__annotations__
        ):
            raise ValueError(f"{title}: the name of parameter {parameter.name!r} is taken")
        names.append(parameter.name)
    name = controller.name or controller.__name__
    check_name(title, name)
    return ControllerInfo(
        name=name,
        description=(inspect.cleandoc(controller.__doc__ or "").splitlines() or [""])[0],
        source=controller.source or f"{controller.__module__}.{controller.__qualname__}",
        parameters=parameters,
        python_class=controller,
    )
