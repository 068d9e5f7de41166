"""Application files: from YAML to a checked ``Application``, or one message with every mistake and its line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from kafka_rescale.core.application.checks.declaration import check_declaration
from kafka_rescale.core.application.field_errors import mistakes_of
from kafka_rescale.core.application.mistakes import Location, Mistake
from kafka_rescale.core.application.pipeline import PipelineApplication
from kafka_rescale.core.application.runtimes import KAFKA_STREAMS, SPARK, runtime_in, runtime_mistakes
from kafka_rescale.core.application.streams import Application
from kafka_rescale.core.errors import Finding, InvalidApplication, InvalidInput
from kafka_rescale.core.installation import users_directory
from kafka_rescale.core.topology.describe import parse_describe
from kafka_rescale.core.topology.topology import SubTopology, Topology
from kafka_rescale.operations.application.texts import read_text, text_if_readable, with_texts
from kafka_rescale.operations.application.yaml_lines import YamlDocument, parse_yaml

DIRECTORY_VARIABLE = "KAFKA_RESCALE_APPLICATIONS"


def application_files(runtime: str = KAFKA_STREAMS, mentioning: str = "") -> list[Path]:
    """Return the application files of one runtime.

    :param runtime: the runtime of the files; a file that names no runtime is of ``kafka-streams``.
    :param mentioning: leave out files without this text, such as an application's name. Nothing of them is parsed.
    :raises InvalidInput: their directory does not exist. Without it, all DAGs would be gone, and nothing said why.
    """
    directory = files_directory()
    if not directory.is_dir():
        if os.environ.get(DIRECTORY_VARIABLE):
            what, other = f"environment variable {DIRECTORY_VARIABLE}", "unset the variable to use `applications/`"
        else:
            what, other = "application files", f"name another one in {DIRECTORY_VARIABLE} for all of Airflow"
        raise InvalidInput(
            what,
            found=str(directory),
            expected="an existing directory of application files",
            remedy=f"Create it, or {other}.",
        )
    files = (file for file in files_in(directory) if not mentioning or mentioning in text_if_readable(file))
    return [file for file in files if (runtime_of(file) == SPARK) == (runtime == SPARK)]


def files_directory() -> Path:
    """Return the directory in ``KAFKA_RESCALE_APPLICATIONS``, else ``applications/``."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or users_directory() / "applications")


def files_in(directory: Path) -> list[Path]:
    """Return the application files of a directory, of every runtime.

    Names that begin with a dot are left out: editors make such files, and links to nothing, while somebody edits.
    """
    return sorted(f for f in directory.glob("[!.]*") if f.suffix in {".yaml", ".yml"})


def files_by_name(files: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the files by the application that they describe; loading a file that can't be read reports it."""
    found: dict[str, list[Path]] = {}
    for file in files:
        try:
            found.setdefault(str(fields_of(file).get("application_id")), []).append(file)
        except Exception:  # No file may take the others away, whatever is wrong with it.
            continue
    return found


def refuse_namesakes(application_id: str, files: Sequence[Path]) -> None:
    """Refuse an application that several files describe: their names alone would decide which one counts.

    :param files: the files that describe it.
    :raises InvalidInput: there is more than one file.
    """
    if len(files) > 1:
        raise InvalidInput(
            f"application {application_id!r}",
            found=f"several files that describe it: {', '.join(map(str, files))}",
            expected="one file per application",
            remedy="Delete or move all but one; drafts belong into another directory.",
        )


def load_application(path: Path | str) -> Application:
    """Return the application that a file describes, with the topology's text in it.

    :param path: the YAML file; a file that its ``topology:`` names is looked up next to it.
    :raises InvalidInput: the file has mistakes. The message lists every mistake with its line. Nothing has been
        connected to yet.
    """
    path = Path(path)
    document = _document(path, KAFKA_STREAMS)
    fields, mistakes = with_texts(document.data, path)
    try:
        application = Application.model_validate(fields)
    except ValidationError as error:
        told = {mistake.location for mistake in mistakes}
        mistakes += [mistake for mistake in mistakes_of(error) if mistake.location not in told]
    if mistakes:
        raise _invalid(path, document, mistakes)
    if mistakes := check_declaration(application, topology_of(application)):
        raise _invalid(path, document, mistakes)
    return application


def load_pipeline_application(path: Path | str) -> PipelineApplication:
    """Return the application of runtime ``spark`` that a file describes.

    :raises InvalidInput: the file has mistakes. The message lists every mistake with its line. Nothing has been
        connected to yet.
    """
    path = Path(path)
    document = _document(path, SPARK)
    try:
        return PipelineApplication.model_validate(document.data)
    except ValidationError as error:
        raise _invalid(path, document, mistakes_of(error, PipelineApplication)) from None


def topology_of(application: Application) -> Topology:
    """Return the topology of an application, from its text or from its list of sub-topologies.

    :raises InvalidInput: the text is not what ``Topology#describe()`` prints.
    """
    if application.topology is not None:
        topology = parse_describe(application.topology, application.source_patterns)
    else:
        topology = Topology(
            tuple(
                SubTopology(id=number, sources=s.sources, stores=s.stores, sinks=s.sinks)
                for number, s in enumerate(application.subtopologies)
            )
        )
    # A name like those of Kafka Streams' own topics proves nothing: the file tells which topics are external.
    topology = topology.with_external({i.topic for i in application.inputs})
    topology = topology.with_chosen([o.topic for o in application.outputs])
    topology = topology.with_source_tables({s.name for s in application.stores if s.changelog == "source"})
    return topology.with_unlogged({s.name for s in application.stores if not s.is_logged})


def runtime_of(path: Path) -> str:
    """Return the file's runtime, or the default if the file can't be read (loading it reports the error)."""
    try:
        return runtime_in(fields_of(path))
    except Exception:  # No file may take the others away, whatever is wrong with it.
        return KAFKA_STREAMS


def fields_of(path: Path) -> Mapping[str, object]:
    """Return the fields of a file, unchecked.

    :raises InvalidInput: the file can't be read, or has no fields.
    """
    fields: Mapping[str, object] = parse_yaml(read_text(path), str(path)).data
    return fields


def _document(path: Path, runtime: str) -> YamlDocument:
    """Parse a file, and check what is the same for all runtimes.

    :raises InvalidInput: the file has mistakes. If it is for another runtime, only that is reported, because
        another runtime has other fields.
    """
    document = parse_yaml(read_text(path), str(path))
    mistakes = list(runtime_mistakes(document.data, runtime)) or list(document.slips())
    if mistakes:
        raise _invalid(path, document, mistakes)
    return document


def _invalid(path: Path, document: YamlDocument, mistakes: Iterable[Mistake]) -> InvalidApplication:
    found = [(_line_of(document, m.location), m) for m in mistakes]
    return InvalidApplication([_finding(path, line, m) for line, m in sorted(found, key=lambda pair: pair[0])])


def _line_of(document: YamlDocument, location: Location) -> int:
    """Return the line of a value. If YAML reads a field as a boolean, look for all words for that boolean."""
    if not location or not isinstance(location[-1], bool):
        return document.line_of(location)
    words = [word for word, value in yaml.SafeLoader.bool_values.items() if value is location[-1]]
    written = [form for word in words for form in (word, word.capitalize(), word.upper())]
    return max(document.line_of((*location[:-1], form)) for form in written)


def _finding(path: Path, line: int, mistake: Mistake) -> Finding:
    field = mistake.complaint.what
    return Finding.of(mistake.complaint.about(f"{path}:{line}: {field}" if field else f"{path}:{line}"))
