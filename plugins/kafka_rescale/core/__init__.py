"""The thinking: pure functions on frozen values. No Airflow, Spark or Kafka import, no clock, no network.

Three rules, each held by a test:

1. Nothing here asks the outside world. The caller hands in what a decision needs, such as offsets, file contents
   or the time. Code that asks brokers is in ``kafka/``, code that orders the steps in ``operations/``.
2. A folder uses only what stands before it in this order::

       errors installation values cluster roles callables job_requests
       topology assignment
       partitioning
       formats
       application pipeline
       plan
       control
       acls expansion snapshots verify
       preflight processing
       autoscaling
       page

3. The expansion of a Kafka Streams application (``plan``, ``preflight``, ``expansion``, ``verify``) and the
   runtime of pipelines (``pipeline``, ``processing``) never import each other.

Where a new thing goes:

* A word that everything uses: a file at the top, if it depends on none of the folders. There are few of these.
* What bytes on Kafka mean: ``formats/``. Which partition a key belongs to: ``partitioning/``.
* A field of the application file: ``application/``. A mistake in one that its topology shows:
  ``application/checks/``.
* A record of the control topic: a file in ``control/`` and a field of ``ControlState``.
* A reason not to begin an expansion: ``preflight/``, called from ``preflight/check.py``.
* A decision during an expansion: ``expansion/``. What proves it: ``verify/``.
* What a task of a pipeline does: ``processing/``. What a user writes in one: ``pipeline/``.

A folder answers one question, which its ``__init__.py`` asks. A file name does not repeat the name of its folder.
"""
