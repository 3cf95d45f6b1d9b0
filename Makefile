# Every target prepares what it needs. Only Python 3.11 or newer is expected on the machine; `make front` needs Node as well.
#
#   make PYTHON=/path/to/python3.12 test    choose the interpreter of a new .venv
#   make unit PYTHON=python3.13 VENV=.venv-3.13    have another environment beside it
#   make test ARGS="-k placer -x"           hand arguments to pytest

.DEFAULT_GOAL := help
SHELL := /bin/sh

# The oldest version available, so that tests also find uses of newer features. Recursive (=): the search runs only when an environment is made.
PYTHON ?= $(shell sh tests/support/tools/find_python.sh 3.11 3.12 3.13 3 3.14)

VENV ?= .venv
ORACLE_VENV ?= .venv-oracle
GRADERS_VENV ?= .venv-graders
FRAMEWORKS_VENV ?= .venv-frameworks
DOCS_VENV ?= .venv-docs
LOWEST_VENV := .venv-lowest
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check --quiet
ARGS ?=
PYTEST := $(BIN)/python -m pytest
IN_WORKERS = $(PYTEST) -n auto --dist worksteal
# `$(call IN_TURN,CHOICE)` runs the chosen tests without a browser, then those in browsers: browser tests wait in vain on a machine that is busy
# with other tests. Each of their workers starts a JupyterLab and a browser, so more than a few slow each other down. A browser test that
# fails is run once more, and counted as `rerun`: a browser on a busy machine may miss a press or a deadline.
IN_TURN = failed=0; $(IN_WORKERS) -m "$(1) and not browser and not oracle and not graders and not frameworks" $(ARGS) || $(UNLESS_NONE_CHOSEN) failed=1; \
	$(IN_WORKERS) --maxprocesses 4 --reruns 1 -m "$(1) and browser" $(ARGS) || $(UNLESS_NONE_CHOSEN) failed=1; exit $$failed
# pytest exits with 5 if no test was selected, as `ARGS="-k placer"` may do in one of the two runs.
UNLESS_NONE_CHOSEN = [ $$? -eq 5 ] ||
# Jupyter refuses to run as root, the usual user of a container, without this option.
AS_ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)

# Compiled modules are kept, whatever the user's setting: hundreds of processes of the tests import the same ones.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help lab test slow unit lowest lowest-environment bench bench-views bench-gpu gpu-wheels oracle graders frameworks fuzz op-index lint format types front notebooks course docs wheel newcomer clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- environments: a stamp each, renewed when pyproject.toml or the oracle's requirements change ---------------------

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed. Debian: apt install python3-venv. macOS: brew install python." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.lab: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) install -e '.[lab]'
	@touch $@

# Modules are compiled in parallel, since pip compiles them one by one, a third of the installation time. Some packages contain files
# that do not compile. The tests of packages, a third of all files, are left out, since nothing imports them.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) install --no-compile $(CONSTRAINTS) -e '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
	@touch $@ $(VENV)/.lab

$(ORACLE_VENV)/.ready: tests/oracle/requirements.txt tests/oracle/requirements-layers.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed." >&2; exit 1; }
	@test -x $(ORACLE_VENV)/bin/python || $(PYTHON) -m venv $(ORACLE_VENV)
	$(ORACLE_VENV)/bin/python $(PIP) install -r tests/oracle/requirements.txt
	$(ORACLE_VENV)/bin/python $(PIP) install --no-deps -r tests/oracle/requirements-layers.txt
	@touch $@

# Contains $(VENV) as well, but $(VENV) nothing of it: the browser tests drive JupyterLab without nbgrader's extensions.
$(GRADERS_VENV)/.ready: tests/graders/requirements.txt | $(VENV)/.dev
	$(BIN)/python -m venv $(GRADERS_VENV)
	$(BIN)/python tests/support/tools/share_packages.py $(GRADERS_VENV)/bin/python
	$(GRADERS_VENV)/bin/python $(PIP) install -r tests/graders/requirements.txt
	@touch $@

# Contains $(VENV) as well. The tests run in it: they make models by the frameworks, and read them by their own readers.
$(FRAMEWORKS_VENV)/.ready: tests/frameworks/requirements.txt | $(VENV)/.dev
	$(BIN)/python -m venv $(FRAMEWORKS_VENV)
	$(BIN)/python tests/support/tools/share_packages.py $(FRAMEWORKS_VENV)/bin/python
	$(FRAMEWORKS_VENV)/bin/python $(PIP) install -r tests/frameworks/requirements.txt
	@touch $@

# Contains $(VENV) as well, for the packages that the pages are made from.
$(DOCS_VENV)/.ready: pyproject.toml | $(VENV)/.dev
	$(BIN)/python -m venv $(DOCS_VENV)
	$(BIN)/python tests/support/tools/share_packages.py $(DOCS_VENV)/bin/python
	$(DOCS_VENV)/bin/python $(PIP) install -e '.[docs]'
	@touch $@

# ---- for users -------------------------------------------------------------------------------------------------------

lab: $(VENV)/.lab ## Open JupyterLab on the quick-start notebook
	$(BIN)/python -m jupyterlab $(AS_ROOT) notebooks/00_quickstart.ipynb $(ARGS)

# ---- for developers --------------------------------------------------------------------------------------------------

test: $(VENV)/.dev ## Run all tests but the slow ones, those in the browser included
	@$(BIN)/python tests/support/tools/find_browser.py > $(VENV)/.browser
	@GRAPHLOUPE_BROWSER="$$(cat $(VENV)/.browser)"; export GRAPHLOUPE_BROWSER; $(call IN_TURN,not slow)

slow: $(VENV)/.dev ## Run the long tests and wide sweeps that `make test` leaves out, the course and its solutions among them
	@$(BIN)/python tests/support/tools/find_browser.py > $(VENV)/.browser
	@GRAPHLOUPE_BROWSER="$$(cat $(VENV)/.browser)"; export GRAPHLOUPE_BROWSER; $(call IN_TURN,slow)

unit: $(VENV)/.dev ## Run the tests that need no browser, no notebook, no sweep over all ops and little time
	HYPOTHESIS_PROFILE="$${HYPOTHESIS_PROFILE:-few}" $(IN_WORKERS) -m "not browser and not oracle and not graders and not frameworks and not notebook and not sweep and not slow" $(ARGS)

lowest: lowest-environment ## Run the unit tests on the lowest versions of dependencies that pyproject.toml allows
	$(MAKE) --no-print-directory unit VENV=$(LOWEST_VENV)

lowest-environment:
	@$(MAKE) --no-print-directory $(LOWEST_VENV)/bin/python VENV=$(LOWEST_VENV)
	@$(LOWEST_VENV)/bin/python tests/support/tools/lower_bounds.py > $(LOWEST_VENV)/bounds.txt
	@$(MAKE) --no-print-directory $(LOWEST_VENV)/.dev VENV=$(LOWEST_VENV) CONSTRAINTS="--constraint $(LOWEST_VENV)/bounds.txt"

notebooks: $(VENV)/.dev ## Execute every notebook in a fresh kernel
	$(BIN)/python -m pytest -m notebook $(ARGS)

course: $(VENV)/.dev ## Execute the notebooks of the course and write their outputs and solutions (ARGS="02 03" chooses)
	$(BIN)/python -m tests.support.tools.course $(ARGS)

docs: $(DOCS_VENV)/.ready ## Build the site of the documentation in build/docs
	$(DOCS_VENV)/bin/python -m tests.support.site $(ARGS)

oracle: $(VENV)/.dev $(ORACLE_VENV)/.ready ## Compare with TensorFlow
	GRAPHLOUPE_ORACLE="$(CURDIR)/$(ORACLE_VENV)/bin/python" $(IN_WORKERS) -m oracle $(ARGS)

graders: $(VENV)/.dev $(GRADERS_VENV)/.ready ## Grade the sample assignments by nbgrader and otter-grader
	GRAPHLOUPE_GRADERS="$(CURDIR)/$(GRADERS_VENV)/bin/python" $(IN_WORKERS) -m graders $(ARGS)

frameworks: $(FRAMEWORKS_VENV)/.ready ## Compare what frontends read with what PyTorch, JAX, Keras and others say
	@$(BIN)/python tests/support/tools/find_browser.py > $(VENV)/.browser
	GRAPHLOUPE_BROWSER="$$(cat $(VENV)/.browser)" KERAS_BACKEND=jax JAX_PLATFORMS=cpu HF_HUB_OFFLINE=1 $(FRAMEWORKS_VENV)/bin/python -m pytest -n auto --dist loadfile --reruns 1 -m frameworks $(ARGS)

bench: $(VENV)/.dev $(ORACLE_VENV)/.ready ## Time this project, TensorFlow and NumPy on the same work
	GRAPHLOUPE_ORACLE="$(CURDIR)/$(ORACLE_VENV)/bin/python" $(BIN)/python -m tests.benchmarks $(ARGS)

bench-views: $(VENV)/.dev ## Time the views in JupyterLab and in standalone pages
	@$(BIN)/python tests/support/tools/find_browser.py > $(VENV)/.browser
	@GRAPHLOUPE_BROWSER="$$(cat $(VENV)/.browser)" $(BIN)/python -m tests.benchmarks.views $(ARGS)

bench-gpu: $(VENV)/.dev ## Time training steps on the GPU beside PyTorch and JAX, as far as they are installed
	$(BIN)/python -m tests.gpu.benchmark $(ARGS)

gpu-wheels: $(BIN)/python ## Fetch what tests/gpu/run.sh installs on a machine without a network
	$(BIN)/python -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 -d tests/gpu/wheels msgspec google-re2

fuzz: $(VENV)/.dev ## Feed damaged and hostile input to all readers, 10 s each (ARGS="--seconds 600 checkpoints")
	$(BIN)/python -m tests.support.fuzzing $(ARGS)

op-index: $(VENV)/.dev ## Write the index of the op modules after an op was added or moved
	$(BIN)/python -m tests.support.tools.op_modules

lint: $(VENV)/.dev ## Check the style, and the rules about layers, names and words
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m tests.lint

format: $(VENV)/.dev ## Repair the style where that can be done safely
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

types: $(VENV)/.dev ## Check the types
	$(BIN)/python -m mypy

front: $(VENV)/.dev ## Check and test the viewer; fail when the committed build is stale (needs Node)
	sh tests/support/tools/front.sh $(BIN)/python

wheel: $(BIN)/python ## Build the wheel, install it into an empty environment, use it there
	$(BIN)/python tests/support/tools/wheel_smoke.py

newcomer: $(BIN)/python ## Walk the README's three ways in, each from an empty environment
	$(BIN)/python -m tests.support.tools.newcomer $(ARGS)

clean: ## Remove environments and everything generated
	rm -rf $(VENV) $(ORACLE_VENV) $(GRADERS_VENV) $(FRAMEWORKS_VENV) $(DOCS_VENV) $(LOWEST_VENV) .venv-3.* dist build artefacts .pytest_cache .mypy_cache .ruff_cache .hypothesis widgets/js/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
