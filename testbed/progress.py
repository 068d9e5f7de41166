"""How far a replay is. A file keeps it, so that the results of exactly the sent flights can be computed."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.flights import Dataset, load

REPORT_SECONDS = 2


@dataclass(frozen=True)
class Progress:
    """How far a replay is: it has sent the first ``sent`` flights of ``load(limit, shift_hours)``.

    Unless ``state`` is ``running``, ``sent`` is exact: all these flights are acknowledged, and no others were
    sent.
    """

    state: str
    sent: int
    limit: int | None
    shift_hours: int

    @classmethod
    def read(cls, file: Path) -> Progress | None:
        """Return the progress that a file keeps; None if there is no such file."""
        return cls(**json.loads(file.read_text())) if file.exists() else None

    def write(self, file: Path) -> None:
        """Replace the file in one step, so that a reader never sees half of it."""
        temporary = file.with_name(file.name + ".new")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.replace(file)

    def dataset(self) -> Dataset:
        """Return the flights that were sent, for the expected results."""
        return load(self.limit, self.shift_hours).prefix(self.sent)


class ProgressReport:
    """Writes progress to the file and to the terminal: by ``write`` at once, by a call only now and then."""

    def __init__(self, file: Path, limit: int | None, dataset: Dataset) -> None:
        self._file, self._limit, self._dataset = file, limit, dataset
        self._shown = time.monotonic()

    def __call__(self, sent: int) -> None:
        if time.monotonic() - self._shown > REPORT_SECONDS:
            self.write("running", sent)

    def write(self, state: str, sent: int) -> Progress:
        """Write the progress now, and return it."""
        self._shown = time.monotonic()
        progress = Progress(state, sent, self._limit, self._dataset.shift_hours)
        progress.write(self._file)
        print(f"{state}: {sent:,} of {len(self._dataset.flights):,} flights sent", file=sys.stderr, flush=True)
        return progress
