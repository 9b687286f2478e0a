# make demo   see it work, on data it makes itself
# make test   all that is checked before a change goes in
# make soak   let runs meet every trouble there is; about an hour
# make bench  measure all, and write the numbers to benchmarks/results and docs/benchmarks.md; two hours and more
# make bench-quick  a small set, into build/benchmarks; ten minutes
# make docs   build the site into build/docs; needs no network
# make notebooks  make the notebooks of docs/notebooks from the tutorials, and execute them
# make lint   format, style and types only
# make clean  remove what the above have made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check

.PHONY: demo test soak bench bench-quick docs notebooks pictures lint clean

demo: $(STAMP)
	@$(BIN)/barrow demo

test: lint
	@sh tests/install-browser
	@$(BIN)/python -m pytest --quiet -n 2 --dist loadfile

soak: $(STAMP)
	@$(BIN)/python -m soak
	@$(BIN)/python soak/slurm.py
	@$(BIN)/python -m soak.illnesses --repeats 3
	@$(BIN)/python soak/ephys.py
	@$(BIN)/python soak/collider.py
	@$(BIN)/python -m soak.miniscope

bench: $(STAMP)
	@$(BIN)/python -m benchmarks

bench-quick: $(STAMP)
	@$(BIN)/python -m benchmarks --quick

docs: $(STAMP)
	@$(BIN)/codespell README.md CONTRIBUTING.md docs src
	@$(BIN)/python -m sphinx --quiet --fail-on-warning -b html docs build/docs
	@echo "The site is in build/docs/index.html"

notebooks: $(STAMP)
	@$(BIN)/python docs/notebooks/make.py

pictures: $(STAMP)
	@$(BIN)/python docs/pictures/make.py

lint: $(STAMP)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

clean:
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -e ".[test]" -c constraints.txt
	@touch $@
