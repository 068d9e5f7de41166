"""Compare the copies of an expansion with their sources while the application works: ``spark-submit … prove.py``.

It needs Spark's Kafka connector (``--jars``). The connection comes from the environment, the plan from the
journal. ``kafka_rescale/spark/jobs/exit_codes.py`` explains the exit codes.
"""

from kafka_rescale.operations.verify.prove import prove
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("prove", prove))
