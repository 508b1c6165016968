/** What sessions did while servers failed under them, as far as each of them was told. Judged by judge.ts. */

/** "done", or the reason that the client rejected with. */
export type Outcome = string;

/** A sequential create whose node's name begins with an id that is used once. */
export interface Append {
  readonly id: string;
  readonly outcome: Outcome;
  /** The node's name as the server gave it; null without an answer. */
  readonly name: string | null;
}

/** A read or a write of a register, in the order in which a session's calls were answered. */
export interface Access {
  readonly session: number;
  readonly node: string;
  readonly kind: "read" | "write";
  readonly outcome: Outcome;
  /** Of the node behind it; null without an answer. */
  readonly stat: { readonly version: number; readonly mzxid: bigint } | null;
}

/** From the grant to the moment before the release, on one clock. */
export interface Held {
  readonly lock: string;
  readonly token: bigint;
  readonly fromMs: number;
  readonly toMs: number;
}

export class History {
  readonly appends: Append[] = [];
  readonly accesses: Access[] = [];
  readonly held: Held[] = [];
  /** Paths of nodes of locks whose deletion was acknowledged. */
  readonly deleted = new Set<string>();
  /** What no client may say, whatever happens to the servers. */
  readonly surprises: string[] = [];
  /** The longest time that one call took to be answered or given up, in milliseconds. */
  slowestMs = 0;
  /** Calls that are neither answered nor given up. */
  open = 0;
}
