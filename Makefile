# Everything a developer needs, one line each. Works on Linux and macOS with Python 3.11+, git and make.
PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
PARALLEL = -n $(WORKERS) --dist worksteal
# in CI a few failed tests run once more, alone; those that pass then are printed as flaky
AGAIN = $(if $(CI),|| $(BIN)/python -m scripts.alone)
CORPUS ?= ../shared/conformance
SEEDS ?= 1-20
LOCK := uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header
# without bytecode each process that a test starts would compile the whole package again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo test smoke distributions e2e check bench docs charts image imagelock snapshots conformance differential nightly lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(STAMP) ## make .venv with all that development needs

$(STAMP): requirements-dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: venv ## apply our policies and the guide's policies to sample manifests and show what comes back
	$(BIN)/python -m scripts.demo

test: venv ## run the tests
	$(BIN)/python -m pytest $(PARALLEL) --ignore tests/e2e --ignore tests/browser $(AGAIN)
	$(BIN)/python -m pytest $(PARALLEL) -rs tests/browser $(AGAIN)
	$(BIN)/python -m pytest $(PARALLEL) tests/e2e $(AGAIN)

smoke: $(LOWEST)/.installed ## open every front door with the lowest versions of the dependencies that are allowed
	$(LOWEST)/bin/python -m scripts.smoke

$(LOWEST)/.installed: requirements-lowest.lock
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-lowest.lock
	touch $@

distributions: venv ## install sdist and wheel into empty environments of every Python at hand, and run them
	$(BIN)/python -m scripts.distributions

e2e: venv ## run the tests with processes alone and at full size (wants quiet); ONLY=rolled runs some, build/e2e.json has the figures
	PYVERNO_E2E=1 $(BIN)/python -m pytest -s tests/e2e $(if $(ONLY),-k "$(ONLY)")

check: venv ## format, lint, types, import contracts, generated files fresh
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.reference --check
	$(BIN)/python -m scripts.charts --check
	$(BIN)/python -m scripts.release.notice --check

bench: venv ## measure the ratios of docs/contributing/benchmarks.md; also writes build/bench.json
	$(BIN)/python -m tests.bench

docs: venv ## write docs/reference from the docstrings, and the licences of dependencies into NOTICE
	$(BIN)/python -m scripts.reference
	$(BIN)/python -m scripts.release.notice

charts: venv ## write the generated files of deploy from the code
	$(BIN)/python -m scripts.charts

image: venv ## build the container image twice and start it (wants Debian's apt, root to start it, Python 3.11)
	$(BIN)/python -m scripts.image --twice
	$(BIN)/python -m pytest -rs tests/e2e/deploy/test_image.py

imagelock: venv ## write deploy/image/debian.lock with the newest packages of Debian
	$(BIN)/python -m scripts.image --lock

snapshots: venv ## rewrite tests/cases/**/expected.yaml and tests/deploy/renders; review the diff
	$(BIN)/python -m tests.cases --write
	$(BIN)/python -m tests.deploy --write

conformance: venv ## run the public corpora found at CORPUS
	$(BIN)/python -m tests.conformance --corpus $(CORPUS)

differential: venv ## compare with the Kyverno executable KYVERNO_EXECUTABLE on the batches of SEEDS=1-20
	$(BIN)/python -m tests.differential --seeds $(SEEDS) --workers $(WORKERS)

nightly: venv ## property tests with at least 100,000 inputs each; every security test without its guard
	PYVERNO_NIGHTLY=1 $(BIN)/python -m pytest $(PARALLEL) tests/property
	$(BIN)/python -m tests.security.mutants

lock: ## write requirements*.lock from pyproject.toml (needs uv on the PATH)
	$(LOCK) --extra tuf pyproject.toml -o requirements.lock
	$(LOCK) pyproject.toml scripts/build-requirements.txt --group dev -o requirements-dev.lock
	$(LOCK) -c requirements-dev.lock scripts/build-requirements.txt -o requirements-build.lock
	$(LOCK) --resolution lowest-direct --all-extras pyproject.toml -o requirements-lowest.lock

clean: ## remove what the targets made
	rm -rf $(VENV) $(LOWEST) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
