# Sourced by scripts/build: allows one build at a time. A builder that was killed does not block the next one.

# take_build_lock FILE: waits for the lock, and holds it until this process ends.
take_build_lock() {
  if command -v flock >/dev/null 2>&1; then
    # The kernel frees it when the last process that inherited descriptor 9 has ended: an npm that outlives a killed
    # builder still keeps the next one out of node_modules.
    # A failed exec would end the shell without a sentence.
    (: >>"$1") 2>/dev/null ||
      fail 73 "cannot write $PWD/$1; dist/baton is missing or older than the source:" \
        "the owner of this folder has to run sh scripts/build"
    exec 9>"$1"
    flock -n 9 && return
    say "waiting for another build to end"
    flock 9
  else
    take_link_lock "$1.owner"
  fi
}

# Where flock(1) is missing (macOS): a symbolic link whose target is the owner's process id appears at one stroke,
# content and all. Only one process at a time may remove a dead owner's link, or it could remove its successor's.
take_link_lock() {
  waiting=
  until ln -s "$$" "$1" 2>/dev/null; do
    [ -d "${1%/*}" ] && [ -w "${1%/*}" ] || fail 73 "cannot write into ${1%/*}"
    owner=$(readlink "$1") || continue
    if ! is_alive "$owner" && mkdir "$1.breaking" 2>/dev/null; then
      [ "$(readlink "$1")" = "$owner" ] && rm -f "$1"
      rmdir "$1.breaking"
      continue
    fi
    [ -n "$waiting" ] ||
      say "waiting for another build to end (process $owner; ${1##*/} and ${1##*/}.breaking in dist say so)"
    waiting=yes
    sleep 0.2 2>/dev/null || sleep 1
  done
  lock_link=$1
  trap 'rm -f "$lock_link"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# kill -0 is refused for another user's process, ps is not everywhere.
is_alive() {
  kill -0 "$1" 2>/dev/null || ps -p "$1" >/dev/null 2>&1
}
