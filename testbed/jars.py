"""Where the jars and classes of the JVM parts are, and how they get there."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

JarSet = Literal["kafka", "connector", "yarn"]

JVM_DIRECTORY = Path(__file__).resolve().parents[1] / "jvm"
TARGET_DIRECTORY = JVM_DIRECTORY / "target"
DEMO_SOURCES = JVM_DIRECTORY / "demo"
CLASSES_DIRECTORY = TARGET_DIRECTORY / "classes"
GATE_SOURCES = JVM_DIRECTORY / "gate" / "org" / "kafkarescale"
GATE_JAR = TARGET_DIRECTORY / "gate" / "kafka-rescale-gate.jar"

MINIMUM_JAVA = 17
GATE_JAVA = 11
"""The gate runs in the user's JVM, and Kafka's clients run on Java 11."""

MAVEN_TIMEOUT_SECONDS = 900


class MissingToolError(RuntimeError):
    """A program that the JVM parts need isn't installed, or is too old."""


class BuildError(RuntimeError):
    """Maven or the Java compiler failed; the message ends with its output."""


def jars_directory(jar_set: JarSet = "kafka") -> Path:
    """Return the directory of a set of jars. The directory may not exist yet.

    :param jar_set: ``kafka`` is the broker, Kafka Streams and its tools. ``connector`` is the set that Spark needs
        to read Kafka. These two contain different kafka-clients and must never share a class path. ``yarn`` is a
        small YARN cluster, for the test that submits jobs to it.
    """
    return TARGET_DIRECTORY / jar_set


@cache
def require_java() -> str:
    """Return the path of ``java``, at least version 17. Raise :class:`MissingToolError` if there is none."""
    java = _require_program("java", "openjdk-17-jdk-headless")
    banner = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', banner)
    if found is None or int(found.group(1)) < MINIMUM_JAVA:
        raise MissingToolError(
            f"{java} is not Java {MINIMUM_JAVA} or newer (it says: {banner.splitlines()[:1]}). "
            f"On Debian: apt install openjdk-17-jdk-headless"
        )
    return java


def ensure_jars(jar_set: JarSet = "kafka") -> Path:
    """Fetch the jars with Maven, unless the jars of the present ``pom.xml`` are there. Return their directory.

    Several processes may call this at once: the first process fetches, and the others wait for it.

    :raises MissingToolError: java or mvn is missing, with the command that installs it.
    :raises BuildError: Maven failed.
    """
    return _fetch(jars_directory(jar_set), jar_set)


def kafka_version() -> str:
    """Return the default version of the broker and of Kafka Streams."""
    found = re.search(r"<kafka\.version>([^<]+)<", (JVM_DIRECTORY / "pom.xml").read_text())
    assert found is not None, "jvm/pom.xml names no kafka.version"
    return found.group(1)


def ensure_kafka(version: str) -> Path:
    """Fetch the broker and Kafka Streams of a version from Maven Central, unless they are there.

    :param version: such as ``3.9.2``; the version of ``pom.xml`` has the jars that everything else uses.
    :returns: the directory of the jars.
    :raises MissingToolError: java or mvn is missing, with the command that installs it.
    :raises BuildError: Maven failed.
    """
    if version == kafka_version():
        return ensure_jars("kafka")
    folder = f"kafka-{version}"
    return _fetch(TARGET_DIRECTORY / folder, "kafka", f"-Dkafka.version={version}", f"-Dkafka.folder={folder}")


def ensure_gate_jar() -> Path:
    """Compile and pack the gates, unless this was done with their present sources. Return the jar."""
    directory, sources = GATE_JAR.parent, sorted(GATE_SOURCES.glob("*.java"))
    wanted = _digest(JVM_DIRECTORY / "pom.xml", *sources)
    if _stamp(directory) == wanted:
        return GATE_JAR
    jars = ensure_jars("kafka")
    with build_lock():
        if _stamp(directory) != wanted:
            shutil.rmtree(directory, ignore_errors=True)
            _compile(sources, f"{jars}/*", directory / "classes", java=GATE_JAVA)
            packer = _require_program("jar", "openjdk-17-jdk-headless")
            _run([packer, "--create", "--file", str(GATE_JAR), "-C", str(directory / "classes"), "."])
            _write_stamp(directory, wanted)
    return GATE_JAR


def ensure_demo_classes() -> Path:
    """Compile the demo application and the gates, unless this was done with their present sources.

    They are compiled beforehand, because the start of the application is part of a cutover's pause.

    :returns: the class directory of the application.
    """
    ensure_gate_jar()
    return ensure_classes(DEMO_SOURCES, CLASSES_DIRECTORY)


def ensure_classes(sources: Path, classes: Path) -> Path:
    """Compile the Java files of a directory against the ``kafka`` jars, unless their present text was compiled.

    :param classes: the class directory, which is returned.
    :raises BuildError: the compiler failed.
    """
    jars = ensure_jars("kafka")
    files = sorted(sources.glob("*.java"))
    wanted = _digest(JVM_DIRECTORY / "pom.xml", *files)
    if _stamp(classes) == wanted:
        return classes
    with build_lock():
        if _stamp(classes) != wanted:
            shutil.rmtree(classes, ignore_errors=True)
            _compile(files, f"{jars}/*", classes, java=MINIMUM_JAVA)
            _write_stamp(classes, wanted)
    return classes


def java_command(
    main_class: str, *arguments: str, options: tuple[str, ...] = (), version: str | None = None
) -> list[str]:
    """Return the command line that runs a class from the jars of Kafka.

    :param options: options of the JVM itself, such as ``-Xmx512m``
    :param version: version of Kafka; by default the version of ``pom.xml``
    """
    jars = ensure_kafka(version) if version else ensure_jars("kafka")
    return [require_java(), *options, "-cp", f"{jars}/*", main_class, *arguments]


def _fetch(directory: Path, jar_set: JarSet, *properties: str) -> Path:
    wanted = _digest(JVM_DIRECTORY / "pom.xml")
    if _stamp(directory) == wanted:
        return directory
    with build_lock():
        if _stamp(directory) != wanted:
            require_java()
            maven = _require_program("mvn", "maven")
            shutil.rmtree(directory, ignore_errors=True)
            _run([maven, "-q", "-B", f"-P{jar_set}", *properties, "process-resources"])
            _write_stamp(directory, wanted)
    return directory


def _compile(sources: Iterable[Path], class_path: str, directory: Path, *, java: int) -> None:
    compiler = _require_program("javac", "openjdk-17-jdk-headless")
    options = ["-Xlint:all,-processing,-classfile", "--release", str(java), "-cp", class_path]
    _run([compiler, *options, "-d", str(directory), *map(str, sources)])


def _require_program(name: str, debian_package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise MissingToolError(f"{name} was not found on PATH. On Debian: apt install {debian_package}")
    return path


def _run(command: list[str]) -> None:
    result = subprocess.run(
        command, cwd=JVM_DIRECTORY, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_SECONDS, check=False
    )
    if result.returncode != 0:
        output = (result.stdout + result.stderr)[-4000:]
        raise BuildError(f"`{' '.join(command)}` in {JVM_DIRECTORY} exited with {result.returncode}:\n{output}")


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _stamp(directory: Path) -> str | None:
    try:
        return (directory / ".built-from").read_text()
    except FileNotFoundError:
        return None


def _write_stamp(directory: Path, digest: str) -> None:
    (directory / ".built-from").write_text(digest)


@contextmanager
def build_lock() -> Iterator[None]:
    TARGET_DIRECTORY.mkdir(parents=True, exist_ok=True)
    with (TARGET_DIRECTORY / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":  # `python -m testbed.jars` prepares a machine beforehand
    for each in (ensure_jars("kafka"), ensure_jars("connector"), ensure_demo_classes()):
        print(each)
