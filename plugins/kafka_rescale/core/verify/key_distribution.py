"""How the live entries of a store lie in its partitions, before an expansion and after it."""

from __future__ import annotations

from kafka_rescale.core.values import Value
from kafka_rescale.core.verify.report import Report, StoreReport


class KeyDistribution(Value):
    """Live entries per partition of one store.

    :param before: of the old generation; empty in reports of earlier versions, which did not keep it.
    :param after: of the new one.
    """

    store: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    skew_before: float | None
    skew_after: float | None


def key_distributions(report: Report) -> tuple[KeyDistribution, ...]:
    """Return what a verification has counted, per store."""
    return tuple(_of(store) for store in report.stores)


def skew(counts: tuple[int, ...]) -> float | None:
    """Return the largest partition by the mean of all: 1 is even; None for a store that is empty."""
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
