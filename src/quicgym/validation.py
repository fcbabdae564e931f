"""Checks of a file's fields by pydantic, with errors that name file, field, value and remedy."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from quicgym.yaml_files import closest

T = TypeVar("T")


def check_number(
    name: str, value: Any, smallest: float, largest: float, *, whole: bool = False
) -> None:
    """Raises ValueError unless an argument is a number in a range; a bool is none."""
    kinds = (int, np.integer) if whole else (int, float, np.number)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number or not smallest <= value <= largest:
        kind = "whole number" if whole else "number"
        raise ValueError(f"{name} = {value!r}: give a {kind} from {smallest:g} to {largest:g}")


class StrictModel(BaseModel):
    """A model of a file's fields: frozen, without unknown fields, infinity and NaN."""

    # Most programs use few of the models that they import, so each is built on its first use.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


def problem(field: str, value: Any, text: str, remedy: str) -> PydanticCustomError:
    """Returns the error of a check of our own, for the field as seen from where it is made."""
    return PydanticCustomError(
        "problem",
        "{field} = {value}: {text}; {remedy}",
        {"field": field, "value": repr(value), "text": text, "remedy": remedy},
    )


def validated(
    expected: type[T],
    data: Any,
    file: str,
    error: type[Exception],
    *,
    context: Mapping[str, Any] | None = None,
) -> T:
    """Returns what a file holds, as `expected`: a pydantic model, or a type that pydantic checks.

    `error` is raised, with a line for each wrong field, where `data` does not fit. `context` is for
    the validators of `expected`.
    """
    try:
        return TypeAdapter(expected).validate_python(data, context=dict(context or {}))
    except ValidationError as wrong:
        texts = explain(expected, wrong)
        raise error("\n".join(f"{file}: {text}" for text in texts)) from None


def explain(expected: Any, wrong: ValidationError) -> list[str]:
    """Returns a line for each field that is wrong in what was to be `expected`."""
    errors = wrong.errors()
    explained: dict[str, str] = {}
    for error in errors:
        location = error["loc"]
        if any(other["loc"][: len(location)] == location != other["loc"] for other in errors):
            continue  # a list that is too short because its items are wrong
        # Each member of "a number or a list" that did not fit is an error; the first is enough.
        field, text = _explain_one(expected, error)
        explained.setdefault(field or text, text)
    return list(explained.values())


def _explain_one(expected: Any, error: ErrorDetails) -> tuple[str, str]:
    """The field as a dotted path, and one line: field, value, problem, remedy."""
    place = _locate(expected, error["loc"])
    field, message = place.field, error["msg"].removeprefix("Value error, ")
    if error["type"] == "problem":
        context = error["ctx"]
        field = ".".join(filter(None, (field, context["field"])))
        return field, f"{field} = {context['value']}: {context['text']}; {context['remedy']}"
    if not field:
        if error["type"] == "value_error":  # of several fields, which its text names
            return field, message
        holds = f"holds {_show(error['input'])}"
        if not _is_model(expected):
            return field, f"{holds}: {message.replace('Input should', 'should')}"
        return field, (
            f"{holds} where the fields of a {expected.__name__} are expected; "
            "start from one of quicgym's own files"
        )
    model = next(filter(_is_model, _members(place.expected)), None)
    if error["type"] == "value_error" and model and isinstance(error["input"], Mapping):
        named = message.partition(":")[0].partition(" = ")[0]
        return field, f"{field}{'.' if named in model.model_fields else ': '}{message}"
    if error["type"] == "extra_forbidden":
        hint = closest(field.split(".")[-1], place.model.model_fields)
        return field, f"{field} = {_show(error['input'])}: unknown field; {hint}"
    if error["type"] == "literal_error" and (known := _values(place.expected)):
        hint = closest(error["input"], known)
        return field, f"{field} = {_show(error['input'])}: there is no such value; {hint}"
    remedy = f"; give {place.description}" if place.description else ""
    if error["type"] == "missing":
        return field, f"{field}: is missing{remedy or '; add it'}"
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return field, _explain_tag(field, place, error)
    if error["type"] in ("too_short", "too_long"):
        message = f"has {error['ctx']['actual_length'] or 'no'} entries"
        least = error["ctx"].get("min_length")
        limit = f"at least {least}" if least else f"at most {error['ctx']['max_length']}"
        remedy = remedy or f"; give {limit}"
    if error["type"] == "string_pattern_mismatch" and remedy:
        message = "cannot be used"
    # "should be a valid integer, unable to parse string as an integer"
    message = message.replace("Input should", "should").partition(", unable to ")[0]
    kind, _, wrong = error["type"].partition("_")
    if wrong in ("type", "parsing"):
        message = _NOT_OF_KIND.get(kind, message)
        give = _fields(place.expected) if kind == "model" else _KINDS.get(kind)
        remedy = remedy or (f"; give {give}" if give else "")
    return field, f"{field} = {_show(error['input'])}: {message}{remedy}"


def _explain_tag(field: str, place: _Place, error: ErrorDetails) -> str:
    """Returns the error of the field that says which of several models a mapping is."""
    name = error["ctx"]["discriminator"].strip("'")
    tags = [str(tag) for tag in map(_label, _members(place.expected)) if tag]
    remedy = f"give one of {', '.join(map(repr, tags))}"
    if error["type"] == "union_tag_not_found":
        return f"{field}.{name}: is missing; {remedy}"
    tag = error["ctx"]["tag"]
    similar = difflib.get_close_matches(tag, tags, n=1)
    hint = f"did you mean {similar[0]}? " if similar else ""
    return f"{field}.{name} = {_show(tag)}: there is no such {name}; {hint}{remedy}"


class _Place(NamedTuple):
    """The model that has the wrong field, the field's path and type, what it takes, in words."""

    model: type[BaseModel]
    field: str
    expected: Any
    description: str | None


def _locate(expected: Any, location: tuple[int | str, ...]) -> _Place:
    """The place as a user writes it; pydantic's also names the member of a union that it tried."""
    model: type[BaseModel] = BaseModel
    path: list[str] = []
    description = None
    for step in location:
        members = list(_members(expected))
        if len(members) > 1:
            chosen = [entry for entry in members if _label(entry) == step]
            if not chosen:
                break  # what is wrong inside of "a number or a list" is the field's
            expected = chosen[0]
            continue
        expected, arguments = members[0], get_args(members[0])
        path.append(str(step))
        if _is_model(expected):
            model = expected
            field = model.model_fields.get(str(step))
            description = _description(field) if field else None
            expected = field.annotation if field else Any
        else:  # a mapping's values, or a list's items
            expected = arguments[1 if get_origin(expected) is dict else 0] if arguments else Any
    return _Place(model, ".".join(path), expected, description)


def _members(annotation: Any) -> list[Any]:
    """The types of a union, without None; of all else the type itself."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [found for entry in get_args(annotation) for found in _members(entry)]
    return [] if annotation is NoneType else [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _fields(annotation: Any) -> str:
    """Returns the fields of a model, or of the first of several."""
    model = next(filter(_is_model, _members(annotation)), BaseModel)
    return ": ".join(filter(None, ("its fields", ", ".join(model.model_fields))))


def _values(annotation: Any) -> list[str]:
    """Returns the values that a Literal allows; none for other types."""
    literals = [entry for entry in _members(annotation) if get_origin(entry) is Literal]
    return [str(value) for entry in literals for value in get_args(entry)]


def _label(annotation: Any) -> str | None:
    """By which pydantic names a member of a union: its tag, or the class."""
    if not _is_model(annotation):
        return None
    tag = annotation.model_fields.get("kind")
    return tag.default if tag is not None else annotation.__name__


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_KINDS = {
    "bool": _WORDS[bool], "int": _WORDS[int], "float": _WORDS[float], "string": _WORDS[str],
    "list": "a list", "tuple": "a list", "dict": "a mapping", "path": "a path",
}  # fmt: skip
"""The kind of value to give instead, by the beginning of pydantic's name of the error."""
_NOT_OF_KIND = {
    "model": "is no mapping", "dict": "is no mapping", "list": "is no list", "tuple": "is no list",
    "path": "is no path",
}  # fmt: skip
"""Where pydantic's words are Python's."""


def _description(field: FieldInfo) -> str | None:
    """Returns what a field takes, in words; for `X | None`, what X takes."""
    inner = [
        extra
        for argument in get_args(field.annotation)
        for extra in getattr(argument, "__metadata__", ())
        if isinstance(extra, FieldInfo)
    ]
    given = next(filter(None, [entry.description for entry in (field, *inner)]), None)
    members = _members(field.annotation)
    if given or len(members) != 1 or members[0] not in _WORDS:
        return given
    limits = [limit for entry in (field, *inner) for limit in entry.metadata]
    words = [
        f"{text} {getattr(limit, bound):g}"
        for bound, text in (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
        for limit in limits
        if getattr(limit, bound, None) is not None
    ]
    return ", ".join([_WORDS[members[0]], *words])


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
