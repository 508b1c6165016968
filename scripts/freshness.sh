# Sourced by scripts/baton and scripts/build: checks that dist/baton is up to date. Takes one `find`, about 2 ms.
# dist/baton carries the time at which its build began, so that an edit made during a build counts as newer.

# baton_is_fresh ROOT
baton_is_fresh() {
  [ -x "$1/dist/baton" ] &&
    [ -z "$(find "$1/src" "$1/commands" "$1/package.json" "$1/package-lock.json" "$1/scripts/compile.sh" \
      -newer "$1/dist/baton" </dev/null 2>&1)" ]
}
