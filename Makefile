# Two commands do everything: `make demo` and `make test`. Each makes its own virtual environment first.
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Tests wait more than they compute.
WORKERS ?= 4
STAMP := $(VENV)/.installed

.PHONY: help demo test lint types soak bench cluster clean

help:
	@echo "make demo   a conversation with the scripted model: no key, no server"
	@echo "make test   lint, types, import contracts and all tests"
	@echo "make soak   the long tests at full size (about an hour)"
	@echo "make bench  the benchmarks, with their baselines"
	@echo "make cluster  two gateways, two engines, a hook host and all that they need, on this machine"

$(STAMP): pyproject.toml
	@echo "Installing into $(VENV) ..." >&2
	@if command -v uv >/dev/null 2>&1; then \
		uv venv -q --clear --python $(PYTHON) $(VENV) && uv pip install -q --python $(BIN)/python -e '.[dev]'; \
	else \
		$(PYTHON) -m venv --clear $(VENV) && $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

demo: $(STAMP)
	@$(BIN)/tiny-harness demo

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/pyright --pythonpath $(BIN)/python

test: lint types
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

soak: $(STAMP)
	TINY_HARNESS_SOAK=1 $(BIN)/python -m pytest -q -s tests/e2e tests/integration/supervision \
		tests/integration/engine/test_long_work.py tests/integration/agents/test_two_harnesses.py \
		tests/security/test_sign_in.py tests/web/test_page.py

bench: $(STAMP)
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m tests.bench

cluster: $(STAMP)
	@$(BIN)/python -m tests.cluster

clean:
	rm -rf $(VENV)
