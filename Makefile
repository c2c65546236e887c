# Sluice. `make` alone tells what there is. Set-up is done by .ci/setup and talks on standard error,
# so that the last line on standard output is the program's own.
ARGS ?=
WORKERS ?= 4
CORES := $(shell getconf _NPROCESSORS_ONLN)
BIN := .venv/bin
RUN := $(BIN)/python -m
SOURCES := service joins watermark tests docs

# Modules are compiled once, be the environment against it: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-more test-quick check fmt docs bench reliability golden screenshots lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo '  ARGS="…" goes to the program behind demo, test, bench, reliability, screenshots; PYTHON=… names the interpreter.'

setup: ## Virtual environment, Java, jars: what every other target does first
	@PYTHON="$(PYTHON)" .ci/setup

demo: setup ## The whole system on an embedded broker and database
	@$(RUN) service.cli demo $(ARGS)

# So many files at a time, more than there are cores: tests wait. They share one broker and one
# database (tests/support/shared_services.py); WORKERS=0 runs them one after the other. What takes
# longest comes first (tests/durations.json, written with ARGS=--record-durations), so that no
# worker is left with it alone.
PYTEST = $(RUN) pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder
# Property tests try 5 % of their examples in `make test`, or as many as this says.
EXAMPLES = SHARE_OF_EXAMPLES=$${SHARE_OF_EXAMPLES:-$(1)}

# Only tests and `sluice up --with postgres` need Connect and PostgreSQL: not part of the set-up.
DEBEZIUM = $(RUN) service.embedded.provide --debezium

test: setup ## Every promise once, on real servers, or the tests that ARGS selects
	@$(DEBEZIUM)
	@$(PYTEST) $(ARGS)

# Many of them start several JVMs: with more of them on two cores none comes to its end.
test-more: WORKERS = 3
test-more: setup ## What make test leaves out: matrices, small experiments, browsers
	@$(DEBEZIUM)
	@$(call EXAMPLES,20) $(PYTEST) -m 'matrix or experiment' $(ARGS)

# These tests wait for nothing.
test-quick: WORKERS = $(CORES)
test-quick: setup ## The tests that start no server and no other process, and take little time
	@$(call EXAMPLES,2) $(PYTEST) -m 'not servers and not slow and not experiment and not matrix' $(ARGS)

check: setup ## Format, lint, types, layers, addresses; the same as in CI
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/addresses.py

fmt: setup ## Format, and repair what can be repaired
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

docs: setup ## The site of the documents, into build/site; docs/reference and deploy/observability are written anew
	@$(BIN)/python docs/site/reference.py
	@$(BIN)/python docs/site/observability.py
	@NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet --config-file docs/site/mkdocs.yml

bench: setup ## Measure
	@$(RUN) tests.bench $(ARGS)

reliability: setup ## Experiments: kill and pause the parts at every step of a batch; ARGS="all --scale small"
	@$(DEBEZIUM)
	@$(RUN) tests.reliability $(ARGS)

golden: setup ## Record anew what real Debezium connectors write (tests/golden/debezium)
	@$(DEBEZIUM)
	@$(RUN) tests.golden.record $(ARGS)

screenshots: setup ## Make the pictures of the page anew, of a real run (needs chromium)
	@$(RUN) tests.screenshots $(ARGS)

lock: setup ## Pin packages and jars anew, as pyproject.toml and deploy/jars.txt allow (needs uv)
	@command -v uv >/dev/null || { echo 'error: uv is not on PATH' >&2; echo 'hint: Install uv, it resolves for all platforms at once.' >&2; exit 1; }
	uv pip compile --quiet pyproject.toml --all-extras --group dev $(UV_LOCK) -o requirements.lock
	uv pip compile --quiet --group java $(UV_LOCK) -o requirements-java.lock
	$(RUN) tests.support.relock
UV_LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock'

clean: ## Remove everything that make has made in this checkout (the shared cache stays)
	rm -rf .venv .venv-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build spark-warehouse metastore_db derby.log
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
