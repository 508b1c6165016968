#!/bin/sh
# After the installation of a deb or rpm: creates the user of the services. Starts and enables no service.
# DPKG_ROOT is set when dpkg installs into another root.
set -e
root=${DPKG_ROOT:-}
if command -v systemd-sysusers >/dev/null 2>&1; then
  systemd-sysusers ${root:+"--root=$root"} baton.conf
elif [ -z "$root" ] && ! getent passwd baton >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin \
    --comment "baton services" baton
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi
