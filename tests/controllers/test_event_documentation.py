"""What help() says of the events that controllers get."""

from __future__ import annotations

import inspect

import pytest

from quicgym import controllers

EVENTS = (
    controllers.AckEvent,
    controllers.EcnEvent,
    controllers.LossEvent,
    controllers.RateSample,
)
UNITLESS = {"app_limited", "no_unsent_data", "round_start", "sample", "random"}


@pytest.mark.parametrize("event", EVENTS)
def test_every_field_of_an_event_says_what_it_is_and_in_which_unit(event: type) -> None:
    fields = [name for name in vars(event) if not name.startswith("_")]
    assert len(fields) >= 4
    for name in fields:
        text = inspect.getdoc(getattr(event, name))
        assert text and text.endswith("."), name
        if name in UNITLESS or name.endswith("_events"):
            continue
        unit = next(
            (
                unit
                for end, unit in {
                    "_bytes": "bytes",
                    "_packets": "packets",
                    "_rate": "Bytes per ",
                }.items()
                if name.endswith(end)
            ),
            "in ns",
        )
        assert unit in text, f"{event.__name__}.{name}: {text}"
