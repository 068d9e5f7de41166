"""Copy what has come since, in rounds, until the lag is acceptable, by ``spark-submit``.

The connection comes from the environment, the plan from the journal; the exit codes are explained in
``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.copy.warm_up import warm_up
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("warm_up", warm_up, "stage", "acceptable_lag"))
