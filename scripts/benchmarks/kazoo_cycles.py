"""Acquire-release cycles of kazoo's Lock by many sessions of one process: kazoo_cycles.py SERVERS PATH SESSIONS CYCLES

Prints "ready" when all sessions are there, waits for a line on stdin, runs, prints "done".
"""

import sys
import threading

from kazoo.client import KazooClient

servers, path, sessions, cycles = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
clients = [KazooClient(hosts=servers, timeout=30) for _ in range(sessions)]
for client in clients:
    client.start()


def run(client):
    lock = client.Lock(path)
    for _ in range(cycles):
        with lock:
            pass


threads = [threading.Thread(target=run, args=(client,)) for client in clients]
print("ready", flush=True)
sys.stdin.readline()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", flush=True)
for client in clients:
    client.stop()
