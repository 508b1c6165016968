# Sourced by scripts/build and scripts/release, with the project's root as working folder: how baton is compiled.

# compile_baton OUTFILE [TARGET [MAIN]]. Every worker is an entry point of its own; --entry-naming puts all entry points into
# one virtual folder, so that a worker named relative to the module that starts it is found there as it is in the
# source. --splitting lets a command load its own part only: in one piece, the imports of all commands run at each start.
# docs/adr/0002-one-binary-by-bun.md explains the other options.
compile_baton() {
  node_modules/.bin/bun build --compile ${2:+"--target=$2"} --minify --bytecode --splitting --format=esm \
    --entry-naming='[name].[ext]' --no-compile-autoload-dotenv --no-compile-autoload-bunfig \
    "${3:-commands/main.ts}" $(find src -name '*_worker.ts') --outfile "$1" </dev/null
}
