"""The interval [-1, 1] over each parameter's range, as agents see and set it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quicgym import _core, controllers

TUNABLE = tuple(
    (controller.name, parameter)
    for controller in controllers.catalogue()
    if not controller.steered
    for parameter in controller.parameters
)
any_parameter = st.sampled_from(TUNABLE)
coordinates = st.floats(-1, 1, width=32)


def value_at(row, coordinate):
    controller, parameter = row
    return _core.value_at(controller, parameter.name, coordinate)


def coordinate_of(row, value):
    controller, parameter = row
    return float(np.float32(_core.coordinate_of(controller, parameter.name, value)))


def test_the_ends_of_the_interval_are_the_ends_of_the_range():
    for row in TUNABLE:
        name, parameter = row
        ends = parameter.minimum, parameter.maximum
        where = f"{name}: {parameter.name}"
        assert (value_at(row, -1.0), value_at(row, 1.0)) == ends, where
        assert [coordinate_of(row, end) for end in ends] == [-1.0, 1.0], where


def test_a_default_survives_single_precision_exactly():
    for row in TUNABLE:
        for value in row[1].default:
            found = value_at(row, coordinate_of(row, value))
            assert found == value, f"{row[0]}: {row[1].name}"


def test_a_range_without_end_or_over_many_magnitudes_is_not_linear():
    for name, parameter in TUNABLE:
        low, high = parameter.minimum, parameter.maximum
        allowed = {"odds"} if math.isinf(high) else {"logarithmic"}
        if high / (low or 1) <= 100:
            allowed.add("linear")
        assert parameter.scale in allowed, f"{name}: {parameter.name}"


@given(any_parameter, coordinates, coordinates)
def test_values_are_in_the_range_and_rise_with_the_coordinate(row, one, other):
    first, second = (value_at(row, coordinate) for coordinate in sorted((one, other)))
    assert row[1].minimum <= first <= second <= row[1].maximum


@given(any_parameter, coordinates)
def test_a_value_goes_to_its_coordinate_and_back(row, coordinate):
    value = value_at(row, coordinate)
    assert value_at(row, coordinate_of(row, value)) == value


@pytest.mark.parametrize(
    "controller, name, coordinate, value",
    [
        ("cubic+", "theta", 0.0, 0.55),
        ("cubic+", "period_ms", 0.0, 244.95),  # the square root of 1 * 60000
        ("cubic+", "jitter_threshold_ms", 0.0, 243.95),  # of 1 * 60001, less 1
        ("ibcca", "gain_cycle", 0.0, 1.0),
        ("ibcca", "first_extension_ms", -1 / 7, 1.0),
        ("ebcc", "gamma", 0.0, 30.0),
        ("ebcc", "gamma", 0.5, 90.0),
        ("bbr", "alpha", 0.0, 0.4995),
    ],
)
def test_linear_logarithmic_and_odds(controller, name, coordinate, value):
    assert _core.value_at(controller, name, coordinate) == pytest.approx(value, rel=2e-5)


def test_an_unknown_parameter_is_answered_with_those_that_there_are():
    with pytest.raises(ValueError, match="'cubic' has no parameter 'theta'; it has: c, beta"):
        _core.value_at("cubic", "theta", 0.0)
