# Everything runs from one virtual environment in .venv, made on first use.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
EXTRAS ?= dev,ns3
VENV := .venv
BIN := $(VENV)/bin
REQUIREMENTS := $(VENV)/requirements-$(EXTRAS).txt
# PyTorch and what goes with it, which only learned policies need.
TRAIN := $(VENV)/requirements-train.txt

PACKAGES := agents benchmarks configs controllers envs src
SOURCES := CMakeLists.txt pyproject.toml README.md LICENSE $(shell find sim $(PACKAGES) -type f -not -path '*/__pycache__/*')
CPP := $(shell find sim controllers -name '*.cpp' -o -name '*.hpp')

.PHONY: help setup baselines leaderboard test test-train test-long lint format speed parity sanitize clean

help:
	@echo "make setup      build and install quicgym into $(VENV); EXTRAS=dev,ns3,train for PyTorch too"
	@echo "make baselines  print the papers' tables, ours beside the printed values"
	@echo "make leaderboard  evaluate all policies on both engines; writes docs/leaderboard.md"
	@echo "make test       run the tests          make test-long  those that take minutes"
	@echo "make test-train those of learned agents; installs PyTorch, Ray Tune and the like (7 GB)"
	@echo "make lint       ruff, mypy, clang-format          make format     rewrite"
	@echo "make speed      CPU time per packet    make parity     native engine against ns-3"
	@echo "make sanitize   tests of the parser and the engine under ASan and UBSan"
	@echo "Options of a command go into ARGS, e.g. make baselines ARGS='--scenario ebcc-single'"

$(VENV)/requirements-%.txt: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit("quicgym needs Python 3.11 or newer; set PYTHON=" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*p["dependencies"], *(r for e in "$*".split(",") for r in p["optional-dependencies"][e]), sep="\n")' > $@.new
	$(BIN)/pip install --quiet --disable-pip-version-check -r $@.new
	@mv $@.new $@

# Without isolation, so that CMake sees the ns3 package of this environment.
$(VENV)/installed: $(REQUIREMENTS) $(SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps .
	@touch $@

setup: $(VENV)/installed

baselines: setup
	$(BIN)/quicgym baselines $(ARGS)

leaderboard: setup $(TRAIN)
	$(BIN)/python -m quicgym.benchmarks.leaderboard $(ARGS)

test: setup
	$(BIN)/pytest -n auto -m "not long" $(ARGS)

# The tests of learned agents, which `make test` skips where PyTorch is not installed.
test-train: setup $(TRAIN)
	$(BIN)/pytest -n auto -m "train and not long" $(ARGS)

test-long: setup $(TRAIN)
	$(BIN)/pytest -n auto -m long $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/mypy -p quicgym
	MYPYPATH=benchmarks/studies $(BIN)/mypy --explicit-package-bases benchmarks/studies

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

speed: setup
	$(BIN)/quicgym speed $(ARGS)

parity: setup
	$(BIN)/quicgym parity $(ARGS)

# A second installation beside the first, so that a sanitizer never slows the real one down.
SANITIZED := build/sanitized
sanitize: setup
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --upgrade --target $(SANITIZED) \
	  -C build-dir=build/sanitized-objects -C cmake.define.QUICGYM_SANITIZE=ON .
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED) \
	  $(BIN)/pytest -p no:cacheprovider tests/sim --ignore=tests/sim/test_ns3_host.py --ignore=tests/sim/test_wifi.py $(ARGS)

clean:
	rm -rf build $(VENV)
