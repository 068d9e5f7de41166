"""Sources that read a pattern: the application file lists the topics that matched when it was written."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_rescale.core.errors import Finding
from kafka_rescale.core.preflight.situation import Situation
from kafka_rescale.core.topology.patterns import matching, unlisted


def topics_of_patterns(situation: Situation) -> Iterator[Finding]:
    """Yield patterns that match topics that are not listed, now or as soon as green's topics exist."""
    journal, patterns = situation.control.journal, situation.application.source_patterns
    if journal is not None and journal.in_progress and journal.is_promoted:
        return  # It can only go forward: green reads what its pattern matches.
    successors = set(situation.successors().values())
    own = {*situation.green_topics, *successors}
    for pattern, others in unlisted(patterns, situation.visible - own).items():
        listed = patterns[pattern]
        yield Finding(
            f"source pattern {pattern}",
            f"{', '.join(others)}, which {'match' if len(others) > 1 else 'matches'} it too",
            f"the topics that `source_patterns:` lists: {', '.join(listed) or 'none'}",
            f"If the application shall read what matches today, write `source_patterns: {{'{pattern}': "
            f"[{', '.join(sorted({*listed, *others}))}]}}`, and declare each topic in `inputs:`. Otherwise delete "
            "the topics, or narrow the pattern in the program.",
        )
    another = ", or give another name as `successor:`"
    for pattern in patterns:
        if read := sorted(matching(pattern, own)):
            yield Finding(
                f"source pattern {pattern}",
                f"a match for {', '.join(read)}, which the expansion is about to create",
                "no match for topics of the next generation: the running generation would read the next one's "
                "records",
                f"Narrow the pattern in the program{another if successors.intersection(read) else ''}.",
            )


def patterns_of_others(situation: Situation) -> Iterator[Finding]:
    """Yield patterns of other applications that match a successor, if their files don't list it.

    Kafka Streams reads a topic that matches as soon as it exists.
    """
    for declared, name in situation.successors().items():
        for other in (application for application, _ in situation.beside):
            for pattern in unlisted(other.source_patterns, [name]):
                yield Finding(
                    f"source pattern {pattern} of application {other.application_id}",
                    f"a match for {name}, which the expansion is about to create",
                    f"no match: {other.application_id} would read what the bridge carries on, too, beside "
                    f"{situation.full_name(declared)}",
                    "Give another name as `successor:`, or narrow the pattern in the program of "
                    f"{other.application_id}.",
                )
