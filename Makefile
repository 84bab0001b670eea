# Two commands do everything a newcomer needs: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

# One process per core; each takes the next test of the one that has most left, so neighbours stay together.
PARALLEL := -n auto --dist worksteal

NATIVE := $(wildcard native/*/*.hpp native/*/*.cpp) CMakeLists.txt
SOURCES := $(shell find src -name '*.py' -o -name py.typed -o -path '*/static/*' 2>/dev/null)
FORMATTED := $(wildcard native/*/*.hpp native/*/*.cpp tests/native/*.hpp tests/native/*.cpp)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## install into .venv, train on ill-conditioned and real data, draw the picture
	$(BIN)/skn demo --output demo.png

test: $(VENV)/.installed ## install into .venv, lint, type-check, fuzz the parser, run all tests
	$(MAKE) -j2 --output-sync=target check fuzz
	$(BIN)/python -m pytest $(PARALLEL) --doctest-modules --ignore-glob='*/sketchnewton/torch/*' --ignore-glob='*/sketchnewton/dask/*' --ignore-glob='*/sketchnewton/spark/*' --pyargs tests sketchnewton

# This very version: wherever its build for processors alone is at hand, others bring gigabytes for graphics cards.
test-torch: $(VENV)/.installed ## install PyTorch into .venv, run the tests of its optimizers
	$(PIP) install --no-build-isolation '.[torch]' 'torch==2.13.0'
	$(BIN)/python -m pytest $(PARALLEL) --doctest-modules --pyargs tests/torch sketchnewton.torch

# One process: two cores are busy with a cluster's workers already.
test-cluster: $(VENV)/.installed ## install Dask, PySpark and Debian's Java if there is none, test training on both
	command -v java > /dev/null || (apt-get update -q && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless)
	$(PIP) install setuptools wheel # PySpark comes as source
	$(PIP) install --no-build-isolation '.[dask,spark]'
	$(BIN)/python -m pytest -q --doctest-modules --pyargs tests/cluster sketchnewton.dask sketchnewton.spark

test-report: $(VENV)/.installed docs ## install Debian's chromium if there is none, open the report of experiments and the site in it
	command -v chromium > /dev/null || (apt-get update -q && apt-get install -y -q --no-install-recommends chromium)
	$(BIN)/python -m pytest tests/browser

# The fast tests of promises, formats and commands; `make test` runs everything.
QUICK := tests/contract tests/streams tests/native tests/cli
quick: $(VENV)/.installed ## lint, types, layers and the fast tests, in under two minutes: while you work
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(PARALLEL) -q -m "not slow" $(QUICK)

check: $(VENV)/.installed ## lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(FORMATTED)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.tools ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(FORMATTED)

# Parsers that have another way for processors with 256-bit vectors are fuzzed twice where there is one.
WIDE := -mavx2 -mbmi -mbmi2
FUZZED := svmlight vw csv json $(if $(shell grep -sw avx2 /proc/cpuinfo | grep -w bmi2),wide_svmlight wide_vw)
fuzz: $(addprefix build/fuzz_,$(FUZZED)) ## parse mutated inputs under AddressSanitizer and UBSan (bounded to a minute each)
	for parser in $(FUZZED); do build/fuzz_$$parser --inputs 100000 --seconds 60 || exit 1; done

# Bounds of the two fuzzers below: what is in CI is a part.
MUTANTS ?= 50000
SEQUENCES ?= 10000
FUZZ_SECONDS ?= 20000
fuzz-models: sanitized ## load, learn, predict, merge and save mutated model files under AddressSanitizer and UBSan
	$(SANITIZED) tests.native.model_mutants --count $(MUTANTS) --seconds $(FUZZ_SECONDS)

fuzz-calls: sanitized ## make random calls of all learners, with odd arrays, under the same sanitizers
	$(SANITIZED) tests.native.call_sequences --count $(SEQUENCES) --seconds $(FUZZ_SECONDS)

SEEDS ?= 300
properties: $(VENV)/.installed ## judge the papers' learners by exact arithmetic on SEEDS random streams of every kind
	SKN_SEEDS=$(SEEDS) $(BIN)/python -m pytest $(PARALLEL) tests/oracles/test_newton_properties.py

# A copy of the package with a core of its own, in build/sanitized/package or build/coverage/package.
define core
	PATH=$(CURDIR)/$(BIN):$$PATH cmake -S . -B build/$(1) -G Ninja -DCMAKE_BUILD_TYPE=Debug $(2) \
	  -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	PATH=$(CURDIR)/$(BIN):$$PATH cmake --build build/$(1)
	rm -rf build/$(1)/package && mkdir build/$(1)/package
	cp -r src/sketchnewton build/$(1)/package && rm -f build/$(1)/package/sketchnewton/_native*.so
	cp build/$(1)/_native*.so build/$(1)/package/sketchnewton
endef

# Python must load the core after the sanitizer.
SANITIZED = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 OPENBLAS_NUM_THREADS=1 \
	  PYTHONPATH=build/sanitized/package $(BIN)/python -m
sanitized: $(VENV)/.tools
	$(call core,sanitized,-DSKETCHNEWTON_SANITIZE=ON)

# All tests, those of PyTorch, Dask and Spark too; the report fails below 95% of Python's lines or 90% of the headers'.
# Tests of memory, imports and full disks may fail here, where lines are counted and written: `make test` judges them.
COVERED = PYTHONPATH=$(CURDIR)/build/coverage/package $(BIN)/coverage
coverage: $(VENV)/.installed ## run all tests with a core that counts lines, list what no test reaches (half an hour)
	$(PIP) install --group coverage setuptools wheel # PySpark comes as source
	$(PIP) install --no-build-isolation '.[torch,dask,spark]' 'torch==2.13.0'
	$(call core,coverage,-DSKETCHNEWTON_COVERAGE=ON)
	find build/coverage -name '*.gcda' -delete && $(BIN)/coverage erase
	-$(COVERED) run -m pytest -q $(PARALLEL) --doctest-modules --pyargs tests sketchnewton
	$(BIN)/python release/coverage_data.py build/coverage/python.*
	$(BIN)/coverage combine -q
	$(BIN)/gcovr; native=$$?; $(BIN)/coverage report && exit $$native

tidy: ## look for likely bugs in the kernels with Debian's clang-tidy
	command -v clang-tidy > /dev/null || (apt-get update -q && apt-get install -y -q --no-install-recommends clang-tidy)
	@mkdir -p build
	ls native/*/*.hpp | grep -v bindings/ | sed 's|native/\(.*\)|#include "\1"|' > build/headers.cpp
	clang-tidy --quiet build/headers.cpp -- -std=c++20 -Inative

portable: $(VENV)/.installed ## compile the kernels with Clang and libc++ for Linux, macOS and Windows (the ziglang package)
	$(PIP) install --group portable
	$(BIN)/python -m pytest tests/native/test_portable.py

docs: $(VENV)/.tools ## build the documentation site into build/site; warnings are errors
	$(PIP) install --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

gallery: $(VENV)/.installed ## run the examples of examples/gallery, keep their output and pictures for the site (needs PyTorch)
	for example in examples/gallery/*.py; do name=$$(basename $$example .py); \
	  $(BIN)/python $$example --picture docs/gallery/$$name.png > docs/gallery/$$name.txt || exit 1; done

# Experiments without their data say where to get it; the folder's own path is nobody's business.
DATA ?= ../shared/data
results: $(VENV)/.installed ## recompute the papers' tables, small, and keep them for the site
	$(BIN)/skn reproduce --all --quick --output build/report --data $(DATA)
	sed "s|$(realpath $(DATA))|DATA|g" build/report/report.md > docs/results/tables.md
	sed "s|$(realpath $(DATA))|DATA|g" build/report/report.html > docs/results/report.html

docs-serve: $(VENV)/.tools ## show the documentation site while you write it
	$(PIP) install --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

wheel: $(VENV)/.tools ## build wheels into dist/ with each Python at hand: 3.11, and one for all from 3.12 on
	$(BIN)/python release/wheels.py build

sdist: $(VENV)/.tools ## build the source archive into dist/
	$(BIN)/python -m build --sdist --no-isolation

check-tag: ## fail unless TAG is the version: what a release begins with
	@test "$(TAG)" = "v$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/sketchnewton/__init__.py)" || (echo "$(TAG) is not the version"; exit 1)

test-wheel: wheel ## install the wheels into fresh environments without a compiler, oldest and newest NumPy, and try them
	$(BIN)/python release/wheels.py try

bench: $(VENV)/.installed ## time training against Vowpal Wabbit, the learner alone and later passes; fails if a promise is broken
	$(PIP) install --no-build-isolation '.[bench]'
	status=0; for script in vowpal_wabbit learner_cost passes; do \
	  $(BIN)/python benchmarks/$$script.py || status=1; done; exit $$status

bench-history: $(VENV)/.installed ## measure this commit's speed, relative to yardsticks, and add it to benchmarks/history.json
	$(BIN)/python benchmarks/history.py

long-stream: $(VENV)/.installed ## ten million drifting rows for each sketch; fails if a promise is broken
	$(BIN)/python benchmarks/long_stream.py

clean: ## remove everything that the targets above made
	rm -rf $(VENV) build dist demo.png .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(VENV)/.tools: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --group build --group test --group check
	touch $@

# The build directory is kept, so only what changed is compiled again.
$(VENV)/.installed: $(VENV)/.tools $(NATIVE) $(SOURCES)
	$(PIP) install --no-build-isolation '.[plot]'
	touch $@

build/fuzz_wide_%: tests/native/fuzz_%.cpp tests/native/fuzzing.hpp $(wildcard native/*/*.hpp)
	@mkdir -p build
	$(CXX) -std=c++20 -g -O1 $(WIDE) -fsanitize=address,undefined -fno-sanitize-recover=all -Inative -o $@ $<

build/fuzz_%: tests/native/fuzz_%.cpp tests/native/fuzzing.hpp $(wildcard native/*/*.hpp)
	@mkdir -p build
	$(CXX) -std=c++20 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -Inative -o $@ $<

.PHONY: help demo test quick test-torch test-cluster test-report check format fuzz fuzz-models fuzz-calls properties sanitized coverage tidy portable docs docs-serve gallery results wheel sdist check-tag test-wheel bench bench-history long-stream clean
