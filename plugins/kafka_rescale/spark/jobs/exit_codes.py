"""What the jobs' exit codes mean; ``spark-submit`` in client mode passes them on."""

DONE = 0
"""The job has done what it was started for, or an earlier attempt had."""

FAILED = 1
"""An error; the log and the job's result in the control topic tell which."""

SUPERSEDED = 3
"""A newer attempt has taken over. This attempt has written nothing since, and a retry would be wrong."""

ORPHANED = 4
"""The process that started this one is gone, so that no process will see this code."""
