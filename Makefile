# Everything runs in a virtual environment inside the project; each target installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test test-services audit mutants lint bench docs clean

help:
	@echo "make demo           fit a private model on packaged data and write demo.html"
	@echo "make test           the test suite"
	@echo "make test-services  tests that need more than Python"
	@echo "make audit          the long statistical and privacy audits, with a report in audit.html"
	@echo "make mutants        breaks the code in known ways and checks that the tests notice"
	@echo "make lint           format, lint, types and import rules"
	@echo "make bench          the benchmarks, with tables and plots in benchmarks/results"
	@echo "make docs           the documentation, in docs/_build/html"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"

$(VENV)/.package: $(BIN)/python pyproject.toml
	$(PIP) install --editable ".[report]"
	@touch $@

$(VENV)/.%-group: $(VENV)/.package pyproject.toml
	$(PIP) install --group $*
	@touch $@

demo: $(VENV)/.package
	$(BIN)/python -m riata.demo

test: $(VENV)/.test-group
	$(BIN)/python -m pytest -n 2 -m "not slow and not services"
	@echo "Left out: the long audits (make audit) and the tests with services (make test-services)."

test-services: $(VENV)/.test-group
	tests/services/install.sh
	$(BIN)/python -m pytest -m services

audit: $(VENV)/.test-group
	$(BIN)/python -m pytest -n 2 -m slow
	$(BIN)/python -m riata.audit --strict

mutants: $(VENV)/.test-group
	$(BIN)/python tools/mutants.py

lint: $(VENV)/.lint-group
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench-group
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/exact_draws.py
	$(BIN)/python benchmarks/rates.py
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/fit_speed.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/speed.py --peers
	$(BIN)/python benchmarks/speed.py --dense
	$(BIN)/python benchmarks/speed.py --growth
	$(BIN)/python benchmarks/lower_bound.py
	$(BIN)/python benchmarks/dp_sgd.py
	$(BIN)/python benchmarks/menu.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/accuracy.py --harm
	$(BIN)/python benchmarks/accuracy.py --support
	$(BIN)/python benchmarks/accuracy.py --cost
	$(BIN)/python benchmarks/tried.py
	$(BIN)/python benchmarks/tuning.py
	$(BIN)/python benchmarks/local.py
	$(BIN)/python benchmarks/real_data.py
	$(BIN)/python benchmarks/real_text.py
	$(BIN)/python benchmarks/forecast.py
	$(BIN)/python benchmarks/collect.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/scale.py --memory
	$(BIN)/python benchmarks/scale.py --files
	$(BIN)/python benchmarks/scale_simulation.py
	$(BIN)/python benchmarks/forecast.py --again 4 --again-below 200

docs: $(VENV)/.docs-group
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) docs/_build demo.html audit.html .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
