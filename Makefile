# `make demo`, `make check` and `make test` do all set-up in a virtual environment in this checkout.
PYTHON ?= python3
BIN := .venv/bin

# Tests start many processes: the first that needs a module keeps it compiled for the others, also
# where the environment says not to.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo check test lint bench reproduction learning formulas cluster feedback trials picture docs test-lowest test-pythons clean

.venv/made:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip  # the newest finds packages in half the time
	touch $@

.venv/run: .venv/made pyproject.toml
	$(BIN)/pip install --quiet --editable .
	touch $@

# In one go: this has what .venv/run has. Most modules of the packages are never loaded.
.venv/dev: .venv/made pyproject.toml
	$(BIN)/pip install --quiet --no-compile --editable '.[dev]'
	touch .venv/run $@

# Python compiles the tests, and what they import, once: not each process of the tests for itself.
.venv/collected: .venv/dev
	$(BIN)/pytest --collect-only -qq > /dev/null
	touch $@

# What people run first is compiled once, so that no first result waits for it.
.venv/compiled: .venv/run $(wildcard src/metabandit/kernels/*.py) src/metabandit/numerics.py src/metabandit/lookahead.py
	$(BIN)/metabandit compile
	touch $@

.venv/bench: .venv/run
	$(BIN)/pip install --quiet --editable '.[bench]'
	touch $@

# The main job on a small default: learn a policy for two arms and 100 plays.
demo: .venv/compiled
	mkdir -p build
	$(BIN)/metabandit learn --space power-1 --prior bernoulli --arms 2 --horizon 100 \
	  --effort 0.4 --out build/policy.json --force

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Everything that is quick: before every commit. Kernels are compiled while the checks run.
check: .venv/dev
	@$(MAKE) --no-print-directory --jobs 2 lint .venv/collected .venv/compiled
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not cluster and not browser"

# Everything. The third process uses the time that tests of clusters wait.
test: .venv/dev
	@$(MAKE) --no-print-directory --jobs 2 lint .venv/collected .venv/compiled
	$(BIN)/pytest -n 3 --dist worksteal

# Speed against peers, in one run on one thread (and against another checkout with .venv: make bench BEFORE=path);
# then that of exact evaluation, of live play, and of stores and the service.
bench: .venv/bench
	$(BIN)/python benchmarks/speed.py --json benchmarks/speed.json --plot docs/speed.svg $(if $(BEFORE),--before $(BEFORE))
	$(BIN)/python benchmarks/exact.py --json benchmarks/exact.json
	$(BIN)/python benchmarks/play.py --json benchmarks/play.json
	$(BIN)/python benchmarks/store.py --json benchmarks/store.json
	$(BIN)/python benchmarks/service.py --json benchmarks/service.json

# The paper's experiments at its own scale: about two hours on two cores; goes on if it was stopped.
reproduction: .venv/run
	$(BIN)/metabandit reproduce all --scale paper --out docs/reproduction
	rm docs/reproduction/report.html
	$(BIN)/metabandit report docs/reproduction --out docs/reproduction.md --figures docs/reproduction --force

# What the learner reaches, and how long it takes: about 40 minutes on two cores.
learning: .venv/run
	$(BIN)/python benchmarks/learning.py --markdown docs/learning-results.md

# What the search for formulas reaches: about 40 minutes on two cores, 10 of them for length 8.
formulas: .venv/run
	$(BIN)/python benchmarks/formulas.py --markdown docs/formulas-results.md

# What a Dask cluster on this machine gives: about 40 minutes on two quiet cores.
cluster: .venv/dev
	$(BIN)/python benchmarks/cluster.py --markdown docs/cluster-results.md

# What batches and delays cost: the picture and the tables of docs/feedback.md, about ten minutes.
feedback: .venv/run
	$(BIN)/python benchmarks/feedback.py docs/feedback.svg docs/feedback-results.md

# Tests of adaptive trials, and what randomisation buys: tables and pictures of docs/trials.md, about two minutes.
trials: .venv/run
	$(BIN)/python benchmarks/trials.py

# The pictures of the README and of docs/formulas.md.
picture: .venv/run
	$(BIN)/python benchmarks/picture.py docs/regret.svg
	$(BIN)/metabandit search --horizon 100 --refine 1 --plot docs/formulas.svg --force

# The documentation, into site/: it can be read and searched without a server or a network.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

.venv/docs: .venv/run
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@

# The quick tests with the lowest versions of all dependencies that pyproject.toml allows.
test-lowest:
	$(PYTHON) -m venv build/lowest
	$(PYTHON) tests/lowest.py > build/lowest.txt
	build/lowest/bin/pip install --quiet --constraint build/lowest.txt --editable '.[dev]'
	build/lowest/bin/pytest -n 2 --dist worksteal -m "not slow and not cluster and not browser"

# The quick tests with every supported Python that this machine has.
test-pythons:
	@for version in 3.11 3.12 3.13 3.14; do \
	  command -v python$$version >/dev/null || { echo "Python $$version: not here"; continue; }; \
	  echo "Python $$version"; \
	  python$$version -m venv build/python$$version && \
	  build/python$$version/bin/pip install --quiet --editable '.[dev]' && \
	  build/python$$version/bin/pytest -n 2 --dist worksteal -m "not slow and not cluster and not browser" || exit 1; \
	done

clean:
	rm -rf .venv build dist site
