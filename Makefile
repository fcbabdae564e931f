# Everything runs from one virtual environment in .venv, made on first use.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
comma := ,
# ns-3 is on PyPI for Linux on x86-64 only.
NS3 := $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),ns3)
EXTRAS ?= dev$(if $(NS3),$(comma)ns3)
DISTRIBUTIONS := . $(if $(filter dev real all,$(subst $(comma), ,$(EXTRAS))),./real/aioquic) $(if $(NS3),$(if $(filter ns3 all,$(subst $(comma), ,$(EXTRAS))),./sim/ns3))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check
REQUIREMENTS := $(VENV)/requirements-$(EXTRAS).txt
# PyTorch and what goes with it, which only learned policies need, and the libraries of examples/.
TRAIN := $(VENV)/requirements-examples.txt

# Where there is no GPU: PyTorch without CUDA.
TORCH_CPU := https://download.pytorch.org/whl/cpu

PACKAGES := agents benchmarks configs controllers envs real src
# They have targets of their own.
PLUGINS := real/linux real/noq
SOURCES := CMakeLists.txt pyproject.toml README.md LICENSE $(shell find sim $(PACKAGES) -type f -not -path '*/__pycache__/*' -not -path 'sim/ns3/build/*' \
  $(patsubst %,-not -path '%/*',$(PLUGINS)))
CPP := $(shell find sim controllers real docs/playground tests/fuzz -not -path '*/build/*' -not -path '*/target/*' \
  \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' \))

.PHONY: help always setup develop baselines reports test test-all real linux lint format docs playground sanitize fuzz wheels clean

help:
	@echo "make setup      build and install quicgym, quicgym-aioquic and quicgym-ns3 into $(VENV); EXTRAS=dev,ns3,train for PyTorch too"
	@echo "                PROFILE=1 compiles twice with gcc, the second time by what packets did, which then cost a sixth less"
	@echo "make develop    the same, but edits of Python and C++ take effect at the next import"
	@echo "make baselines  compare the papers' controllers and the learned agents on one reward"
	@echo "make reports    write all reports into results/reports; ARGS=leagues for one of them"
	@echo "make test       run the tests that need neither PyTorch nor Ray: minutes"
	@echo "make test-all   run all tests but long ones; installs PyTorch and Ray Tune (3 GB, 7 GB with CUDA); ARGS='-m long' for these"
	@echo "make real       the QUIC stacks over real packets, with their tests; quicgym-noq is built where cargo is"
	@echo "make linux      quicgym-linux, controllers in the kernel's TCP, and its tests; needs clang, libbpf and root"
	@echo "make lint       ruff, mypy, clang-format"
	@echo "make format     rewrite what these can"
	@echo "make docs       the documentation site, in build/docs/html; its notebooks are executed"
	@echo "make playground  the simulator in a browser tab, one file in build/playground; needs Emscripten and npm"
	@echo "make sanitize   tests of the parser and the engine under ASan and UBSan; ARGS=all, threads, real, real-threads"
	@echo "make fuzz BUDGET_S=3600  search for failures that long; needs clang"
	@echo "make wheels     build source distributions and wheels of all distributions into dist/"
	@echo "make clean      remove build/ and $(VENV)"
	@echo "Options of a command go into ARGS, e.g. make baselines ARGS='--scenario ebcc-single'"

$(VENV)/requirements-%.txt: pyproject.toml sim/ns3/pyproject.toml real/aioquic/pyproject.toml constraints.txt .ci/requirements.py
	@$(PYTHON) -c 'import sys; sys.exit("quicgym needs Python 3.11 or newer; set PYTHON=" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python .ci/requirements.py $* > $@.new
	@echo "installing what quicgym needs"
	@if grep -q '^torch[>=]' $@.new && [ "$$(uname -s)" = Linux ] && ! command -v nvidia-smi > /dev/null; then \
	  $(PIP) install --no-deps --retries 0 --timeout 15 --constraint constraints.txt --index-url $(TORCH_CPU) torch 2> /dev/null \
	    || echo "$(TORCH_CPU) gave no PyTorch: PyPI's is taken, which has CUDA and needs 4 GB more"; fi
	$(PIP) install --constraint constraints.txt --requirement $@.new
	@mv $@.new $@

# Without isolation: against the versions of constraints.txt. The define is given in any case, because CMake remembers it.
INSTALL := $(PIP) install --no-build-isolation --no-deps
$(VENV)/installed: $(REQUIREMENTS) $(SOURCES) $(if $(PROFILE),always)
	$(if $(PROFILE),SKBUILD_CMAKE_DEFINE=QUICGYM_PROFILE=generate $(INSTALL) . && $(BIN)/python .ci/workload.py)
	@echo "compiling, which takes some minutes and prints nothing"
	SKBUILD_CMAKE_DEFINE=QUICGYM_PROFILE=$(if $(PROFILE),use) $(INSTALL) $(DISTRIBUTIONS)
	@rm -f $(VENV)/developed
	@touch $@

setup: $(VENV)/installed
always:

# The installation that the targets below need. After `make develop` it exists, and imports build what has changed.
QUICGYM := $(if $(wildcard $(VENV)/developed),$(REQUIREMENTS),$(VENV)/installed)

# The checkout's Python files are imported, and C++ is built again when it has changed. `make setup` undoes it.
develop: $(REQUIREMENTS)
	@for project in $(DISTRIBUTIONS); do \
	  SKBUILD_CMAKE_DEFINE=QUICGYM_PROFILE= $(INSTALL) --config-settings editable.rebuild=true --config-settings editable.verbose=false --editable $$project || exit; done
	@rm -f $(VENV)/installed
	@touch $(VENV)/developed

baselines: $(QUICGYM)
	$(BIN)/quicgym baselines $(ARGS)

# Tests that share what takes long to start run in one process.
PYTEST := $(BIN)/pytest -n auto --dist loadgroup

# Runs the tests that need neither PyTorch nor Ray.
test: $(QUICGYM)
	$(PYTEST) -m "not long and not train" $(ARGS)

# Everything but the tests that take minutes, which ARGS="-m long" runs; the site is one of them.
test-all: $(QUICGYM) $(TRAIN) $(if $(findstring -m long,$(ARGS)),$(VENV)/requirements-docs.txt)
	$(PYTEST) -m "not long" $(ARGS)

# mypy reads regular installations only.
lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	@if cargo fmt --version > /dev/null 2>&1; then cargo fmt --check --manifest-path real/noq/Cargo.toml; fi
	$(BIN)/mypy -p quicgym -p quicgym_start $(if $(NS3),-p quicgym_ns3)
	MYPYPATH=real/aioquic:real/linux:real/noq $(BIN)/mypy -p quicgym_aioquic -p quicgym_linux -p quicgym_noq
	MYPYPATH=benchmarks/studies:tests $(BIN)/mypy --explicit-package-bases benchmarks/studies tests/campaign

format: $(QUICGYM)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# quicgym-noq is Rust: without cargo its tests are skipped, and say so.
NOQ := $(VENV)/installed-noq
NOQ_SOURCES := $(shell find real/noq -type f -not -path '*/target/*' -not -path '*/__pycache__/*' -not -path '*/tests/*')
$(NOQ): $(QUICGYM) $(NOQ_SOURCES)
	@if command -v cargo > /dev/null; then $(PIP) install --no-deps ./real/noq && touch $@; \
	  else echo "cargo is not there: stack noq is not built; https://rustup.rs installs it"; fi

real: $(QUICGYM) $(VENV)/requirements-real.txt $(NOQ)
	$(BIN)/pytest tests/real real/aioquic/tests real/noq/tests $(ARGS)

# quicgym-linux is BPF: without clang and libbpf, or without root, its tests are skipped, and say so.
LINUX := $(VENV)/installed-linux
LINUX_SOURCES := real/embedding/quicgym/controller.h $(shell find real/linux -type f -not -path '*/build/*' -not -path '*/__pycache__/*' -not -path '*/tests/*')
$(LINUX): $(QUICGYM) $(LINUX_SOURCES)
	@if command -v clang > /dev/null && echo '#include <bpf/libbpf.h>' | $(CXX) -E -x c++ - > /dev/null 2>&1; then \
	    $(PIP) install --no-build-isolation --no-deps ./real/linux && touch $@; \
	  else echo "quicgym-linux is not built, because clang or libbpf is not there. Debian and Ubuntu:" \
	    "apt-get install clang libbpf-dev; Fedora: dnf install clang libbpf-devel"; fi

linux: $(LINUX)
	$(BIN)/pytest real/linux/tests $(ARGS)

# Into results/reports, in hours; ARGS="leagues --jobs 4" for one of them with its options.
reports: $(QUICGYM) $(TRAIN) $(if $(filter reality,$(ARGS)),$(VENV)/requirements-real.txt $(NOQ)) \
    $(if $(filter linux-kernel,$(ARGS)),$(LINUX) $(NOQ))
	$(BIN)/python -m quicgym.benchmarks.reports $(ARGS)

# The simulator in a browser tab: two minutes of compiling at first.
playground:
	@$(MAKE) -f docs/playground/Makefile

# Strict: a warning, such as a link that leads nowhere, fails. A page that has not changed is not built again.
docs: $(QUICGYM) $(TRAIN) $(VENV)/requirements-docs.txt
	@if command -v em++ > /dev/null && command -v npm > /dev/null; then $(MAKE) playground; \
	  else echo "The site has no playground, because Emscripten or npm is missing. Debian and Ubuntu:" \
	    "apt-get install emscripten npm; Fedora: dnf install emscripten nodejs-npm; macOS: brew install emscripten node"; fi
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs/html $(ARGS)
	@echo "build/docs/html/index.html"

wheels: setup
	$(PIP) install --constraint constraints.txt --constraint .ci/tools.txt build
	@export PIP_CONSTRAINT=$(CURDIR)/constraints.txt; \
	for project in $(DISTRIBUTIONS); do $(BIN)/python -m build --outdir dist $$project || exit; done

sanitize: setup
	$(BIN)/python .ci/sanitize.py $(ARGS)

BUDGET_S ?= 600
# ARGS="--part fuzzing" is libFuzzer alone.
fuzz: setup $(TRAIN)
	PYTHONPATH=tests $(BIN)/python -m campaign --budget-s $(BUDGET_S) $(ARGS)

clean:
	rm -rf build sim/ns3/build $(VENV)
