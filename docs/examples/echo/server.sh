#!/bin/sh
# server.sh NAME PORT: an echo server that runs while it leads. BATON is the binary, `baton` in PATH when left out.
set -eu
name=$1 port=$2
here=$(cd "$(dirname "$0")" && pwd)
exec "${BATON:-baton}" elect echo --value "127.0.0.1:$port" -- node "$here/echo_server.mjs" "$name" "$port"
