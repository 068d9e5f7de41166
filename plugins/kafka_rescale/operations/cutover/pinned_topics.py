"""A topic that matches a source's pattern since the expansion was planned.

Green has no offsets in such a topic, so ``auto.offset.reset`` decides: green would process again what blue has
processed, or it would skip records.
"""

from __future__ import annotations

import logging

from kafka_rescale.core.errors import UnsafeState
from kafka_rescale.core.topology.patterns import unlisted
from kafka_rescale.operations.expansion.rescale import Rescale

log = logging.getLogger(__name__)


def assert_as_pinned(rescale: Rescale) -> None:
    """Check that the patterns of the application file match the topics that it lists, and no others.

    The cutover asks this before the pause, and again when blue is gone: blue can't have read a later topic.

    :raises UnsafeState: another topic matches.
    """
    for pattern, others in _unpinned(rescale).items():
        raise UnsafeState(
            f"source pattern {pattern}",
            found=f"{', '.join(others)}, new since the expansion was planned",
            expected="the topics that `source_patterns:` lists",
            remedy="The running generation reads what is new, and goes on; this attempt is rolled back. List the "
            "topic in `source_patterns:` and `inputs:`, or delete it; then trigger the expansion again.",
        )


def warn_of_unpinned(rescale: Rescale) -> None:
    """Log which topics have come since the promotion: green reads them from where `auto.offset.reset` says."""
    for pattern, others in _unpinned(rescale).items():
        log.warning(
            "source pattern %s matches %s, new since the promotion. The new generation reads %s from where "
            "auto.offset.reset says. List it in `source_patterns:` and `inputs:` before the next expansion.",
            pattern,
            ", ".join(others),
            "them" if len(others) > 1 else "it",
        )


def _unpinned(rescale: Rescale) -> dict[str, list[str]]:
    patterns = rescale.application.source_patterns
    return unlisted(patterns, rescale.admin.list_topics()) if patterns else {}
