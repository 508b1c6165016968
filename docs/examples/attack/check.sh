#!/bin/sh
# Judges the lines of workload.sh: one holder at a time, and each grant with a higher token than all before. A section without an
# end is allowed: its worker was killed or lost the lock. Exits with 1 for a violation or an empty history.
# Usage: check.sh HISTORY
# A worker that was paused as a whole, with its guard, may write to HISTORY when it continues, until the guard has stopped it.
# Where workers were paused, judge the fenced lines alone: check.sh HISTORY.fenced
judge() {
  awk '
    function violation(what) { violations++; print "line " NR ": " what }
    # Tokens have up to 19 digits, more than a number of awk: they are compared as text of equal length.
    { token = sprintf("%20s", $2) }
    $1 == "begin" {
      sections++
      if (sections > 1 && token <= last) violation("token " $2 " is not above " name)
      if (sections == 1 || token > last) { last = token; name = $2 }
      next
    }
    $1 == "end" {
      ended++
      if (token != last) violation("the end of " $2 " comes after the begin of " name)
      next
    }
    { violation("no line of a worker: " $0) }
    END {
      printf "%d sections, %d of them ended, %d violations\n", sections, ended, violations
      exit(violations > 0 || sections == 0)
    }
  ' "$1"
}
status=0
judge "$1" || status=1
if [ -e "$1.fenced" ]; then judge "$1.fenced" || status=1; fi
exit $status
