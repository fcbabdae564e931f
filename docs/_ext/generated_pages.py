"""Reference pages that end with what the code itself says.

A page in PAGES has a hand-written beginning. When the site is built, the function beside the page's
name returns the rest, as Markdown.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

from quicgym.benchmarks.coexistence import coexistence_summary
from quicgym.controllers import catalogue
from quicgym.envs.actions import find_action_space
from quicgym.envs.environment import CongestionControlEnv
from quicgym.envs.observations import observation_names
from quicgym.envs.registration import environments
from quicgym.envs.scenarios.distributions import Distribution
from quicgym.envs.scenarios.fields import CheckedModel
from quicgym.envs.scenarios.mixtures import Mixture
from quicgym.envs.scenarios.model import Scenario
from quicgym.envs.simulation import metrics

API_MODULES = (
    "quicgym",
    "quicgym.controllers",
    "quicgym.envs",
    "quicgym.envs.actions",
    "quicgym.envs.observations",
    "quicgym.envs.rewards",
    "quicgym.envs.vector",
    "quicgym.envs.states",
    "quicgym.real",
)
"""In the order of the page; a name is described under the first module that has it."""


def demoted(markdown: str, levels: int) -> str:
    """Returns the text with its headings so many levels lower; code is left alone."""
    pieces = re.split(r"(^```.*?^```)", markdown, flags=re.S | re.M)
    pieces[::2] = [re.sub(r"^#", "#" * (levels + 1), text, flags=re.M) for text in pieces[::2]]
    return "".join(pieces)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a table; a cell's line breaks and bars are written so that it stays one."""
    lines = [[*head], *([*row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


class EnvironmentPage:
    """An environment's docstring, and the names of its actions and observations."""

    def __init__(self, name: str) -> None:
        """Takes the environment's name."""
        self._name = name

    def __call__(self) -> str:
        """Returns the page."""
        environment = environments()[self._name]
        space = find_action_space(self._name)
        named = "choices" if space.choices else "coordinates"
        length = environment.default_history_length
        elements = " ".join(observation_names(length, self._name))
        parts = [
            "## In full",
            f"`{environment.__module__}.{environment.__qualname__}`, name `{self._name}`",
            demoted(inspect.getdoc(environment) or "", 1),
            "## Names",
            f"The {named} of an action, in order:",
            "```text\n" + textwrap.fill(" ".join(space.choices or space.coordinates), 88) + "\n```",
            f"The elements of an observation with `history_length={length}`, in order:",
            "```text\n" + textwrap.fill(elements, 88) + "\n```",
        ]
        return "\n\n".join(parts)


def _models(base: type[BaseModel] = CheckedModel) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _attribute_doc(name: str, field: str) -> str:
    """Returns the text below a field of a model."""
    for model in _models():
        if model.__name__ == name:
            for base in model.__mro__:
                if base.__module__.startswith("quicgym."):
                    docs = ModuleAnalyzer.for_module(base.__module__).find_attr_docs()
                    if (base.__qualname__, field) in docs:
                        return " ".join(docs[base.__qualname__, field])
    return ""


class FieldPage:
    """The fields of models and of all models within them."""

    def __init__(self, prefix: str, *roots: type[BaseModel]) -> None:
        """Takes what the page's anchors begin with, and the models."""
        self._prefix = prefix
        self._schemas: dict[str, Any] = {}
        for root in roots:
            schema = root.model_json_schema()
            self._schemas[root.__name__] = schema
            self._schemas |= schema.get("$defs", {})

    def __call__(self) -> str:
        """Returns the page."""
        parts = []
        for name, schema in self._schemas.items():
            if name.startswith("Range_"):
                continue  # in the table of the field that has it
            rows = [
                (f"`{field}`", self._kind(entry), self._default(entry), _attribute_doc(name, field))
                for field, entry in schema.get("properties", {}).items()
            ]
            parts += [f"({self._prefix}-{name.lower()})=", f"## {name}"]
            parts += [schema.get("description", "")]
            parts += [table(("field", "value", "default", "meaning"), rows)]
        return "\n\n".join(parts)

    def _default(self, entry: dict[str, Any]) -> str:
        if "default" not in entry:
            return f"`{entry['const']}`" if "const" in entry else "required"
        return f"`{json.dumps(entry['default'], ensure_ascii=False)}`"

    def _kind(self, entry: dict[str, Any]) -> str:
        """Returns what may be given, with links to the models in it."""
        if "description" not in entry:
            return self._structure(entry)
        links = list(dict.fromkeys(self._links(entry)))
        return entry["description"] + (f": {', '.join(links)}" if links else "")

    def _links(self, entry: object) -> Iterator[str]:
        if isinstance(entry, dict):
            if "$ref" in entry:
                yield self._structure({"$ref": entry["$ref"]})
            for key, inner in entry.items():
                if key not in ("default", "discriminator"):
                    yield from self._links(inner)
        elif isinstance(entry, list):
            for inner in entry:
                yield from self._links(inner)

    def _structure(self, entry: dict[str, Any]) -> str:
        if "$ref" in entry:
            name = entry["$ref"].rpartition("/")[2]
            if name.startswith("Range_"):
                return f"range of {self._kind(self._schemas[name]['properties']['minimum'])}"
            return f"[{name}](#{self._prefix}-{name.lower()})"
        if "const" in entry:
            return f"`{entry['const']}`"
        if "enum" in entry:
            return ", ".join(f"`{value}`" for value in entry["enum"])
        for several in ("anyOf", "oneOf"):
            if several in entry:
                return " or ".join(self._kind(inner) for inner in entry[several])
        if entry.get("type") == "array":
            items = entry.get("items")
            return f"list of {self._kind(items)}" if items else "list"
        if entry.get("type") == "object":
            values = entry.get("additionalProperties")
            return f"mapping of names to {self._kind(values)}" if values else "mapping"
        if entry.get("format") == "path":
            return "path of a file"
        words = {
            "boolean": "`true` or `false`",
            "integer": "whole number",
            "null": "null",
            "number": "number",
            "string": "text",
        }
        limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
        signs = [f"{sign} {entry[key]:g}" for key, sign in limits.items() if key in entry]
        return " ".join([words[entry["type"]], ", ".join(signs)]).strip()


def command_line() -> str:
    """Returns all commands as `typer utils docs` writes them, with the examples as code."""
    command = [sys.executable, "-m", "typer", "quicgym.cli", "utils", "docs", "--name", "quicgym"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # The list of commands cuts their descriptions off; each command has a section.
    text = re.sub(r"^\*\*Commands\*\*:\n\n(\* .*\n)+\n", "", text, flags=re.M)
    # Help texts are plain text, in which <time> is no HTML.
    pieces = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.S)
    pieces[::2] = [piece.replace("<", "\\<") for piece in pieces[::2]]
    text = "".join(pieces)
    examples = re.compile(r"^\x08\n((?:  .*\n)+)", flags=re.M)
    return demoted(
        examples.sub(lambda found: f"```console\n{textwrap.dedent(found[1])}```\n", text), 1
    )


def controller_parameters() -> str:
    """Returns the catalogue."""
    parts = []
    for entry in catalogue():
        about = [f"{entry.description}.", f"Source: {entry.source}." if entry.source else ""]
        if entry.preset_of:
            about.append(f"It is `{entry.preset_of}` with other defaults.")
        parts += [f"## {entry.name}", " ".join(filter(None, about))]
        rows = [
            (
                f"`{parameter.name}`",
                ", ".join(f"{number:g}" for number in parameter.default),
                f"{parameter.minimum:g} to {parameter.maximum:g} {parameter.unit}",
                parameter.scale,
                f"{parameter.description} ({parameter.source})",
            )
            for parameter in entry.parameters
        ]
        if rows:
            parts.append(table(("parameter", "default", "range", "scale", "meaning"), rows))
    return "\n\n".join(parts)


def metrics_page() -> str:
    """Returns the declarations of all metrics."""
    return f"{metrics.__doc__}\n## quicgym coexist\n\n{coexistence_summary.__doc__}"


def python_api() -> str:
    """Returns the public names of the modules; the text of each module is Markdown."""
    parts = ["```{highlight} python\n```"]
    described: set[int] = set()
    for module_name in API_MODULES:
        module = importlib.import_module(module_name)
        parts += [f"## {module_name}", demoted(inspect.getdoc(module) or "", 2)]
        for name in _public_names(module):
            thing = getattr(module, name)
            if id(thing) in described or inspect.ismodule(thing):
                continue
            described.add(id(thing))
            if inspect.isclass(thing) and issubclass(thing, CongestionControlEnv):
                continue  # has a page
            directive = _autodoc(f"{module_name}.{name}", thing)
            if directive:
                parts.append(f"```{{eval-rst}}\n{directive}\n```")
    return "\n\n".join(parts)


def _public_names(module: Any) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    ]


def _autodoc(path: str, thing: object) -> str:
    if not inspect.isclass(thing):
        return f".. autofunction:: {path}" if callable(thing) else ""
    if issubclass(thing, BaseModel):  # fields have a page
        members = [
            name
            for name, member in vars(thing).items()
            if not name.startswith("_")
            and (inspect.isfunction(member) or isinstance(member, property | classmethod))
        ]
        return f".. autoclass:: {path}\n   :members: {', '.join(members)}"
    kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return f".. {kind}:: {path}\n   :members:"


def fields() -> str:
    """Returns the fields of scenarios, and those of distributions."""
    scenarios = FieldPage("scenario", Scenario)
    distributions = FieldPage("distribution", Distribution, Mixture)
    return f"{scenarios()}\n\n{distributions()}"


PAGES = {
    "environments/easy": EnvironmentPage("easy"),
    "environments/rate": EnvironmentPage("rate"),
    "environments/tuning": EnvironmentPage("tuning"),
    "environments/window": EnvironmentPage("window"),
    "reference/command-line": command_line,
    "reference/controller-parameters": controller_parameters,
    "reference/fields": fields,
    "reference/metrics": metrics_page,
    "reference/python-api": python_api,
}


NOTE = re.compile(r"^> In a checkout: .*\n\n?", re.M)
"""Says in a page's source where its text or its output is; the site has both."""


def _fill(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = NOTE.sub("", source[0])
    if docname in PAGES:
        source[0] += "\n" + PAGES[docname]() + "\n"


def _without_fields(
    app: Sphinx, what: str, name: str, thing: object, options: object, signature: str, returns: str
) -> tuple[str, str] | None:
    """Leaves the fields out of a model's signature: they have a page."""
    model = inspect.isclass(thing) and issubclass(thing, BaseModel)
    return ("", "") if model else None


def _examples_are_code(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Makes the section "Example:" of a docstring a block of code; napoleon takes it for text."""
    for number in reversed(range(len(lines))):
        if lines[number].strip() == "Example:":
            lines[number : number + 1] = [lines[number] + ":", ""]


def _plain_underscores(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Keeps types that end in an underscore, such as numpy.str_, from being read as references."""
    for number, line in enumerate(lines):
        if line.lstrip().startswith((":type", ":vartype")):
            lines[number] = re.sub(r"_(?=[],]|$)", r"\\_", line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; the pages are made anew in every build."""
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", lambda *_: list(PAGES))
    app.connect("autodoc-process-docstring", _examples_are_code, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", _plain_underscores, priority=600)  # after napoleon
    app.connect("autodoc-process-signature", _without_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
