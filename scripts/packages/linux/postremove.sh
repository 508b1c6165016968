#!/bin/sh
# After the removal of a deb or rpm. The data in /var/lib/baton and /var/lib/baton-pubsub and the user stay: they may
# have locks and messages.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi
