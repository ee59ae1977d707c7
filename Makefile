# `make` alone lists the targets. Each installs its requirements into .venv once and changes nothing else on the machine.

PYTHON ?= $(firstword $(foreach name,python3.11 python3 python,$(shell command -v $(name) 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
EXAMPLE := examples/digits
OUT := out
CODE := tfconvert tests examples benchmarks
BENCH_FLAGS ?=
SERVE_FLAGS ?=
TEST_FLAGS ?=
# Each of these processes loads TensorFlow, which needs a gigabyte of memory.
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist worksteal

# Tests start hundreds of processes, which share the bytecode of the modules instead of compiling them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run serve test test-all lint format schema bench docs dist clean distclean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.installed-core ## convert the example, check it in LiteRT, show its predictions
	@mkdir -p $(OUT)
	$(BIN)/tfconvert $(EXAMPLE)/saved_model -o $(OUT)/digits.tflite --verify
	@$(BIN)/python $(EXAMPLE)/show.py $(OUT)/digits.tflite

serve: $(VENV)/.installed-service ## start the service and its page; SERVE_FLAGS="--port 9000 --data DIR"
	$(BIN)/tfconvert serve $(SERVE_FLAGS)

test: $(VENV)/.installed-test ## run the tests in parallel, one process per core; TEST_FLAGS="-k checkpoint -x" is passed to pytest
	$(BIN)/python -m pytest --ignore=tests/rings $(SIDE_BY_SIDE) $(TEST_FLAGS)

test-all: $(VENV)/.installed-rings ## run the tests with large requirements: tools that read the files, JAX, Ray, Chromium, PostgreSQL, IREE
	$(BIN)/python -m pytest tests/rings $(TEST_FLAGS)

lint: $(VENV)/.installed-test ## ruff, its formatter, and mypy, all strict
	$(BIN)/ruff check $(CODE) .ci
	$(BIN)/ruff format --check $(CODE) .ci
	$(BIN)/mypy

format: $(VENV)/.installed-test ## sort imports and format the code
	$(BIN)/ruff check --fix-only --quiet $(CODE)
	$(BIN)/ruff format --quiet $(CODE)

schema: $(VENV)/.installed-test ## regenerate code and the op registry
	$(BIN)/python -m tfconvert.schema.tensorflow.generate
	$(BIN)/python -m tfconvert.schema.tensorflow.make_op_defs
	$(BIN)/python -m tfconvert.schema.tflite.generate
	$(BIN)/python -m tfconvert.converter.targets.litert.make_rewrite_index

bench: $(VENV)/.installed-bench ## measure everything again and write docs/benchmarks.md; BENCH_FLAGS="--only conversion"
	@mkdir -p $(OUT)
	$(BIN)/python -m benchmarks.zoo --set bench
	$(BIN)/python -m benchmarks.page $(BENCH_FLAGS)

dist: $(VENV)/.installed-release ## build the wheel and the source distribution in dist/, and check them
	rm -rf dist build *.egg-info
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/check_wheel.py dist/*.whl
	$(BIN)/python .ci/check_sdist.py dist/*.tar.gz

docs: $(VENV)/.installed-docs ## build the documentation site: out/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build

clean: ## remove build products but keep .venv
	rm -rf $(OUT) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	rm -rf $(VENV)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no python3 found: install Python 3.11 or later, or run make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is required: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-core: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[verify]'
	@touch $@

$(VENV)/.installed-service: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[service,verify]'
	@touch $@ $(VENV)/.installed-core

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.installed-core $(VENV)/.installed-service

# Tools that need an older NumPy or protobuf get a separate environment.
$(VENV)/.installed-rings: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[rings]'
	$(PYTHON) -m venv $(VENV)/old-tools
	$(VENV)/old-tools/bin/python -m pip --disable-pip-version-check install --quiet \
		'numpy<2' tflite-runtime==2.14.0 tflite-support==0.4.4 || rm -rf $(VENV)/old-tools
	@touch $@ $(VENV)/.installed-core $(VENV)/.installed-service $(VENV)/.installed-test

$(VENV)/.installed-bench: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[bench]'
	@touch $@ $(VENV)/.installed-core

$(VENV)/.installed-release: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[release]'
	@touch $@ $(VENV)/.installed-core

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[docs]'
	@touch $@
