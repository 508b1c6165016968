#!/bin/sh
# An echo service whose leader may die. Clients do not need to know which server leads:
#     sh server.sh a 7001 &                   leads
#     sh server.sh b 7002 &                   waits
#     baton forward echo --listen :7000 &     the address for clients
#     sh client.sh 7000                       Hello-0 … Hello-9, answered by a; kill a, and b answers
# server.sh NAME PORT: an echo server that runs while it leads. BATON is the binary, `baton` in PATH when left out.
set -eu
name=$1 port=$2
here=$(cd "$(dirname "$0")" && pwd)
exec "${BATON:-baton}" elect echo --value "127.0.0.1:$port" -- node "$here/echo_server.mjs" "$name" "$port"
