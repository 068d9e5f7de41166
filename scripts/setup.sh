#!/usr/bin/env bash
# Prepares a checkout: the Python environment in .venv, then the jars and classes in jvm/target.
#
# Does only what is missing or out of date, so that every make target can ask for it. Needs no root.
set -euo pipefail
# Without links, as an environment knows its own path.
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python
stamp=.venv/.installed-from

say() {
    echo "setup: $*" >&2
}

# Before what only Linux has, such as flock and sha256sum.
scripts/check_machine.sh --system

# Of two runs at once, the second waits for the first and finds everything done.
exec 9<scripts/setup.sh
flock 9

digest() {
    cat requirements*.txt | sha256sum | cut -d ' ' -f 1
}

# An environment knows its own path: one that was moved or copied along with the checkout has scripts that start
# another Python, or none.
environment_is_usable() {
    $python -c '' 2>/dev/null && grep -qF -- "$PWD/.venv" .venv/pyvenv.cfg
}

make_environment() {
    local base
    base=$(scripts/check_machine.sh)
    if ! environment_is_usable; then
        say "making .venv with $base"
        # `--clear` would empty what a link points to: the environment of another checkout.
        [ ! -L .venv ] || rm .venv
        "$base" -m venv --clear .venv
    fi
    say "installing the Python packages: about a minute, 1 GB"
    # uv does in seconds what takes pip minutes, but it doesn't read pip's settings, such as those of a company mirror.
    # Compiled once, as by pip: an Airflow is some dozens of processes, each of which would compile what it imports.
    if ! { $python -m pip install --quiet --disable-pip-version-check "$(grep '^uv==' requirements-dev.txt)" &&
        $python -m uv pip install --compile-bytecode --python $python -r requirements-dev.txt; }; then
        say "uv failed, so with pip: some minutes"
        $python -m pip install --disable-pip-version-check -r requirements-dev.txt
    fi
    # The drivers and workers of Spark jobs import PySpark from a zip, of which Python keeps nothing compiled.
    $python -m testbed.archives.compiled_zip "$($python -c 'import pyspark; print(pyspark.__path__[0])')/python/lib"
    digest >$stamp
}

make_jvm_parts() {
    if [ ! -f jvm/target/classes/.built-from ]; then
        scripts/check_machine.sh >/dev/null
        say "fetching the broker, Kafka Streams and Spark's Kafka connector: about half a minute, 150 MB"
    fi
    $python -m testbed.jars >/dev/null
    PYTHONPATH=plugins $python -m testbed.archives.broker_training >/dev/null
    $python -m testbed.archives.spark_archive >/dev/null
}

if ! environment_is_usable || [ "$(cat $stamp 2>/dev/null)" != "$(digest)" ]; then
    make_environment
    say "done: .venv"
fi
make_jvm_parts
