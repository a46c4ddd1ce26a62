# Everything starts from a bare clone: each target sets up .venv first if it has to.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
# What parfocal says in Chinese
CATALOGUE := src/parfocal/locale/zh/LC_MESSAGES/parfocal.po
# Containers often forbid Python to keep what it compiles, and then every process compiles both frameworks anew: 5 s
# instead of 2.
COMPILED := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
# Each framework gets one thread; a third process uses the cores while others wait for processes of their own.
TEST_PROCESSES ?= 3

# ``make bench CPU=avx2 THREADS=3``: the same as on another processor (benchmarks/processors.py)
CPU     ?=
THREADS ?= 1
ON      := $(if $(CPU),$(BIN)/python -m benchmarks.processors $(CPU) --threads $(THREADS) --)
# ``make sweep ROUNDING=equal`` (or noisy:1): the same at an extreme of rounding (benchmarks/rounding), which writes
# its page into build/
ROUNDING ?=
ON       += $(if $(ROUNDING),$(BIN)/python -m benchmarks.rounding $(ROUNDING) --)
page      = $(if $(ROUNDING),--output build/$(subst :,-,$(ROUNDING))-$(1).md)
# Tests are spread one by one: who has none left takes half of what another still has to do. Compiled tests are
# kept, which saves every process a third of its start.
PYTEST := $(COMPILED) -m pytest -q --dist worksteal
# processor:threads, and what to test on each
PORTABLE       ?= sse4:1 avx2:3
PORTABLE_TESTS ?= tests
# The tests whose figures hang most on the order of sums: quick enough for every change.
NUMBERS := $(patsubst %,tests/unit/judge/test_%.py,floors loops metrics_edges metrics_oracle sketch ulp) \
           tests/compat/padiff/test_single_step.py tests/pairs/align/test_floors.py \
           tests/pairs/workflow/test_noise.py

# at which extremes all tests are run, and for which other seeds the part that compares numbers; but for the tests of
# the extremes, which go there by themselves
EXTREMES       ?= equal noisy:1
ROUNDING_TESTS ?= tests --ignore=tests/rounding
SEEDS          ?= noisy:2 noisy:3
ROUNDED        := $(NUMBERS) tests/compat/test_opinion.py tests/pairs/align \
                  tests/pairs/training/test_lbfgs.py

# What test-versions runs, and with which pairs; all of them, if nothing is said, and then it writes the page.
VERSIONS      ?=
VERSION_TESTS ?=

.PHONY: help demo browser test test-all test-portable test-numbers test-rounding test-rounding-numbers test-versions style lint format messages wheel bench bench-faults bench-recorded bench-training screenshot docs pages site sweep clean
help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

# What is imported is compiled then; most of what these packages hold never is.
INSTALL  := $(BIN)/pip install -q --disable-pip-version-check --no-compile -c constraints.txt

$(BIN)/ruff:  # by itself: what it finds is told before anything large is installed
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) ruff

# torch goes first and alone: resolved together with the rest, pip may pick a build with CUDA.
$(INSTALLED): pyproject.toml compat-dist/pyproject.toml constraints.txt hatch_build.py $(wildcard src/parfocal/native/*.[ch]) | $(BIN)/ruff
	$(INSTALL) torch==2.13.0
	$(INSTALL) paddlepaddle==3.3.1 hatchling editables babel
	$(INSTALL) --no-build-isolation -e '.[dev]' -e compat-dist
	$(COMPILED) -c "import paddle, scipy.optimize, scipy.stats, torch._dynamo, torch.fx.experimental.symbolic_shapes"
	$(COMPILED) -m compileall -q src
	@touch $@

# An edited catalogue is compiled anew; nothing has to be installed for that.
$(READY): $(INSTALLED) $(CATALOGUE:.po=.mo)
	@touch $@

%.mo: %.po | $(INSTALLED)
	$(BIN)/python -c "import hatch_build; hatch_build.compile_catalogue()"

demo: $(READY)  ## the main jobs on bundled data: two models, and AlexNet through all checkpoints
	$(COMPILED) examples/demo.py

browser:  ## Chromium, in which the tests look at the HTML report
	@command -v chromium chromium-browser google-chrome >/dev/null || { apt-get update -q && \
	  apt-get install -y -q --no-install-recommends chromium fonts-noto-cjk; } || echo "install Chromium: some tests need it"

test: $(READY)  ## run the tests but for those that take long and those of lint
	OMP_NUM_THREADS=1 $(PYTEST) -n $(TEST_PROCESSES) -m "not thorough"

test-all: $(READY) browser  ## run all tests
	OMP_NUM_THREADS=1 $(PYTEST) -n $(TEST_PROCESSES)

# on-avx2-3: as with AVX2, three threads
SETS := $(addprefix on-,$(subst :,-,$(PORTABLE)))
.PHONY: $(SETS)
$(SETS): on-%: $(READY) browser
	$(BIN)/python -m benchmarks.processors $(firstword $(subst -, ,$*)) --threads $(lastword $(subst -, ,$*)) -- \
	  $(PYTEST) -n $(TEST_PROCESSES) $(PORTABLE_TESTS)

test-portable: $(SETS)  ## run all tests as on other processors, with other numbers of threads (-k: whatever fails)

test-numbers: PORTABLE_TESTS := $(NUMBERS)
test-numbers: $(SETS)  ## the part of test-portable that hangs most on the order of sums

# at-noisy-1: all tests with noise of seed 1; part-at-noisy-2: the part that compares numbers
AT_ALL  := $(addprefix at-,$(subst :,-,$(EXTREMES)))
AT_PART := $(addprefix part-at-,$(subst :,-,$(SEEDS)))
.PHONY: $(AT_ALL) $(AT_PART)
$(AT_ALL): at-%: $(READY) browser
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.rounding $(subst -,:,$*) -- $(PYTEST) -n $(TEST_PROCESSES) $(ROUNDING_TESTS)

$(AT_PART): part-at-%: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.rounding $(subst -,:,$*) -- $(PYTEST) -n $(TEST_PROCESSES) $(ROUNDED)

test-rounding: $(AT_ALL) $(AT_PART)  ## run all tests at both extremes of rounding, and some for more seeds (-k: whatever fails)

test-rounding-numbers: ROUNDING_TESTS := $(ROUNDED)
test-rounding-numbers: $(AT_ALL)  ## the part of test-rounding that compares numbers

test-versions: $(READY)  ## run the tests with other versions of paddle and torch, into docs/versions.md
	$(BIN)/python -m tests.versions $(VERSIONS) $(if $(VERSION_TESTS),--tests $(VERSION_TESTS))

# Tests of the source itself (tests/thorough.py)
OF_THE_SOURCE := tests/unit/judge/test_codes.py tests/unit/judge/test_limits.py tests/unit/locale tests/unit/test_facts.py tests/unit/test_framework_names.py

style: $(BIN)/ruff  ## format check and lint, which need no framework
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

lint: style $(READY)  ## the same, types, import direction, registers and names
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(COMPILED) -m pytest -q $(OF_THE_SOURCE)

format: $(READY)  ## format and mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

messages: $(READY)  ## bring the Chinese catalogue up to date with the code, and compile it
	$(BIN)/python -m tools.messages

bench: $(READY)  ## print the benchmark tables (ratios, best of n)
	$(ON) $(BIN)/python -m benchmarks

sweep: $(READY)  ## noise of correct pairs and scores of planted faults, as on several processors, into docs/noise.md
	$(if $(ROUNDING),$(BIN)/python -m benchmarks.rounding $(ROUNDING) --) \
	  $(BIN)/python -m benchmarks.sweep $(if $(CPU),--processors $(CPU),$(if $(ROUNDING),--processors native)) $(call page,noise)

bench-faults: $(READY)  ## seeded faults: parfocal and the tools before it, into docs/faults.md
	$(ON) $(BIN)/python -m benchmarks.faults $(if $(ROUNDING),--tools parfocal) $(call page,faults)

wheel: $(READY)  ## build dist/*.whl and try it in an empty environment
	rm -rf dist build/empty
	$(BIN)/python -m build --no-isolation --wheel --outdir dist .
	$(PYTHON) -m venv build/empty
	build/empty/bin/pip install -q --disable-pip-version-check -c constraints.txt dist/*.whl
	cd build && empty/bin/parfocal doctor

bench-training: $(READY)  ## planted mistakes in trainings, with clean twins, into docs/training-faults.md
	$(ON) env OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.training_faults $(call page,training-faults)

bench-recorded: $(READY)  ## pairs of recorded runs with and without a mistake, into docs/recorded-runs.md
	$(ON) env OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.recorded_runs $(call page,recorded-runs)

screenshot: $(READY) browser  ## take the pictures of the HTML report that the documentation shows
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.browser.screenshot docs/images

docs: pages  ## write the pages that are made from the source, and build the documentation into site/
	$(MAKE) site

pages: $(READY)
	for page in codes:report.codes_page limits:report.limits_page gaps:report.gaps_page cli:cli.help_page; do \
	  $(BIN)/python -m parfocal.$${page#*:} > docs/$${page%:*}.md && \
	  $(BIN)/python -m parfocal.$${page#*:} zh > docs/$${page%:*}.zh.md || exit 1; \
	done
	$(BIN)/python -m tests.compat.documents.page

site: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## remove what the other targets made
	rm -rf $(VENV) site dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
