#!/bin/sh
# A candidate: whoever leads hands out the work, the others wait to lead.
# usage: leader.sh ELECTION ORDERS WORK
set -eu
here=$(dirname "$0")
exec "${BATON:-baton}" elect -q "$1" --value "$(uname -n):$$" -- sh "$here/plan.sh" "$2" "$3"
