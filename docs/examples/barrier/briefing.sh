#!/bin/sh
# The briefing: agents join, nobody presents before all are there, nobody leaves before all have finished.
# usage: briefing.sh 000 001 002 003 004 005 006 007      Each agent may be a call of its own, on a machine of its own.
# Start only seven of eight agents: after 30 s each prints which agents are there, and exits with 75 or 82. Kill the baton of one while they
# wait: the others exit with 82 and print its name. Kill one while they present: the others finish and leave.
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
