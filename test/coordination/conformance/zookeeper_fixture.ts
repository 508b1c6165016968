/**
 * One running server for a suite, connections that are closed after each test, and a place of its own for each test.
 */
import { createHash } from "node:crypto";
import { afterAll, afterEach, beforeAll } from "bun:test";
import type { Address } from "../../../src/base/sockets/connection.ts";
import { aclPermission, createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl } from "../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import type { Backend, RunningBackend } from "../../support/backends.ts";
import { RawClient, type RawConnectOptions } from "../../support/raw_client.ts";

/** Short ticks, so that a session's end does not take seconds. All in milliseconds. */
export const timing = { tickTimeMs: 200, sessionTimeoutMinMs: 600, sessionTimeoutMaxMs: 20_000, containerCheckMs: 300 };

export const openAcl: Acl[] = [{ perms: aclPermission.all, id: { scheme: "world", id: "anyone" } }];

export const bytes = (text: string) => new TextEncoder().encode(text);
export const text = (data: Uint8Array | null) => data === null ? null : new TextDecoder().decode(data);

/** What a create sends; a persistent node with the data "x" unless said otherwise. */
export function node(path: string, more: { data?: Uint8Array | null; acl?: Acl[] | null; flags?: number } = {}) {
  return { path, data: bytes("x"), acl: openAcl, flags: createFlag.persistent as number, ...more };
}

export class Fixture {
  readonly backend: Backend;
  #running: RunningBackend | null = null;
  readonly #clients: RawClient[] = [];
  #roots = 0;

  constructor(backend: Backend) {
    this.backend = backend;
    beforeAll(async () => {
      this.#running = await backend.start({ ...timing, superDigest: superUser.digest });
    }, 60_000);
    afterEach(async () => {
      const clients = this.#clients.splice(0);
      await Promise.all(clients.map((client) => client.drop()));
      const sessions = new Map(clients.map(({ sessionId, hello }) => [sessionId, hello.passwd]));
      await Promise.all([...sessions].map(([sessionId, passwd]) => this.#endSession(sessionId, passwd)));
    });
    afterAll(async () => await this.#running?.close());
  }

  /** One that expired later would take a zxid in the middle of another test. */
  async #endSession(sessionId: bigint, passwd: Uint8Array | null): Promise<void> {
    if (sessionId === 0n || passwd === null) return;
    const again = await RawClient.connect(this.address, { sessionId, passwd });
    if (again.sessionId === 0n) await again.drop(); // it has ended
    else await again.close();
  }

  get running(): RunningBackend {
    if (this.#running === null) throw new Error("The server has not been started");
    return this.#running;
  }

  get address(): Address {
    const [first] = this.running.nodes;
    if (first === undefined) throw new Error("The server has no node");
    return first.address;
  }

  async connect(options?: RawConnectOptions): Promise<RawClient> {
    return this.keep(await RawClient.connect(this.address, options));
  }

  /** Before any handshake. */
  async open(): Promise<RawClient> {
    return this.keep(await RawClient.open(this.address));
  }

  keep(client: RawClient): RawClient {
    this.#clients.push(client);
    return client;
  }

  /** A persistent node that no other test uses. */
  async root(client: RawClient): Promise<string> {
    const path = `/t${this.#roots++}`;
    const { err } = await client.call("create", node(path));
    if (err !== 0) throw new Error(`Cannot create ${path}: ${err}`);
    return path;
  }
}

/** `digest` is base64(sha1("super:secret")). */
export const superUser = { credentials: "super:secret", digest: `super:${sha1Base64("super:secret")}` };

export function sha1Base64(value: string): string {
  return createHash("sha1").update(value).digest("base64");
}
