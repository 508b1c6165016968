#!/bin/sh
# Works on one batch. When it has ended well the batch is not ready any more: the next query does not name it.
# usage: process.sh FOLDER BATCH
set -eu
mkdir -p "$1.done"
echo "$2 is processed under token $BATON_FENCING_TOKEN"
[ ! -e "$1/$2" ] || mv "$1/$2" "$1.done/$2"
