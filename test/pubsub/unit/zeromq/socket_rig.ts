/** Sockets under test: a clock whose hands the test turns, and a network in memory. */
import type { ZeroMqSocketEvent } from "../../../../src/protocols/zeromq/socket_event.ts";
import type { ZeroMqSocketOptions } from "../../../../src/protocols/zeromq/socket_options.ts";
import type { ZeroMqSocket } from "../../../../src/protocols/zeromq/zeromq_socket.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { FakeNetwork } from "./fake_network.ts";

export const bytes = (words: string): Uint8Array => new TextEncoder().encode(words);
export const words = (frames: readonly Uint8Array[]): string[] =>
  frames.map((frame) => new TextDecoder().decode(frame));

export class SocketRig {
  readonly clock = new FakeClock();
  readonly network = new FakeNetwork();
  readonly events: ZeroMqSocketEvent[] = [];
  /** What `random` answers; 1 makes each wait as long as it can be. */
  random = 0.5;

  get options(): ZeroMqSocketOptions {
    return {
      clock: this.clock,
      dial: this.network.dial,
      listen: this.network.listen,
      random: () => this.random,
      onEvent: (event) => this.events.push(event),
    };
  }

  /** Binds the one, connects the others to it, and waits for the handshakes. */
  async join(binder: ZeroMqSocket, ...connecters: ZeroMqSocket[]): Promise<string> {
    const endpoint = await binder.bind("tcp://127.0.0.1:0");
    for (const connecter of connecters) connecter.connect(endpoint);
    await this.settle();
    return endpoint;
  }

  /** Everything that was ready to run has run, on both sides. */
  async settle(): Promise<void> {
    for (let round = 0; round < 4; round++) await settled();
  }

  kinds(): string[] {
    return this.events.map(({ kind }) => kind);
  }
}

/** What became of a promise so far. */
export function outcome(promise: Promise<unknown>): { of: unknown } {
  const result: { of: unknown } = { of: "pending" };
  promise.then((value) => result.of = value ?? "done", (error) => result.of = error.code ?? error);
  return result;
}
