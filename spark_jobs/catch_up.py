"""Keep all copies close behind the running generation, and finish them in the cutover, by ``spark-submit``.

The connection comes from the environment, the plan from the journal. ``kafka_rescale/spark/jobs/exit_codes.py``
explains the exit codes.
"""

from kafka_rescale.spark.copy.catch_up import catch_up
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("catch_up", catch_up, "acceptable_lag"))
