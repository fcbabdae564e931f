"""A peer that falls silent in the middle of a run in real time."""

from __future__ import annotations

import sys

import pytest
from runs import SECOND, catalogue, plans, run, short

from quicgym.real import Relay
from quicgym.real.stacks import StackError


@pytest.mark.skipif(sys.platform != "linux", reason="the relay needs Linux")
def test_silence_ends_the_run_before_its_time(tmp_path):
    scenario = short(tmp_path).model_copy(update={"duration_s": 20.0})
    with Relay(scenario) as relay:

        def cut(now, received, rtts):
            if now >= SECOND:
                relay.stop()

        with pytest.raises(StackError, match="nothing came from the peer for 5 s"):
            flows = plans(scenario, catalogue("cubic"))
            run(scenario, flows, network=relay, clock="real", progress=cut)
