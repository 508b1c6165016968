/**
 * What postgres_claims_model.ts is about: the rows of a database and of its standby, statements, processors; and how
 * they change.
 */
import type { Transition } from "../../support/explore.ts";

export type MessageState = "none" | "waiting" | "in_flight" | "done" | "dead";
export interface Message {
  readonly state: MessageState;
  /** The number of the last claim. */
  readonly fence: number;
  /** Raised by each change of the state. */
  readonly rev: number;
  readonly owner: number;
  readonly turn: boolean;
  readonly copies: number;
  /** Tries that ended with success. */
  readonly succeeded: number;
}

/** The row of a processor in the database. */
export interface ProcessorRow {
  readonly epoch: number;
  readonly lease: "held" | "over" | "ended" | "gone";
}

export interface Claimed {
  readonly message: number;
  readonly fence: number;
  readonly rev: number;
}

export type Phase =
  | "new"
  | "idle"
  | "claimed"
  | "trying"
  | "tried"
  | "claim_unknown"
  | "fenced"
  | "finish_unknown"
  | "comparing";
export interface Worker {
  readonly phase: Phase;
  readonly id: number;
  readonly epoch: number;
  readonly claimed: Claimed | null;
  /** Its own clock says that the lease is over. */
  readonly isOver: boolean;
  /** A try that has ended and is not recorded yet. */
  readonly ended: Claimed | null;
  /** It has a new connection since it last gave back what it does not know. */
  readonly reconnected: boolean;
}

export interface Statement {
  /** The worker that waits for the reply, -1: none; -2: the acceptor. */
  readonly client: number;
  readonly kind: "claim" | "finish" | "compare" | "fence" | "give_back" | "accept";
  readonly id: number;
  readonly epoch: number;
  readonly target: Claimed | null;
  /** What was read before the commit; null: nothing yet. */
  readonly seen: readonly boolean[] | null;
  /** The result, which is on its way to the client. */
  readonly result: readonly Claimed[] | "recorded" | "not mine" | "undone" | null;
  /** The standby has what it has written. */
  readonly isConfirmed: boolean;
}

/** What a promoted standby has. */
export interface Rows {
  readonly messages: readonly Message[];
  readonly processors: readonly ProcessorRow[];
}

export interface World {
  readonly messages: readonly Message[];
  readonly processors: readonly ProcessorRow[];
  readonly workers: readonly Worker[];
  readonly statements: readonly Statement[];
  readonly accepted: number;
  readonly redriven: boolean;
  readonly faults: number;
  /** Null: there is none. */
  readonly standby: Rows | null;
  readonly failovers: number;
  /** Messages whose processor was told that their result is stored. */
  readonly recorded: readonly boolean[];
  readonly wrong: string | null;
}

export const noMessage: Message = { state: "none", fence: 0, rev: 0, owner: -1, turn: false, copies: 0, succeeded: 0 };
export const newWorker: Worker = {
  phase: "new",
  id: -1,
  epoch: 0,
  claimed: null,
  isOver: false,
  ended: null,
  reconnected: false,
};
export const isOpen = ({ state }: Message): boolean => state === "waiting" || state === "in_flight";

export function hasEverything({ messages, processors, standby }: World): boolean {
  return standby === null || JSON.stringify(standby) === JSON.stringify({ messages, processors });
}

export function step(label: string, state: World): Transition<World> {
  return { kind: "step", label, state };
}

export function send(world: World, statement: Omit<Statement, "seen" | "result" | "isConfirmed">): World {
  const sent = { ...statement, seen: null, result: null, isConfirmed: false };
  return { ...world, statements: [...world.statements, sent] };
}

export function replace(world: World, at: number, statement: Statement): World {
  return { ...world, statements: world.statements.with(at, statement) };
}

export function changeWorker(world: World, at: number, changes: Partial<Worker>): World {
  return { ...world, workers: world.workers.with(at, { ...world.workers[at] as Worker, ...changes }) };
}

/** Changes a message under its next revision. */
export function write(world: World, at: number, changes: Partial<Message>): World {
  const row = world.messages[at] as Message;
  return { ...world, messages: world.messages.with(at, { ...row, ...changes, rev: row.rev + 1 }) };
}

/** No client waits for the statement of this worker; it may still run. */
export function orphaned(world: World, at: number): World {
  const statements = world.statements.filter(({ client, result }) => client !== at || result === null)
    .map((one) => (one.client === at ? { ...one, client: -1 } : one));
  return { ...world, statements };
}
