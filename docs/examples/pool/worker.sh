#!/bin/sh
# Takes what the leader has handed out, two items at a time, as long as it runs.
# usage: worker.sh POOL WORK
set -eu
here=$(dirname "$0")
mkdir -p "$2"
while :; do
  "${BATON:-baton}" pool -q "$1" --query "ls $2" -j 2 --loop -w 10s -- sh "$here/process.sh" "$2" "{item}" || :
  sleep 0.2
done
