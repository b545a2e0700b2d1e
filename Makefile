# Two commands: `make run` and `make test`. They need Python 3.11+, make and a package registry.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && { echo $$p; break; }; done)
VENV := .nan/venv/bin
# Processes that share the tests, which mostly wait; each of the first two starts a whole stack.
JOBS ?= 2
SHARED = $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --no-loadscope-reorder)
# Bytecode makes every start after the first one faster.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run status stop shell test test-long test-vllm test-clients lint format bench lock lock-engine messages compilemessages clean-data python

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found. Install one (Debian: apt-get install python3 python3-venv), or name it: make run PYTHON=/path/to/python3.12"; exit 1; }

setup: python ## Install what `make run` needs (nothing to do when it is there)
	@$(PYTHON) deploy/local/setup.py

setup-dev: python
	@$(PYTHON) deploy/local/setup.py --dev

run: setup ## Start the whole product on this machine; Ctrl-C stops it
	@exec $(VENV)/python -m nan.local run $(ARGS)

status: ## What runs, where, how much memory
	@$(VENV)/python -m nan.local status || true

stop: ## End the running stack, or what is left of one
	@$(VENV)/python -m nan.local stop

shell: ## A shell with the settings of the running stack, for manage.py
	@eval "$$($(VENV)/python -m nan.local env)" && PATH="$(CURDIR)/$(VENV):$$PATH" exec $${SHELL:-sh}

test: setup-dev ## All tests, against the real parts and a real browser (ARGS="-k waitlist" for some)
	@$(VENV)/python -m pytest $(SHARED) $(ARGS)

test-long: setup-dev ## Swaps that wait as long as real ones: 12 minutes of loading, a server away for an hour
	@NAN_REAL_WAITS=1 $(VENV)/python -m pytest tests/journeys/test_swap_waits.py $(ARGS)

test-vllm: setup-dev ## The engine's contract on real vLLM, on the CPU (x86-64, Python 3.11, 3 GB)
	@$(VENV)/python deploy/engine/install.py --target .nan/engine --device cpu --models .nan/engine-models
	@CONTRACT_ENGINE=vllm $(VENV)/python -m pytest tests/contract $(ARGS)

test-clients: setup-dev ## Real clients, set up as their pages say, against a stack of their own (ARGS="codex" for some)
	@$(VENV)/python -m tests.clients $(ARGS)

lint: setup-dev ## Format, rules, types, import directions, templates
	@$(VENV)/ruff format --check .
	@$(VENV)/ruff check .
	@eval "$$($(VENV)/python -m nan.local env --placeholder)" && $(VENV)/mypy .
	@$(VENV)/lint-imports
	@$(VENV)/djlint templates --check
	@$(VENV)/djlint templates --lint --quiet

format: setup-dev ## Put code and templates into shape
	@$(VENV)/ruff check --fix --quiet . ; $(VENV)/ruff format . ; $(VENV)/djlint templates --reformat --quiet

bench: setup-dev ## Measure speed and memory on real parts
	@$(VENV)/python -m tests.bench $(ARGS)

lock: setup ## Resolve the requirements again and write the locks with their hashes
	@for file in requirements deploy/local/bootstrap deploy/local/requirements requirements-dev deploy/gateway/requirements; do \
	  echo "lock: $$file.txt"; \
	  $(VENV)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --custom-compile-command "make lock" $(LOCK_ARGS) --output-file $$file.txt $$file.in || exit 1; \
	done

CPU_TORCH = $(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS),--torch-backend cpu)

lock-engine: setup ## The same for the engine's environments
	@cd deploy/engine && PATH="$(CURDIR)/$(VENV):$$PATH" && set -e && \
	  lock="uv pip compile --quiet --python-version 3.11 --python-platform x86_64-manylinux_2_28 --generate-hashes $(LOCK_ARGS)" && \
	  $$lock --custom-compile-command "make lock-engine" requirements.in -o requirements.txt && \
	  $$lock --custom-compile-command "make lock-engine" --no-deps requirements-models.in -o requirements-models.txt && \
	  $$lock --custom-compile-command "make lock-engine" $(CPU_TORCH) requirements-cpu.in -o requirements-cpu.txt \
	    --no-emit-package torchvision --no-emit-package torchaudio --no-emit-package torchcodec --no-emit-package triton

messages: setup-dev ## Collect the strings to translate into locale/es
	@eval "$$($(VENV)/python -m nan.local env --placeholder)" && $(VENV)/python manage.py makemessages --locale es --no-obsolete --no-location --ignore .nan --ignore tests
	@echo "Translate the empty entries of locale/es/LC_MESSAGES/django.po; make run compiles them."

compilemessages: setup ## Compile the translations
	@rm -f .nan/stamps/messages && $(PYTHON) deploy/local/setup.py

clean-data: ## Forget accounts, keys, mails and secrets of the local stack (asks first)
	@$(VENV)/python -m nan.local clean-data
