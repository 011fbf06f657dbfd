PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Where tests run side by side, each process has a BLAS of one thread.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-min lint docs coverage mutants audit dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.with-cli ## run the demo; its report goes to demo/
	$(BIN)/pyfastr demo --force

test: $(VENV)/.with-test ## run the tests on all cores
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal

# Older scikit-learn takes arrays of other libraries only where SciPy is told to take them, too.
test-min: ## run them on the oldest versions that pyproject.toml allows
	SCIPY_ARRAY_API=1 $(MAKE) test VENV=.venv-min OLDEST=1

lint: $(VENV)/.with-dev ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(VENV)/.with-dev ## tell which branches of solver, estimators and model files no test takes
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests/solver tests/estimators tests/persistence tests/common
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutants: $(VENV)/.with-dev ## tell which faults in the kernels of the library no test notices
	rm -rf mutants
	$(ONE_THREAD) $(BIN)/mutmut run
	$(BIN)/mutmut results

audit: $(VENV)/.with-dev ## look for known weaknesses of what is installed
	$(BIN)/pip-audit --strict --skip-editable

dist: $(VENV)/.with-dev ## build wheel and source distribution in dist/
	rm -rf dist
	$(BIN)/python -m build

docs: $(VENV)/.with-docs ## build the documentation site in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

clean: ## remove the environment, what was built, and all caches
	rm -rf $(VENV) .venv-min demo build dist mutants .coverage* docs/_build docs/auto_examples docs/api .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra, renewed when pyproject.toml changes.
$(VENV)/.with-%: pyproject.toml | $(BIN)/python
	@echo "Installing pyfastr[$*] in $(VENV)"
	@$(if $(OLDEST),$(BIN)/python tools/oldest.py > $(VENV)/oldest.txt)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $(if $(OLDEST),--constraint $(VENV)/oldest.txt) --editable ".[$*]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "pyfastr needs Python 3.11 or newer, but $(PYTHON) is: $$($(PYTHON) --version 2>&1)"; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "Creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
