#!/bin/sh
# The briefing: agents join, nobody presents before all are there, nobody leaves before all have finished.
# usage: briefing.sh AGENT…      Each agent may as well be a call of its own, on a machine of its own.
set -eu
here=$(dirname "$0")
count=$#
pids=
for agent; do
  {
    "${BATON:-baton}" barrier briefing -N "$count" -w 30s -- sh "$here/agent.sh" "$agent"
    echo "$agent leaves"
  } &
  pids="$pids $!"
done
status=0
for pid in $pids; do wait "$pid" || status=$?; done
exit "$status"
