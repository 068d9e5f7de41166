"""Write into the tables of the documents what kinds of proof the tests are that their rows name.

``PYTHONPATH=plugins .venv/bin/python -m scripts.create_proofs``
"""

from __future__ import annotations

from tests.support.house.proofs import PAGES, with_proofs


def main() -> None:
    """Write the pages anew; those that say what the tests are stay as they are."""
    for page in PAGES:
        page.write_text(with_proofs(page.read_text()))


if __name__ == "__main__":
    main()
