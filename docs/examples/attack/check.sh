#!/bin/sh
# Judges the lines of workload.sh: one holder at a time, and each grant with a higher token than all before. A section without an
# end is allowed: its worker was killed or lost the lock. Exits with 1 for a violation or an empty history.
# Usage: check.sh HISTORY
awk '
  function violation(what) { violations++; print "line " NR ": " what }
  $1 == "begin" {
    sections++
    # Tokens have up to 19 digits, more than a number of awk: they are compared as text of equal length.
    token = sprintf("%20s", $2)
    if (sections > 1 && token <= last) violation("token " $2 " is not above " name)
    last = token; name = $2
    next
  }
  $1 == "end" {
    ended++
    if (sprintf("%20s", $2) != last) violation("the end of " $2 " comes after the begin of " name)
    next
  }
  { violation("no line of a worker: " $0) }
  END {
    printf "%d sections, %d of them ended, %d violations\n", sections, ended, violations
    exit(violations > 0 || sections == 0)
  }
' "$1"
