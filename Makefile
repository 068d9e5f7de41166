# Every target prepares what it needs, from a fresh checkout on; `make` alone lists them.
# A target takes options of the program it runs: make demo ARGS='--help'

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Container images like to set it: each of hundreds of processes would compile all that it imports (6.6 instead of
# 2.6 s of CPU for Airflow alone).
unexport PYTHONDONTWRITEBYTECODE
# Another Spark's, which its scripts would run instead of the one in .venv.
unexport SPARK_HOME SPARK_CONF_DIR PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON HADOOP_CONF_DIR YARN_CONF_DIR
ifneq ($(JAVA_HOME),)
# Maven and Spark run that one.
export PATH := $(JAVA_HOME)/bin:$(PATH)
endif

PYTHON_OF_VENV := .venv/bin/python
BROWSER := yes
# Tests wait for brokers and processes most of the time. More than one worker for each core makes them wait for each other.
WORKERS := 2
# A piece of the slow suites.
SHARD := 1/1
# The longest files first, so that no worker is left alone with one at the end.
TESTS := tests/system tests/integration tests/unit
RUN := PYTHONPATH="$(CURDIR)/plugins:$(CURDIR)" $(PYTHON_OF_VENV)
SHELL_SCRIPTS := .ci/run $(wildcard scripts/*.sh jvm/demo/*.sh tests/support/*.sh)
# mypy refuses a directory without a Python file.
TYPED := $(patsubst %/,%,$(sort $(dir $(wildcard plugins/kafka_rescale/*.py testbed/*.py spark_jobs/*.py benchmarks/*.py scripts/*.py examples/*.py))))

# A test that hangs fails after the first limit with the stacks of all threads. One that hangs in C, where no Python
# signal handler runs, ends the whole run at the second one, also with the stacks.
PYTEST = $(PYTHON_OF_VENV) -m pytest --timeout=$(1) \
	-o faulthandler_timeout=$(2) -o faulthandler_exit_on_timeout=true --durations=30 --durations-min=5 $(ARGS)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: ## Prepare .venv and the jars; the other targets do so themselves
	@scripts/setup.sh

.PHONY: demo
demo: setup ## Rescale a live Kafka Streams application on this machine, and prove that nothing was lost
	@$(RUN) -m testbed.demo $(ARGS)

.PHONY: test
test: machine setup lint typecheck ## Lint, types, and every test but the slow suites; BROWSER=no: without those in Chromium
	@$(call PYTEST,900,960) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow$(if $(filter no,$(BROWSER)), and not browser)" $(TESTS)

.PHONY: machine
machine: ## Say what the tests need and this machine lacks; the first thing they do
	@[ "$(BROWSER)" = no ] || scripts/check_machine.sh --tests >/dev/null

.PHONY: test-unit
test-unit: setup ## Only the tests that need no broker: seconds
	@$(call PYTEST,120,150) tests/unit

.PHONY: test-crash
test-crash: setup ## Slow: kill every step of a rescale at every point
	@$(call PYTEST,3600,3660) -m slow -k crash tests

.PHONY: test-slow
test-slow: machine setup ## Slow: everything that `make test` leaves out, whole or in pieces: SHARD=2/6
	@$(call PYTEST,3600,3660) -p tests.support.house.shards --shard=$(SHARD) -m slow tests

.PHONY: bench
bench: setup ## Measure throughput and downtime
	@$(RUN) -m benchmarks.run $(ARGS)

.PHONY: dist
dist: setup ## Build the wheel and the source distribution in dist
	@$(PYTHON_OF_VENV) -m hatchling build

.PHONY: lint
lint: setup ## Check style: Python, shell scripts
	@$(PYTHON_OF_VENV) -m ruff check --quiet .
	@$(PYTHON_OF_VENV) -m ruff format --check --quiet .
	@for script in $(SHELL_SCRIPTS); do bash -n "$$script"; done
	@.venv/bin/shellcheck --severity=warning --exclude=SC1090 $(SHELL_SCRIPTS)
	@echo "lint: no findings"

.PHONY: format
format: setup ## Format the Python code and apply safe fixes
	@$(PYTHON_OF_VENV) -m ruff check --fix .
	@$(PYTHON_OF_VENV) -m ruff format .

# Airflow and PySpark are skipped by mypy, and kafka-python has no types: their base classes and decorators count as untyped.
.PHONY: typecheck
typecheck: setup ## Check types
	@$(PYTHON_OF_VENV) -m mypy --strict --allow-subclassing-any --allow-untyped-decorators $(TYPED)

.PHONY: broker
broker: setup ## Start a Kafka broker in var/broker that keeps running; on a port of yours: ARGS='--port 9092'
	@$(RUN) -m testbed.broker_command start --directory var/broker $(ARGS)

.PHONY: broker-stop
broker-stop: setup ## Stop the broker in var/broker
	@$(RUN) -m testbed.broker_command stop --directory var/broker

.PHONY: airflow-env
airflow-env: setup ## Write the settings of an Airflow on this machine, for your Kafka: ARGS='--port 8090 --kafka localhost:9092 --applications DIR'
	@$(RUN) -m testbed.airflow_command --directory var/airflow $(ARGS)

.PHONY: env
env: ## Write .env with new secrets for docker compose
	@python3 scripts/create_env.py

# All but .env: the volumes of docker compose were created with its secrets.
.PHONY: clean
clean: ## Stop the broker and delete everything generated, .venv and var too
	@if [ -d var/broker ] && [ -x $(PYTHON_OF_VENV) ]; then $(MAKE) broker-stop; fi
	rm -rf .venv var dist jvm/target .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
