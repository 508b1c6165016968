/**
 * One bound endpoint. Owns the listener and, for ipc, the socket's file: one that nobody answers at is taken away before, this
 * one's own at the end.
 */
import { type BigIntStats, lstatSync, rmSync } from "node:fs";
import { BatonError, messageOf } from "../../errors.ts";
import type { Address } from "../../sockets/connection.ts";
import type { Accept, Listener } from "../../sockets/listen.ts";
import { throwIfAborted } from "../../support/abort.ts";
import { deadlineAfter } from "../../support/deadline.ts";
import { formatEndpoint } from "./endpoint.ts";
import type { ResolvedOptions } from "./socket_options.ts";

/** Whoever listens on a socket of this machine answers sooner. */
const answerMsMax = 2000;

export class Binding {
  /** With the port that the system chose. */
  readonly endpoint: string;
  readonly #listener: Listener;
  readonly #file: BigIntStats | null;

  constructor(listener: Listener) {
    this.#listener = listener;
    this.endpoint = formatEndpoint(listener.address);
    this.#file = statsOf(listener.address);
  }

  async close(): Promise<void> {
    const { address } = this.#listener;
    if (address.kind === "unix") {
      try {
        // Closing a unix listener removes the file of that name, whoever put it there. One that stands for somebody else by
        // now must stay: then this listener, which nobody can reach any more, is left to the end of the process.
        const found = statsOf(address);
        if (found !== null && !isSameFile(found, this.#file)) return;
        rmSync(address.path, { force: true });
      } catch {
        // Not this user's to look at or to remove any more: the file stays, and nobody listens behind it.
      }
    }
    await this.#listener.close();
  }
}

/** Listens. Throws CANNOT_CREATE, or the signal's reason. */
export async function bind(
  address: Address,
  accept: Accept,
  { options, signal }: { readonly options: ResolvedOptions; readonly signal: AbortSignal | undefined },
): Promise<Binding> {
  throwIfAborted(signal);
  try {
    if (address.kind === "unix") await clearPath(address, options);
    throwIfAborted(signal);
    return new Binding(await options.listen(address, accept));
  } catch (error) {
    throwIfAborted(signal);
    const why = reasons[codeOf(error)] ?? messageOf(error);
    const message = `Cannot listen on ${formatEndpoint(address)}: ${why}`;
    throw new BatonError("CANNOT_CREATE", message, { cause: error });
  }
}

const inUse = "somebody else listens there already";

/** What Bun leaves out of its messages. */
const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: inUse,
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user may not listen there",
  ENOENT: "there is no such folder",
};

/** Removes a socket at which nobody answers; whatever else stands there stays. */
async function clearPath(address: Address & { kind: "unix" }, options: ResolvedOptions): Promise<void> {
  const found = statsOf(address);
  if (found === null) return;
  if (!found.isSocket()) throw new Error("a file that is no socket stands there");
  if (await isAnswered(address, options)) throw new Error(inUse);
  const again = statsOf(address);
  // Somebody else may have cleared it and bound in the meantime.
  if (again !== null && !isSameFile(again, found)) throw new Error(inUse);
  rmSync(address.path, { force: true });
}

async function isAnswered(address: Address, { dial, clock }: ResolvedOptions): Promise<boolean> {
  const deadline = deadlineAfter(clock, answerMsMax, { reason: () => new Error("no answer") });
  try {
    const connection = await dial(address, { data() {}, closed() {} }, { signal: deadline.signal });
    connection.destroy();
    return true;
  } catch (error) {
    // Anything else, such as a queue of connections that is full, is no proof that nobody is there.
    return !["ECONNREFUSED", "ENOENT"].includes(codeOf(error));
  } finally {
    deadline.cancel();
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** The socket's file; null when there is none, and for TCP. */
function statsOf(address: Address): BigIntStats | null {
  if (address.kind !== "unix") return null;
  return lstatSync(address.path, { bigint: true, throwIfNoEntry: false }) ?? null;
}

/** The number of a file that was removed is given to the next one at once, which has another time; a change of mode has not. */
function isSameFile(one: BigIntStats, other: BigIntStats | null): boolean {
  return one.ino === other?.ino && one.dev === other.dev && one.mtimeNs === other.mtimeNs;
}
