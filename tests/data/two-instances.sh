#!/bin/sh
# The demo application's life cycle with two instances of every later generation, each with local state of its own.
#
#   two-instances.sh start|start-gated|stop|status APPLICATION_ID
set -eu
run=$(dirname "$0")/../../jvm/demo/run.sh
case $2 in
*-g*) ;;
*) exec "$run" "$@" ;;
esac
code=3
for instance in 1 2; do
    if FLIGHTS_STATE_ROOT=$FLIGHTS_STATE_ROOT/instance-$instance "$run" "$@"; then
        code=0
    fi
done
exit $code
