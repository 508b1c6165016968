#!/bin/sh
# Before the removal of a deb or rpm, not before an upgrade: stops the services. dpkg passes "remove", rpm the number of
# versions that remain.
set -e
case ${1:-} in
  remove | 0) ;;
  *) exit 0 ;;
esac
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now baton-keeper.service baton-pubsub-server.service baton-pubsub-proxy.service || :
  systemctl stop 'baton-cron@*.service' || :
fi
