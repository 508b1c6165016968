#!/bin/sh
# A proxy service: a fault immediately if the backend is down, a retry every T, a dead letter after N retries.
#     sh proxy.sh 8280 http://127.0.0.1:9000/ ./store &       the service does not run yet
#     curl -d '<order id="7"/>' -H 'SOAPAction: urn:order' http://127.0.0.1:8280/
#     node stock_service.mjs 9000 ./orders &                  within T it has the order, once, whatever you kill
# usage: proxy.sh PORT BACKEND STORE [N [T]]
set -u
exec "${BATON:-baton}" retry-processor serve --listen "127.0.0.1:$1" --url "$2" --store "$3" \
  --max-retries "${4:-10}" --interval "${5:-3s}" --jitter none -j 4
