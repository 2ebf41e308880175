# Every target sets up what it needs; the second time that takes a blink.

PYTHON ?=
HOME_DIR ?= ./home
PORT ?= 3100

BIN := .venv/bin
CHECKED := $(wildcard src tests bench)
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --all-extras pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help setup browser run check test test-full screenshot bench lock upgrade

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

# `exec`, here and below: what runs takes the place of the recipe's shell, so that the signal
# that ends make ends it too.
setup:  ## install system packages, .venv and the project (PYTHON=python3)
	@exec env PYTHON='$(PYTHON)' scripts/setup

browser: setup  ## the same, and the Chromium that the tests of the page drive
	@exec env PYTHON='$(PYTHON)' scripts/setup browser

run: setup  ## serve on http://127.0.0.1:3100 (HOME_DIR=./home PORT=3100)
	@exec $(BIN)/hallporter --home '$(HOME_DIR)' up --port '$(PORT)'

check: setup  ## lint, format, types and import contracts
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports

test: browser check  ## every check, then the tests with branch coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-full: browser check  ## the same with the long rows
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m 'full or not full'
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

screenshot: browser  ## remake docs/pictures/page.png from a fresh host
	$(BIN)/python -m tests.journeys.screenshot

bench: browser  ## print the benchmark table
	$(BIN)/python -m bench

# What is pinned stays pinned while it still fits; `make upgrade` moves everything forward.
lock: setup  ## remake requirements/ from pyproject.toml
	$(COMPILE) $(LOCK_FLAGS) -o requirements/runtime.txt
	$(COMPILE) $(LOCK_FLAGS) -c requirements/runtime.txt --group dev -o requirements/dev.txt

upgrade: LOCK_FLAGS := --upgrade
upgrade: lock  ## remake requirements/ with the newest versions
