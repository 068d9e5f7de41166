"""Keep the standbys and warm-ups of a client of a pipeline warm, by ``spark-submit``.

The connection comes from the environment. ``--request`` names the client; the assignment in the control topic says
which standbys it has. ``kafka_rescale/spark/jobs/exit_codes.py`` explains the exit codes.
"""

from kafka_rescale.spark.jobs.run import end, run
from kafka_rescale.spark.processing.keep_warm import keep_warm

if __name__ == "__main__":
    end(run("keep_warm", keep_warm, "request"))
