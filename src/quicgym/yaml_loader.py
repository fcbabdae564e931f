"""YAML's safe loader, which also refuses a key that is given twice.

Numbers with an exponent, such as 1e-3, are numbers as in YAML 1.2. PyYAML reads them as texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer, ComposerError


def parse_yaml(text: str) -> Any:
    """Returns what a YAML text holds; yaml.YAMLError where it is not valid or has a key twice."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 is a SafeLoader
    except ValueError as error:  # of values such as 2001-99-99, which PyYAML takes for a date
        raise yaml.YAMLError(str(error)) from None


if TYPE_CHECKING or not yaml.__with_libyaml__:
    _SafeLoader = yaml.SafeLoader
else:
    # libyaml's parser is several times as fast. It brings a composer of its own, which nobody can
    # extend, so Python's stands before it.
    class _SafeLoader(Composer, yaml.CSafeLoader):
        def __init__(self, stream: str) -> None:
            yaml.CSafeLoader.__init__(self, stream)
            Composer.__init__(self)


class _Loader(_SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        first: dict[tuple[str, str], int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = (key_node.tag, key_node.value)
            if key in first:
                value = getattr(value_node, "value", "")
                given = f" = {value}" if isinstance(value, str) else ""
                text = f"is given a second time, first in line {first[key]}; leave one out"
                raise ComposerError(
                    None, None, f"{key_node.value}{given:.60} {text}", key_node.start_mark
                )
            first[key] = key_node.start_mark.line + 1
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)
