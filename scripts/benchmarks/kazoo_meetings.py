"""Meetings at kazoo's DoubleBarrier by many sessions of one process: kazoo_meetings.py SERVERS PATH PARTIES MEETINGS

Each meeting has a path of its own: kazoo's barrier is not made to be entered again. Prints "ready" when all sessions
are there, waits for a line on stdin, runs, prints "done".
"""

import sys
import threading

from kazoo.client import KazooClient

servers, path, parties, meetings = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
clients = [KazooClient(hosts=servers, timeout=30) for _ in range(parties)]
for client in clients:
    client.start()


def run(client):
    for meeting in range(meetings):
        barrier = client.DoubleBarrier(f"{path}-{meeting}", parties)
        barrier.enter()
        barrier.leave()


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
