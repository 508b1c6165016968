#!/bin/sh
# The leader's work: every order becomes items of work, one file each. Run by leader.sh, under baton elect.
# usage: plan.sh ORDERS WORK      an order is a file with one item in each line
set -eu
mkdir -p "$1" "$2"
while :; do
  for order in "$1"/*; do
    [ -f "$order" ] || continue
    while read -r item; do
      echo "$item" > "$2/.new" && mv "$2/.new" "$2/$item"
    done < "$order"
    rm "$order" # last: a leader that dies before is followed by one that hands it out again
  done
  sleep 0.2
done
