"""The rows of some tables in the documents name tests. Write into these rows what kind of proof the tests are.

``PYTHONPATH=plugins .venv/bin/python -m scripts.create_proofs``
"""

from __future__ import annotations

from tests.support.house.proofs import PAGES, with_proofs


def main() -> None:
    """Write the pages again. A page whose rows are right already does not change."""
    for page in PAGES:
        page.write_text(with_proofs(page.read_text()))


if __name__ == "__main__":
    main()
