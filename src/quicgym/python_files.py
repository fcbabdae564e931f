"""Objects of a user's Python files, by `path/to/file.py:name`. Loading one runs the file."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from quicgym.errors import UserError, missing_extra
from quicgym.yaml_files import closest


def is_python_object(text: str) -> bool:
    """Whether a text names an object of a Python file, or such a file without an object."""
    return text.endswith(".py") or ".py:" in text


class PythonFile:
    """A Python file that has been run, as a separate module.

    The file finds the modules in its folder, as `python file.py` does. They are its own: another
    file that imports a module of the same name gets the one in its own folder. `error` is raised,
    with file, line and remedy, where the file cannot be used.
    """

    def __init__(self, path: Path, error: type[UserError]) -> None:
        """Runs the file."""
        self._shown, self._path, self._error = str(path), path.resolve(), error
        self._sources: dict[str, bytes] = {}
        try:
            source = self._path.read_bytes()
        except OSError as problem:
            raise error(
                f"{path}: {problem.strerror}; give the path of a Python file and the name of an "
                "object in it, such as agent.py:policy"
            ) from None
        self._sources[self._path.name] = source
        # The same name for the same file, so that a class which is registered by module and name
        # is the same one when the file is run again.
        name = f"quicgym_file_{sha256(str(self._path).encode()).hexdigest()[:16]}"
        spec = spec_from_file_location(name, self._path)
        assert spec is not None and spec.loader is not None
        self.module: ModuleType = module_from_spec(spec)
        sys.modules[name] = self.module
        try:
            self._run(source)
        except BaseException:
            del sys.modules[name]
            raise

    def _run(self, source: bytes) -> None:
        with self.running():
            # Not by the spec's loader, which would take cached bytecode after an edit in the same
            # second that leaves the file's length as it is.
            code = compile(source, str(self._path), "exec", dont_inherit=True)
            exec(code, self.module.__dict__)

    def find(self, name: str) -> Any:
        """Returns an object of the file; raises the file's error where there is none."""
        if name not in vars(self.module):
            own = [key for key in vars(self.module) if not key.startswith("_")]
            raise self._error(f"{self._shown}: has no object {name!r}; {closest(name, own)}")
        return vars(self.module)[name]

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file and of the modules in its folder that it has imported."""
        parts = [f"{name}:{sha256(text).hexdigest()}" for name, text in self._sources.items()]
        return sha256("\n".join(sorted(parts)).encode()).hexdigest()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within it code of the file runs; what it raises becomes the error, with its place.

        Only here the modules in the file's folder can be imported.
        """
        folder = str(self._path.parent)
        before = set(sys.modules)
        sys.path.insert(0, folder)
        try:
            yield
        except UserError:
            raise
        except (Exception, SystemExit) as problem:
            raise self._error(self.describe(problem)) from problem
        finally:
            if folder in sys.path:
                sys.path.remove(folder)
            beside = {
                name: sys.modules[name]
                for name in set(sys.modules) - before
                if self._is_beside(sys.modules[name.partition(".")[0]])
            }
            for name, module in beside.items():
                source = getattr(module, "__file__", None)
                self._sources[name] = Path(source).read_bytes() if source else b""
                del sys.modules[name]

    def describe(self, problem: BaseException) -> str:
        """Returns what an exception says, with the line of the file that it passed through last."""
        line: int | None = None
        if isinstance(problem, SyntaxError) and problem.filename == str(self._path):
            line = problem.lineno
        for frame in traceback.extract_tb(problem.__traceback__):
            if frame.filename == str(self._path):
                line = frame.lineno
        place = self._shown if line is None else f"{self._shown}:{line}"
        text = f"{place}: {type(problem).__name__}: {problem}"
        if isinstance(problem, SystemExit):
            text += "; put what is for the script alone below `if __name__ == '__main__':`"
        missing = missing_extra(problem) if isinstance(problem, ImportError) else None
        return f"{text}; {missing}" if missing else text

    def _is_beside(self, module: ModuleType) -> bool:
        """Whether a module, or a package, was found in the file's folder."""
        places = [*getattr(module, "__path__", ()), getattr(module, "__file__", None)]
        return module is not self.module and any(
            Path(place).parent == self._path.parent for place in places if place
        )
