# Everything a newcomer needs: `make up` runs the demo company, `make test` all that CI runs.
# Only python3 (3.11 or newer) and make have to be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help up fleet test lint types imports tests thespian certified mutants golden long chaos bench clean

help:
	@echo "make up         run the demo company (Ctrl-C stops it)"
	@echo "make fleet      three nodes of one company on this machine (Ctrl-C stops them)"
	@echo "make test       lint, types, import rules, tests, Thespian's own tests"
	@echo "make certified  which promises of docs/contract.md a passing test shows"
	@echo "make mutants    plant each known fault and see its case fail"
	@echo "make golden     write the digests that are kept as text anew; read what changed"
	@echo "make bench      the benchmarks, beside the limit and the peers"
	@echo "make chaos      real processes under kills, stops and cuts, for 40 minutes"
	@echo "make long       what takes too long for every run"
	@echo "make clean      remove the environment and what was built"

# A folder of the wrong Python is said in a sentence, not in a traceback.
$(STAMP): setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "crewlet needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

up: $(STAMP)
	@exec $(BIN)/crewlet up

fleet: $(STAMP)
	@exec $(BIN)/python examples/fleet/fleet.py

test: lint types imports thespian simulate tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

thespian: $(STAMP)
	$(BIN)/python -m tests.thespian.run

# 20,000 hand-offs with every check on; `make long` plays a million.
simulate: $(STAMP)
	$(BIN)/crewlet simulate --seeds 1..38 --profile moves --jobs 2

# Last, so that the run ends with the test runner's own lines.
tests: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m 'not long' --certified=.certified.json

certified: $(STAMP)
	$(BIN)/python -m pytest -n 2 -q -m 'not long' --certified=.certified.json
	$(BIN)/python -m tests.certified.report

mutants: $(STAMP)
	$(BIN)/python -m tests.mutants

golden: $(STAMP)
	CREWLET_WRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/inbound/test_golden_digests.py

long: $(STAMP)
	$(BIN)/python -m pytest -m long --timeout=3600
	$(BIN)/crewlet simulate --seeds 1..1800 --profile moves --jobs 2
	$(BIN)/python -m tests.mutants

# What a fleet is to survive: 200 kills, 100 stops, 50 partitions, 100,000 messages, in as far as
# the minutes allow. MINUTES, SEED, SERVERS (1 or 3), APPLIES and FULL_DISKS may be given.
MINUTES ?= 40
SEED ?= 1
SERVERS ?= 1
APPLIES ?= 10
FULL_DISKS ?= 5
chaos: $(STAMP)
	$(BIN)/python -m tests.chaos --minutes $(MINUTES) --seed $(SEED) --servers $(SERVERS) \
		--messages 100000 --kills 200 --stops 100 --partitions 50 --broker-kills 20 \
		--broker-stops 10 --moves 40 --rolls 20 --applies $(APPLIES) --full-disks $(FULL_DISKS)

# All of them, three quarters of an hour. The peers come with an extra that the runtime never needs.
# BENCH may name some, QUICK=--quick shows that they run.
BENCH ?= actors machine pull publish turns completion boot handoff simulate idle fleet
QUICK ?=
bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	for name in $(BENCH); do $(BIN)/python -m benchmarks $$name $(QUICK) || exit 1; done

clean:
	rm -rf $(VENV) .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis .certified.json build *.egg-info
