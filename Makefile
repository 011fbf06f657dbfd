PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.with-cli ## run the demo; its report goes to demo/
	$(BIN)/pyfastr demo --force

test: $(VENV)/.with-test ## run the tests
	$(BIN)/python -m pytest

lint: $(VENV)/.with-dev ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.with-docs ## build the documentation site in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

clean: ## remove the environment, what was built, and all caches
	rm -rf $(VENV) demo build dist docs/_build docs/auto_examples docs/api .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra, renewed when pyproject.toml changes.
$(VENV)/.with-%: pyproject.toml | $(BIN)/python
	@echo "Installing pyfastr[$*] in $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "pyfastr needs Python 3.11 or newer, but $(PYTHON) is: $$($(PYTHON) --version 2>&1)"; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "Creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
