#!/bin/sh
# The life cycle of the flights application, as a user's own shell scripts would have it.
#
#   run.sh start|start-gated|start-held|stop|status|describe APPLICATION_ID
#
# start returns as soon as the JVM is launched, and does nothing if the application runs already. start-gated starts
# it behind the warm-up gate: there it only restores its stores, and start goes on with them. start-held starts it
# behind the hold gate, where it waits for its start offsets. stop returns when the process is gone. status exits with
# 0 if it runs, and with 3 if not, as the Linux Standard Base says. Settings come from the environment. If FLIGHTS_ENV
# names a shell file, the values of that file win:
#
#   KAFKA_BOOTSTRAP_SERVERS     127.0.0.1:9092
#   FLIGHTS_STATE_ROOT          directory of the state, log and pid file
#   FLIGHTS_GUARANTEE           at_least_once | exactly_once_v2
#   FLIGHTS_THREADS             stream threads
#   FLIGHTS_PARTITIONS          count of the repartition topics; without it, Kafka Streams chooses the count
#   FLIGHTS_OUTPUT_PREFIX       put before the names of the output topics
#   FLIGHTS_CONFIG              properties file with further Kafka Streams configuration
#   FLIGHTS_OPTIONS             further options of the application, split at spaces
#   FLIGHTS_JARS                directory of the jars of Kafka Streams, for another version
#   FLIGHTS_CLASSPATH           further entries of the class path, such as an interceptor's jar
#   FLIGHTS_GATE                class of the warm-up gate
#   FLIGHTS_HEAP                -Xmx of the JVM
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=$here/../target

usage() {
    echo "usage: $0 start|start-gated|start-held|stop|status|describe APPLICATION_ID" >&2
    exit 2
}
[ $# -eq 2 ] || usage
command=$1
application=$2

if [ -n "${FLIGHTS_ENV:-}" ]; then
    set -a
    . "$FLIGHTS_ENV"
    set +a
fi
root=${FLIGHTS_STATE_ROOT:-$here/../../var/flights}
mkdir -p "$root"
pid_file=$root/$application.pid
log_file=$root/$application.log

# The process id may belong to another process by now, so the command line has to be that of the application.
running_pid() {
    pid=$(cat "$pid_file" 2>/dev/null) || return 1
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "FlightsApplication --application-id $application " || return 1
    echo "$pid"
}

# Runs java with options for a fast start, because the start is a part of a cutover's pause.
java_application() {
    if [ ! -f "$target/classes/FlightsApplication.class" ]; then
        echo "the application isn't compiled: python -m testbed.jars" >&2
        exit 1
    fi
    class_path="$target/classes:${FLIGHTS_JARS:-$target/kafka}/*${FLIGHTS_CLASSPATH:+:$FLIGHTS_CLASSPATH}"
    exec ${detach:-} java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms64m "-Xmx${FLIGHTS_HEAP:-384m}" \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$class_path" FlightsApplication "$@"
}

launch() {
    # FLIGHTS_OPTIONS is split on purpose.
    java_application --application-id "$application" \
        --bootstrap-servers "${KAFKA_BOOTSTRAP_SERVERS:-127.0.0.1:9092}" \
        --state-dir "$root/state" \
        --guarantee "${FLIGHTS_GUARANTEE:-at_least_once}" \
        --threads "${FLIGHTS_THREADS:-1}" \
        --partitions "${FLIGHTS_PARTITIONS:-0}" \
        --output-prefix "${FLIGHTS_OUTPUT_PREFIX:-}" \
        ${gate:+--client-supplier "$gate"} \
        ${FLIGHTS_CONFIG:+--config "$FLIGHTS_CONFIG"} \
        ${FLIGHTS_OPTIONS:-}
}

start_gated() {
    start_behind "${FLIGHTS_GATE:-org.kafkarescale.WarmUpGate}"
}

start_held() {
    start_behind org.kafkarescale.HoldGate
}

start_behind() {
    gate=$1
    FLIGHTS_CLASSPATH=$target/gate/kafka-rescale-gate.jar${FLIGHTS_CLASSPATH:+:$FLIGHTS_CLASSPATH}
    start
}

start() {
    if pid=$(running_pid); then
        echo "$application runs already, process $pid"
        return
    fi
    # The lock (9) must not live on in the application.
    detach=setsid
    launch </dev/null >>"$log_file" 2>&1 9>&- &
    echo $! >"$pid_file"
    until running_pid >/dev/null; do
        if ! kill -0 $! 2>/dev/null; then
            echo "$application did not start, see $log_file" >&2
            exit 1
        fi
        sleep 0.02
    done
    echo "$application started, process $!, log $log_file"
}

stop() {
    if ! pid=$(running_pid); then
        echo "$application is stopped"
        return
    fi
    kill -TERM "$pid"
    tenths=0
    while running_pid >/dev/null; do
        if [ "$tenths" -eq 300 ]; then
            echo "$application did not end within 30 s: killing process $pid" >&2
            kill -KILL "$pid"
        fi
        sleep 0.1
        tenths=$((tenths + 1))
    done
    rm -f "$pid_file"
    echo "$application stopped"
}

case $command in
start | start-gated | start-held | stop)
    # One at a time: a start waits for the end of a stop.
    exec 9>"$root/$application.lock"
    flock 9
    case $command in
    start-gated) start_gated ;;
    start-held) start_held ;;
    *) "$command" ;;
    esac
    ;;
status)
    if pid=$(running_pid); then
        echo "$application runs, process $pid"
    else
        echo "$application is stopped"
        exit 3
    fi
    ;;
describe) java_application --describe ;;
*) usage ;;
esac
