# Everything from a fresh clone. Needed: cargo (see rust-version in Cargo.toml), Python 3.11 or
# later with venv, a C compiler, and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
BUILT := $(VENV)/.built
DAEMON := $(VENV)/.daemon
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
# The command, with large pages where the C library can ask for them: fabrics of 1024 hosts run up to a
# quarter faster.
RAMPMETER := GLIBC_TUNABLES=glibc.malloc.hugetlb=1 $(BIN)/rampmeter
# A crate with a lock file of its own, as somebody outside the repository has.
EXAMPLE := examples/own-transport
# The flags of `rampmeter papers`, such as --seeds 1.
FLAGS ?=

# How long `make ledger` runs.
HOURS := 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Show what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: demo
demo: $(BUILT) ## A reduced figure 3 of dcPIM: a few minutes, verdicts and plots
	$(RAMPMETER) papers dcpim 3 --quick --beside-ledger $(FLAGS)

.PHONY: figures
figures: $(BUILT) ## Every figure at the judged flow counts, three seeds; goes on where it stopped
	$(RAMPMETER) papers dcpim 3 $(FLAGS)
	for figure in artifact baselines 3a 4a 4b 4c 5a 5c 6 6a 7 8; do $(RAMPMETER) papers dcpim $$figure $(FLAGS) || exit; done
	for figure in buffers max-load; do $(RAMPMETER) papers homa-dispute $$figure $(FLAGS) || exit; done
	$(RAMPMETER) papers collectives all $(FLAGS)
	for figure in 3 5 6 7 8 9; do $(RAMPMETER) papers phost $$figure $(FLAGS) || exit; done
	for figure in 2 4 5 6 7 8; do $(RAMPMETER) papers cosy $$figure $(FLAGS) || exit; done
	for figure in table1 8 9 others; do $(RAMPMETER) papers capton $$figure $(FLAGS) || exit; done
	for figure in 3 5 prices scale inter-pod million; do $(RAMPMETER) papers fastpod $$figure $(FLAGS) || exit; done

.PHONY: ledger
ledger: $(BUILT) ## Runs that the ledger of published values lacks, cheapest first, for HOURS
	nice -n 19 $(RAMPMETER) papers --fill $(HOURS) $(FLAGS)
	$(BIN)/python -m tools.generate

.PHONY: bench
bench: $(BUILT) $(DAEMON) ## The speed of whole runs on one core, and of the engine's parts
	$(RAMPMETER) bench
	cargo bench --workspace --locked

# How long `make soak` takes, and which transport.
MINUTES ?= 60
TRANSPORT ?= dcpim

.PHONY: soak
soak: $(DAEMON) ## Real nodes under kills, loss, slow readers and new keys, for an hour; needs root
	$(BIN)/python -m tools.hosts.soak results/soak-$(TRANSPORT) --minutes $(MINUTES) --transport $(TRANSPORT)

.PHONY: stress
stress: $(DAEMON) ## Every transport between real nodes under kills and faults, for half an hour; needs root
	$(BIN)/python -m tools.hosts.stress results/stress --all --minutes 0.5

# A program that tests start, and the Debian package that has it.
SYSTEM := chromedriver:chromium-driver tshark:tshark c++:g++ ip:iproute2 tc:iproute2 unshare:util-linux setpriv:util-linux

.PHONY: system
system: ## Install the system packages that tests need, where they are missing; needs apt-get and root
	@missing=$$(for pair in $(SYSTEM); do \
		PATH="$$PATH:/usr/sbin:/sbin" command -v "$${pair%%:*}" >/dev/null || echo "$${pair##*:}"; \
	done | sort -u | tr '\n' ' '); \
	if test -z "$$missing"; then exit 0; fi; \
	if ! command -v apt-get >/dev/null || test "$$(id -u)" != 0; then \
		echo "make: system: not installed, apt-get and root are needed: $$missing" >&2; exit 0; \
	fi; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq --yes --no-install-recommends $$missing

# What is checked and tested: everything, with the same features in every step, so that no crate is
# compiled for several sets of them.
TESTED := --workspace --exclude rampmeter-host-bench --features rampmeter-runtime/xdp --locked

.PHONY: test
test: lint test-rust test-python ## Everything that must hold before a change goes in

# What continuous integration runs after `make test`: tests with the mark `long`, and products.
.PHONY: test-long
test-long: test-python-long lint-tools test-wheel example package fuzz ## Long tests, wheel, example crate, packages, fuzzing

.PHONY: test-all
test-all: test test-long test-endurance ## All tests at full length; hours

# What takes hours: every transport in every situation, 1000 seeds for the tests of faults, and 100 000
# messages for those of liveness.
.PHONY: test-endurance
test-endurance: situations ## Every transport in foreign networks, and tests of faults and liveness at full length; hours
	RAMPMETER_SEEDS=1000 cargo test -p rampmeter-proto --release --locked --test faults
	RAMPMETER_FLOWS=100000 RAMPMETER_SIZES=imc10 \
		cargo test -p rampmeter-proto --release --locked --test liveness -- --nocapture
	RAMPMETER_FLOWS=5000 RAMPMETER_SIZES=data-mining \
		cargo test -p rampmeter-proto --release --locked --test liveness -- --nocapture

.PHONY: situations
situations: $(BUILT) ## Mean slowdowns of every transport in networks unlike those of its paper
	$(BIN)/python -m tests.situations

# Coverage without sanitizers needs no nightly toolchain. The target is named so that build scripts
# are left alone.
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-trace-compares \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1 --cfg fuzzing
FUZZ := RUSTFLAGS="$(FUZZ_FLAGS)" cargo run --quiet --release --locked --manifest-path fuzz/Cargo.toml \
	--target-dir target/fuzz --target $$(rustc -vV | sed -n 's/host: //p')
# Not among them by default: plan, which needs a feature, and node_sequences, which needs minutes to find
# anything (CONTRIBUTING.md). `make test` runs 60 sequences a transport of it.
FUZZ_TARGETS ?= $(filter-out plan node_sequences,$(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))))
# Seconds for each target, and further features: FUZZ_TARGETS=plan FUZZ_FEATURES=plan.
FUZZ_SECONDS ?= 5
FUZZ_FEATURES ?=

.PHONY: fuzz
fuzz: ## Fuzz the decoders, the handshake and nodes, each for FUZZ_SECONDS; needs a C++ compiler
	@command -v c++ >/dev/null || { echo "make: fuzz: skipped, libFuzzer needs a C++ compiler: make system"; \
		test -z "$$RAMPMETER_CI"; exit; }; \
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/corpus/$$target fuzz/artifacts/$$target; \
		log=fuzz/artifacts/$$target/log; \
		$(FUZZ) --features "$(FUZZ_FEATURES)" --bin $$target -- fuzz/corpus/$$target \
			-artifact_prefix=fuzz/artifacts/$$target/ -max_total_time=$(FUZZ_SECONDS) \
			-print_final_stats=1 > $$log 2>&1 || { tail -n 40 $$log; exit 1; }; \
		echo "$$target: $$(grep number_of_executed_units $$log)"; \
	done

# What Miri can run of the shared memory: everything but system calls. It cannot emulate weak memory
# where atomics of different sizes overlap, which only a hostile program makes.
MIRI := cargo +nightly miri test --package rampmeter-ring --locked --lib --target-dir target/miri -- \
	arena:: ring:: entry:: layout::

.PHONY: miri
miri: ## Look for undefined behaviour in rings and arenas; needs a nightly toolchain with Miri
	MIRIFLAGS=-Zmiri-disable-isolation $(MIRI) --skip any_memory
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation" $(MIRI)

.PHONY: lint
lint: $(BUILT) ## Formats, lints, types, and the stub against the binary
	for lock in . $(EXAMPLE) fuzz; do \
		cargo tree --quiet --locked --manifest-path $$lock/Cargo.toml >/dev/null || exit; done
	cargo fmt --all --check
	cargo fmt --manifest-path $(EXAMPLE)/Cargo.toml --check
	cargo clippy --all-targets $(TESTED) -- -D warnings
	$(BIN)/ruff format --check python tests tools docs
	$(BIN)/ruff check python tests tools docs
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest rampmeter._core --ignore-disjoint-bases

# RAMPMETER_REFERENCE, where it is set, names the folder of recorded runs that replay tests read.
.PHONY: test-rust
test-rust: $(LOCKED) ## Unit, property, replay and documentation tests of the crates
	cargo test --no-fail-fast $(TESTED)
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps $(TESTED)

.PHONY: conformance
conformance: ## 100 000 messages per transport in the simulator, over UDP and over AF_XDP
	RAMPMETER_MESSAGES=100000 cargo test --release -p rampmeter-runtime --features xdp --locked \
		--test conformance -- --test-threads=1

# Tests run on several processes. Those of nodes share one of them (tests/conftest.py), which waits
# for timers most of the time, so there is one more than processors of small machines.
PYTEST := RAMPMETER_RAMPD=$(abspath target/debug/rampd) \
	RAMPMETER_TEST_DAEMON=$(abspath target/debug/examples/daemon) \
	$(BIN)/python -m pytest -n 3 --dist loadgroup

.PHONY: daemons
daemons:
	cargo build --quiet $(TESTED) --bin rampd --example daemon

.PHONY: test-python
test-python: $(BUILT) daemons ## Tests of the package and of the built module, without long ones
	$(PYTEST) -m "not long"

.PHONY: test-python-long
test-python-long: $(BUILT) daemons ## Long tests: nodes in failures, clusters, a browser, the site
	$(PYTEST) -m long

.PHONY: lint-tools
lint-tools: ## Lints of the programs in tools, which no test compiles
	cargo clippy --quiet --all-targets --locked -p rampmeter-host-bench -- -D warnings

.PHONY: example
example: $(BUILT) ## A crate with a transport of its own: built, tested, simulated, as a daemon
	$(EXAMPLE)/try.sh $(abspath $(BIN))/rampmeter $(abspath target)
	CARGO_TARGET_DIR=target cargo clippy --quiet --all-targets --locked \
		--manifest-path $(EXAMPLE)/Cargo.toml -- -D warnings

.PHONY: package
package: ## Every crate can be packaged for others to depend on
	cargo package --workspace --exclude rampmeter-host-bench --no-verify --allow-dirty --quiet

# A wheel of the package with figures of papers, examples, the daemon and the library for LD_PRELOAD in
# it, none of which maturin puts there.
WHEEL := target/wheel

.PHONY: wheel
wheel: $(BUILT) $(DAEMON) ## A wheel that needs no Rust, in target/wheel, and a source distribution
	rm -rf $(WHEEL)
	$(BIN)/maturin build --release --locked --quiet --out $(WHEEL)/plain
	$(BIN)/maturin sdist --out $(WHEEL)
	$(BIN)/wheel unpack --dest $(WHEEL)/unpacked $(WHEEL)/plain/*.whl
	set -e; cd $(WHEEL)/unpacked/*; data=$$(basename "$$PWD").data; \
		mkdir -p $$data/scripts $$data/data/lib; \
		strip --strip-unneeded -o rampmeter/stripped.so rampmeter/_core.abi3.so; \
		mv rampmeter/stripped.so rampmeter/_core.abi3.so; \
		strip -o $$data/scripts/rampd $(abspath target/release/rampd); \
		strip --strip-unneeded -o $$data/data/lib/librampmeter_capton.so \
			$(abspath target/release/librampmeter_capton.so); \
		cp -r $(abspath papers) rampmeter/_papers; \
		cp -r $(abspath examples) rampmeter/_examples
	$(BIN)/wheel pack --dest $(WHEEL) $(WHEEL)/unpacked/*
	$(BIN)/auditwheel show $(WHEEL)/*.whl | grep -q manylinux
	@ls -l $(WHEEL)/*.whl $(WHEEL)/*.tar.gz

.PHONY: test-wheel
test-wheel: wheel ## The wheel in an empty environment, without Rust
	tests/try_wheel.sh $(PYTHON) $(abspath $(WHEEL))

.PHONY: docs
docs: $(BUILT) ## The documentation site, in target/site; needs no network
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs target/site
	@echo "docs: target/site/index.html"

.PHONY: generate
generate: $(BUILT) ## Renew the classes of plans and transports, and tables of docs/plans/transport.md and README.md
	$(BIN)/python -m tools.generate

.PHONY: build
build: $(BUILT) $(DAEMON) ## The virtual environment with the package, the daemon and the library for LD_PRELOAD in it

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: expected Python 3.11 or later, got $$($(PYTHON) --version); set PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

$(BUILT): $(LOCKED) $(RUST_SOURCES) pyproject.toml
	env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

$(DAEMON): $(BUILT)
	cargo build --release --locked --package rampd --package rampmeter-preload
	cp target/release/rampd $(BIN)/rampd
	cp target/release/librampmeter_capton.so $(VENV)/lib/
	@touch $@

.PHONY: lock
lock: ## Renew requirements.lock from pyproject.toml
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet pip-tools
	{ echo "# Exact versions of everything that the Makefile installs; made by \`make lock\`."; \
	  $(VENV)/lock/bin/pip-compile --quiet --extra dev --strip-extras --no-header --upgrade \
	    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file - \
	    pyproject.toml; } > requirements.lock

.PHONY: clean
clean: ## Remove what was built; results stay
	rm -rf target $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f python/rampmeter/_core*.so
	find python tests tools -name __pycache__ -type d -exec rm -rf {} +
