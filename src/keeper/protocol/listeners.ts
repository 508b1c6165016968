/**
 * Where a keeper listens. Owns its sockets' files: they are put there, guarded against people who tidy up, and taken away
 * again, but only as long as they are this keeper's own.
 */
import { chmodSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { BatonError, messageOf } from "../../errors.ts";
import { type Accept, type Address, formatAddress, type Listener, type TlsOptions } from "../../sockets/connection.ts";
import { clearSocketPath } from "../../sockets/clear_socket_path.ts";
import { listen } from "../../sockets/listen.ts";
import { whyNotListening } from "../../sockets/why_not_listening.ts";

export type AcceptAt = (address: Address) => Accept;

export interface ListenersOptions {
  readonly accept: AcceptAt;
  /** Owned by this keeper: whoever listens at a socket in it is another one that has lost the data. */
  readonly dataDir: string;
  /** Unix sockets that every user may connect to. */
  readonly openSocketPaths: readonly string[];
  /** TLS handshakes at the same time. */
  readonly handshakesMax: number;
  /** Hears what an operator should know, a sentence at a time. */
  readonly log: (sentence: string) => void;
}

interface ListenerRecord {
  /** With the port that the system chose. */
  readonly address: Address;
  /** Null between a socket that somebody removed and the next that can be bound. */
  listener: Listener | null;
  /** The number of the socket's file; null for TCP. */
  inode: number | null;
}

export class Listeners {
  readonly #options: ListenersOptions;
  readonly #records: ListenerRecord[] = [];
  #closed = false;
  #restoring: Promise<void> | null = null;
  /** What was said of it last: a folder that is gone is tried every second, and told of once. */
  #loggedFailure: string | null = null;

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  get addresses(): Address[] {
    return this.#records.map(({ address }) => address);
  }

  /**
   * TLS is for TCP. The data directory has to be owned already. A socket that is left over is replaced; anywhere else than in that
   * folder one that somebody answers at is not: he has data of his own, and may have granted the same locks. Throws CANNOT_CREATE.
   */
  async open(address: Address, tls: TlsOptions | undefined): Promise<void> {
    const listener = await this.#listen(address, tls);
    this.#records.push({ address: listener.address, listener, inode: inodeAt(address) });
  }

  /** Binds again what somebody removed; what cannot be bound now is tried again by the next call. Never rejects. */
  restore(): Promise<void> {
    return this.#restoring ??= this.#restore().then(() => this.#loggedFailure = null, (error) => {
      const failure = messageOf(error);
      if (failure !== this.#loggedFailure) this.#options.log(failure);
      this.#loggedFailure = failure;
    }).then(() => void (this.#restoring = null));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#restoring;
    for (const { address, listener, inode } of this.#records) {
      if (address.kind === "unix") {
        // Closing a unix listener removes the file of that name, whoever put it there. One that stands for another keeper
        // by now must stay; this one's is unreachable, and ends with the process.
        const found = inodeAt(address);
        if (found !== null && found !== inode) continue;
        rmSync(address.path, { force: true });
      }
      await listener?.close();
    }
  }

  async #restore(): Promise<void> {
    const failures: unknown[] = [];
    for (const record of this.#records) {
      if (record.address.kind === "tcp" || record.listener !== null && inodeAt(record.address) !== null) continue;
      await record.listener?.close();
      record.listener = null;
      if (this.#closed) return;
      try {
        record.listener = await this.#listen(record.address, undefined);
        record.inode = inodeAt(record.address);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  async #listen(address: Address, tls: TlsOptions | undefined): Promise<Listener> {
    const accept = this.#options.accept(address);
    const { handshakesMax } = this.#options;
    try {
      if (address.kind === "tcp") return await listen(address, accept, tls === undefined ? {} : { tls, handshakesMax });
      const forAll = this.#options.openSocketPaths.includes(address.path);
      createFolder(dirname(address.path), forAll);
      await clearSocketPath(address.path, { mayTakeOver: dirname(address.path) === this.#options.dataDir });
      const listener = await listen(address, accept);
      if (forAll) chmodSync(address.path, 0o666);
      return listener;
    } catch (error) {
      const message = `The keeper cannot listen on ${formatAddress(address)}: ${await whyNotListening(error, address)}`;
      throw new BatonError("CANNOT_CREATE", message, { cause: error });
    }
  }
}

/** A folder that is there is left as it is. The umask, which keeps others out of the data, must not keep them out of this. */
function createFolder(path: string, forAll: boolean): void {
  const made = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (made !== undefined && forAll) chmodSync(path, 0o755);
}

/** The number of the socket's file; null when there is none that can be seen, and for TCP. */
function inodeAt(address: Address): number | null {
  if (address.kind === "tcp") return null;
  try {
    return statSync(address.path).ino;
  } catch {
    return null;
  }
}
