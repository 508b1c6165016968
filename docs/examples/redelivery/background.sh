#!/bin/sh
# A background operation under its lock. It waits for the lock for a limited time; if it does not get it, or fails, it is stored, retried by
# baton retry-processor run, and a dead letter in the end.
# usage: background.sh STORE LOCK WAIT COMMAND… <body     0: done. 75: stored.
set -u
store=$1 lock=$2 wait=$3
shift 3
exec "${BATON:-baton}" retry-processor call --store "$store" --policy wso2 -- \
  "${BATON:-baton}" lock --quiet --priority background --wait "$wait" "$lock" -- "$@"
