"""One run of one task, repeated if brokers abort it on the way or a record stops it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from confluent_kafka import KafkaException

from kafka_rescale.core.control.job_failure import JobFailure
from kafka_rescale.core.errors import Fenced, Outage
from kafka_rescale.core.pipeline.failure import came_of_cache, culprit
from kafka_rescale.core.pipeline.named import pipeline_named
from kafka_rescale.core.pipeline.task import SubTopology
from kafka_rescale.kafka.client.bounded_call import StuckCall
from kafka_rescale.kafka.client.connection import KafkaConnection
from kafka_rescale.kafka.client.failures import Rewound
from kafka_rescale.kafka.client.waiting import now_ms
from kafka_rescale.kafka.processing.task_producer import RefusedRecord, TaskProducer
from kafka_rescale.kafka.reading.committed import copy_consumer
from kafka_rescale.spark.jobs.begin import begin_process
from kafka_rescale.spark.jobs.task_errors import as_text, typed
from kafka_rescale.spark.processing.stream_task import StreamTask
from kafka_rescale.spark.processing.task_work import TaskDone, TaskStopped, TaskWork

REWINDS = 5
"""How often brokers may abort a run's transactions before that is a failure."""


def run_task(
    connection: KafkaConnection, work: TaskWork, subtopology: SubTopology, clock: Callable[[], int] = now_ms
) -> TaskDone:
    """Process the records that a task has to read, and return what was done.

    :raises Fenced: a newer attempt at the task has begun; this one has written nothing since.
    :raises UnsafeState: offsets and topics contradict each other.
    :raises InvalidInput: the pipeline can't read a record.
    """
    began, rewinds, careful = time.monotonic(), 0, False
    failure: Exception | None = None
    # Unless records are processed one by one, a record is also blamed for what the cache evicts when it comes.
    is_certain = False
    logged = [work.changelog(store) for store in subtopology.stores if store.is_logged]
    producer = TaskProducer(connection, work.transactional_id, logged)
    while True:
        consumer = copy_consumer(connection, work.application_id, **{"fetch.wait.max.ms": 20})
        try:
            task = StreamTask(connection, work, subtopology, producer, consumer, clock, failure, careful=careful)
            task.process()
            return task.done(time.monotonic() - began)
        except StuckCall:
            # The client can't be used any more; a new client with the same id ends its transaction.
            rewinds += 1
            if rewinds > REWINDS:
                raise
            producer = TaskProducer(connection, work.transactional_id, logged)
        except Rewound as rewound:
            rewinds += 1
            is_refused = not isinstance(rewound.reason, Outage)
            if rewinds > REWINDS or (is_refused and careful):
                raise rewound.reason from None
            producer.forget()
            if is_refused:
                # Brokers don't say which record they have refused, so process the records again, one by one. Use a
                # new client: the rest of a refused transaction may disturb the old client's next transaction.
                careful, producer = True, TaskProducer(connection, work.transactional_id, logged)
                failure = failure if is_certain else None
        except Exception as error:
            if not careful and (isinstance(error, RefusedRecord) or came_of_cache(error)):
                careful, failure = True, failure if is_certain else None
            elif failure is None and culprit(error) is not None:
                # Process again, up to that record. A run that goes on behind it must not skip earlier records.
                failure, careful, is_certain = error, False, careful
            else:
                raise
            producer.abort()
            producer = TaskProducer(connection, work.transactional_id, logged)
        finally:
            producer.abort()
            consumer.close()


@dataclass(frozen=True)
class RunTasks:
    """Runs tasks of a pipeline; one element of the RDD is the work of one task.

    :param pipeline: ``module:name``, imported where the task runs.
    """

    connection: KafkaConnection
    pipeline: str

    def __call__(self, works: Iterable[TaskWork]) -> Iterator[TaskDone | TaskStopped]:
        """Run each task, and yield what it has done, or what has stopped it alone.

        An error that is raised ends all tasks of the job: Spark kills those that work, and begins no more. So an
        error that stands in the way of one task only is yielded.
        """
        begin_process()
        for work in works:
            with as_text():
                ended = self._ended(work)
            yield ended

    def _ended(self, work: TaskWork) -> TaskDone | TaskStopped:
        parts = {part.id: part for part in pipeline_named(self.pipeline).sub_topologies()}
        try:
            return run_task(self.connection, work, parts[work.task.subtopology])
        except Exception as error:
            found = typed(error)
            if found is None or _ends_the_job(error):
                raise
            return TaskStopped(work.task, JobFailure.of(found), traceback.format_exc())


def _ends_the_job(error: Exception) -> bool:
    """Whether tasks that have not begun must not begin any more.

    After ``Fenced``, they would fence those of a newer run. If brokers don't answer, each would wait for them.
    """
    return isinstance(error, Fenced | Outage | KafkaException)
