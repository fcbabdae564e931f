# Everything runs from one virtual environment in .venv, made on first use.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
comma := ,
# ns-3 is on PyPI for Linux on x86-64 only.
NS3 := $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),ns3)
EXTRAS ?= dev$(if $(NS3),$(comma)ns3)
DISTRIBUTIONS := . $(if $(NS3),$(if $(filter ns3 all,$(subst $(comma), ,$(EXTRAS))),./sim/ns3))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --quiet --disable-pip-version-check
REQUIREMENTS := $(VENV)/requirements-$(EXTRAS).txt
# PyTorch and what goes with it, which only learned policies need, and the libraries of examples/.
TRAIN := $(VENV)/requirements-examples.txt

PACKAGES := agents benchmarks configs controllers envs real src
SOURCES := CMakeLists.txt pyproject.toml README.md LICENSE $(shell find sim $(PACKAGES) -type f -not -path '*/__pycache__/*' -not -path 'sim/ns3/build/*')
CPP := $(shell find sim controllers tests/fuzz stacks/linux/bpf stacks/linux/loader -not -path 'sim/ns3/build/*' \
  \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' \))

.PHONY: help setup develop real linux baselines reports test test-all test-long lint format messages constraints \
	docs wheels audit speed parity sanitized-core sanitize sanitize-all sanitize-real thread-sanitized-core sanitize-threads sanitize-real-threads campaign fuzz versions clean

help:
	@echo "make setup      build and install quicgym and quicgym-ns3 into $(VENV); EXTRAS=dev,all for PyTorch too"
	@echo "make develop    the same, but edits of Python and C++ take effect at the next import"
	@echo "make baselines  print the papers' tables, ours beside the printed values"
	@echo "make reports    write all reports into results/reports; ARGS=leagues for one of them"
	@echo "make test       run the tests that need neither PyTorch nor Ray: minutes"
	@echo "make test-all   run all tests but the next; installs PyTorch, Ray Tune and the like first (7 GB)"
	@echo "make test-long  run the tests that take minutes each"
	@echo "make real       the QUIC stacks over real packets, with their tests; quicgym-noq is built where cargo is"
	@echo "make linux      quicgym-linux, controllers in the kernel's TCP, and its tests; needs clang, libbpf and root"
	@echo "make lint       ruff, mypy, clang-format  make format     rewrite"
	@echo "make messages   compile ns3-gym's messages"
	@echo "make docs       the documentation site, in build/docs/html; its notebooks are executed"
	@echo "make constraints  test the newest versions of all packages: writes constraints.txt"
	@echo "make audit      known vulnerabilities of the packages in constraints.txt"
	@echo "make wheels     build source distributions and wheels of both distributions into dist/"
	@echo "make speed      CPU time per packet    make parity     native engine against ns-3"
	@echo "make sanitize   tests of the parser and the engine under ASan and UBSan"
	@echo "make campaign BUDGET_S=3600  search for failures that long; writes docs/reports/reliability.md"
	@echo "make fuzz BUDGET_S=3600  only the parsers and endpoints, with libFuzzer; needs clang"
	@echo "make versions   make test with the oldest and newest packages, other Pythons, clang"
	@echo "make sanitize-all  the environments and the ns-3 host too  make sanitize-threads  vector environments under TSan"
	@echo "make sanitize-real  relay and link under ASan and UBSan  make sanitize-real-threads  under TSan"
	@echo "Options of a command go into ARGS, e.g. make baselines ARGS='--scenario ebcc-single'"

$(VENV)/requirements-%.txt: pyproject.toml sim/ns3/pyproject.toml constraints.txt .ci/requirements.py
	@$(PYTHON) -c 'import sys; sys.exit("quicgym needs Python 3.11 or newer; set PYTHON=" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python .ci/requirements.py $* > $@.new
	$(PIP) install --constraint constraints.txt --requirement $@.new
	@mv $@.new $@

# Without isolation: against the versions of constraints.txt.
$(VENV)/installed: $(REQUIREMENTS) $(SOURCES)
	$(PIP) install --no-build-isolation --no-deps $(DISTRIBUTIONS)
	@rm -f $(VENV)/developed
	@touch $@

setup: $(VENV)/installed

# What the targets below need: after `make develop` that is there, and imports build what has changed.
QUICGYM := $(if $(wildcard $(VENV)/developed),$(REQUIREMENTS),$(VENV)/installed)

# The checkout's Python files are imported, and C++ is built again when it has changed. `make setup` undoes it.
develop: $(REQUIREMENTS)
	@for project in $(DISTRIBUTIONS); do \
	  $(PIP) install --no-build-isolation --no-deps -C editable.rebuild=true -C editable.verbose=false --editable $$project || exit; done
	@rm -f $(VENV)/installed
	@touch $(VENV)/developed

baselines: $(QUICGYM)
	$(BIN)/quicgym baselines $(ARGS)

# Into results/reports, in hours; ARGS="leagues --jobs 4" for one of them with its options. The real stacks and
# Linux's kernel need what `make real` and `make linux` install.
reports: $(QUICGYM) $(TRAIN)
	$(BIN)/python -m quicgym.benchmarks.reports $(ARGS)

# Tests that share what takes long to start run in one process.
PYTEST := $(BIN)/pytest -n auto --dist loadgroup

# What needs neither PyTorch nor Ray.
test: $(QUICGYM)
	$(PYTEST) -m "not long and not train" $(ARGS)

# Everything but the tests that take minutes.
test-all: $(QUICGYM) $(TRAIN)
	$(PYTEST) -m "not long" $(ARGS)

test-long: $(QUICGYM) $(TRAIN) $(VENV)/requirements-docs.txt
	$(PYTEST) -m long $(ARGS)

# mypy reads regular installations only.
lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	@if cargo fmt --version > /dev/null 2>&1; then cargo fmt --check --manifest-path stacks/noq/Cargo.toml; fi
	$(BIN)/mypy -p quicgym -p quicgym_start $(if $(NS3),-p quicgym_ns3)
	MYPYPATH=stacks/linux $(BIN)/mypy -p quicgym_linux
	MYPYPATH=benchmarks/studies:tests $(BIN)/mypy --explicit-package-bases benchmarks/studies tests/campaign

# quicgym-noq is Rust: without cargo its tests are skipped, and say so.
NOQ := $(VENV)/installed-noq
NOQ_SOURCES := $(shell find stacks/noq -type f -not -path '*/target/*' -not -path '*/__pycache__/*' -not -path '*/tests/*')
$(NOQ): $(QUICGYM) $(NOQ_SOURCES)
	@if command -v cargo > /dev/null; then $(PIP) install --no-deps ./stacks/noq && touch $@; \
	  else echo "cargo is not there: stack noq is not built; https://rustup.rs installs it"; fi

real: $(QUICGYM) $(VENV)/requirements-real.txt $(NOQ)
	$(BIN)/pytest tests/real stacks/noq/tests $(ARGS)

# quicgym-linux is BPF: without clang and libbpf, or without root, its tests are skipped, and say so.
LINUX := $(VENV)/installed-linux
LINUX_SOURCES := include/quicgym/controller.h $(shell find stacks/linux -type f -not -path '*/build/*' -not -path '*/__pycache__/*' -not -path '*/tests/*')
$(LINUX): $(QUICGYM) $(LINUX_SOURCES)
	@if command -v clang > /dev/null && echo '#include <bpf/libbpf.h>' | $(CXX) -E -x c++ - > /dev/null 2>&1; then \
	    $(PIP) install --no-build-isolation --no-deps ./stacks/linux && touch $@; \
	  else echo "quicgym-linux is not built, because clang or libbpf is not there. Debian and Ubuntu:" \
	    "apt-get install clang libbpf-dev; Fedora: dnf install clang libbpf-devel"; fi

linux: $(LINUX)
	$(BIN)/pytest stacks/linux/tests $(ARGS)

# Strict: a warning, such as a link that leads nowhere, fails. A page that has not changed is not built again.
docs: $(QUICGYM) $(TRAIN) $(VENV)/requirements-docs.txt
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs/html $(ARGS)
	@echo "build/docs/html/index.html"

# What envs/ns3gym reads; a test compares it with messages.proto.
messages: $(QUICGYM)
	$(BIN)/python -m grpc_tools.protoc --proto_path=envs/ns3gym --descriptor_set_out=envs/ns3gym/messages.binpb messages.proto

# The newest versions of everything, in an environment of their own. NVIDIA's packages and triton are left to
# PyTorch, which names their versions itself: another platform has others, or none.
FRESH := build/constraints
constraints:
	rm -rf $(FRESH)
	$(PYTHON) -m venv $(FRESH)
	$(FRESH)/bin/python .ci/requirements.py dev,all,docs,examples > $(FRESH)/requirements.txt
	$(FRESH)/bin/pip --quiet --disable-pip-version-check install --requirement $(FRESH)/requirements.txt
	{ sed -n '/^#/p' constraints.txt; $(FRESH)/bin/pip freeze | grep -viE '^(nvidia|cuda|triton)'; } > $(FRESH)/constraints.txt
	mv $(FRESH)/constraints.txt constraints.txt

# Known vulnerabilities of the versions of constraints.txt. Asks pypi.org.
AUDIT := build/audit
audit:
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip --quiet --disable-pip-version-check install --constraint .ci/tools.txt pip-audit
	$(AUDIT)/bin/pip-audit --no-deps --disable-pip --requirement constraints.txt

wheels: setup
	$(PIP) install --constraint constraints.txt --constraint .ci/tools.txt build
	@export PIP_CONSTRAINT=$(CURDIR)/constraints.txt; \
	for project in $(DISTRIBUTIONS); do $(BIN)/python -m build --outdir dist $$project || exit; done

format: $(QUICGYM)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

speed: $(QUICGYM)
	$(BIN)/quicgym speed $(ARGS)

parity: $(QUICGYM)
	$(BIN)/quicgym parity $(ARGS)
	$(BIN)/quicgym parity --networks 1000 $(addprefix --discipline ,fifo codel fq-codel pie red)
	$(BIN)/quicgym parity --networks 1000 $(addprefix --feature ,outage trace opening ack-aggregation delay-schedule \
	  jitter reordering policer ce-threshold backward)

# Installations beside the real one, so that a sanitizer never slows that down. Leaks are Python's own.
SANITIZED := build/sanitized
# A sanitizer's own memory, and what it keeps of freed memory, are beyond the limits that these tests set.
UNLIMITED := --deselect tests/envs/test_vector_environment.py::test_threads_that_cannot_be_started_are_an_error \
  --deselect tests/sim/test_short_flows.py::test_thousands_of_flows_leave_no_more_behind_than_tens \
  --deselect tests/real/test_relay.py::test_a_relay_takes_little_more_than_64_mib
WITH_ASAN := LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED)
sanitized-core: setup
	$(PIP) install --no-build-isolation --no-deps --upgrade --target $(SANITIZED) \
	  -C build-dir=build/sanitized-objects -C cmake.define.QUICGYM_SANITIZE=address,undefined .

sanitize: sanitized-core
	$(WITH_ASAN) $(BIN)/pytest -p no:cacheprovider tests/sim -m "not ns3 and not long" --ignore=tests/sim/test_ns3_host.py --ignore=tests/sim/test_wifi.py $(UNLIMITED) $(ARGS)

# Bindings, environments, controllers and the ns-3 host, whose module looks for ns-3 beside itself.
NS3_LIBRARIES := "import importlib.util as u; s = u.find_spec('ns3'); print(f'{s.submodule_search_locations[0]}/lib64' if s else '')"
sanitize-all: sanitized-core
	$(if $(NS3),$(PIP) install --no-build-isolation --no-deps --upgrade --target $(SANITIZED) \
	  -C build-dir=build/sanitized-objects-ns3 -C cmake.define.QUICGYM_SANITIZE=address$(comma)undefined ./sim/ns3)
	$(WITH_ASAN) LD_LIBRARY_PATH="$$($(BIN)/python -c $(NS3_LIBRARIES))" \
	  $(BIN)/pytest -p no:cacheprovider -n auto tests/sim tests/controllers tests/envs -m "not long and not train" $(UNLIMITED) $(ARGS)

# Packets of real programs: the relay and `link`.
REAL := $(BIN)/pytest -p no:cacheprovider $(addprefix tests/real/test_,relay.py link.py emulated_network.py network_capsule.py)
sanitize-real: sanitized-core
	$(WITH_ASAN) $(REAL) $(UNLIMITED) $(ARGS)

# ThreadSanitizer needs the usual places of memory.
THREAD_SANITIZED := build/thread-sanitized
WITH_TSAN := LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" TSAN_OPTIONS="exitcode=66" PYTHONPATH=$(THREAD_SANITIZED) setarch -R
thread-sanitized-core: setup
	$(PIP) install --no-build-isolation --no-deps --upgrade --target $(THREAD_SANITIZED) \
	  -C build-dir=build/thread-sanitized-objects -C cmake.define.QUICGYM_SANITIZE=thread .

sanitize-real-threads: thread-sanitized-core
	$(WITH_TSAN) $(REAL) $(UNLIMITED) $(ARGS)

# The pool of threads behind a batch of episodes.
sanitize-threads: thread-sanitized-core
	$(WITH_TSAN) $(BIN)/pytest -p no:cacheprovider tests/envs/test_vector_environment.py \
	  tests/envs/test_states.py tests/envs/test_preferences.py -m "not ns3 and not long and not train" $(UNLIMITED) $(ARGS)

BUDGET_S ?= 600
# Coverage-guided, by libFuzzer: needs clang. A part of the campaign.
fuzz: setup $(TRAIN)
	$(PIP) install atheris
	PYTHONPATH=tests $(BIN)/python -m campaign --part fuzzing --budget-s $(BUDGET_S) $(ARGS)

# `make test` with the oldest packages that pyproject.toml allows, the newest ones, other Pythons, and clang;
# ARGS=oldest for one of them.
versions:
	$(PYTHON) .ci/versions.py $(ARGS)

# Searches for failures for BUDGET_S seconds; the report grows with every run.
campaign: $(QUICGYM) $(TRAIN)
	PYTHONPATH=tests $(BIN)/python -m campaign --budget-s $(BUDGET_S) $(ARGS)

clean:
	rm -rf build sim/ns3/build $(VENV)
