"""The report of the proof as text for a terminal or a log; its JSON is the model's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka_rescale.core.plan.not_copied import told_not_copied
from kafka_rescale.core.verify.aborted import told_aborted
from kafka_rescale.core.verify.misrouted import InputReport
from kafka_rescale.core.verify.oracles import MEANING, KeyFinding, Oracle
from kafka_rescale.core.verify.proof import Proof
from kafka_rescale.core.verify.report import MAX_FINDINGS, Report, StoreReport

Row = Sequence[object]


def render(report: Report) -> str:
    """Return the whole report as text."""
    verdict = "PASSED" if report.passed else "FAILED"
    head = (
        f"Verification of {report.application}: {verdict}",
        f"{report.blue} compared with {report.green} (generation {report.generation}) in {report.seconds:.1f} s",
        *_before(report),
        *([f"{told_not_copied(report.not_copied)}."] if report.not_copied else []),
        "",
        _stores(report.stores),
    )
    inputs = [_input(each) for each in report.inputs]
    aborted = told_aborted(report.aborted)
    parts = [
        *head,
        *inputs,
        *([f"\n{aborted}."] if aborted else []),
        *_acceptable(report),
        *(_partitions(s) for s in report.stores),
        *_findings(report),
    ]
    return "\n".join(parts)


def _before(report: Report) -> list[str]:
    if not report.compared_before:
        return []
    names = ", ".join(report.compared_before)
    return [f"compared before the promotion, up to the last record of {report.blue}: {names}"]


def render_proof(proof: Proof) -> str:
    """Return a proof before the promotion as text."""
    verdict = "PASSED" if proof.passed else "FAILED"
    accepted = [f"finding {name}" for name in proof.unaccepted] + [str(each) for each in proof.acceptances]
    head = f"Proof of {proof.application} in {proof.seconds:.1f} s: {verdict}; {proof.told}"
    found = [_listed(s.findings, s.failures) for s in proof.stores if not s.passed]
    return "\n".join([head, "", _stores(proof.stores), *accepted, *(line for lines in found for line in lines)])


def table(header: Sequence[str], rows: Iterable[Row]) -> str:
    """Return rows as columns of equal width; numbers are aligned to the right."""
    cells = [[_cell(c) for c in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    lines = [header, ["-" * w for w in widths], *cells]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        c.rjust(w) if c.replace(",", "").isdigit() else c.ljust(w) for c, w in zip(cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _stores(stores: Sequence[StoreReport]) -> str:
    header = ("store", "type", "side", "records", "live", "tombstoned", "expired", "surplus", "result")
    rows: list[Row] = []
    for s in stores:
        result = "passed" if s.passed else ", ".join(f"{o} ({n:,})" for o, n in s.failures.items())
        for side, found, end in (
            ("blue", s.blue, ("", "", "")),
            ("green", s.green, (s.expired, s.surplus, result)),
        ):
            # Airflow's log has no leading blanks: each row names its store.
            rows.append((s.store, s.store_type, side, found.records, found.live, found.tombstoned, *end))
    return table(header, rows)


def _input(found: InputReport) -> str:
    more = f", {found.accepted:,} more accepted" if found.accepted else ""
    where = f" ({found.where})" if found.misrouted else ""
    counts = f"{found.misrouted:,} of {found.records:,} records since the cutover misrouted"
    return f"\n{found.topic}: {counts}{more}{where}"


def _acceptable(report: Report) -> list[str]:
    found = [f"finding {name}" for name in report.unaccepted]
    return ["", *found, *map(str, report.acceptances)] if found or report.acceptances else []


def _partitions(store: StoreReport) -> str:
    header = ("partition", "live in blue", "live in green", "hash of blue", "hash of green", "")
    # Compaction may have taken from one side what is compared of a key that blue has written again.
    unequal = "not all compared" if store.passed and store.excused else "differs"
    rows = [
        (
            str(p.partition),
            p.blue_live,
            p.green_live,
            p.blue_hash,
            p.green_hash,
            "=" if p.blue_hash == p.green_hash else unequal,
        )
        for p in store.partitions
    ]
    left_out = f"; {store.excused:,} keys that were written meanwhile are not compared" if store.excused else ""
    return f"\n{store.green_topic}, entries by green's partition{left_out}\n{table(header, rows)}"


def _findings(report: Report) -> list[str]:
    counts: dict[Oracle, int] = {Oracle.START_OFFSETS: len(report.start_offsets)} if report.start_offsets else {}
    if misrouted := sum(i.misrouted for i in report.inputs):
        counts[Oracle.MISROUTED] = misrouted
    if report.aborted and report.aborted.lost:
        counts[Oracle.ABORTED] = report.aborted.lost
    for store in report.stores:
        for oracle, count in store.failures.items():
            counts[oracle] = counts.get(oracle, 0) + count
    return _listed(report.findings, counts)


def _listed(findings: Sequence[KeyFinding], counts: Mapping[Oracle, int]) -> list[str]:
    lines: list[str] = []
    for oracle, count in counts.items():
        lines.append(f"\n{oracle}: {count:,} violations of “{MEANING[oracle]}”; at most {MAX_FINDINGS} per store:")
        lines += [f"  {_finding(f)}" for f in findings if f.oracle is oracle]
    return lines


def _finding(finding: KeyFinding) -> str:
    key = f" key 0x{finding.key}" + (f" “{finding.text}”" if finding.text else "") if finding.key else ""
    places = [f"{side} {at}" for side, at in (("blue", finding.blue), ("green", finding.green)) if at]
    return f"{finding.subject}{key}: {finding.detail}" + (f" [{', '.join(places)}]" if places else "")
