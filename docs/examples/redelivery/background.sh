#!/bin/sh
# A background operation under its lock, as in "Distributed Locking in Elasticsearch using Zookeeper": it waits for the lock for so long;
# when it did not get it, or failed, it is stored, tried again by baton retry-processor run, and a dead letter in the end.
# usage: background.sh STORE LOCK WAIT COMMAND… <body     0: done. 75: stored.
set -u
store=$1 lock=$2 wait=$3
shift 3
exec "${BATON:-baton}" retry-processor call --store "$store" --policy wso2 -- \
  "${BATON:-baton}" lock --quiet --priority background --wait "$wait" "$lock" -- "$@"
