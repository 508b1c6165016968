#!/bin/sh
# Takes one lock ROUNDS times and appends two lines to HISTORY each time: "begin TOKEN HOST" and "end TOKEN HOST".
# Usage: workload.sh HISTORY ROUNDS
# The same lines are appended to HISTORY.fenced under `baton fence run`, which refuses a token that is older than the last one.
HISTORY=$1
export HISTORY
baton=${baton:-baton}
export baton
round=0
while [ "$round" -lt "$2" ]; do
  round=$((round + 1))
  # A round may fail when servers do: the next one tries again.
  "$baton" lock --quiet --wait 60s attack -- sh -c '
    line() {
      echo "$1 $BATON_FENCING_TOKEN $(hostname)"
    }
    fenced() {
      "$baton" fence run --store "$HISTORY.token" -- sh -c "echo \"$(line "$1")\" >>\"$HISTORY.fenced\""
    }
    line begin >>"$HISTORY"
    fenced begin || exit
    sleep 0.0$(($$ % 10))
    fenced end || exit
    line end >>"$HISTORY"
  ' || sleep 0.2
done
