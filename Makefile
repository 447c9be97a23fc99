# Everything a user needs: `make demo` and `make test`. Each target makes the environment in .venv that it works in.
#
#     make demo     designs the network of the demo instance
#     make test     runs the tests
#     make lint     checks style and types
#     make bench    runs the benchmarks and makes their tables and pictures anew (benchmarks/README.md)
#     make bench-quick  runs the instances that are done in seconds
#     make clean    removes what the other targets made

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint bench bench-quick clean

demo: $(VENV)/.ready
	@$(BIN)/designer design instances/demo/gpt3-175b-1024.yaml

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.ready-dev
	$(BIN)/designer bench -o benchmarks/results > /dev/null
	$(BIN)/python benchmarks/reproduction.py
	$(BIN)/python benchmarks/comparisons.py
	$(BIN)/python benchmarks/design_scaling.py
	$(BIN)/python benchmarks/certificate_scaling.py
	$(BIN)/python benchmarks/export_scaling.py
	$(BIN)/python benchmarks/pages.py

bench-quick: $(VENV)/.ready
	@$(BIN)/designer bench --quick

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .hypothesis
	find designer tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps stand for a finished installation: one that was interrupted is done again.
$(VENV)/.ready: pyproject.toml | $(BIN)/python
	@echo "Installing designer into $(VENV) ..." >&2
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.ready-dev: pyproject.toml | $(BIN)/python
	@echo "Installing designer and its test tools into $(VENV) ..." >&2
	@$(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.ready

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "designer needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo not found)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
