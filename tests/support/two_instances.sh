#!/bin/sh
# The flights application as two processes, each with local state of its own: one command of run.sh for both.
set -u
run=$(cd "$(dirname "$0")/../../jvm/demo" && pwd)/run.sh
root=$FLIGHTS_STATE_ROOT
[ "$1" = status ] && all=3 || all=0
for instance in 1 2; do
    FLIGHTS_STATE_ROOT=$root/instance-$instance "$run" "$@"
    code=$?
    # It runs as long as one of them does; any other command has to succeed for both.
    case $1:$code in
    status:0) all=0 ;;
    status:*) ;;
    *:0) ;;
    *) all=$code ;;
    esac
done
exit "$all"
