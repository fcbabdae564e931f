"""How users name a controller, and the controllers that are named by where they are.

| form | is |
|---|---|
| `cubic` | a controller of quicgym, or of an installed package |
| `path/to/file.py:Class` | a subclass of Controller in a file, which is run |
| `package.module:Class` | the same in a module that Python can import |
| `path/to/library.so:name` | a controller in C++, compiled as QUICGYM_CONTROLLER_MODULE(name, …) |
| `path/to/agent.json` | an agent of other authors, as `quicgym import-agent` writes it |
| any of these and `:gamma=3,beta=0.7` | the same with other parameters; a list is `1.25/0.75/1` |
| `cubic:slow_start=standard` | the same with a value that has a name |
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from hashlib import sha256
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from quicgym import _core
from quicgym.controllers.description import ControllerInfo
from quicgym.controllers.plugins import describe_plugin
from quicgym.controllers.python_controller import Controller, describe
from quicgym.errors import UserError
from quicgym.input_files import MOST_DESCRIPTION_BYTES, read_input
from quicgym.python_files import PythonFile, is_python_object

_PARAMETERS = re.compile(r"(?P<controller>.+?):(?P<parameters>\w+=[^:]*)")
_VALUE = re.compile(r"[a-z][a-z0-9+-]*")
_LIBRARY = re.compile(r"(?P<path>.+\.(?:so|dylib|pyd)):(?P<name>[A-Za-z_]\w*)")
_DESCRIPTION = ".json"
_MODULE = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")


class ControllerFileError(UserError, ImportError):
    """A controller that is named by its place cannot be used; the text says why."""


def split_parameters(choice: str) -> tuple[str, str]:
    """Returns what names a controller, and the text of its parameters; that is empty for none."""
    match = _PARAMETERS.fullmatch(choice)
    return (match["controller"], match["parameters"]) if match else (choice, "")


def parse_parameters(text: str) -> dict[str, Any]:
    """Returns the parameters in `gamma=60,gain_cycle=1.25/0.75/1`; lists are parted by slashes.

    A value may be a name, as in `slow_start=standard`.

    Raises:
        ValueError: Something is not of the form name=number or name=name, or is there twice.
    """
    parameters: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        numbers: list[Any]
        try:
            numbers = [float(number) for number in value.split("/")]
        except ValueError:
            numbers = [value] if _VALUE.fullmatch(value) else []
        if not name or not equals or not numbers:
            raise ValueError(
                f"{part!r} is no parameter: write name=number, name=number/number/... for a list, "
                "or name=value for a value that has a name"
            )
        if name.strip() in parameters:
            raise ValueError(f"{name.strip()} is there twice in {text!r}: give one value")
        parameters[name.strip()] = numbers if len(numbers) > 1 else numbers[0]
    return parameters


def is_place(choice: str) -> bool:
    """Whether a text names a controller by where it is.

    `file.py:object` and `file.json` may be a policy, too.
    """
    controller, _ = split_parameters(choice)
    if controller.endswith(_DESCRIPTION) or is_python_object(controller):
        return True
    return any(form.fullmatch(controller) for form in (_LIBRARY, _MODULE))


def is_agent(choice: str) -> bool:
    """Whether a text names the description of an agent of other authors, and not of a policy."""
    controller, _ = split_parameters(choice)
    if not controller.endswith(_DESCRIPTION):
        return False
    try:
        description = json.loads(read_input(Path(controller), MOST_DESCRIPTION_BYTES))
    except (OSError, ValueError, RecursionError):
        return False  # whoever loads it says what is wrong
    return isinstance(description, dict) and "agent" in description


def file_of(choice: str) -> Path | None:
    """Returns the file that a choice names; None for no file."""
    controller, _ = split_parameters(choice)
    if controller.endswith(_DESCRIPTION):
        return Path(controller)
    if match := _LIBRARY.fullmatch(controller):
        return Path(match["path"])
    if is_python_object(controller):
        return Path(controller.rpartition(":")[0] if ".py:" in controller else controller)
    return None


def without_folder(choice: str) -> str:
    """Returns a choice as results show it: the file of a user's code without its folder."""
    controller, _ = split_parameters(choice)
    if _LIBRARY.fullmatch(controller) or is_python_object(controller):
        return choice[controller.rfind("/") + 1 :]
    return choice


def refuse_place(controller: str | None, file: str) -> None:
    """Makes sure that reading a file runs no code of a controller that it names.

    Args:
        controller: The name that the file gives.
        file: The kind of file, such as "a policy's description".

    Raises:
        ValueError: The controller is named by its place.
    """
    if controller is not None and is_place(controller):
        raise ValueError(
            f"controller = {controller!r}: is a program, and reading {file} runs none; install the "
            "controller in a package with an entry point (docs/how-to/controllers.md), and give "
            "its name"
        )


def absolute(choice: str, folder: Path) -> str:
    """Returns a choice whose relative path, if it has one, starts at a folder."""
    controller, _ = split_parameters(choice)
    if file_of(controller) is not None:
        return str((folder / choice).absolute())
    return choice


def load(place: str) -> ControllerInfo:
    """Returns the controller that is named by where it is, without parameters.

    Raises:
        ControllerFileError: There is none, or it cannot be used.
    """
    if place.endswith(_DESCRIPTION):
        return _of_agent(place)
    if is_python_object(place):
        info = _of_file(place)
    elif match := _LIBRARY.fullmatch(place):
        info = _of_library(place, Path(match["path"]), match["name"])
    else:
        match = _MODULE.fullmatch(place)
        assert match is not None, "is_place says so"
        info = _of_module(place, match["module"], match["name"])
    return replace(info, name=without_folder(place))


def _of_file(place: str) -> ControllerInfo:
    path, colon, name = place.rpartition(":") if ".py:" in place else (place, "", "")
    if not colon or not name:
        raise ControllerFileError(f"{place}: name the class as well, such as {path or place}:Mine")
    file = _file(Path(path))
    info = _described(place, file.find(name))
    return replace(info, fingerprint=file.sha256)


_FILES: dict[Path, tuple[bytes, PythonFile]] = {}


def _file(path: Path) -> PythonFile:
    """Runs a file, and again only where it has changed: each episode asks for its class."""
    content = path.read_bytes() if path.is_file() else b""
    known, file = _FILES.get(path.absolute(), (None, None))
    if file is None or known != content:
        file = PythonFile(path, ControllerFileError)
        _FILES[path.absolute()] = content, file
    return file


def _of_module(place: str, module_name: str, name: str) -> ControllerInfo:
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ControllerFileError(
            f"{place}: {error}; give a module that Python can import, or a file, such as "
            f"{module_name.replace('.', '/')}.py:{name}"
        ) from error
    if not hasattr(module, name):
        raise ControllerFileError(f"{place}: module {module_name} has no {name!r}")
    info = _described(place, getattr(module, name))
    source = getattr(module, "__file__", None)
    return replace(info, fingerprint=_digest(Path(source)) if source else None)


def _described(place: str, found: Any) -> ControllerInfo:
    if type(found).__name__ == "PyCapsule":  # the type has no name in Python
        return describe_plugin(found)
    if not (isinstance(found, type) and issubclass(found, Controller)):
        raise ControllerFileError(
            f"{place}: is {type(found).__name__} {found!r:.80}; name a subclass of "
            "quicgym.Controller"
        )
    try:
        return describe(found)
    except (TypeError, ValueError) as error:
        raise ControllerFileError(f"{place}: {error}") from error


def _of_library(place: str, path: Path, name: str) -> ControllerInfo:
    try:
        fingerprint = _digest(path)
    except OSError as error:
        raise ControllerFileError(
            f"{place}: {error.strerror}; give the path of a compiled library and the name in its "
            "QUICGYM_CONTROLLER_MODULE, such as build/aimd.so:aimd"
        ) from None
    # Python keeps a loaded library for good, by its path and name.
    module_name = f"quicgym_library_{fingerprint[:16]}.{name}"
    if module_name not in sys.modules:
        loader = ExtensionFileLoader(module_name, str(path.resolve()))
        spec = spec_from_file_location(module_name, path.resolve(), loader=loader)
        assert spec is not None
        try:
            module = module_from_spec(spec)
            loader.exec_module(module)
        except ImportError as error:
            raise ControllerFileError(
                f"{place}: {error}; compile it with QUICGYM_CONTROLLER_MODULE({name}, …), see "
                "docs/how-to/controllers.md"
            ) from error
        sys.modules[module_name] = module
    try:
        return replace(
            describe_plugin(sys.modules[module_name].controller), fingerprint=fingerprint
        )
    except (AttributeError, TypeError) as error:
        raise ControllerFileError(f"{place}: {error}") from error


_AGENTS: dict[Path, tuple[str, ControllerInfo]] = {}


def _of_agent(place: str) -> ControllerInfo:
    """Loads an agent, and again only where its description has changed."""
    path = Path(place)
    try:
        fingerprint = sha256(read_input(path, MOST_DESCRIPTION_BYTES)).hexdigest()
    except OSError as error:
        raise ControllerFileError(
            f"{place}: {error.strerror}; give a description that quicgym import-agent wrote"
        ) from None
    known, info = _AGENTS.get(path.absolute(), (None, None))
    if info is None or known != fingerprint:
        try:
            info = replace(describe_plugin(_core.load_agent(place)), fingerprint=fingerprint)
        except ValueError as error:
            raise ControllerFileError(str(error)) from None
        _AGENTS[path.absolute()] = fingerprint, info
    return info


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
