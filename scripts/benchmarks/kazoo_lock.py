"""Runs a command under kazoo's Lock, as its documentation shows it: kazoo_lock.py SERVERS PATH CMD…"""

import subprocess
import sys

from kazoo.client import KazooClient

servers, path, command = sys.argv[1], sys.argv[2], sys.argv[3:]
client = KazooClient(hosts=servers, timeout=10)
client.start()
with client.Lock(path):
    code = subprocess.call(command)
client.stop()
sys.exit(code)
