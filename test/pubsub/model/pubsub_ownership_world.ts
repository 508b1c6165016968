/** What every part of the topic ownership model knows: its options, its states, its mistakes. */
import type { StagedCopy, TopicCopy } from "../../../src/pubsub/store/operations/owned_store.ts";
import type { TopicNode } from "../../../src/pubsub/ownership/topic_node.ts";

export type Fault =
  | "lost reply"
  | "crash"
  | "crash in a write"
  | "lag"
  | "lease"
  | "forget"
  | "delete"
  | "disk lost"
  | "put back"
  | "tree lost";

/** Ways to build the protocol wrong: each must be found out. */
export type Mistake =
  | "opens a sealed copy after a restart"
  | "takes back without a write"
  | "takes back without a version"
  | "takes without a version"
  | "stages in memory only"
  | "answers for whatever it has stored"
  | "drops its copy when the receiver has it"
  | "drops before the new owner has confirmed"
  | "does not look at its lease"
  | "looks at its lease before the work only"
  | "looks at any lease before the OK"
  | "keeps what it has read when its session ends"
  | "reads before it announces itself"
  | "leaves the cursors behind"
  | "leaves the publishers' windows behind"
  | "stores what was let in before the seal"
  | "sends before it has sealed"
  | "sends more than messages ahead"
  | "stages whatever comes"
  | "a transfer replaces what is stored"
  | "stages without reading, and opens without a state"
  | "forgets a server that is there"
  | "forgets without another incarnation"
  | "goes on answering for what it has deleted"
  | "numbers messages again after a forget"
  | "assigns without a version"
  | "assigns what a dead server has stored"
  | "creates whatever is missing"
  | "does not remember what it dropped"
  | "registers nothing"
  | "registers a sealed copy as open"
  | "takes back in a tree that was made again"
  | "begins a session while the last one is at work"
  | "serves what was put back"
  | "restores without raising numbers"
  | "restores at the same epoch";

export interface OwnershipModelOptions {
  readonly servers: number;
  /** Publishers' messages: each may be put at any time, at any server, any number of times. */
  readonly puts: string;
  /** One subscriber's gets, old ones included. */
  readonly gets?: boolean;
  /** Begins without the topic; this many proxies assign it. */
  readonly proxies?: number;
  /** How many handoffs are asked for. */
  readonly moves: number;
  readonly faults: readonly Fault[];
  /** How many faults there may be in one history. */
  readonly faultsMax: number;
  readonly mistakes?: readonly Mistake[];
}

/** A node of the tree, with the version that guards it. */
export interface Znode {
  readonly value: TopicNode;
  readonly version: number;
}

export interface Content {
  /** Ids of all messages ever stored, one letter each: message n has the sequence number baseOffset + n. */
  readonly log: string;
  /** The subscriber's cursor: the highest sequence number that it is done with. */
  readonly cursor: number;
  /** The publishers' windows: ids that are known as stored. */
  readonly seen: string;
}

export interface StoredCopy extends TopicCopy, Content {}
export interface StoredStaged extends StagedCopy, Content {
  readonly baseOffset: number;
}
export interface Transfer extends StoredStaged {
  readonly to: string;
}

/** A request that was stored and not yet answered. */
export type Request =
  | { readonly kind: "let in"; readonly id: string }
  | { readonly kind: "put"; readonly id: string; readonly seq: number }
  | { readonly kind: "get"; readonly last: number; readonly seq: number; readonly id: string };

export interface Server {
  readonly isUp: boolean;
  /** "over": the servers have ended it, and it does not know. Live is announced, too. */
  readonly session: "none" | "live" | "over";
  readonly hasLease: boolean;
  /** The node as this session's connection sees it; undefined: as it is. */
  readonly view: Znode | null | undefined;
  /** As read last in this session; undefined: not read. */
  readonly known: Znode | null | undefined;
  readonly request: Request | null;
  /** Durable, as all that follows. */
  readonly copy: StoredCopy | null;
  readonly staged: StoredStaged | null;
  readonly dropped: { readonly incarnation: string; readonly epoch: number } | null;
  /** The messages of a copy that was set aside. */
  readonly aside: string | null;
  /** The epoch at which an earlier session is still opening the own copy; null but for a mistake. */
  readonly late: number | null;
  /** Cursor and window as they were when the topic's beginning was sent; null but for a mistake. */
  readonly early: Pick<Content, "cursor" | "seen"> | null;
  /** Its disk as it was at some time: a backup, a snapshot. */
  readonly backup: Disk | null;
  /** The disk is older than what was noted of it: no server starts on it. */
  readonly isOld: boolean;
  /** It once was: what others drop may be nowhere else any more, which an operator accepts. */
  readonly wasOld: boolean;
}

export type Disk = Pick<Server, "copy" | "staged" | "dropped">;

/** What clients have been told. */
export interface Client {
  readonly acked: string;
  /** Up to where the subscriber's cursor is known to be. */
  readonly moved: number;
  /** The last sequence number it was given. */
  readonly received: number;
  readonly returned: string;
  /** Which id was answered for which sequence number, in order of the answers. */
  readonly given: readonly (readonly [seq: number, id: string])[];
}

/** A write of a process that is no more, still on its way. */
export interface Ghost {
  readonly version: number | null;
  readonly next: TopicNode;
}

export interface OwnershipState {
  readonly node: Znode | null;
  /** `servers/<id>`: nobody's, its own session's, or that of an earlier life. */
  readonly present: readonly ("none" | "live" | "dead")[];
  readonly servers: readonly Server[];
  readonly proxies: readonly (Znode | null | undefined)[];
  readonly transfers: readonly Transfer[];
  readonly ghosts: readonly Ghost[];
  readonly client: Client;
  readonly faultsLeft: number;
  readonly movesLeft: number;
  /** An operator has given data up, or a disk has. */
  readonly isForgotten: boolean;
  readonly isDiskLost: boolean;
  readonly isTreeLost: boolean;
  readonly wrong: string | null;
}

export const stopped: Server = {
  isUp: true,
  session: "none",
  hasLease: false,
  view: undefined,
  known: undefined,
  request: null,
  copy: null,
  staged: null,
  dropped: null,
  aside: null,
  late: null,
  early: null,
  backup: null,
  isOld: false,
  wasOld: false,
};

export const emptyContent = (baseOffset: number): Content => ({ log: "", cursor: baseOffset, seen: "" });

export const serverName = (who: number): string => `s${who}`;

export function withServer(state: OwnershipState, who: number, change: Partial<Server>): OwnershipState {
  return { ...state, servers: state.servers.map((server, index) => index === who ? { ...server, ...change } : server) };
}

export function withPresence(state: OwnershipState, who: number, presence: "none" | "live" | "dead"): OwnershipState {
  return { ...state, present: state.present.map((other, index) => index === who ? presence : other) };
}

/** What a sealed copy is sent as. */
export function transferOf(copy: StoredCopy, who: number): Transfer {
  const { sealedFor, ...content } = copy;
  return { ...content, owner: serverName(who), to: sealedFor ?? "" };
}
