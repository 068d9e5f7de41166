"""Move the records whose partition changes in an expansion in place, by ``spark-submit``.

The connection comes from the environment, the plan from the journal. ``kafka_rescale/spark/jobs/exit_codes.py``
explains the exit codes.
"""

from kafka_rescale.spark.copy.move import move
from kafka_rescale.spark.jobs.run import end, run

if __name__ == "__main__":
    end(run("move", move))
