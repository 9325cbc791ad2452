# Everything a person can do here. Whatever is fetched or built goes to target/.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The scripts and the tests look for the module here, whatever the user's own cargo settings say.
export CARGO_TARGET_DIR := $(CURDIR)/target
export PYTHONDONTWRITEBYTECODE := 1
export PORT ?= 6379
export TOUR
# `make test SERVERS="valkey-8.1 /usr/local/bin/redis-server"`: other servers than the usual ones.
export DQ_SERVERS := $(SERVERS)
ifeq ($(strip $(DQ_SERVERS)),)
unexport DQ_SERVERS
endif
FOR ?= 600
# LONG=1 with `make test`: with the tests that are marked `long`, as `make test-all` runs it.
LONG ?=
REDIS ?= redis://127.0.0.1:$(PORT)

python := target/venv/bin/python
bench := cargo run --quiet --release --locked --manifest-path bench/Cargo.toml --target-dir target/bench-build --

# Nothing but Python's own library: a dry run installs nothing.
release = $(or $(wildcard target/dist-tools/bin/python),python3) release/release.py

kombu := $(CURDIR)/target/kombu/venv/bin
clients := $(CURDIR)/target/clients/venv/bin
# `make test-frameworks FRAMEWORKS=django-dq` for one.
FRAMEWORKS ?= $(shell cat integrations/frameworks.txt)

.PHONY: help setup build run docs site contract test test-core test-blackbox test-long test-newest turns race simulate test-cluster soak soak-faults \
	fuzz memcheck asan mutants \
	board build-board test-board test-clients test-kombu test-frameworks test-guides test-celery screenshots dist test-dist test-install test-all lint deny \
	bench bench-flows bench-clients bench-instructions bench-shards bench-docs release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' Makefile

setup: ## install whatever is missing for build, run and test
	@scripts/setup.sh test

build: ## build the module, target/release/libdq.so
	@scripts/setup.sh build
	cargo build --release

run: ## start a server with the module, take a live tour, stay (PORT=6379, TOUR=only)
	@scripts/run.sh

docs: build ## write what the module says of its commands into docs/commands and the sources, and the board's man page
	@scripts/setup.sh test
	$(python) scripts/command_docs.py --write
	DQ_WRITE_MANUAL=1 cargo test --quiet --locked --manifest-path board/Cargo.toml manual

site: ## build the pages as a site, target/site/html, and check its links
	@scripts/setup.sh site
	PYTHONPATH=release $(python) scripts/site_pages.py
	$(python) -m mkdocs build --strict --config-file docs/mkdocs.yml

contract: build ## write what the module says of its commands into the contract of the clients
	@scripts/setup.sh test
	$(python) clients/contract/make.py --write

test: MARKS = $(if $(LONG),,-m "not long")
test: test-core test-blackbox ## run the tests of the module, all but the longest (LONG=1 for those too)

test-core: ## run the tests of the core, unit, property and model-based, and those of bench/
	@scripts/setup.sh build
	cargo test
	cargo test --locked --manifest-path bench/Cargo.toml --target-dir target/bench-build

# Four at a time on two cores: most of them wait. `ARGS=-n0` for one by one.
test-blackbox: build ## run the tests on real servers (ARGS="-k valkey -x" for pytest; SERVERS="valkey-8.1 path/to/redis-server")
	@scripts/setup.sh test
	$(python) -m pytest --numprocesses 4 $(MARKS) $(ARGS)

test-long: build ## run the tests on real servers that `make test` leaves out (about four minutes)
	@scripts/setup.sh test
	$(python) -m pytest --numprocesses 4 -m long $(ARGS)

test-newest: ## run the tests on real servers on one of your own (SERVER=path/to/redis-server, or valkey-server; ARGS for pytest)
	@[[ -x "$(SERVER)" ]] || { echo "which server? SERVER=path/to/redis-server, or valkey-server" >&2; exit 2; }
	@$(MAKE) --no-print-directory test-blackbox SERVERS="$(SERVER)"

board: build-board ## start the web page for queues (REDIS=redis://127.0.0.1:6379, ARGS="--writable")
	target/release/dq-board --redis "$(REDIS)" $(ARGS)

build-board: ## build the web page, target/release/dq-board
	@scripts/setup.sh build
	cargo build --release --locked --manifest-path board/Cargo.toml

# Two at a time: browsers and servers mostly wait for each other.
test-board: build build-board ## test the web page and the metrics, in Chromium and Prometheus (about five minutes)
	@scripts/setup.sh board
	cargo test --locked --manifest-path board/Cargo.toml
	$(python) -m pytest --numprocesses 2 tests/board $(ARGS)

screenshots: build build-board ## make the pictures of docs/board again (a minute)
	@scripts/setup.sh board
	DQ_SCREENSHOTS=docs/board $(python) -m pytest tests/board/test_pictures.py

turns: build ## measure the longest turn of the event loop of every command and timer, into docs/turns.md (half an hour)
	@scripts/setup.sh test
	PYTHONPATH=tests:tests/blackbox $(python) -m turns --write docs/turns.md $(ARGS)

race: build ## 5,000 consumers that race, vanish and come back, on each server (about five minutes)
	@scripts/setup.sh test
	DQ_CONSUMERS=5000 $(python) -m pytest tests/blackbox/waiting/test_crowd.py $(ARGS)

# Each kind of server has a process.
test-cluster: build ## clusters whose slots move and whose primaries fail, under load, on each server (about five minutes)
	@scripts/setup.sh test
	$(python) -m pytest --numprocesses 3 tests/blackbox/cluster/long.py $(ARGS)

simulate: ## simulated sessions of the services, ten minutes (ARGS="DQ_SIMULATE_SECONDS=60", "DQ_SIMULATE_SEED=17")
	@scripts/setup.sh build
	env DQ_SIMULATE_SECONDS=600 $(ARGS) cargo test --lib simulated -- --nocapture

soak: build ## random sessions with faults, judged by their replies: 20 minutes a server (ARGS="--minutes 5 --seed 7")
	@scripts/setup.sh test
	PYTHONPATH=tests $(python) -m soak run $(ARGS)

soak-faults: ## plant faults in the module, and see that the judge and the simulation find each (half an hour)
	@scripts/setup.sh test
	scripts/faults.sh module
	$(python) -m pytest --numprocesses 3 tests/soak/faults_in_module.py $(ARGS)
	scripts/faults.sh simulation

# Seconds for each of three targets.
fuzz: ## fuzz commands, logs and payloads, guided by coverage (FOR=60 a target, ARGS="restore log")
	@scripts/setup.sh fuzz
	scripts/fuzz.sh $(FOR) $(ARGS)

# The planted leak shows that a leak is found.
memcheck: build ## a tour of the module under valgrind: nothing lost, nothing touched that isn't its own (about two minutes)
	@scripts/setup.sh memcheck
	scripts/faults.sh module leak
	$(python) -m pytest -n0 tests/memcheck/check_memory.py $(ARGS)

# A build of its own, with all that the module is made of.
asan: ## the fuzzed module under AddressSanitizer, and a planted leak (about five minutes the first time)
	@scripts/setup.sh build
	scripts/asan.sh $(ARGS)

# It goes on where it was ended. A mutant takes some seconds, and there are three thousand.
mutants: ## change the sources in one place at a time, and see that a test notices (ARGS="services --shard 0/4")
	@scripts/setup.sh build
	scripts/mutants.sh $(or $(ARGS),core)

# The contract is played by each client: `ARGS="--client python -k pages"` for a part of it.
test-clients: build ## check and test the clients, and play their contract with them (about ten minutes)
	@scripts/setup.sh clients
	cd clients/python && $(clients)/mypy --cache-dir ../../target/.mypy_cache && $(clients)/pyright
	cd clients/python && $(clients)/python -m pytest
	scripts/test_rust_client.sh
	scripts/test_typescript.sh
	cd clients/contract && $(clients)/python -m pytest --numprocesses 3 $(ARGS)

test-kombu: build ## check and test kombu-dq with real Celery workers, 100,000 ETAs too (about ten minutes; ETAS=10000 for fewer)
	@scripts/setup.sh kombu
	cd integrations/kombu-dq && $(kombu)/mypy --cache-dir ../../target/.mypy_cache && $(kombu)/pyright
	cd integrations/kombu-dq && $(kombu)/python -m pytest $(ARGS)

# With each of its environments: where one can't be had, scripts/setup.sh says so.
test-frameworks: build ## check and test the packages for frameworks, with the frameworks' own tests (FRAMEWORKS=django-dq for one)
	@scripts/setup.sh frameworks
	@set -e; for package in $(FRAMEWORKS); do \
	  cd $(CURDIR)/integrations/$$package; own=$(CURDIR)/target/frameworks/$$package; \
	  for tool in mypy pyright; do [[ ! -x $$own/venv/bin/$$tool ]] || (set -x; $$own/venv/bin/$$tool); done; \
	  for venv in $$own/venv*; do [[ ! -x $$venv/bin/python ]] || (set -x; $$venv/bin/python -m pytest $(ARGS)); done; done

test-guides: build ## run the code of docs/migrate, with the systems that it comes from
	@scripts/setup.sh guides
	scripts/test_typescript.sh build
	cd tests/guides && ../../target/guides/venv/bin/python -m pytest $(ARGS)

test-celery: build ## run Celery's own integration cases on DQ, beside Redis (about forty minutes; SIDES=dq for DQ alone)
	@scripts/setup.sh kombu
	$(kombu)/python integrations/kombu-dq/tests/celery_cases.py $(ARGS)

lint: ## check format, clippy, Python, TypeScript and shell
	@scripts/setup.sh lint
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo fmt --check --manifest-path examples/rust/Cargo.toml
	cargo clippy --locked --manifest-path examples/rust/Cargo.toml --target-dir target/examples/rust/target -- -D warnings
	cargo fmt --check --manifest-path board/Cargo.toml
	cargo clippy --all-targets --locked --manifest-path board/Cargo.toml -- -D warnings
	cargo fmt --check --manifest-path clients/rust/Cargo.toml
	cargo clippy --all-targets --all-features --locked --manifest-path clients/rust/Cargo.toml --target-dir target/clients/rust -- -D warnings
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo fmt --check --manifest-path bench/Cargo.toml
	cargo clippy --locked --all-targets --manifest-path bench/Cargo.toml --target-dir target/bench-build -- -D warnings
	$(python) -m ruff format --check
	$(python) -m ruff check
	scripts/test_typescript.sh check
	target/venv/bin/shellcheck --external-sources scripts/*.sh release/installed/dq-module release/installed/*.p* .ci/run

deny: ## check licences, origins and known vulnerabilities of the Rust dependencies, by deny.toml (ARGS="licenses sources" for a part)
	@scripts/setup.sh build
	scripts/deny.sh $(ARGS)

dist: ## build archives, Debian, Python and npm packages and the .crate of a release into target/dist (ARGS=x86_64 or aarch64 for one)
	@scripts/setup.sh dist
	scripts/dist.sh $(ARGS)

# DIST_ARCH=x86_64 for one architecture, DIST_ONCE=1 without the second build.
test-dist: build ## build a release and test its files: servers, dpkg, qemu, a second build elsewhere
	@scripts/setup.sh test-dist
	target/dist-tools/bin/python -m mypy release
	@# 3: no standard library can be had here, and the tests say so.
	scripts/dist.sh $(DIST_ARCH) || [[ $$? == 3 ]]
	$(python) -m pytest tests/dist $(ARGS)

release: ## check, build and describe a release, in target/release-VERSION or OUT (VERSION=0.3.0 CI=COMMIT BUILDER=URI; DRY_RUN=1 builds nothing)
	@[[ -n "$(VERSION)" ]] || { echo "which version? VERSION=0.3.0" >&2; exit 2; }
	$(if $(DRY_RUN),,@scripts/setup.sh dist)
	$(release) check $(VERSION) --ci "$(CI)" $(if $(DRY_RUN),--dry-run)
	$(if $(DRY_RUN),,scripts/dist.sh)
	$(release) papers $(VERSION) --dist "$(or $(DIST_OUT),target/dist)" --ci "$(CI)" $(if $(DRY_RUN),--dry-run) $(if $(OUT),--out "$(OUT)") $(if $(BUILDER),--builder "$(BUILDER)")

# Whatever of the three distributions can be had here; target/images keeps their root folders.
test-install: ## install what `make dist` made on a bare Debian and Ubuntu, by the commands of docs/install.md (some minutes)
	@scripts/setup.sh test
	scripts/bare_images.sh
	$(python) -m pytest tests/dist/stranger.py $(ARGS)

test-all: ## run all tests, with a browser, Celery and the packages; say what can't be (ARGS="board dist" for parts)
	@scripts/test_all.sh $(ARGS)

bench: build ## measure whole servers, DQ beside others: half an hour (ARGS="--quick", "--only life,dq,lua")
	@scripts/setup.sh bench
	$(bench) load $(ARGS)

bench-flows: build ## measure fan-ins of jobs that wait for others, beside BullMQ flows and Celery chords
	@scripts/setup.sh bench
	@scripts/setup.sh kombu
	$(python) bench/clients/flows.py $(ARGS)

bench-clients: build ## measure workers with an empty handler: DQ's clients, Celery, Dramatiq, RQ, BullMQ, apalis (about ten minutes)
	@scripts/setup.sh bench-clients
	scripts/test_typescript.sh build
	cp bench/clients/contestants/dq.mjs target/typescript
	cargo build --release --locked --manifest-path bench/clients/contestants/rust/Cargo.toml --target-dir target/bench-clients/rust
	cargo build --release --locked --manifest-path bench/clients/contestants/apalis/Cargo.toml --target-dir target/bench-clients/apalis
	$(python) bench/clients/clients.py $(ARGS)

bench-instructions: build ## count instructions a command in a whole server (ARGS="--check", "--only add --profile")
	@scripts/setup.sh count
	$(bench) instructions $(ARGS)

bench-shards: build ## measure one topic on one, two and three servers, for docs/scaling.md (about three minutes)
	@scripts/setup.sh bench
	$(bench) shards $(ARGS)

bench-docs: ## write the tables and charts of docs/benchmarks.md from docs/benchmarks/*/*.json (ARGS=--check)
	@scripts/setup.sh build
	$(bench) charts $(ARGS)

clean: ## remove target/, with everything fetched and built
	rm -rf target
