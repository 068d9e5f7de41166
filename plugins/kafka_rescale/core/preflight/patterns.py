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
    own = set(situation.green_topics)
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
    for pattern in patterns:
        if read := sorted(matching(pattern, own)):
            yield Finding(
                f"source pattern {pattern}",
                f"a match for {', '.join(read)}, which the expansion is about to create",
                "no match for internal topics: the running generation would read the next one's records",
                "Narrow the pattern in the program.",
            )
