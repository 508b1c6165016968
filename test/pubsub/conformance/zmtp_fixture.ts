/** The two sides of a pairing, a process each for the whole suite; sockets and taps that are closed after each test. */
import { afterAll, afterEach, beforeAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { client, server } from "../../fixtures/zeromq_keys.ts";
import type { Implementation } from "../../support/zeromq_peers/implementations.ts";
import type { PeerProcess, PeerSocket } from "../../support/zeromq_peers/peer_process.ts";
import type { Security, SocketOptions, SocketType } from "../../support/zeromq_peers/peer_protocol.ts";
import { ZmtpTap } from "../../support/zeromq_peers/zmtp_tap.ts";

export const transports = ["tcp", "ipc"] as const;
export type Transport = (typeof transports)[number];

export const mechanisms = ["NULL", "CURVE"] as const;
export type Mechanism = (typeof mechanisms)[number];

export type Side = "a" | "b";
export const otherSide = { a: "b", b: "a" } as const;

/** Options of the two ends of a connection that know each other. */
export const curve: Record<"server" | "client", { security: Security }> = {
  server: { security: { mechanism: "CURVE", keys: server } },
  client: { security: { mechanism: "CURVE", keys: client, serverKey: server.publicKey } },
};

/** What the socket needs to talk to its like; an encrypted connection's server is the side that binds. */
export function securityOf(mechanism: Mechanism, binds: boolean): SocketOptions {
  return mechanism === "NULL" ? {} : curve[binds ? "server" : "client"];
}

export class ZmtpFixture {
  readonly implementations: Readonly<Record<Side, Implementation>>;
  readonly #processes = new Map<Side, PeerProcess>();
  readonly #opened: { close(): Promise<void> }[] = [];
  #folder = "";
  #endpoints = 0;

  constructor(a: Implementation, b: Implementation) {
    this.implementations = { a, b };
    beforeAll(async () => {
      this.#folder = mkdtempSync(join(tmpdir(), "baton-zmtp-"));
      for (const side of ["a", "b"] as const) this.#processes.set(side, await this.implementations[side].start());
    }, 60_000);
    afterEach(async () => {
      for (const opened of this.#opened.splice(0).reverse()) await opened.close();
    });
    afterAll(async () => {
      for (const peer of this.#processes.values()) await peer.kill();
      rmSync(this.#folder, { recursive: true, force: true });
    });
  }

  /** A socket of one of the sides, closed after the test. */
  async open(side: Side, type: SocketType, options: SocketOptions = {}): Promise<PeerSocket> {
    const socket = await this.#processes.get(side)?.open(type, options);
    if (socket === undefined) throw new Error(`The process of side ${side} was not started`);
    this.#opened.push(socket);
    return socket;
  }

  /** A process of its own, to be killed or stopped by the test. */
  async start(side: Side): Promise<PeerProcess> {
    const peer = await this.implementations[side].start();
    this.#opened.push({ close: () => peer.kill() });
    return peer;
  }

  /** In front of a bound endpoint of tcp. */
  async tap(endpoint: string): Promise<ZmtpTap> {
    const tap = await ZmtpTap.start(endpoint);
    this.#opened.push(tap);
    return tap;
  }

  /** To bind: a free port, or a path that no other test uses. */
  endpoint(transport: Transport = "tcp"): string {
    return transport === "tcp" ? "tcp://127.0.0.1:0" : `ipc://${this.#folder}/${this.#endpoints++}`;
  }

  /** Connects the sockets, and waits until both are ready. The first one binds. Returns its endpoint. */
  async link(binder: PeerSocket, connecter: PeerSocket, transport: Transport = "tcp"): Promise<string> {
    const endpoint = await binder.bind(this.endpoint(transport));
    await connecter.connect(endpoint);
    await Promise.all([binder.happened("ready"), connecter.happened("ready")]);
    return endpoint;
  }
}
