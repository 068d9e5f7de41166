"""The live entries of a store by partition, before and after an expansion."""

from __future__ import annotations

from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.report import Report, StoreReport

LEFT_OUT = 0.05
"""The share of entries that may be missing in the counts."""


class KeyDistribution(Value):
    """Live entries per partition of one store.

    :param before: counts of the old generation; empty in reports of earlier versions, which did not keep them.
    :param after: counts of the new generation.
    """

    store: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    skew_before: float | None
    skew_after: float | None


def key_distributions(report: Report) -> tuple[KeyDistribution, ...]:
    """Return the counts of a verification, per store.

    A proof before the promotion has not counted the keys that were written meanwhile. A store with many such keys
    is left out: its counts say nothing about where its entries are.
    """
    return tuple(_of(store) for store in report.stores if (store.excused or 0) <= LEFT_OUT * store.green.live)


def skew(counts: tuple[int, ...]) -> float | None:
    """Return the largest partition divided by the mean: 1 is even; None for an empty store."""
    total = sum(counts)
    return round(max(counts) * len(counts) / total, 2) if total else None


def _of(store: StoreReport) -> KeyDistribution:
    after = tuple(p.green_live for p in store.partitions)
    return KeyDistribution(
        store=store.store,
        before=store.blue_partitions,
        after=after,
        skew_before=skew(store.blue_partitions),
        skew_after=skew(after),
    )
