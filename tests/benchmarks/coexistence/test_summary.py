"""The metrics of `quicgym coexist`, against values computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from quicgym.benchmarks.coexistence.coexistence_summary import (
    CELL_METRICS,
    Measured,
    Results,
    harm,
    rtt_unfairness,
)
from quicgym.benchmarks.coexistence.grid import Cell, Grid, Path
from quicgym.envs.simulation.window import WHOLE, Window

PATH = Path(50, 40, 1, "drop-tail")


def result(flows: list[tuple[bool, float, float]], **more: Any) -> dict[str, Any]:
    """A run: of each flow whether it is the subject's, its rate in Mbps and its delay in ms."""
    return {
        "arrival_convergence_s": None,
        "departure_convergence_s": None,
        "converged_deviation": None,
        "short_flows_completed_percent": None,
        "fct_median_ms": None,
        "fct_p99_ms": None,
        **more,
        "flows": [
            {
                "name": f"flow-{place}",
                "is_subject": is_subject,
                "receive_rate_mbps": rate,
                "mean_one_way_delay_ms": delay,
                "mean_queue_delay_ms": delay - 20,
                "fair_share": rate / 10,
            }
            for place, (is_subject, rate, delay) in enumerate(flows)
        ],
    }


def test_harm_is_the_part_of_the_performance_that_is_lost() -> None:
    assert harm(20, 5) == pytest.approx(0.75)
    assert harm(20, 25) == pytest.approx(-0.25)
    assert harm(30, 40, less_is_better=True) == pytest.approx(0.25)
    assert harm(None, 5) is harm(5, None) is harm(0, 0) is None


def test_each_metric_of_a_cell_is_its_formula() -> None:
    cell = Measured(
        beside=result(
            [(False, 4, 50), (False, 8, 50), (True, 18, 60)],
            arrival_convergence_s=6.0,
            converged_deviation=0.1,
        ),
        alone=result([(False, 15, 40), (False, 15, 40)]),
        like=result([(False, 9, 40), (False, 9, 44), (True, 9, 40)]),
        rtt=result([(True, 12, 40), (True, 12, 40), (True, 3, 100)]),
        changes=result([], arrival_convergence_s=2.0, departure_convergence_s=3.0),
        short_flows=result(
            [], short_flows_completed_percent=98.0, fct_median_ms=100.0, fct_p99_ms=900.0
        ),
    )
    assert {entry.name: entry.compute(cell) for entry in CELL_METRICS} == pytest.approx(
        {
            "fair_share": 1.8,
            "others_fair_share": 0.6,
            "convergence_s": 6.0,
            "deviation": 0.1,
            "harm_rate": (15 - 6) / 15,
            "extra_harm_rate": (9 - 6) / 15,
            "harm_delay": (50 - 40) / 50,
            "extra_harm_delay": (50 - 40) / 50 - (42 - 40) / 42,
            "rtt_unfairness": 4.0,
            "arrival_convergence_s": 2.0,
            "departure_convergence_s": 3.0,
            "short_flows_completed_percent": 98.0,
            "fct_median_ms": 100.0,
            "fct_p99_ms": 900.0,
        }
    )


def test_runs_that_failed_leave_values_out() -> None:
    nothing = Measured(None, None, None, None, None, None)
    assert {entry.compute(nothing) for entry in CELL_METRICS} == {None}
    assert rtt_unfairness(result([(True, 1, 1), (True, 0, 1)])) is None


def grid(*subjects: str, counts: tuple[int, ...] = (1, 2), seeds: int = 1) -> Grid:
    return Grid(subjects, ["cubic"], counts, [PATH], 60, seeds, WHOLE)


def test_the_grid_has_every_cell_and_the_controller_beside_as_a_subject() -> None:
    found = [(cell.subject, cell.flows_beside) for cell in grid("bbr3", "cubic").cells()]
    assert found == [("bbr3", 1), ("cubic", 1), ("bbr3", 2), ("cubic", 2)]


def test_the_experiments_are_what_their_descriptions_say() -> None:
    jobs = grid("bbr3").jobs()
    cell = Cell("bbr3", "cubic", 2, PATH)
    flows = {
        experiment: [
            (flow.controller, flow.start_s, flow.stop_s, flow.extra_delay_ms)
            for _, flow in of_cell[0].scenario.single_flows()
        ]
        for (of, experiment), of_cell in jobs.items()
        if of == cell
    }
    other, own, late = ("cubic", 0, None, 0), (None, 0, None, 0), (None, 10, None, 0)
    assert flows == {
        "beside": [other, other, late],
        "alone": [other, other],
        "rtt": [own, own, (None, 0, None, 60)],
        "changes": [own, ("cubic", 20, 40, 0), ("cubic", 20, 40, 0)],
        "short-flows": [own, other, other],
        "adoption-2": [other, own, late],
        "adoption-3": [own, own, late],
    }
    scenario = jobs[cell, "short-flows"][0].scenario
    (short,) = scenario.short_flows
    assert (short.controller, short.load_mbps, short.sizes) == ("cubic", 5, 100_000)
    assert scenario.queue_limit == 250_000
    assert scenario.base_rtt_ms == jobs[cell, "rtt"][0].scenario.base_rtt_ms == 40
    assert jobs[cell, "alone"] is jobs[cell.like, "alone"]
    assert jobs[cell, "beside"][0].window == Window(10, None)


def test_adoption_curves_have_users_and_others() -> None:
    asked = grid("bbr3", counts=(1,), seeds=2)
    jobs = asked.jobs()
    rates = {
        ("bbr3", "beside"): [(False, 2, 30), (True, 8, 40)],
        ("cubic", "beside"): [(False, 4, 30), (True, 6, 30)],
        ("bbr3", "adoption-2"): [(True, 4, 25), (True, 5, 25)],
    }
    finished = {
        job.key: result(rates[cell.subject, experiment])
        for (cell, experiment), of_cell in jobs.items()
        if (cell.subject, experiment) in rates
        for job in of_cell
    }
    curve = Results(asked, jobs, finished).adoption()
    names = ("users_receive_rate_mbps", "others_receive_rate_mbps", "others_mean_queue_delay_ms")
    assert [tuple(row[name] for name in ("users", *names)) for row in curve] == [
        (0, None, 5, 10),
        (1, 8, 2, 10),
        (2, 4.5, None, None),
    ]
    assert curve[1]["users_receive_rate_mbps_seeds"] == 2


def test_a_row_has_means_intervals_and_the_seeds_that_have_a_value() -> None:
    asked = grid("bbr3", counts=(1,), seeds=3)
    jobs = asked.jobs()
    cell = Cell("bbr3", "cubic", 1, PATH)
    times = (4.0, 6.0, None)
    finished = {
        job.key: result([(False, 5, 30), (True, 5, 30)], arrival_convergence_s=time)
        for job, time in zip(jobs[cell, "beside"], times, strict=True)
    }
    row = Results(asked, jobs, finished).rows()[0]
    assert (row["subject"], row["count"], row["queue_bdp"]) == ("bbr3", 1, 1)
    assert (row["convergence_s"], row["convergence_s_seeds"]) == (5, 2)
    # Student's t with one degree of freedom: 12.706 · sqrt(2) / sqrt(2).
    assert row["convergence_s_high"] == pytest.approx(5 + 12.706, abs=1e-3)
    assert row["harm_rate"] is None and row["harm_rate_seeds"] == 0
