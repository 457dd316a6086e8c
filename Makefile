# Two commands do everything: `make run` serves the dashboard, `make test` runs every test.
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
WORKERS ?= 2

.PHONY: run test setup lint types layers fast lock clean

run: $(VENV)/.installed
	@echo "Isoelastic: http://127.0.0.1:$(PORT)"
	$(BIN)/python -m streamlit run app.py --server.port $(PORT)

setup: $(VENV)/.installed

test: $(VENV)/.installed-dev lint types layers
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile tests

fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow and not browser" tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy core

layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@python=$$(sh tools/find-python.sh) && "$$python" -m venv $(VENV)

$(VENV)/.installed: requirements.txt $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

lock:
	uv pip compile --universal --python-version 3.12 --no-emit-index-url --no-header --no-annotate requirements.in -o requirements.txt
	uv pip compile --universal --python-version 3.12 --no-emit-index-url --no-header --no-annotate requirements-dev.in -o requirements-dev.txt

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
