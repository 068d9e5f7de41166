"""Keep all copies near, and finish them within the cutover, by ``spark-submit``.

The connection comes from the environment, the plan from the journal; the exit codes are explained in
``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.copy.catch_up import catch_up
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("catch_up", catch_up, "acceptable_lag"))
