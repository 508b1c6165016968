#!/bin/sh
# One agent of the briefing: presents its report, which takes as long as it takes. Run by briefing.sh, under baton barrier.
set -eu
name=$1
echo "$name joined the briefing: number $((BATON_RANK + 1)) of $BATON_SIZE"
echo "$name presents a report"
sleep "0.$((BATON_RANK + 1))"
echo "$name has finished"
