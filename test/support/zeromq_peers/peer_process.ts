/** A driver's process, and its sockets as a test uses them. It ends when the test process does: its stdin ends then. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Answer, Frame, Operation, PeerEvent, SocketOptions, SocketType } from "./peer_protocol.ts";

/** How long a thing may take that does happen, in milliseconds. */
const withinMsDefault = 10_000;

/** Kept of what a driver says on stderr, in characters. */
const wordsMax = 4000;

export class PeerProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  readonly #ended: Promise<void>;
  #words = "";
  #lastId = 0;
  #lastSocket = 0;

  constructor(command: readonly string[]) {
    const [program = "", ...args] = command;
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdin?.on("error", () => {}); // the process has ended, which is seen below
    this.#child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      this.#words = (this.#words + chunk).slice(-wordsMax);
    });
    if (this.#child.stdout !== null) {
      createInterface({ input: this.#child.stdout }).on("line", (line) => this.#answered(JSON.parse(line) as Answer));
    }
    this.#ended = new Promise((resolve) => {
      const end = (how: string) => {
        const error = new Error(`${command.join(" ")} ended (${how}). It said: ${this.#words}`);
        for (const { reject } of this.#waiting.values()) reject(error);
        this.#waiting.clear();
        resolve();
      };
      this.#child.once("error", (error) => end(error.message));
      this.#child.once("close", (code, signal) => end(`${code ?? signal}`));
    });
  }

  /** Of the library behind the sockets. */
  async version(): Promise<string> {
    return await this.call({ op: "version" }) as string;
  }

  async open(type: SocketType, options: SocketOptions = {}): Promise<PeerSocket> {
    const socket = ++this.#lastSocket;
    await this.call({ op: "open", socket, type, options });
    return new PeerSocket(this, socket, type);
  }

  /** Rejects with what the driver says went wrong. */
  call(operation: Operation): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        reject(new Error(`The driver has ended, and cannot ${operation.op}. It said: ${this.#words}`));
        return;
      }
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin?.write(`${JSON.stringify({ ...operation, id })}\n`);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** At once, as a crash. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("error" in answer) waiting?.reject(new Error(answer.error));
    else waiting?.resolve(answer.value);
  }
}

export interface SendOptions {
  readonly withinMs?: number;
  readonly times?: number;
  readonly numbered?: boolean;
}

export class PeerSocket {
  readonly type: SocketType;
  readonly #process: PeerProcess;
  readonly #socket: number;
  #open = true;

  constructor(process: PeerProcess, socket: number, type: SocketType) {
    this.#process = process;
    this.#socket = socket;
    this.type = type;
  }

  /** The endpoint with the port that was chosen. */
  async bind(endpoint: string): Promise<string> {
    return await this.#process.call({ op: "bind", socket: this.#socket, endpoint }) as string;
  }

  async connect(endpoint: string): Promise<void> {
    await this.#process.call({ op: "connect", socket: this.#socket, endpoint });
  }

  /** Rejects when no peer takes the message in time. */
  async send(frames: readonly Frame[], options: SendOptions = {}): Promise<void> {
    const wanted = options.times ?? 1;
    const taken = await this.offer(frames, options);
    if (taken !== wanted) throw new Error(`${this.type} took ${taken} of ${wanted} messages`);
  }

  /** How many of the messages were taken in time. */
  async offer(frames: readonly Frame[], options: SendOptions = {}): Promise<number> {
    return await this.sendAll([frames], options);
  }

  /** How many of the messages were taken in time. */
  async sendAll(messages: readonly (readonly Frame[])[], options: SendOptions = {}): Promise<number> {
    const { withinMs = withinMsDefault, times = 1, numbered = false } = options;
    return await this.#process.call({
      ...{ op: "send", socket: this.#socket, messages, times, numbered, withinMs },
    }) as number;
  }

  /** The next message's labels; rejects when none comes in time. */
  async receive(withinMs: number = withinMsDefault): Promise<string[]> {
    const [message] = await this.receiveMany(1, withinMs);
    if (message === undefined) throw new Error(`${this.type} received nothing within ${withinMs} ms`);
    return message;
  }

  /** So many messages, or fewer when the time is over. */
  async receiveMany(count: number, withinMs: number = withinMsDefault): Promise<string[][]> {
    return await this.#process.call({ op: "receive", socket: this.#socket, count, withinMs }) as string[][];
  }

  /** Waits until it has happened so often since the socket was opened; rejects when it does not. */
  async happened(event: PeerEvent, count = 1, withinMs: number = withinMsDefault): Promise<void> {
    const seen = await this.count(event, { atLeast: count, withinMs });
    if (seen < count) throw new Error(`${this.type} saw "${event}" ${seen} times instead of ${count}`);
  }

  /** How often it has happened, once it has happened so often or the time is over. */
  async count(event: PeerEvent, options: { atLeast?: number; withinMs?: number } = {}): Promise<number> {
    const { atLeast = 0, withinMs = 0 } = options;
    return await this.#process.call({ op: "await", socket: this.#socket, event, count: atLeast, withinMs }) as number;
  }

  /** Messages that no peer took are dropped after the time. */
  async close(lingerMs = 0): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    await this.#process.call({ op: "close", socket: this.#socket, lingerMs });
  }
}
