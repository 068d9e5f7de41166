"""The client library's own error codes: an outage unless the table says why not."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.kafka.client.error_class import ErrorClass

LOCAL_ERRORS: Mapping[ErrorClass, Mapping[str, str]] = {
    ErrorClass.NO_ANSWER: {
        "_ALL_BROKERS_DOWN": "no broker is connected",
        "_DESTROY": "the client is being closed, and forgets what it has sent",
        "_DESTROY_BROKER": "the client has dropped the broker that it had asked",
        "_FAIL": "the connection broke while the brokers were told",
        "_INTR": "a signal interrupted the wait",
        "_MSG_TIMED_OUT": "no broker acknowledged the record in time",
        "_PARTIAL": "the answer was cut off",
        "_PURGE_INFLIGHT": "the client gave up a record that it had sent",
        "_TIMED_OUT": "no answer in time",
        "_TIMED_OUT_QUEUE": "no broker could be asked in time",
        "_TRANSPORT": "the connection to a broker broke or never came about",
        "_UNDERFLOW": "the answer was cut off",
        "_BAD_MSG": "what came is no answer of a Kafka broker, as after a connection that broke",
    },
    ErrorClass.NOT_NOW: {
        "_ASSIGNMENT_LOST": "the coordinator forgot the consumer, which joins again",
        "_CRIT_SYS_RESOURCE": "the machine has no memory, thread or file left for the client",
        "_IN_PROGRESS": "the same call still goes on",
        "_ISR_INSUFF": "too few replicas are in sync",
        "_MAX_POLL_EXCEEDED": "the process stood still for too long, and reads on at its next poll",
        "_NODE_UPDATE": "a broker has got another address",
        "_NOENT": "a partition has no leader, or a broker isn't known yet",
        "_NO_OFFSET": "nothing to commit yet",
        "_OUTDATED": "the answer belongs to an earlier question",
        "_PREV_IN_PROGRESS": "the call before it still goes on",
        "_PURGE_QUEUE": "the client gave up a record before it was sent",
        "_QUEUE_FULL": "the client waits for brokers to take what it has",
        "_RESOLVE": "the name of a broker can't be looked up: as while its machine is replaced",
        "_RETRY": "the client asks to be asked again",
        "_UNKNOWN_BROKER": "the broker has left the cluster, or isn't known yet",
        "_UNKNOWN_PARTITION": "a partition that has just been added does not show everywhere yet",
        "_WAIT_CACHE": "the client's own metadata is on its way",
        "_WAIT_COORD": "the coordinator is being looked for",
    },
    ErrorClass.CREDENTIALS: {
        "_AUTHENTICATION": "a broker refuses the credentials",
        "_SSL": "no trusted TLS connection comes about",
    },
    ErrorClass.FENCED: {
        "_FENCED": "a newer client has the same transactional id",
    },
    ErrorClass.ABSENT: {
        "_UNKNOWN_GROUP": "there is no such group",
        "_UNKNOWN_TOPIC": "there is no such topic",
    },
    ErrorClass.REFUSED: {
        "_AUTO_OFFSET_RESET": "the offset to read from is not in the log, and no other one may be taken",
        "_BAD_COMPRESSION": "a stored record can't be decompressed",
        "_FATAL": "the client can't go on; why is asked of it separately",
        "_FS": "a file of the machine can't be read or written",
        "_GAPLESS_GUARANTEE": "a record is missing among those that were sent",
        "_INCONSISTENT": "stored and sent records contradict each other",
        "_INVALID_DIFFERENT_RECORD": "another record of the same batch was refused",
        "_KEY_DESERIALIZATION": "a stored key can't be decoded",
        "_LOG_TRUNCATION": "records that had been read are gone from the log",
        "_UNKNOWN_PROTOCOL": "the address is none of a Kafka listener of this kind",
        "_UNSUPPORTED_FEATURE": "the brokers are too old",
        "_VALUE_DESERIALIZATION": "a stored value can't be decoded",
    },
    ErrorClass.MISTAKE: {
        "_APPLICATION": "one of our callbacks failed",
        "_CONFLICT": "two settings or calls exclude each other",
        "_EXISTING_SUBSCRIPTION": "the consumer is subscribed already",
        "_INVALID_ARG": "an argument or a setting is wrong",
        "_INVALID_TYPE": "an argument has the wrong type",
        "_KEY_SERIALIZATION": "a key can't be encoded",
        "_NOT_CONFIGURED": "a setting is missing",
        "_NOT_IMPLEMENTED": "the client library can't do it",
        "_READ_ONLY": "the object can't be changed",
        "_STATE": "the call does not fit what was called before it",
        "_VALUE_SERIALIZATION": "a value can't be encoded",
    },
    ErrorClass.EVENT: {
        "_ASSIGN_PARTITIONS": "the consumer is given partitions",
        "_NOOP": "there was nothing to do",
        "_PARTITION_EOF": "the end of a partition",
        "_REVOKE_PARTITIONS": "partitions are taken from the consumer",
    },
}
