/** The states of the model of a topic that moves between stores, and what the database does. */
import type { TopicNode } from "../../../src/pubsub/ownership/topic_node.ts";
import type { DroppedCopy, StagedCopy, TopicCopy } from "../../../src/pubsub/store/operations/owned_store.ts";

/** Ways to build the protocol wrong: each must be found. */
export type TransferMistake =
  | "opens sealed rows at the same epoch"
  | "sends before it has sealed"
  | "opens rows of an earlier time"
  | "drops rows without comparing the epoch"
  | "replaces rows without comparing the epoch"
  | "drops its rows when the topic is taken"
  | "takes an unknown activation for done"
  | "takes topics of another store over"
  | "names the sender's store when it takes"
  | "does not name its store when it takes"
  | "does not return what the database has lost"
  | "takes back without comparing"
  | "activates what was staged twice";

export interface TransferOptions {
  readonly startsAt: "a" | "p1";
  readonly puts: number;
  readonly moves: number;
  readonly faults: number;
  /** A fault may be a fail-over of the database that loses staged rows; an operator may forget a server. */
  readonly losesStaged?: boolean;
  readonly forgets?: boolean;
  readonly mistakes?: readonly TransferMistake[];
}

export type Answering = "p1" | "p2";

export interface VersionedNode {
  readonly value: TopicNode;
  readonly version: number;
}

/** Rows of the topic in the database, of one incarnation. */
export interface Row {
  readonly id: number;
  place: "served" | "staged";
  epoch: number;
  revision: number;
  owner: string;
  sealedFor: string | null;
  sender: string;
  log: string;
}

export interface Opened {
  row: number;
  readonly epoch: number;
  readonly revision: number;
  readonly log: string;
  readonly sealedFor: string | null;
}

export interface Statement {
  readonly id: number;
  readonly server: Answering;
  readonly kind:
    | "open"
    | "put"
    | "confirm"
    | "seal"
    | "stage"
    | "replace"
    | "activate"
    | "drop"
    | "drop unopened"
    | "discard";
  readonly row: number;
  readonly epoch: number;
  readonly revision: number;
  /** A message, a log, a receiver, or the epoch of a drop. */
  readonly value: string;
  readonly sender: string;
  result: null | { readonly outcome: "done" | "nothing"; readonly opened: Opened | null };
}

export interface SharedServer {
  hasSession: boolean;
  /** The node as read last in this session. */
  known: VersionedNode | null;
  opened: Opened | null;
  /** The statement that it waits for, and the put behind it. */
  waitsFor: number;
  request: string | null;
}

export interface PrivateServer {
  hasSession: boolean;
  known: VersionedNode | null;
  copy: { epoch: number; sealedFor: string | null; log: string } | null;
  staged: StagedCopy & { readonly log: string } | null;
  dropped: DroppedCopy | null;
}

export interface TransferState {
  node: VersionedNode;
  a: PrivateServer;
  p1: SharedServer;
  p2: SharedServer;
  rows: Row[];
  dropped: DroppedCopy | null;
  nextRow: number;
  statements: Statement[];
  nextId: number;
  /** Sealed content on its way: each may arrive at any time, any number of times. */
  transfers: { readonly to: string; readonly owner: string; readonly epoch: number; readonly log: string }[];
  acknowledged: string[];
  moves: number;
  faults: number;
  broken: string | null;
}

export function firstTransferState({ startsAt, moves, faults }: TransferOptions): TransferState {
  const isPrivate = startsAt === "a";
  const node = { owner: startsAt, epoch: 1, state: "stored", incarnation: "b", baseOffset: 0, source: null } as const;
  const server = (): SharedServer => ({ hasSession: true, known: null, opened: null, waitsFor: 0, request: null });
  const first: Row = {
    ...{ id: 1, place: "served", epoch: 1, revision: 0, owner: "p1", sealedFor: null, sender: "", log: "" },
  };
  return {
    node: { value: isPrivate ? node : { ...node, store: "db" }, version: 0 },
    a: {
      ...{ hasSession: true, known: null, staged: null, dropped: null },
      copy: isPrivate ? { epoch: 1, sealedFor: null, log: "" } : null,
    },
    ...{ p1: server(), p2: server(), rows: isPrivate ? [] : [first], dropped: null, nextRow: 2 },
    ...{ statements: [], nextId: 1, transfers: [], acknowledged: [], moves, faults, broken: null },
  };
}

export const isServer = (id: string): id is "a" | Answering => id === "a" || id === "p1" || id === "p2";
export const content = (of: { readonly log: string } | null | undefined): string | null => of?.log ?? null;
export const ownCopy = ({ epoch, sealedFor }: Pick<TopicCopy, "epoch" | "sealedFor">): TopicCopy => (
  { incarnation: "b", baseOffset: 0, epoch, sealedFor }
);

/** Runs a statement in the database: it is one transaction. */
export function runStatement(
  state: TransferState,
  statement: Statement,
  has: (mistake: TransferMistake) => boolean,
): void {
  const { kind, server, epoch, value } = statement;
  const served = state.rows.find(({ place }) => place === "served");
  const row = state.rows.find(({ id }) => id === statement.row);
  const done = (opened: Row | null) => {
    const { id = 0, epoch: at = 0, revision = 0, log = "", sealedFor = null } = opened ?? {};
    statement.result = { outcome: "done", opened: opened && { row: id, epoch: at, revision, log, sealedFor } };
  };
  const remove = (gone: Row, noted: number | null) => {
    state.rows = state.rows.filter((one) => one !== gone);
    if (noted !== null) state.dropped = { incarnation: "b", epoch: noted };
    done(null);
  };
  statement.result = { outcome: "nothing", opened: null };
  switch (kind) {
    case "open": {
      if (served === undefined || served.epoch > epoch || (served.epoch === epoch && served.owner !== server)) return;
      const unseals = served.epoch < epoch || has("opens sealed rows at the same epoch");
      Object.assign(served, { epoch, owner: server, revision: served.revision + 1 });
      if (unseals) served.sealedFor = null;
      return done(served);
    }
    case "stage": {
      if (state.rows.some(({ place }) => place === "staged")) return; // the place of a name is unique
      const made: Row = {
        ...{ id: state.nextRow++, place: "staged", epoch, revision: 0, owner: server, sealedFor: null },
        ...{ sender: statement.sender, log: value },
      };
      state.rows.push(made);
      return done(null);
    }
    case "replace": {
      const isOlder = has("replaces rows without comparing the epoch") || (served?.epoch ?? 0) < epoch;
      if (served !== undefined && isOlder) return remove(served, null);
      return done(null);
    }
    case "activate":
      if (row?.place !== "staged" || served !== undefined) return;
      Object.assign(row, { place: "served", epoch, owner: server, revision: row.revision + 1, sender: "" });
      return done(row);
    case "drop unopened": {
      const isOlder = has("drops rows without comparing the epoch") || (served?.epoch ?? epoch) < epoch;
      return served !== undefined && isOlder ? remove(served, epoch) : done(null);
    }
    case "discard":
      if (row?.place === "staged") return remove(row, null);
      return done(null);
    default: {
      const isMine = row?.epoch === epoch && row.revision === statement.revision;
      if (row === undefined || !isMine) return;
      if (kind !== "seal" && kind !== "drop" && row.sealedFor !== null) return;
      if (kind === "drop") return remove(row, Number(value));
      row.revision++;
      if (kind === "put") row.log += value;
      if (kind === "seal") row.sealedFor = value;
      return done(row);
    }
  }
}
