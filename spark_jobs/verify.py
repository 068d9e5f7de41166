"""Compare the running generation of an application with the one before: ``spark-submit --jars … verify.py``.

Exit code 0: every oracle holds. 1: there are findings; they are printed and in the control topic. 2: it could not
be verified, for example because a broker didn't answer.
"""

from __future__ import annotations

import argparse
import logging
import sys

from kafka_rescale.core.errors import RescaleError
from kafka_rescale.core.report import render
from kafka_rescale.kafka.connection import KafkaConnection
from kafka_rescale.operations.verify import verify
from pyspark.sql import SparkSession

PASSED, FINDINGS, NOT_VERIFIED = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run one verification; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--application", required=True, help="base name of the application")
    parser.add_argument("--run", default="", help="the run that asks, for the log")
    parser.add_argument("--attempt", type=int, default=1, help="the attempt of that run, for the log")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.info("verify %s for %s, attempt %d", options.application, options.run or "a person", options.attempt)
    try:
        connection = KafkaConnection.from_environment()
        spark = SparkSession.builder.appName(f"verify {options.application}").getOrCreate()
        report = verify(spark, connection, options.application)
    except RescaleError as error:
        logging.error("%s: %s", type(error).__name__, error)
        return NOT_VERIFIED
    except Exception:
        logging.exception("verify could not run")
        return NOT_VERIFIED
    print(render(report), flush=True)
    return PASSED if report.passed else FINDINGS


if __name__ == "__main__":
    sys.exit(main())
