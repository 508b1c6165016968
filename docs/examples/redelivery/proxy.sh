#!/bin/sh
# The article's proxy service: a fault at once when the backend is down, redelivery every T, a dead letter after N.
# usage: proxy.sh PORT BACKEND STORE [N [T]]
set -u
exec "${BATON:-baton}" retry-processor serve --listen "127.0.0.1:$1" --url "$2" --store "$3" \
  --max-retries "${4:-10}" --interval "${5:-3s}" --jitter none -j 4
