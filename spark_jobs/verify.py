"""Check the running generation of an application against the previous one: ``spark-submit --jars … verify.py``.

Exit code 0: every oracle holds. 1: there are findings; the job has printed them and written them to the control
topic. 2: the job could not verify, for example because a broker didn't answer. 3: a newer attempt has taken over.
"""

from __future__ import annotations

import argparse
import logging
import sys

PASSED, FINDINGS, NOT_VERIFIED = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run one verification and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--application", required=True, help="base name of the application")
    parser.add_argument("--run", default="", help="the Airflow run that submits this, shown in Spark's UI")
    parser.add_argument("--attempt", type=int, default=1, help="the attempt of that run")
    parser.add_argument("--whole", action="store_true", help="also what was compared before the promotion")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        return verified(options.application, options.run, options.attempt, whole=options.whole)
    except Exception:
        logging.exception("verify could not run")
        return NOT_VERIFIED


def verified(application: str, run: str, attempt: int, *, whole: bool = False) -> int:
    """Verify, print the report and return the exit code."""
    # These imports are here, not at the top: a failed import at the top would end with exit code 1, which means
    # findings.
    from kafka_rescale.core.errors import Fenced, RescaleError
    from kafka_rescale.core.verify.report_text import render
    from kafka_rescale.kafka.client.connection import KafkaConnection
    from kafka_rescale.operations.verify.verify import verify
    from kafka_rescale.spark.jobs.exit_codes import SUPERSEDED
    from kafka_rescale.spark.jobs.session import reading_session
    from kafka_rescale.spark.jobs.watchdog import exit_with_parent

    exit_with_parent()
    try:
        connection = KafkaConnection.from_environment()
        report = verify(
            lambda: reading_session("verify", application, run, attempt), connection, application, whole=whole
        )
    except Fenced as fenced:
        logging.error("superseded: %s", fenced)
        return SUPERSEDED
    except RescaleError as error:
        logging.error("%s: %s", type(error).__name__, error)
        return NOT_VERIFIED
    print(render(report), flush=True)
    return PASSED if report.passed else FINDINGS


if __name__ == "__main__":
    sys.exit(main())
