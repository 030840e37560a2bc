# Targets from a fresh clone. They need cargo (see rust-version in Cargo.toml), Python 3.11 or later
# with venv, a C compiler, and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
BUILT := $(VENV)/.built
DAEMON := $(VENV)/.daemon
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
# The command, with large pages if the C library supports them: fabrics of 1024 hosts run up to 25 %
# faster.
RAMPMETER := GLIBC_TUNABLES=glibc.malloc.hugetlb=1 $(BIN)/rampmeter
# A crate with a separate lock file, as a project outside the repository has.
EXAMPLE := examples/own-transport
# The flags of `rampmeter papers`, such as --seeds 1.
FLAGS ?=

# How long `make ledger` runs.
HOURS := 2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List all targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: demo
demo: $(BUILT) ## Draw a reduced figure 3 of dcPIM, with verdicts; a few minutes
	$(RAMPMETER) papers dcpim 3 --quick --with-ledger $(FLAGS)

.PHONY: figures
figures: $(BUILT) ## Draw every figure at the judged flow counts, three seeds; continues an earlier run
	$(RAMPMETER) papers --all $(FLAGS)

.PHONY: ledger
ledger: $(BUILT) ## Runs that the ledger of published values lacks, cheapest first, for HOURS
	nice -n 19 $(RAMPMETER) papers --fill $(HOURS) $(FLAGS)
	$(BIN)/python -m tools.generate

.PHONY: screenshots
screenshots: $(BUILT) ## Draw the terminals of the documentation again; a minute
	$(BIN)/python -m tools.screenshots

.PHONY: bench
bench: $(BUILT) $(DAEMON) ## Measure the speed of whole runs on one core, and of parts of the engine
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
system: ## Install missing system packages of tests; needs apt-get and root
	@missing=$$(for pair in $(SYSTEM); do \
		PATH="$$PATH:/usr/sbin:/sbin" command -v "$${pair%%:*}" >/dev/null || echo "$${pair##*:}"; \
	done | sort -u | tr '\n' ' '); \
	if test -z "$$missing"; then exit 0; fi; \
	if ! command -v apt-get >/dev/null || test "$$(id -u)" != 0; then \
		echo "make: system: not installed, apt-get and root are needed: $$missing" >&2; exit 0; \
	fi; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq --yes --no-install-recommends $$missing

# Packages and features of checks and tests. They are the same in every step, so that no crate is
# compiled for several sets of features.
TESTED := --workspace --exclude rampmeter-host-bench --features rampmeter-runtime/xdp --locked

.PHONY: test
test: lint test-rust test-python ## Run all tests that a change must pass: lint, Rust, Python

# Continuous integration runs this after `make test`: tests with the mark `long`, and products.
.PHONY: test-long
test-long: test-rust-long test-python-long lint-tools test-wheel example package fuzz ## Run long tests, and test wheel, example crate and packages; fuzz

.PHONY: test-all
test-all: test test-long test-endurance ## Run all tests at full length; hours

# Every transport in every situation, 1000 seeds for the tests of faults, and 100 000 messages for
# those of liveness; takes hours.
.PHONY: test-endurance
test-endurance: situations ## Run situations, and tests of faults and liveness at full length; hours
	RAMPMETER_SEEDS=1000 cargo test -p rampmeter-proto --release --locked --test transports \
		faults:: -- --include-ignored
	RAMPMETER_FLOWS=100000 RAMPMETER_SIZES=imc10 \
		cargo test -p rampmeter-proto --release --locked --test transports \
			liveness:: -- --include-ignored --nocapture
	RAMPMETER_FLOWS=5000 RAMPMETER_SIZES=data-mining \
		cargo test -p rampmeter-proto --release --locked --test transports \
			liveness:: -- --include-ignored --nocapture

.PHONY: situations
situations: $(BUILT) ## Measure every transport in networks unlike that of its paper
	$(BIN)/python -m tests.situations

# Coverage without sanitizers needs no nightly toolchain. The target is named so that build scripts
# are unchanged.
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-trace-compares \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1 --cfg fuzzing
FUZZ := RUSTFLAGS="$(FUZZ_FLAGS)" cargo run --quiet --release --locked --manifest-path fuzz/Cargo.toml \
	--target-dir target/fuzz --target $$(rustc -vV | sed -n 's/host: //p')
# By default without plan, which needs a feature, and without node_sequences, which finds faults only
# after minutes (CONTRIBUTING.md). `make test` runs 60 sequences a transport of the latter.
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

# Tests of shared memory that Miri can run: those without system calls. It cannot emulate weak memory
# if atomics of different sizes overlap, which only a hostile program causes.
MIRI := cargo +nightly miri test --package rampmeter-ring --locked --lib --target-dir target/miri -- \
	arena:: ring:: entry:: layout::

.PHONY: miri
miri: ## Look for undefined behaviour in rings and arenas; needs a nightly toolchain with Miri
	MIRIFLAGS=-Zmiri-disable-isolation $(MIRI) --skip any_memory
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation" $(MIRI)

.PHONY: lint
lint: $(BUILT) ## Check formats, lints, types and lock files, and the stub against the binary
	for lock in . $(EXAMPLE) fuzz; do \
		cargo tree --quiet --locked --manifest-path $$lock/Cargo.toml >/dev/null || exit; done
	cargo fmt --all --check
	cargo fmt --manifest-path $(EXAMPLE)/Cargo.toml --check
	cargo clippy --all-targets $(TESTED) -- -D warnings
	$(BIN)/ruff format --check python tests tools docs
	$(BIN)/ruff check python tests tools docs
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest rampmeter._core --ignore-disjoint-bases

# RAMPMETER_REFERENCE, if set, names the folder of recorded runs that replay tests read.
.PHONY: test-rust
test-rust: $(LOCKED) ## Run unit, property, replay and documentation tests of the crates
	cargo test --no-fail-fast $(TESTED)
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps $(TESTED)

# `child_process` is the part of another test.
.PHONY: test-rust-long
test-rust-long: ## Run long tests of the crates: random plans, further presets, theory at length
	cargo test --no-fail-fast --lib --bins --tests $(TESTED) -- --ignored --skip child_process

.PHONY: conformance
conformance: ## Send 100 000 messages per transport in the simulator, over UDP and over AF_XDP
	RAMPMETER_MESSAGES=100000 cargo test --release -p rampmeter-runtime --features xdp --locked \
		--test transports conformance:: -- --test-threads=1

# Tests run on several processes. Those of nodes share one of them (tests/conftest.py), which waits
# for timers most of the time, so there is one more than processors of small machines.
PYTEST := RAMPMETER_RAMPD=$(abspath target/debug/rampd) \
	RAMPMETER_TEST_DAEMON=$(abspath target/debug/examples/daemon) \
	$(BIN)/python -m pytest -n 3 --dist loadgroup

.PHONY: daemons
daemons:
	cargo build --quiet $(TESTED) --bin rampd --example daemon

.PHONY: test-python
test-python: $(BUILT) daemons ## Run tests of the package and of the built module, without long ones
	$(PYTEST) -m "not long"

.PHONY: test-python-long
test-python-long: $(BUILT) daemons ## Run long tests: nodes in failures, clusters, a browser, the site
	$(PYTEST) -m long

.PHONY: lint-tools
lint-tools: ## Lint the crates in tools, which no test compiles
	cargo clippy --quiet --all-targets --locked -p rampmeter-host-bench -- -D warnings

.PHONY: deny
deny: ## Check licences, advisories and sources of dependencies; needs cargo-deny and network
	for lock in . $(EXAMPLE) fuzz; do \
		cargo deny --manifest-path $(CURDIR)/$$lock/Cargo.toml --locked check --config deny.toml || exit; done

.PHONY: example
example: $(BUILT) ## Build, test, simulate and run the crate with a custom transport
	$(EXAMPLE)/try.sh $(abspath $(BIN))/rampmeter $(abspath target)
	CARGO_TARGET_DIR=target cargo clippy --quiet --all-targets --locked \
		--manifest-path $(EXAMPLE)/Cargo.toml -- -D warnings

.PHONY: package
package: ## Check that every crate can be packaged
	cargo package --workspace --exclude rampmeter-host-bench --no-verify --allow-dirty --quiet

# A wheel of the package with figures of papers, examples, the daemon, and the libraries for C and
# LD_PRELOAD, which maturin does not include.
WHEEL := target/wheel
# Licences of the packages that are linked into the wheel's files, in the wheel and next to it.
NOTICES := THIRD-PARTY.md

.PHONY: wheel
wheel: $(BUILT) $(DAEMON) ## Build a wheel that needs no Rust, notices and a source distribution, in target/wheel
	rm -rf $(WHEEL)
	$(BIN)/maturin build --release --locked --quiet --out $(WHEEL)/plain
	$(BIN)/maturin sdist --out $(WHEEL)
	$(BIN)/wheel unpack --dest $(WHEEL)/unpacked $(WHEEL)/plain/*.whl
	$(BIN)/python -m tools.notices $(WHEEL)/$(NOTICES)
	set -e; cd $(WHEEL)/unpacked/*; data=$$(basename "$$PWD").data; \
		mkdir -p $$data/scripts $$data/data/lib/pkgconfig $$data/data/include \
			$$data/data/share/doc/rampmeter; \
		cp ../../$(NOTICES) *.dist-info/licenses/; \
		sed -i 's/^License-File: LICENSE$$/&\nLicense-File: $(NOTICES)/' *.dist-info/METADATA; \
		grep -q '^License-File: $(NOTICES)$$' *.dist-info/METADATA; \
		cp ../../$(NOTICES) $(abspath LICENSE) $$data/data/share/doc/rampmeter/; \
		strip --strip-unneeded -o rampmeter/stripped.so rampmeter/_core.abi3.so; \
		mv rampmeter/stripped.so rampmeter/_core.abi3.so; \
		strip -o $$data/scripts/rampd $(abspath target/release/rampd); \
		strip --strip-unneeded -o $$data/data/lib/librampmeter_capton.so \
			$(abspath target/release/librampmeter_capton.so); \
		strip --strip-unneeded -o $$data/data/lib/librampmeter_capi.so \
			$(abspath target/release/librampmeter_capi.so); \
		cp $(abspath crates/capi/include/rampmeter.h) $$data/data/include/; \
		cp $(abspath crates/capi/rampmeter.pc) $$data/data/lib/pkgconfig/; \
		cp -r $(abspath papers) rampmeter/_papers; \
		cp -r $(abspath examples) rampmeter/_examples
	$(BIN)/wheel pack --dest $(WHEEL) $(WHEEL)/unpacked/*
	$(BIN)/auditwheel show $(WHEEL)/*.whl | grep -q manylinux
	@ls -l $(WHEEL)/*.whl $(WHEEL)/*.tar.gz

.PHONY: test-wheel
test-wheel: wheel ## Test the wheel in an empty environment, without Rust
	tests/try_wheel.sh $(PYTHON) $(abspath $(WHEEL))

.PHONY: docs
docs: $(BUILT) ## Build the documentation site in target/site; needs no network
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs target/site
	@echo "docs: target/site/index.html"

.PHONY: generate
generate: $(BUILT) ## Renew classes of plans and transports, tables of documents, and the dissector
	RAMPMETER_BLESS=1 cargo test --quiet $(TESTED) --test generated
	$(BIN)/python -m tools.generate

.PHONY: build
build: $(BUILT) $(DAEMON) ## Build a virtual environment with the package, the daemon and the libraries for C and LD_PRELOAD

$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: expected Python 3.11 or later, got $$($(PYTHON) --version); set PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# Rust compiles meanwhile: each of the two uses one core for much of its time.
	PYO3_PYTHON=$(abspath $(BIN)/python) cargo build --release --locked --package rampmeter-py & compiling=$$!; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock && \
		wait $$compiling
	@touch $@

$(BUILT): $(LOCKED) $(RUST_SOURCES) pyproject.toml
	env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet
	@touch $@

$(DAEMON): $(BUILT)
	cargo build --release --locked --package rampd --package rampmeter-preload \
		--package rampmeter-capi
	cp target/release/rampd $(BIN)/rampd
	cp target/release/librampmeter_capton.so $(VENV)/lib/
	mkdir -p $(VENV)/include $(VENV)/lib/pkgconfig
	cp target/release/librampmeter_capi.so target/release/librampmeter_capi.a $(VENV)/lib/
	cp crates/capi/include/rampmeter.h $(VENV)/include/
	cp crates/capi/rampmeter.pc $(VENV)/lib/pkgconfig/
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
clean: ## Remove builds and caches, and keep results
	rm -rf target $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f python/rampmeter/_core*.so
	find python tests tools -name __pycache__ -type d -exec rm -rf {} +
