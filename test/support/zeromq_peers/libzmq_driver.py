"""libzmq through pyzmq, as peer_protocol.ts declares it: requests on stdin, answers on stdout, a JSON object a line."""

import asyncio
import hashlib
import json
import sys
import time

import zmq
import zmq.asyncio
from zmq.utils.monitor import recv_monitor_message

context = zmq.asyncio.Context()
sockets = {}
domains = {}
tasks = set()

EVENTS = {
    zmq.EVENT_HANDSHAKE_SUCCEEDED: "ready",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "refused",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "refused",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "refused",
    zmq.EVENT_DISCONNECTED: "lost",
}

OPTIONS = {
    "identity": zmq.ROUTING_ID,
    "handOver": zmq.ROUTER_HANDOVER,
    "correlate": zmq.REQ_CORRELATE,
    "relaxed": zmq.REQ_RELAXED,
    "sendHighWaterMark": zmq.SNDHWM,
    "receiveHighWaterMark": zmq.RCVHWM,
    "heartbeatIntervalMs": zmq.HEARTBEAT_IVL,
    "heartbeatTimeoutMs": zmq.HEARTBEAT_TIMEOUT,
    "heartbeatTtlMs": zmq.HEARTBEAT_TTL,
    "handshakeTimeoutMs": zmq.HANDSHAKE_IVL,
}


class DriverSocket:
    def __init__(self, kind, options):
        self.socket = context.socket(getattr(zmq, kind))
        self.counts = {"ready": 0, "refused": 0, "lost": 0}
        self.socket.set(zmq.LINGER, 0)
        self.socket.set(zmq.RECONNECT_IVL, 20)
        if kind == "ROUTER":
            self.socket.set(zmq.ROUTER_MANDATORY, 1)
        for name, value in options.items():
            if name == "security":
                self.secure(value)
            else:
                self.socket.set(OPTIONS[name], value.encode("latin1") if isinstance(value, str) else int(value))
        monitor = self.socket.get_monitor_socket(sum(EVENTS))
        start(self.watch(monitor))

    def secure(self, security):
        if security["mechanism"] == "PLAIN":
            self.socket.plain_username = b"user"
            self.socket.plain_password = b"password"
            return
        self.socket.curve_publickey = security["keys"]["publicKey"].encode()
        self.socket.curve_secretkey = security["keys"]["secretKey"].encode()
        if "serverKey" in security:
            self.socket.curve_serverkey = security["serverKey"].encode()
            return
        self.socket.curve_server = True
        if "clients" in security:
            domain = b"domain-%d" % len(domains)
            if not domains:
                start(authenticate())
            domains[domain] = {bytes.fromhex(key) for key in security["clients"]}
            self.socket.zap_domain = domain

    async def watch(self, monitor):
        while True:
            event = (await recv_monitor_message(monitor))["event"]
            if event == zmq.EVENT_MONITOR_STOPPED:
                break
            self.counts[EVENTS[event]] += 1
        monitor.close()

    async def send(self, frames, deadline):
        while True:
            remaining_ms = max(0, int((deadline - time.monotonic()) * 1000))
            if await self.socket.poll(remaining_ms, zmq.POLLOUT):
                try:
                    await self.socket.send_multipart(frames, zmq.NOBLOCK, copy=False)
                    return True
                except zmq.ZMQError as error:
                    if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                        raise
            # A peer that goes while it is waited for ends the wait early.
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(0.002)

    async def receive(self, deadline):
        while True:
            remaining_ms = max(0, int((deadline - time.monotonic()) * 1000))
            if not await self.socket.poll(remaining_ms, zmq.POLLIN):
                return None
            try:
                return await self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                pass  # what came was dropped: a late answer, a request without an envelope


def start(coroutine):
    task = asyncio.ensure_future(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def authenticate():
    """RFC 27: a REP socket of the same context says who may come in."""
    handler = context.socket(zmq.REP)
    handler.bind("inproc://zeromq.zap.01")
    while True:
        version, request, domain, _, _, _, *credentials = await handler.recv_multipart()
        known = domain not in domains or credentials[0] in domains[domain]
        status = [b"200", b"OK"] if known else [b"400", b"unknown key"]
        await handler.send_multipart([version, request, *status, b"", b""])


def frame_bytes(frame):
    if isinstance(frame, str):
        return frame.encode("latin1")
    block = bytes((at * 7 + frame["seed"]) % 256 for at in range(251))
    return (block * (frame["size"] // len(block) + 1))[: frame["size"]]


def label(frame):
    if len(frame) <= 1024:
        return frame.decode("latin1")
    return "%d bytes, sha256 %s" % (len(frame), hashlib.sha256(frame).hexdigest()[:16])


async def send_all(socket, request):
    messages = [[frame_bytes(frame) for frame in frames] for frames in request["messages"]]
    deadline = time.monotonic() + request["withinMs"] / 1000
    taken = 0
    for _ in range(request["times"]):
        for message in messages:
            if request["numbered"]:
                frames = message[:-1] + [b"%d " % taken + message[-1]]
            else:
                frames = message
            if not await socket.send(frames, deadline):
                return taken
            taken += 1
    return taken


async def receive_all(socket, request):
    deadline = time.monotonic() + request["withinMs"] / 1000
    received = []
    while len(received) < request["count"]:
        message = await socket.receive(deadline)
        if message is None:
            break
        received.append([label(frame) for frame in message])
    return received


async def until_happened(socket, request):
    deadline = time.monotonic() + request["withinMs"] / 1000
    while socket.counts[request["event"]] < request["count"] and time.monotonic() < deadline:
        await asyncio.sleep(0.002)
    return socket.counts[request["event"]]


async def perform(request):
    operation = request["op"]
    if operation == "version":
        return zmq.zmq_version()
    if operation == "open":
        sockets[request["socket"]] = DriverSocket(request["type"], request["options"])
        return None
    socket = sockets[request["socket"]]
    if operation == "bind":
        endpoint = request["endpoint"]
        socket.socket.bind(endpoint[:-1] + "*" if endpoint.endswith(":0") else endpoint)
        return socket.socket.get(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
    if operation == "connect":
        return socket.socket.connect(request["endpoint"]) and None
    if operation == "send":
        return await send_all(socket, request)
    if operation == "receive":
        return await receive_all(socket, request)
    if operation == "await":
        return await until_happened(socket, request)
    if operation == "close":
        del sockets[request["socket"]]
        socket.socket.disable_monitor()
        return socket.socket.close(request["lingerMs"])
    raise ValueError("unknown operation " + operation)


async def answer(request):
    try:
        said = {"id": request["id"], "value": await perform(request)}
    except Exception as error:  # whatever it is, the test is told
        said = {"id": request["id"], "error": "%s: %s" % (type(error).__name__, error)}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


async def serve():
    reader = asyncio.StreamReader(limit=2**26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        start(answer(json.loads(line)))


try:
    asyncio.run(serve())
finally:
    context.destroy(linger=0)
