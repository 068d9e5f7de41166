"""Keep the standbys and warm-ups of a client of a pipeline warm, by ``spark-submit``.

The connection comes from the environment, whose standbys from ``--request`` and from the assignment in the control
topic; the exit codes are explained in ``kafka_rescale/spark/jobs/exit_codes.py``.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.processing.keep_warm import keep_warm

if __name__ == "__main__":
    end(run("keep_warm", keep_warm, "request"))
