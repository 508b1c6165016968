/**
 * Where a keeper listens. Owns its sockets' files: they are put there, guarded against people who tidy up, and taken away
 * again, but only as long as they are this keeper's own.
 */
import { chmodSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { BatonError, messageOf } from "../errors.ts";
import { type Address, formatAddress, type TlsOptions } from "../sockets/connection.ts";
import { type Accept, listen, type Listener } from "../sockets/listen.ts";

export type AcceptAt = (address: Address) => Accept;

export interface ListenersOptions {
  readonly accept: AcceptAt;
  /** Unix sockets that every user may connect to. */
  readonly openSocketPaths: readonly string[];
}

interface Open {
  readonly listener: Listener;
  /** The number of the socket's file; null for TCP. */
  readonly inode: number | null;
}

export class Listeners {
  readonly #options: ListenersOptions;
  #open: Open[] = [];
  #closed = false;

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  get addresses(): Address[] {
    return this.#open.map(({ listener }) => listener.address);
  }

  /** TLS is for TCP. The data directory has to be owned already: what is in the way of a socket is then left over. Throws CANNOT_CREATE. */
  async open(address: Address, tls: TlsOptions | undefined): Promise<void> {
    const accept = this.#options.accept(address);
    try {
      if (address.kind === "tcp") {
        const listener = await listen(address, accept, tls === undefined ? {} : { tls });
        this.#open.push({ listener, inode: null });
        return;
      }
      const forAll = this.#options.openSocketPaths.includes(address.path);
      mkdirSync(dirname(address.path), { recursive: true, mode: forAll ? 0o755 : 0o700 });
      rmSync(address.path, { force: true });
      const listener = await listen(address, accept);
      this.#open.push({ listener, inode: inodeOf(address.path) });
      if (forAll) chmodSync(address.path, 0o666);
    } catch (error) {
      const message = `The keeper cannot listen on ${formatAddress(address)}: ${messageOf(error)}`;
      throw new BatonError("CANNOT_CREATE", message, { cause: error });
    }
  }

  /** Binds again what somebody removed. Throws CANNOT_CREATE. */
  async restore(): Promise<void> {
    for (const one of [...this.#open]) {
      const { address } = one.listener;
      if (address.kind !== "unix" || inodeOf(address.path) !== null) continue;
      this.#open = this.#open.filter((other) => other !== one);
      await one.listener.close();
      if (!this.#closed) await this.open(address, undefined);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const { listener, inode } of this.#open) {
      const { address } = listener;
      if (address.kind === "unix") {
        // Closing a unix listener removes the file of that name, whoever put it there. One that stands for another keeper
        // by now must stay; this one's is unreachable, and ends with the process.
        const found = inodeOf(address.path);
        if (found !== null && found !== inode) continue;
        rmSync(address.path, { force: true });
      }
      await listener.close();
    }
  }
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
