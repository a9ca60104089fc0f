# Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := pip==26.3

.PHONY: demo test tests lint docs claims floors next audit-dependencies benchmarks chaos house format clean help

help:
	@echo "make demo        budgeted against plain epochs, a real inspect run, offline"
	@echo "make test        lint, types, layering and all tests, as in CI"
	@echo "make tests       all tests"
	@echo "make docs        the pages as a site, in site/; a warning is an error"
	@echo "make claims      the statistical claims at full replication, variants of tests, 10,000 damaged files (hours on two cores)"
	@echo "make floors      the host tests on the oldest hosts that are supported"
	@echo "make next        the host tests on the newest hosts, lm-eval's pre-release among them"
	@echo "make audit-dependencies  known vulnerabilities of what is installed; asks PyPI"
	@echo "make benchmarks  every figure in docs/benchmarks/, measured again"
	@echo "make house       lines, bookkeepers, formats, and how far a reading goes through our files"
	@echo "make chaos       real runs killed and disturbed, and the server's bill against what they kept (hours)"

PLUGINS := inspect lm-eval pairwise labelling example
PROJECTS := pyproject.toml $(PLUGINS:%=plugins/evalbudget-%/pyproject.toml)
EDITABLE := $(PLUGINS:%=--editable plugins/evalbudget-%)

$(READY): $(PROJECTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "evalbudget needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(PIP)
	$(BIN)/python -m pip install --quiet --editable . $(EDITABLE) --group dev
	touch $(READY)

demo: $(READY)
	$(BIN)/evalbudget demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# side by side: the linters fill the moments in which tests wait
test: $(READY)
	$(MAKE) --no-print-directory --jobs 2 lint tests

# Compiled once, and not by each of the many processes that tests start. Plain asserts are quicker to load; what
# failed runs once more with asserts that say what they compared, and stays failed.
tests: $(READY)
	$(BIN)/python -m compileall -q src plugins tests
	$(BIN)/python -m pytest --assert=plain --numprocesses 4 --dist worksteal || \
		{ $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; exit 1; }

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

claims: $(READY)
	EVALBUDGET_CLAIMS=full $(BIN)/python -m pytest --numprocesses 2 -m "claim or variant"

# the oldest hosts that the plugins declare
FLOORS := .venv-floors/.ready

$(FLOORS): $(PROJECTS)
	$(PYTHON) -m venv .venv-floors
	.venv-floors/bin/python -m pip install --quiet $(PIP)
	.venv-floors/bin/python -m pip install --quiet "inspect-ai==0.3.277" "lm_eval[api]==0.4.12" --editable . \
		$(EDITABLE) --group dev
	touch $(FLOORS)

floors: $(FLOORS)
	.venv-floors/bin/python -m pytest --numprocesses 2 tests/host_inspect tests/host_lm_eval

# The newest hosts, beyond what the plugins declare: what breaks there is to be known before it is released. Made
# anew each time.
next:
	rm -rf .venv-next
	$(PYTHON) -m venv .venv-next
	.venv-next/bin/python -m pip install --quiet $(PIP)
	.venv-next/bin/python -m pip install --quiet --editable . --group dev inspect-ai
	.venv-next/bin/python -m pip install --quiet --pre --upgrade "lm_eval[api]"
	.venv-next/bin/python -m pip install --quiet --no-deps $(EDITABLE)
	.venv-next/bin/python -m pip list | grep -i -E "^(inspect.ai|lm.eval) "
	.venv-next/bin/python -m pytest --numprocesses 2 tests/host_inspect tests/host_lm_eval

# All that is installed here is looked up in PyPI's list of vulnerabilities; exit code 1 if one is known, or if something
# could not be looked up.
audit-dependencies: $(READY)
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet $(PIP) pip-audit==2.10.1
	$(BIN)/python -m pip freeze --quiet --exclude-editable > .venv-audit/installed.txt
	.venv-audit/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement .venv-audit/installed.txt

benchmarks: $(READY)
	$(BIN)/python benchmarks/repeats.py all --write-docs
	$(BIN)/python benchmarks/judges.py all --write-docs
	$(BIN)/python benchmarks/racing.py all --write-docs
	$(BIN)/python benchmarks/audits.py all --write-docs
	$(BIN)/python benchmarks/load.py all --write-docs
	$(BIN)/python benchmarks/papers.py all --write-docs
	$(BIN)/python benchmarks/costs.py all --write-docs
	$(BIN)/python benchmarks/comparisons.py all --write-docs
	$(BIN)/python benchmarks/pairwise.py all --write-docs
	$(BIN)/python benchmarks/scale.py all --write-docs
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/lm_eval_overhead.py

# exit code 1 if anything paid was lost, bought twice or beyond the budget, or if a command hung
chaos: $(READY)
	$(BIN)/python benchmarks/chaos.py all --write-docs

house: $(READY)
	$(BIN)/python benchmarks/house.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) site .venv-floors .venv-next .venv-audit .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
