"""The client library's own error codes. A code that is not in the table counts as an outage."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_rescale.kafka.client.error_class import ErrorClass

LOCAL_ERRORS: Mapping[ErrorClass, Mapping[str, str]] = {
    ErrorClass.NO_ANSWER: {
        "_ALL_BROKERS_DOWN": "no broker is connected",
        "_DESTROY": "the client is closing, and forgets what it has sent",
        "_DESTROY_BROKER": "the client has dropped the broker that it had asked",
        "_FAIL": "the connection broke while the client sent the request",
        "_INTR": "a signal interrupted the wait",
        "_MSG_TIMED_OUT": "no broker acknowledged the record in time",
        "_PARTIAL": "the answer was cut off",
        "_PURGE_INFLIGHT": "the client gave up waiting for a record that it had sent",
        "_TIMED_OUT": "no broker answered in time",
        "_TIMED_OUT_QUEUE": "the client could not send the request in time",
        "_TRANSPORT": "the connection to a broker broke, or could not be made",
        "_UNDERFLOW": "the answer was cut off",
        "_BAD_MSG": "the answer is not one of a Kafka broker, for example after a broken connection",
    },
    ErrorClass.NOT_NOW: {
        "_ASSIGNMENT_LOST": "the coordinator forgot the consumer, and the consumer joins again",
        "_CRIT_SYS_RESOURCE": "the machine has no memory, thread or file left for the client",
        "_IN_PROGRESS": "the same call still goes on",
        "_ISR_INSUFF": "too few replicas are in sync",
        "_MAX_POLL_EXCEEDED": "the process did not poll for too long, and reads on at its next poll",
        "_NODE_UPDATE": "a broker has another address now",
        "_NOENT": "a partition has no leader, or the client does not know a broker yet",
        "_NO_OFFSET": "there is nothing to commit yet",
        "_OUTDATED": "the answer belongs to an earlier question",
        "_PREV_IN_PROGRESS": "the previous call still goes on",
        "_PURGE_QUEUE": "the client gave up a record before it sent it",
        "_QUEUE_FULL": "the client's queue is full until brokers take some of its records",
        "_RESOLVE": "the client can't look up the name of a broker, for example while its machine is replaced",
        "_RETRY": "the client wants the caller to repeat the call",
        "_UNKNOWN_BROKER": "the broker has left the cluster, or the client does not know it yet",
        "_UNKNOWN_PARTITION": "not every broker knows a partition yet that has just been added",
        "_WAIT_CACHE": "the client still waits for metadata",
        "_WAIT_COORD": "the client still looks for the coordinator",
    },
    ErrorClass.CREDENTIALS: {
        "_AUTHENTICATION": "a broker refuses the credentials",
        "_SSL": "the client and the broker can't make a trusted TLS connection",
    },
    ErrorClass.FENCED: {
        "_FENCED": "a newer client has the same transactional id",
    },
    ErrorClass.ABSENT: {
        "_UNKNOWN_GROUP": "there is no such group",
        "_UNKNOWN_TOPIC": "there is no such topic",
    },
    ErrorClass.REFUSED: {
        "_AUTO_OFFSET_RESET": "the offset is not in the log, and the client may not take another offset",
        "_BAD_COMPRESSION": "a stored record can't be decompressed",
        "_FATAL": "the client can't go on; the caller must ask it for the reason",
        "_FS": "a file of the machine can't be read or written",
        "_GAPLESS_GUARANTEE": "a record failed, so that later records would leave a gap",
        "_INCONSISTENT": "stored and sent records contradict each other",
        "_INVALID_DIFFERENT_RECORD": "another record of the same batch was refused",
        "_KEY_DESERIALIZATION": "a stored key can't be decoded",
        "_LOG_TRUNCATION": "records that had been read are gone from the log",
        "_UNKNOWN_PROTOCOL": "no Kafka listener of this kind has the address",
        "_UNSUPPORTED_FEATURE": "the brokers are too old",
        "_VALUE_DESERIALIZATION": "a stored value can't be decoded",
    },
    ErrorClass.MISTAKE: {
        "_APPLICATION": "a callback of Kafka Rescale failed",
        "_CONFLICT": "two settings or calls exclude each other",
        "_EXISTING_SUBSCRIPTION": "the consumer is subscribed already",
        "_INVALID_ARG": "an argument or a setting is wrong",
        "_INVALID_TYPE": "an argument has the wrong type",
        "_KEY_SERIALIZATION": "a key can't be encoded",
        "_NOT_CONFIGURED": "a setting is missing",
        "_NOT_IMPLEMENTED": "the client library does not offer this",
        "_READ_ONLY": "the object can't be changed",
        "_STATE": "the call does not fit what was called before it",
        "_VALUE_SERIALIZATION": "a value can't be encoded",
    },
    ErrorClass.EVENT: {
        "_ASSIGN_PARTITIONS": "the coordinator gives partitions to the consumer",
        "_NOOP": "there was nothing to do",
        "_PARTITION_EOF": "the consumer has read to the end of a partition",
        "_REVOKE_PARTITIONS": "the coordinator takes partitions from the consumer",
    },
}
