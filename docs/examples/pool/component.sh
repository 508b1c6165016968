#!/bin/sh
# One call of a component that processes the batches in a folder. Cron starts it every minute on every machine; no batch is processed by
# two calls at a time:
#     PATH=/usr/local/bin:/usr/bin:/bin
#     * * * * *  newspaper  cd /srv/newspaper && sh component.sh SampleComponent inbox 4
# usage: component.sh COMPONENT FOLDER COUNT      FOLDER has one file for each batch that is ready
set -u
here=$(dirname "$0")
"${BATON:-baton}" pool -q "$1" --query "ls $2" -j "$3" -- sh "$here/process.sh" "$2" "{item}"
status=$?
# Others work on all there is, or are choosing: not worth a mail from cron.
case $status in 75 | 81) exit 0 ;; esac
exit "$status"
