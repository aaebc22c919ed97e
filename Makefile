# `make up` runs towline and `make test` runs its tests. Both do all their own set-up, on a machine
# with Python 3.11 or newer and make.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help uv run-env dev-env node-env web-env up test test-web coverage check lint lint-style format web types vectors api docs model bench tasks clean

PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
NODE := PATH="$(CURDIR)/$(BIN):$$PATH"

# Compiled files halve the start of each program that the tests run.
export PYTHONDONTWRITEBYTECODE :=

# What is installed is what the lock says, by the Python of .venv and no other.
export UV_PYTHON := $(CURDIR)/$(BIN)/python
export UV_PYTHON_DOWNLOADS := never
SYNC := $(UV) sync --quiet --locked --inexact

help:
	@echo 'make up      run towline: the server, the page, and a model'
	@echo 'make test    run every test, and hold what is made by scripts against its sources'
	@echo 'make coverage hold that tests run every branch of the reducer, the codec and the link'
	@echo 'make check   run the linters and the fast tests (under 90 s)'
	@echo 'make lint    run the linters alone'
	@echo 'make format  put the Python code into its form'
	@echo 'make web     build the page from its TypeScript sources'
	@echo 'make types   write the TypeScript types anew'
	@echo 'make vectors write the golden vectors anew'
	@echo 'make api     write the lists of public signatures anew'
	@echo 'make docs    build the docs site into site/'
	@echo 'make model   fetch the local model (1.1 GB, once)'
	@echo 'make bench   run the benchmarks'
	@echo 'make tasks   have a real model do the tasks, and print its score (MODEL=provider/name)'
	@echo 'make clean   remove what the other targets made'

# --- set-up -----------------------------------------------------------------------------------

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo 'towline needs Python 3.11 or newer as `$(PYTHON)`; name another one: make PYTHON=python3.12 ...'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo 'This Python cannot make environments: apt-get install python3-venv, then try again.'; exit 1; }
	@echo 'Making .venv and fetching uv ...'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'

uv: $(UV)

run-env: $(UV)
	@echo 'Installing what towline runs on ...'
	@$(SYNC) --no-dev

dev-env: $(UV)
	@echo 'Installing what the tests and linters need ...'
	@$(SYNC) --group dev

node-env: dev-env
	@echo 'Installing what the page is built with ...'
	@$(SYNC) --group dev --group web

web/node_modules/.package-lock.json: web/package-lock.json | node-env
	@cd web && $(NODE) npm ci --silent --no-audit --no-fund
	@touch $@

web-env: node-env web/node_modules/.package-lock.json

# --- to run -----------------------------------------------------------------------------------

up: run-env
	@echo 'Starting towline ...'
	@$(BIN)/towline up

model: run-env
	@echo 'Fetching the local model if it is not there ...'
	@$(BIN)/python -c 'import asyncio; from towline.local.model_file import ensure_model; print(asyncio.run(ensure_model()))'

# --- to hold ----------------------------------------------------------------------------------

# Tests that start programs or wait for something real. They run two at once, whatever the machine
# has, and those that ask the model one after the other (see conftest.py). A few must run alone: a
# server that starts anywhere on the machine would be in their way. Only the files that name such a
# mark are read: to read the others takes longer than a test.
LONG := slow or model or chromium
marked = $(shell grep -rlE 'mark\.($(1))\b' --include='test_*.py' packages tests | sort)

test: dev-env
	@echo 'Running the Python tests that take no time ...'
	@$(BIN)/pytest -q -n auto --inline-snapshot=disable -m 'not ($(LONG) or alone)'
	@$(MAKE) --no-print-directory web-env || echo 'Without Node the tests that need it are skipped.'
	@echo 'Running those that start programs, watch the clock or ask the model, two at once ...'
	@$(BIN)/pytest -q -n 2 --dist loadgroup --inline-snapshot=disable -m '($(LONG)) and not alone' \
	  $(call marked,slow|model|chromium)
	@$(BIN)/pytest -q --inline-snapshot=disable -m alone $(call marked,alone)
	@$(MAKE) --no-print-directory test-web

test-web:
	@if $(MAKE) --no-print-directory web-env; then \
	  echo 'Running the tests of the page ...'; cd web && $(NODE) npm run --silent test; \
	else case ',$(TOWLINE_REQUIRE),' in \
	  *,node,*) echo 'NO NODE could be installed, and TOWLINE_REQUIRE names it.'; exit 1;; \
	  *) echo 'SKIPPED the tests of the page: NO NODE could be installed.';; \
	esac; fi

# What is pure and held by vectors in two languages: its own tests must run every branch of it.
PURE := */reducer.py,*/folds/*,*/presentation.py,*/outgoing.py,*/codec.py,*/link.py
PURE_TESTS := packages/protocol/tests/test_reducer.py packages/protocol/tests/test_vectors.py \
	packages/protocol/tests/test_presentation.py packages/protocol/tests/test_codec.py \
	packages/client/tests/test_link.py

coverage: dev-env
	@echo 'Counting the branches that tests run of the reducer, the codec and the link ...'
	@$(BIN)/coverage run --data-file=.coverage.pure -m pytest -q --hypothesis-profile=quick $(PURE_TESTS)
	@$(BIN)/coverage report --data-file=.coverage.pure --include='$(PURE)' --show-missing --fail-under=100

# All types take most of a minute, so here only those of the files that differ from the last commit
# are checked; `make lint` checks them all.
CHANGED = $(shell { git diff HEAD --name-only --diff-filter=d; git ls-files --others --exclude-standard; } \
	2>/dev/null | grep -E '^(packages|tests|bench|examples|docs_src)/.*\.pyi?$$' | \
	grep -v '^tests/tasks/.*/project/')

# A third of their time they wait, so there is one process more than the machine has cores.
CHECKS = $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)

check: lint-style
	$(if $(CHANGED),@echo 'Checking the types of the changed files ...' && $(BIN)/basedpyright $(CHANGED))
	@echo 'Running the fast tests ...'
	@$(BIN)/pytest -q -n $(CHECKS) --inline-snapshot=disable --hypothesis-profile=quick -m 'not (slow or wide or model or chromium or alone)'

lint: lint-style
	@echo 'Checking the types ...'
	@$(BIN)/basedpyright

lint-style: dev-env
	@echo 'Running the linters ...'
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check || { echo 'Some files are not in their form: make format'; exit 1; }
	@$(BIN)/lint-imports --no-logo >.venv/lint-imports.txt 2>&1 || { cat .venv/lint-imports.txt; exit 1; }

format: dev-env
	@$(BIN)/ruff check --quiet --fix
	@$(BIN)/ruff format --quiet

# --- to make ----------------------------------------------------------------------------------

web: web-env types
	@echo 'Checking and building the page ...'
	@cd web && $(NODE) npm run --silent check && $(NODE) npm run --silent build

types: dev-env
	@echo 'Writing the TypeScript types ...'
	@$(BIN)/python -c 'from towline_protocol import typescript_types as made; print(made(), end="")' > web/src/protocol/types.gen.ts
	@$(BIN)/python -c 'from towline_protocol import typescript_shapes as made; print(made(), end="")' > web/src/protocol/shapes.gen.ts
	@$(BIN)/python -c 'from towline_protocol import typescript_later as made; print(made(), end="")' > web/src/protocol/later.gen.ts

vectors: dev-env
	@echo 'Writing the golden vectors ...'
	@$(BIN)/python packages/protocol/vectors/make.py

api: dev-env
	@echo 'Writing the lists of public signatures ...'
	@$(BIN)/python tests/api.py

docs: $(UV)
	@echo 'Installing what the docs are built with ...'
	@$(SYNC) --group dev --group docs
	@echo 'Building the docs into site/ ...'
	@$(BIN)/zensical build --clean --strict

bench: dev-env
	@for bench in loop.py 'agent.py --only us,bare' server.py client.py workspace.py; do \
	  echo "--- bench/$$bench"; $(BIN)/python bench/$$bench || exit 1; done

tasks: dev-env
	@PYTHONPATH=tests $(BIN)/python -m tasks.run $(if $(MODEL),--model '$(MODEL)') $(ARGS)

clean:
	rm -rf .venv web/node_modules .pytest_cache .ruff_cache .hypothesis .import_linter_cache .cache .coverage* site
