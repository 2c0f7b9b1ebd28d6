# Everything runs in a virtual environment inside the project; each target installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EXE := $(if $(filter Windows_NT,$(OS)),.exe)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Exact versions of everything, where a run has to be repeatable: LOCKED=1 make test, or CI=1.
LOCK := requirements/ci.txt
LOCKED ?= $(CI)
CONSTRAINTS := $(if $(LOCKED),--constraint $(LOCK))
# Two processes. Each begins with one half of the files, so that they rarely prepare or compile the same,
# and then takes from what is left of the other's.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: help environment demo quick test test-all test-services audit mutants lint bench docs docs-versions package lock sbom clean

help:
	@echo "make environment    what tests, lint and documentation need, into .venv"
	@echo "make demo           fit a private model on packaged data and write demo.html"
	@echo "make quick          the quickest tests, for the inner loop"
	@echo "make test           the test suite, with a part of its long matrix"
	@echo "make test-all       all tests but audits and those with services"
	@echo "make test-services  tests that need more than Python"
	@echo "make audit          the long statistical and privacy audits, with a report in audit.html"
	@echo "make mutants        breaks the code in known ways and checks that the tests notice"
	@echo "make lint           format, lint, types and import rules"
	@echo "make bench          the benchmarks, with tables and plots in benchmarks/results"
	@echo "make docs           the documentation, in docs/_build/html"
	@echo "make docs-versions  the documentation of every release, in docs/_build/versions"
	@echo "make package        wheel and source distribution in dist, checked as a package index would"
	@echo "make lock           the newest versions that fit, into requirements/ci.txt"
	@echo "make sbom           what is installed here, as CycloneDX in sbom.json"

$(BIN)/python$(EXE):
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"

$(VENV)/.package: $(BIN)/python$(EXE) pyproject.toml $(if $(LOCKED),$(LOCK))
	$(PIP) install $(CONSTRAINTS) --editable ".[report]"
	@touch $@

$(VENV)/.%-group: $(VENV)/.package pyproject.toml
	$(PIP) install $(CONSTRAINTS) --group $*
	@touch $@

# Before targets that run at the same time: pip must not be called twice at once.
environment: $(VENV)/.test-group $(VENV)/.lint-group $(VENV)/.docs-group $(VENV)/.lifelines

demo: $(VENV)/.package
	$(BIN)/python -m riata.demo

quick: $(VENV)/.test-group
	$(PYTEST) -n logical --maxprocesses 2 -q --one-in 1000 -m "not not_quick and not long and not slow and not services" \
	  -k "not cli and not collect and not ledger" tests/unit tests/sensitivity

test: $(VENV)/.test-group
	$(PYTEST) -m "not long and not slow and not services"
	@echo "Left out: the rest of the matrix (make test-all), the long audits (make audit) and the"
	@echo "tests with services (make test-services)."

test-all: $(VENV)/.test-group
	$(PYTEST) -m "not slow and not services"

# lifelines needs a pandas below 3, so it has an environment of its own.
$(VENV)/.lifelines: requirements/lifelines.txt
	$(PYTHON) -m venv $(VENV)/lifelines
	$(VENV)/lifelines$(BIN:$(VENV)%=%)/python -m pip install --requirement requirements/lifelines.txt
	@touch $@

test-services: $(VENV)/.test-group $(VENV)/.lifelines
	tests/services/install.sh
	LIFELINES_PYTHON=$(abspath $(VENV)/lifelines$(BIN:$(VENV)%=%)/python) \
	  $(BIN)/python -m pytest -m services

audit: $(VENV)/.test-group
	$(PYTEST) -m slow
	RIATA_SELF_CHECK=1 $(BIN)/riata audit --strict

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
	$(BIN)/python benchmarks/theorem_rates.py
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/fit_speed.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/speed.py --peers
	$(BIN)/python benchmarks/speed.py --dense
	$(BIN)/python benchmarks/speed.py --growth
	$(BIN)/python benchmarks/lower_bound.py
	$(BIN)/python benchmarks/lift.py
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
	$(BIN)/python benchmarks/by_schema.py
	$(BIN)/python benchmarks/pure_svm.py
	$(BIN)/python benchmarks/forecast.py
	$(BIN)/python benchmarks/collect.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/scale.py --memory
	$(BIN)/python benchmarks/scale.py --files
	$(BIN)/python benchmarks/scale_simulation.py
	$(BIN)/python benchmarks/forecast.py --again 4 --again-below 200

docs: $(VENV)/.docs-group
	rm -rf docs/api/generated
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

docs-versions: $(VENV)/.docs-group
	$(BIN)/python tools/versioned_docs.py --url "$(or $(DOCS_URL),/)"

package: $(VENV)/.supply-group
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

lock: $(VENV)/.supply-group
	$(BIN)/uv pip compile pyproject.toml --output-file $(LOCK) --upgrade --universal \
	  --python-version 3.11 --all-extras --group test --group lint --group docs --group bench \
	  --group supply --no-annotate --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" --quiet

sbom: $(VENV)/.supply-group
	$(BIN)/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --mc-type library \
	  --output-reproducible --output-file sbom.json

clean:
	rm -rf $(VENV) docs/_build demo.html audit.html sbom.json .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
