/** The server's side of the lock protocol, as values: one lock's container, its queue and its grants. */
import { emptyLedger, type Ledger, textOf as textOfLedger } from "./ledger_model.ts";

export interface Node {
  readonly name: string;
  /** The session that the node goes with. */
  readonly owner: string;
}

/** Null is a container that does not exist. A server is never changed: every write makes another one. */
export interface Server {
  readonly version: number | null;
  readonly queue: readonly Node[] | null;
  /** Oldest first: the order of their zxids. */
  readonly grants: readonly Node[] | null;
  readonly sequence: number;
  /** Counts what tokens are made of: creations and grants. */
  readonly zxid: number;
  /** The highest token given out so far. */
  readonly token: number;
  /** An election's; null for a lock. */
  readonly ledger: Ledger | null;
}

/** Emptied but not yet reaped: a version that has already moved is the harder start. */
export const usedServer: Server = { version: 1, queue: [], grants: [], sequence: 0, zxid: 0, token: 0, ledger: null };

const texts = new WeakMap<Server, string>();
export function textOf(server: Server): string {
  let text = texts.get(server);
  if (text === undefined) {
    const nodes = (list: readonly Node[] | null) => list?.map((node) => `${node.name}=${node.owner}`).join() ?? "-";
    const sequence = server.queue === null || server.queue.length === 0 ? 0 : server.sequence;
    text = `${server.version}[${nodes(server.queue)}][${
      nodes(server.grants)
    }]${sequence}.${server.zxid}.${server.token}${server.ledger === null ? "" : textOfLedger(server.ledger)}`;
    texts.set(server, text);
  }
  return text;
}

export const namesOf = (nodes: readonly Node[] | null): string[] => (nodes ?? []).map((node) => node.name);

/** Whatever container is missing is made, in one transaction with the contender. */
export function withContender(
  server: Server,
  prefix: string,
  owner: string,
  sticks: boolean,
): { server: Server; name: string } {
  // Only the order counts, so that an empty queue may begin again: fewer states.
  const sequence = (server.queue ?? []).length === 0 ? 0 : server.sequence;
  const name = prefix + String(sequence).padStart(10, "0");
  return {
    name,
    server: {
      ...server,
      version: server.version ?? 0,
      grants: server.version === null ? null : server.grants,
      queue: [...(server.queue ?? []), { name, owner }],
      sequence: sticks ? sequence : sequence + 1,
    },
  };
}

export function withoutContender(server: Server, name: string): Server {
  return server.queue === null ? server : { ...server, queue: server.queue.filter((node) => node.name !== name) };
}

export function withoutGrant(server: Server, name: string): Server {
  return server.grants === null ? server : { ...server, grants: server.grants.filter((node) => node.name !== name) };
}

export function hasSession(server: Server, owner: string): boolean {
  return [...(server.queue ?? []), ...(server.grants ?? [])].some((node) => node.owner === owner);
}

export function withoutSession(server: Server, owner: string): Server {
  const others = (nodes: readonly Node[] | null) => nodes?.filter((node) => node.owner !== owner) ?? null;
  return { ...server, queue: others(server.queue), grants: others(server.grants) };
}

export function withoutPath(server: Server): Server {
  const ledger = server.ledger === null ? null : emptyLedger;
  return { ...server, version: null, queue: null, grants: null, sequence: 0, ledger };
}

/** Every emptied container that may be reaped now, taken away. */
export function reaped(server: Server): Server[] {
  const results: Server[] = [];
  if (server.grants?.length === 0) results.push({ ...server, grants: null });
  if (server.queue?.length === 0) results.push({ ...server, queue: null, sequence: 0 });
  const isContainer = server.ledger === null; // an election's node is an ordinary one
  if (isContainer && server.version !== null && server.grants === null && server.queue === null) {
    results.push({ ...server, version: null });
  }
  return results;
}
