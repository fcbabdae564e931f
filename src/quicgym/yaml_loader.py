"""YAML's safe loader with bounds: no key twice, no tags, no deep nesting, no aliases that multiply.

Numbers with an exponent, such as 1e-3, are numbers as in YAML 1.2. PyYAML reads them as texts.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.scanner import ScannerError

MOST_LEVELS = 50
MOST_NODES = 500_000
"""Values and keys; one that an alias repeats counts each time."""
MOST_NUMBER_CHARACTERS = 100

_SURROGATE = re.compile("[\ud800-\udfff]")  # of an escape such as "\ud800"; no file can hold one


def parse_yaml(text: str) -> Any:
    """Returns what a YAML text holds.

    yaml.YAMLError where the text is not valid, has a key twice, a tag, or a number that cannot be.
    Or the text has more than 50 levels, or 500,000 nodes with aliases written out.
    """
    return yaml.load(text, Loader=_Loader)  # noqa: S506 is a SafeLoader


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._level = 0
        # By node's id: how many nodes it stands for. None while it is being read.
        self._sizes: dict[int, int | None] = {}

    def fetch_more_tokens(self) -> Any:
        try:
            return super().fetch_more_tokens()
        except (ValueError, OverflowError) as error:  # of "\UFFFFFFFF", or of %YAML's digits
            text = f"an escape or a number that cannot be: {error}"
            raise ScannerError(None, None, text, self.get_mark()) from None

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        mark = event.start_mark
        # PyYAML fails in ways of its own where a value is not of its tag's kind: !!int '', !!seq 1.
        if getattr(event, "tag", None) is not None:
            text = f"{event.tag:.60} is a tag, and no value needs one; leave it out"
            raise ComposerError(None, None, text, mark)
        self._level += 1
        if self._level > MOST_LEVELS:
            raise ComposerError(None, None, f"more than {MOST_LEVELS} levels", mark)
        node = super().compose_node(parent, index)
        self._level -= 1
        if self._size(node, mark) > MOST_NODES:
            raise ComposerError(None, None, f"more than {MOST_NODES} values with aliases", mark)
        return node

    def _size(self, node: Any, mark: Any) -> int:
        size = self._sizes.get(id(node))
        if size is None:
            raise ComposerError(None, None, "an alias of what it stands in", mark)
        return size

    def compose_scalar_node(self, anchor: Any) -> Any:
        node = super().compose_scalar_node(anchor)
        self._sizes[id(node)] = 1
        if _SURROGATE.search(node.value):
            text = f"{ascii(node.value):.60} has half of a character; write the whole one"
            raise ComposerError(None, None, text, node.start_mark)
        return node

    def compose_sequence_node(self, anchor: Any) -> Any:
        node = super().compose_sequence_node(anchor)
        self._sizes[id(node)] = 1 + sum(self._size(part, node.start_mark) for part in node.value)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        parts = (part for pair in node.value for part in pair)
        self._sizes[id(node)] = 1 + sum(self._size(part, node.start_mark) for part in parts)
        first: dict[Any, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key = self._key(key_node)
            line = key_node.start_mark.line + 1
            if key in first:
                value = getattr(value_node, "value", "")
                given = f" = {value}" if isinstance(value, str) else ""
                raise ComposerError(
                    None, None,
                    f"{key_node.value}{given:.60} is given a second time, first in line "
                    f"{first[key]}; leave one out",
                    key_node.start_mark,
                )  # fmt: skip
            first[key] = line
        return node

    def _key(self, node: yaml.ScalarNode) -> Any:
        """What tells keys of a mapping apart; no numbers, whose hashes anybody can make collide."""
        if node.tag.endswith((":int", ":float")):
            text = f"{node.value:.60} is a number, and no key is one; put it in quotes"
            raise ComposerError(None, None, text, node.start_mark)
        try:
            return self.construct_object(node)
        except yaml.YAMLError:  # << and the like
            return (node.tag, node.value)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        is_number = isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float"))
        if is_number and len(node.value) > MOST_NUMBER_CHARACTERS:
            text = f"{node.value[:20]}... is a number of {len(node.value)} characters"
            raise ConstructorError(None, None, text, node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            value = getattr(node, "value", "")
            text = f"{value!s:.60} is no value of its kind: {error}"
            raise ConstructorError(None, None, text, node.start_mark) from None


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)
