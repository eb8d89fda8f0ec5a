# Needs python3 (3.11 or newer) and make. Everything else goes into .venv.
#   make test ARGS=tests/single         hands ARGS to pytest
#   make demo PYTHON=python3.12         picks another Python

PYTHON ?= python3
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.NOTPARALLEL:
.PHONY: help demo quick test slow test-all coverage lint bench docs clean

help:
	@echo "make demo   solve and verify one problem of each kind, export a sampler, write a report, run shuffled sums"
	@echo "make quick  run the tests of what matters most, in about a minute"
	@echo "make test   run all tests but the slow ones, in a quarter of an hour on two cores"
	@echo "make test-all  run all tests"
	@echo "make coverage  measure which lines the tests run"
	@echo "make lint   check style and types"
	@echo "make bench  run the benchmarks with every solver installed"
	@echo "make docs   build the documentation into build/docs"
	@echo "make clean  remove what the others made, except .venv"

demo: .venv/.dev
	@mkdir -p build
	$(BIN)/optdp solve sick-leave --out build/sick-leave.json
	$(BIN)/optdp verify build/sick-leave.json
	$(BIN)/optdp sample build/sick-leave.json --input 12 --count 5
	$(BIN)/optdp export build/sick-leave.json --to python --out build/sampler
	$(BIN)/python build/sampler/sampler.py --self-test
	$(BIN)/optdp solve paper-a/two-offices --out build/two-offices
	$(BIN)/optdp verify build/two-offices
	$(BIN)/optdp solve paper-b/krr10
	$(BIN)/optdp solve paper-d/geo-shuffle
	$(BIN)/optdp solve staff-survey --out build/staff-survey.json
	$(BIN)/optdp shuffle build/staff-survey.json --data problems/use-cases/staff-survey.csv --column would_recommend --out build/shuffled.csv --allow-outside
	@$(BIN)/python -c 'print("x", *range(0, 1000, 10), sep="\n")' > build/values.csv
	$(BIN)/optdp run paper-d/geo-shuffle --data build/values.csv --column x --out build/estimate.json
	$(BIN)/optdp report build/two-offices --out build/two-offices.html
	$(BIN)/optdp report build/sick-leave.json --out build/sick-leave.html
	@echo "Look at these in a browser: build/sick-leave.html (one count) and build/two-offices.html (two offices together)"

quick: .venv/.dev
	$(BIN)/python -m pytest -n auto -m "quick and not slow" $$($(BIN)/python -m tests.tiers) $(ARGS)

test: .venv/.dev
	$(BIN)/python -m pytest -n auto -m "not slow" $(ARGS)

slow: .venv/.dev
	$(BIN)/python -m pytest -n auto -m "slow and not rare" $(ARGS)

test-all: .venv/.dev
	$(BIN)/python -m pytest -n auto $(ARGS)

# Counts this process alone: commands that tests start in others count for nothing. Without the tests of signals, which
# may arrive while the measuring holds its own lock, and then wait for it forever.
coverage: .venv/.dev
	$(BIN)/python -m pytest -n auto -m "not slow" --ignore=tests/work --cov=optdp --cov-report=term:skip-covered --cov-fail-under=85 $(ARGS)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy optdp

bench: .venv/.dev .venv/.solvers
	$(BIN)/python -m tests.bench $(ARGS)

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/docs

clean:
	rm -rf build dist .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find optdp tests examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# One stamp for each set of extras; a change of pyproject.toml installs again.
.venv/.dev .venv/.solvers .venv/.docs: .venv/.%: pyproject.toml | .venv/.created
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

.venv/.created:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "optdp needs Python 3.11 or newer. Found no $(PYTHON). Install it, or name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "optdp needs Python 3.11 or newer. Found $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv >/dev/null 2>&1 \
	  || $(PYTHON) -m virtualenv --quiet .venv >/dev/null 2>&1 \
	  || virtualenv --quiet --python $(PYTHON) .venv >/dev/null 2>&1 \
	  || { echo "Cannot create .venv: install your system's python3-venv package, or virtualenv, and run make again." >&2; exit 1; }
	@touch $@
