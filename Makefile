# Everything a person can do here. Whatever is fetched or built goes to target/.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The scripts and the tests look for the module here, whatever the user's own cargo settings say.
export CARGO_TARGET_DIR := $(CURDIR)/target
export PYTHONDONTWRITEBYTECODE := 1
export PORT ?= 6379
export TOUR

python := target/venv/bin/python

.PHONY: help setup build run test test-core test-blackbox race lint bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## install whatever is missing for build, run and test
	@scripts/setup.sh test

build: ## build the module, target/release/libdq.so
	@scripts/setup.sh build
	cargo build --release

run: ## start a server with the module, take a live tour, stay (PORT=6379, TOUR=only)
	@scripts/run.sh

test: test-core test-blackbox ## run all tests

test-core: ## run the tests of the core: unit, property and model-based
	@scripts/setup.sh build
	cargo test

test-blackbox: build ## run the tests on real servers (ARGS="-k valkey -x" for pytest)
	@scripts/setup.sh test
	$(python) -m pytest $(ARGS)

race: build ## 5,000 consumers that race, vanish and come back, on each server (about five minutes)
	@scripts/setup.sh test
	DQ_CONSUMERS=5000 $(python) -m pytest tests/blackbox/test_waiting_races.py $(ARGS)

lint: ## check format, clippy, Python and shell
	@scripts/setup.sh lint
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo fmt --check --manifest-path examples/rust/Cargo.toml
	cargo clippy --locked --manifest-path examples/rust/Cargo.toml --target-dir target/examples/rust/target -- -D warnings
	$(python) -m ruff format --check
	$(python) -m ruff check
	target/venv/bin/shellcheck scripts/*.sh .ci/run

bench: ## measure the core
	@scripts/setup.sh build
	cargo bench

clean: ## remove target/, with everything fetched and built
	rm -rf target
