"""Fuzzes a target in Python with atheris: `run_python.py ns3gym_peers -max_total_time=60 FOLDER`.

A target is a module of python/ with a function check(data). The options are libFuzzer's.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent / "python"))
name = sys.argv.pop(1)
# Branches of these are what coverage counts; a package of compiled code has none.
with atheris.instrument_imports(include=["quicgym", name]):
    target = import_module(name)
atheris.Setup(sys.argv, target.check)
atheris.Fuzz()
