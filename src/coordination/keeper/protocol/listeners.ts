/**
 * The keeper's listening sockets. Owns the files of its unix sockets: creates them, restores them when they are
 * removed, and deletes no other files.
 */
import { chmodSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { errorMessage } from "../../../base/errors.ts";
import {
  type AcceptConnection,
  type Address,
  type Listen,
  type Listener,
  type TlsSource,
} from "../../../base/sockets/connection.ts";
import { takeListenAddress } from "../../../base/sockets/take_address.ts";

export interface KeeperListenersOptions {
  readonly listen: Listen;
  readonly accept: (address: Address) => AcceptConnection;
  /**
   * The folder that this keeper owns. If another process listens in this folder, it is a keeper that no longer owns the
   * data.
   */
  readonly dataDir: string;
  /** Unix sockets that every user may connect to. */
  readonly openSocketPaths: readonly string[];
  /** The most TLS handshakes at the same time. */
  readonly handshakesMax: number;
  /** Receives sentences for the operator. */
  readonly log: (sentence: string) => void;
}

interface ListenerRecord {
  /** The address with the port that the system chose. */
  readonly address: Address;
  /** The listener. Null after the socket's file was removed, until the address can be bound again. */
  listener: Listener | null;
  /** The inode of the socket's file; null for TCP. */
  inode: number | null;
}

export class KeeperListeners {
  readonly #options: KeeperListenersOptions;
  readonly #records: ListenerRecord[] = [];
  #closed = false;
  #restoring: Promise<void> | null = null;
  /** The last failure that was logged. The keeper tries to bind every second, but logs the same failure only once. */
  #loggedFailure: string | null = null;

  constructor(options: KeeperListenersOptions) {
    this.#options = options;
  }

  get addresses(): Address[] {
    return this.#records.map(({ address }) => address);
  }

  /**
   * Listens at an address; `tls` is used only for TCP. The keeper must already own the data directory. Replaces a stale
   * socket. Throws CANNOT_CREATE if another process listens at a socket outside the data directory: that process has
   * other data and may have granted the same locks.
   */
  async open(address: Address, tls: TlsSource | undefined): Promise<void> {
    const listener = await this.#listen(address, tls);
    this.#records.push({ address: listener.address, listener, inode: inodeAt(address) });
  }

  /** Binds sockets again if their files were removed. If this fails, the next call retries. Never rejects. */
  restore(): Promise<void> {
    return this.#restoring ??= this.#restore().then(() => this.#loggedFailure = null, (error) => {
      const failure = errorMessage(error);
      if (failure !== this.#loggedFailure) this.#options.log(failure);
      this.#loggedFailure = failure;
    }).then(() => void (this.#restoring = null));
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#restoring;
    for (const { address, listener, inode } of this.#records) {
      if (address.kind === "unix") {
        // Closing a unix listener deletes the file at its path, even a file that another keeper has created. In that
        // case, the listener is not closed: it is unreachable and ends with the process.
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

  async #listen(address: Address, tls: TlsSource | undefined): Promise<Listener> {
    const accept = this.#options.accept(address);
    const { listen, handshakesMax } = this.#options;
    if (address.kind === "tcp") {
      return await takeListenAddress(
        address,
        () => listen(address, accept, tls === undefined ? {} : { tls, handshakesMax }),
      );
    }
    const bind = async () => {
      const forAll = this.#options.openSocketPaths.includes(address.path);
      createFolder(dirname(address.path), forAll);
      const listener = await listen(address, accept);
      if (forAll) chmodSync(address.path, 0o666);
      return listener;
    };
    return await takeListenAddress(address, bind, { mayTakeOver: dirname(address.path) === this.#options.dataDir });
  }
}

/** Creates a missing folder. If all users may use the socket, gives them access to the folder whatever the umask is. */
function createFolder(path: string, forAll: boolean): void {
  const made = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (made !== undefined && forAll) chmodSync(path, 0o755);
}

/** Returns the inode of the socket's file, or null for TCP or if the file cannot be seen. */
function inodeAt(address: Address): number | null {
  if (address.kind === "tcp") return null;
  try {
    return statSync(address.path).ino;
  } catch {
    return null;
  }
}
