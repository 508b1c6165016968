/** The loop of a driver in JavaScript: requests from stdin, answers on stdout, as peer_protocol.ts declares them. */
import process from "node:process";
import { frameBytes, label, numberedMessage } from "./frames.ts";
import type { Answer, Operation, PeerEvent, Request, SocketOptions, SocketType } from "./peer_protocol.ts";
import { retry } from "./retry.ts";

export interface DriverSocket {
  /** The endpoint with the port that was chosen. */
  bind(endpoint: string): Promise<string>;
  connect(endpoint: string): Promise<void> | void;
  /** False when no peer took the message within the time. */
  send(frames: Uint8Array[], withinMs: number): Promise<boolean>;
  /** Null when none came within the time. */
  receive(withinMs: number): Promise<Uint8Array[] | null>;
  /** How often it has happened since the socket was opened. */
  happened(event: PeerEvent): number;
  close(lingerMs: number): Promise<void> | void;
}

export interface Driver {
  readonly version: string;
  open(type: SocketType, options: SocketOptions): DriverSocket | Promise<DriverSocket>;
}

/** Serves until stdin ends; then the process ends, whatever is open. */
export function serve(driver: Driver): void {
  const sockets = new Map<number, DriverSocket>();
  let rest = "";
  process.stdin.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) void answer(JSON.parse(line) as Request);
  }).on("end", () => process.exit(0));

  async function answer(request: Request): Promise<void> {
    let said: Answer;
    try {
      said = { id: request.id, value: await perform(driver, sockets, request) };
    } catch (error) {
      said = { id: request.id, error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
    }
    process.stdout.write(`${JSON.stringify(said)}\n`);
  }
}

async function perform(driver: Driver, sockets: Map<number, DriverSocket>, request: Operation): Promise<unknown> {
  if (request.op === "version") return driver.version;
  if (request.op === "open") {
    sockets.set(request.socket, await driver.open(request.type, request.options));
    return null;
  }
  const socket = sockets.get(request.socket);
  if (socket === undefined) throw new Error(`There is no socket ${request.socket}`);
  switch (request.op) {
    case "bind":
      return await socket.bind(request.endpoint);
    case "connect":
      return await socket.connect(request.endpoint) ?? null;
    case "send":
      return await sendAll(socket, request);
    case "receive":
      return await receiveAll(socket, request);
    case "await":
      return await untilHappened(socket, request);
    case "close":
      sockets.delete(request.socket);
      return await socket.close(request.lingerMs) ?? null;
  }
}

async function sendAll(socket: DriverSocket, request: Operation & { op: "send" }): Promise<number> {
  const messages = request.messages.map((frames) => frames.map(frameBytes));
  const deadlineMs = performance.now() + request.withinMs;
  let taken = 0;
  for (let round = 0; round < request.times; round++) {
    for (const message of messages) {
      const frames = request.numbered ? numberedMessage(message, taken) : message;
      if (!await socket.send(frames, Math.max(0, Math.ceil(deadlineMs - performance.now())))) return taken;
      taken++;
    }
  }
  return taken;
}

async function receiveAll(socket: DriverSocket, request: Operation & { op: "receive" }): Promise<string[][]> {
  const deadlineMs = performance.now() + request.withinMs;
  const received: string[][] = [];
  while (received.length < request.count) {
    const message = await socket.receive(Math.max(0, Math.ceil(deadlineMs - performance.now())));
    if (message === null) break;
    received.push(message.map(label));
  }
  return received;
}

async function untilHappened(socket: DriverSocket, request: Operation & { op: "await" }): Promise<number> {
  await retry(request.withinMs, () => socket.happened(request.event) >= request.count);
  return socket.happened(request.event);
}
