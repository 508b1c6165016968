# Sourced by scripts/build and scripts/release, with the project's root as working folder: how baton is compiled.

# build_facts sets build_commit and build_date: the commit, with -dirty if the product differs from it, and its date, or
# SOURCE_DATE_EPOCH. Both are empty where there is no repository, so that a build can be repeated from the same source.
build_facts() {
  build_commit=
  [ ! -e .git ] || build_commit=$(git rev-parse --verify HEAD 2>/dev/null </dev/null) || :
  compiled="src commands package.json package-lock.json scripts/compile.sh"
  # shellcheck disable=SC2086 -- these are several paths
  if [ -n "$build_commit" ] && [ -n "$(git status --porcelain -- $compiled 2>/dev/null </dev/null)" ]; then
    build_commit=$build_commit-dirty
  fi
  seconds=${SOURCE_DATE_EPOCH-}
  if [ -z "$seconds" ] && [ -n "$build_commit" ]; then
    seconds=$(git log -1 --format=%ct 2>/dev/null </dev/null) || seconds=
  fi
  build_date=
  if [ -n "$seconds" ]; then
    build_date=$(date -u -d "@$seconds" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "$seconds" +%Y-%m-%dT%H:%M:%SZ)
  fi
}

# compile_baton OUTFILE [TARGET [MAIN [RUNTIME]]]. RUNTIME is the target's Bun executable; Bun downloads one without it.
# Every worker is an entry point of its own; --entry-naming puts all entry points into one virtual folder, so that a
# worker named relative to the module that starts it is found there as it is in the source. --splitting lets a command
# load its own part only: in one piece, the imports of all commands run at each start.
# --compile-jit-policy: a command ends before compiled code pays; services set it back (commands/run_command.ts).
# docs/adr/0002-one-binary-by-bun.md explains the other options.
compile_baton() {
  build_facts
  build_platform=${2-}
  node_modules/.bin/bun build --compile ${2:+"--target=$2"} ${4:+"--compile-executable-path=$4"} \
    --define "BATON_BUILD_COMMIT=\"$build_commit\"" --define "BATON_BUILD_DATE=\"$build_date\"" \
    --define "BATON_BUILD_PLATFORM=\"${build_platform#bun-}\"" \
    --compile-jit-policy=100 --minify --bytecode --splitting --format=esm \
    --entry-naming='[name].[ext]' --no-compile-autoload-dotenv --no-compile-autoload-bunfig \
    "${3:-commands/main.ts}" $(find src -name '*_worker.ts') --outfile "$1" </dev/null || return
  node_modules/.bin/bun scripts/runtime_patch.ts "$1" || return
  # A file that is written in one go starts faster than what bun build writes: its pages are in fewer, larger pieces.
  cp "$1" "$1.copy" && mv -f "$1.copy" "$1"
}
