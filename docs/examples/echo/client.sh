#!/bin/sh
# client.sh PORT [COUNT]: sends Hello-0 … Hello-9 and prints what is answered; what was not is sent again.
set -eu
exec node "$(dirname "$0")/echo_client.mjs" "$@"
