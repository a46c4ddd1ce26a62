# Everything starts from a bare clone: each target sets up .venv first if it has to.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Two processes fit two cores; each framework gets one thread so that they do not fight over them.
TEST_PROCESSES ?= 2

.PHONY: help demo test lint format bench bench-faults docs sweep clean
help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

# torch goes first and alone: resolved together with the rest, pip may pick a build with CUDA.
$(READY): pyproject.toml compat-dist/pyproject.toml constraints.txt hatch_build.py $(wildcard src/parfocal/native/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt paddlepaddle==3.3.1 hatchling editables
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]' -e compat-dist
	@touch $@

demo: $(READY)  ## run the main job on bundled data
	$(BIN)/python examples/demo.py

test: $(READY)  ## run all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist loadfile

lint: $(READY)  ## format check, lint, types, import direction
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## format and mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## print the benchmark tables (ratios, best of n)
	$(BIN)/python -m benchmarks

sweep: $(READY)  ## noise of correct pairs and scores of planted faults over many seeds, into docs/noise.md
	$(BIN)/python -m benchmarks.sweep

bench-faults: $(READY)  ## seeded faults: parfocal and the tools before it, into docs/faults.md
	$(BIN)/python -m benchmarks.faults

docs: $(READY)  ## build the documentation into site/
	$(BIN)/mkdocs build --strict

clean:  ## remove what the other targets made
	rm -rf $(VENV) site dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
