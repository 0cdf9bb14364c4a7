# Each target makes its own environment: a fresh machine needs Python 3.10+, pip and a package registry.
PYTHON ?= python3
TORCH ?= torch==2.13.0
DEMO_VENV ?= .venv-demo
TEST_VENV ?= .venv-test
OUT ?= out
WORKERS ?= 2

.PHONY: demo test test-full coverage lint types docs bench clean

$(DEMO_VENV)/ready: pyproject.toml
	@echo "Making an environment in $(DEMO_VENV): one to three minutes, once."
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/pip install --quiet "$(TORCH)"
	$(DEMO_VENV)/bin/pip install --quiet -e ".[all]"
	touch $@

$(TEST_VENV)/ready: pyproject.toml
	@echo "Making an environment in $(TEST_VENV): a few minutes, once."
	$(PYTHON) -m venv $(TEST_VENV)
	$(TEST_VENV)/bin/pip install --quiet "$(TORCH)"
	$(TEST_VENV)/bin/pip install --quiet -e ".[all,test,docs,lint]"
	bash tests/browser.sh $(TEST_VENV)
	touch $@

demo: $(DEMO_VENV)/ready  ## explain a language model and a classifier, in the terminal and as a page
	@mkdir -p $(OUT)
	@$(DEMO_VENV)/bin/python examples/demo.py --out $(OUT) --force

test: $(TEST_VENV)/ready  ## the tests, under 15 minutes on two cores
	$(TEST_VENV)/bin/python -m pytest -m "not full" -n $(WORKERS) --dist worksteal

test-full: $(TEST_VENV)/ready  ## the long versions as well; results go to docs/test-full.md
	$(TEST_VENV)/bin/pip install --quiet -e ".[data]"
	RAISON_FULL_REPORT=docs/test-full.md $(TEST_VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal

coverage: $(TEST_VENV)/ready  ## the tests, and the lines that none of them runs
	$(TEST_VENV)/bin/python -m pytest -m "not full" -n $(WORKERS) --dist worksteal --cov=raison --cov-report=term-missing:skip-covered

lint: $(TEST_VENV)/ready
	$(TEST_VENV)/bin/ruff check src tests recipes benchmarks examples docs
	$(TEST_VENV)/bin/ruff format --check src tests recipes benchmarks examples docs

types: $(TEST_VENV)/ready
	$(TEST_VENV)/bin/mypy

docs: $(TEST_VENV)/ready  ## the documentation as a site in out/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(TEST_VENV)/bin/mkdocs build --strict --quiet --site-dir $(OUT)/site

bench: $(TEST_VENV)/ready  ## side-by-side measurements; results go to benchmarks/results
	$(TEST_VENV)/bin/python benchmarks/foundation.py
	$(TEST_VENV)/bin/python benchmarks/rationales.py
	$(TEST_VENV)/bin/python benchmarks/attributions.py
	$(TEST_VENV)/bin/python benchmarks/evaluation.py
	$(TEST_VENV)/bin/python benchmarks/audit.py
	$(TEST_VENV)/bin/python benchmarks/rationalizer.py
	$(TEST_VENV)/bin/python benchmarks/runs.py

clean:
	rm -rf $(DEMO_VENV) $(TEST_VENV) $(OUT) build dist
