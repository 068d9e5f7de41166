#!/usr/bin/env bash
# Looks for the programs that everything else is built on, and names all that are missing at once.
#
#   check_machine.sh --system     only looks at the operating system and at JAVA_HOME
#   check_machine.sh              prints the Python to use; exits 1 with one message if anything is missing
#   check_machine.sh --tests      the same, also for what only tests need
#   check_machine.sh --packages   prints the Debian packages that would complete the machine for everything, if any
#
# PYTHON chooses another interpreter, such as PYTHON=python3.12.
set -euo pipefail

system=$(uname -s)
if [ "$system" != Linux ]; then
    {
        echo "Kafka Rescale can't be set up here: found $system; expected Linux."
        echo "Use WSL 2, a container (docs/docker-compose.md) or a virtual machine."
    } >&2
    exit 1
fi
# What JAVA_HOME names is what Maven and Spark run, so it is what everything runs; the Makefile does the same.
if [ -n "${JAVA_HOME:-}" ]; then
    if [ ! -x "$JAVA_HOME/bin/java" ]; then
        echo "Kafka Rescale can't be set up yet: JAVA_HOME is $JAVA_HOME, where there is no bin/java." >&2
        echo "Correct it, or unset it to use the java on PATH." >&2
        exit 1
    fi
    PATH=$JAVA_HOME/bin:$PATH
fi

[ "${1:-}" != --system ] || exit 0

minimum_python=3.11
minimum_java=17
missing=()
packages=()

lacks() {
    missing+=("$1")
    shift
    packages+=("$@")
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < tuple(map(int, sys.argv[1].split("."))))' "$minimum_python" 2>/dev/null
}

# Debian keeps ensurepip, which venv needs, in a package of its own.
makes_environments() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

python=
python_without_venv=
for candidate in ${PYTHON:-python3.11 python3 python3.12 python3.13}; do
    is_new_enough "$candidate" || continue
    if makes_environments "$candidate"; then
        python=$(command -v "$candidate")
        break
    fi
    python_without_venv=$candidate
done
if [ -z "$python" ]; then
    if [ -n "$python_without_venv" ]; then
        lacks "the module venv of $python_without_venv" python3-venv
    else
        lacks "Python $minimum_python or newer, with its module venv" python3 python3-venv
    fi
fi

# Prints nothing if there is no java, or only a stub that cannot run.
java_version() {
    { java -version 2>&1 || true; } | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1
}
java=$(java_version)
if [ -z "$java" ]; then
    lacks "Java $minimum_java or newer, with its compiler" default-jdk-headless
elif [ "$java" -lt "$minimum_java" ]; then
    lacks "Java $minimum_java or newer, with its compiler (found: $java${JAVA_HOME:+ in JAVA_HOME, $JAVA_HOME})" default-jdk-headless
elif ! command -v javac >/dev/null; then
    lacks "the Java compiler, javac" default-jdk-headless
fi
command -v mvn >/dev/null || lacks "Maven, mvn" maven

# The page is tested in a real browser.
if [ -n "${1:-}" ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
    lacks "Chromium" chromium
fi

if [ "${1:-}" = --packages ]; then
    echo "${packages[*]-}"
    exit
fi
if [ ${#missing[@]} -gt 0 ]; then
    as_root="sudo "
    [ "$(id -u)" -ne 0 ] || as_root=
    {
        echo "Kafka Rescale can't be set up yet. This machine lacks:"
        printf '  - %s\n' "${missing[@]}"
        echo "On Debian 12, Ubuntu 24.04 or newer this installs all of it:"
        echo "  ${as_root}apt-get update && ${as_root}apt-get install -y ${packages[*]}"
    } >&2
    exit 1
fi
echo "$python"
