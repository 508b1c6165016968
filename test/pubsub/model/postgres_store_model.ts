/**
 * A topic in a database that two servers share: statements that run at any time after their server has given them up,
 * lost replies, kills, sessions that end without their server knowing, and a fail-over to a standby. The decisions
 * about the topic's node are the product's (`decideTopic`); the statements are those of the design, as far as they
 * compare and raise the row.
 *
 * Not in it: the transfer between stores (`store_transfer_model.ts`), several topics, claims of retries.
 *
 * Models: docs/protocol/pubsub_ownership.md, src/pubsub/ownership/topic_decision.ts, src/pubsub/ownership/topic_node.ts
 */
import { decideTopic } from "../../../src/pubsub/ownership/topic_decision.ts";
import type { TopicNode } from "../../../src/pubsub/ownership/topic_node.ts";
import type { Model, Transition, TransitionKind } from "../../support/explore.ts";

export type PostgresStoreMistake =
  | "compares nothing in its statements"
  | "compares the epoch, and not the revision"
  | "takes a unique violation for a repetition"
  | "answers OK before the commit"
  | "reports an unknown outcome as a failure"
  | "reads the rows before it raises the epoch"
  | "takes over at the same epoch"
  | "answers a get from memory"
  | "ignores the warning that the standby did not confirm"
  | "opens by a statement that does not wait for the standby"
  | "answers that there is no message from memory"
  | "tells of a loss from memory"
  | "takes a mark that is not behind for no loss"
  | "does not look for lost commits"
  | "looks for lost commits in its own memory only";

export interface PostgresStoreOptions {
  readonly puts: number;
  readonly gets: boolean;
  /** Connections lost, and servers killed. */
  readonly faults: number;
  readonly expiries: number;
  /** Fail-overs to the standby, and whether commits wait for it. */
  readonly failovers: number;
  readonly isSynchronous: boolean;
  /** How many gets there are where no message is. Without it, repeated puts are answered from memory, too. */
  readonly repeats?: number;
  /** Servers raise a mark in the database and then record it, and it may be lost. */
  readonly marks?: boolean;
  readonly mistakes?: readonly PostgresStoreMistake[];
  /** The unique index of messages is not there either. */
  readonly lacksUniqueIndex?: boolean;
}

/** The topic's rows in a database. */
interface Rows {
  epoch: number;
  revision: number;
  log: (number | null)[];
  position: number;
  timeline: number;
  /** The place of the first message after the loss that was noted; null: none. */
  lossAt: number | null;
  mark: number;
}

/** What a client waits for. `stored`: what was acknowledged before the request. */
type ClientRequest = { kind: "put"; message: number } | { kind: "get"; last: number; epoch: number; stored: number };

interface Statement {
  readonly id: number;
  readonly server: number;
  readonly kind: "open" | "read" | "put" | "move" | "confirm";
  readonly epoch: number;
  readonly revision: number;
  /** The place and number of a message; the new position. */
  readonly place: number;
  readonly value: number;
  /** Rows that were read before, for a server with that mistake. */
  readonly before: Rows | null;
  result: null | { outcome: "done" | "nothing" | "unique violation"; rows: Rows | null; revision: number };
}

interface ServerState {
  hasSession: boolean;
  /** The node as last read. */
  known: TopicNode | null;
  opened: Rows | null;
  /** The statement that is waited for, and the request behind it. */
  waitsFor: number;
  request: ClientRequest | null;
  /** The last revision that this server was told is durable. */
  durable: number;
  /** It has found the loss. */
  foundLoss: boolean;
}

interface State {
  rows: Rows;
  standby: Rows;
  node: TopicNode;
  /** The timeline that was noted when the topic was last opened. */
  notedTimeline: number;
  servers: ServerState[];
  statements: Statement[];
  nextId: number;
  acknowledged: number[];
  failed: number[];
  delivered: (number | null)[];
  /** The server that wrote in each epoch. */
  writers: Record<number, number>;
  lossNamed: boolean;
  /** The mark that the coordination service has. */
  recorded: number;
  faults: number;
  expiries: number;
  failovers: number;
  repeats: number;
  broken: string | null;
}

const firstRows = (): Rows => ({ epoch: 1, revision: 0, log: [], position: 0, timeline: 1, lossAt: null, mark: 0 });
const firstNode: TopicNode = {
  ...{ owner: "s0", epoch: 1, state: "stored", incarnation: "b", baseOffset: 0, source: null, store: "db" },
};

export class PostgresStoreModel implements Model<State> {
  readonly #options: PostgresStoreOptions;
  readonly initial: readonly State[];

  constructor(options: PostgresStoreOptions) {
    this.#options = options;
    const server = (known: TopicNode | null): ServerState => (
      { hasSession: true, known, opened: null, waitsFor: 0, request: null, durable: 0, foundLoss: false }
    );
    const { faults, expiries, failovers } = options;
    this.initial = [{
      ...{
        rows: firstRows(),
        standby: firstRows(),
        node: firstNode,
        notedTimeline: 1,
        servers: [server(firstNode), server(null)],
      },
      ...{ statements: [], nextId: 1, acknowledged: [], failed: [], delivered: [], writers: {}, lossNamed: false },
      ...{ recorded: 0, faults, expiries, failovers, repeats: options.repeats ?? 0, broken: null },
    }];
  }

  key(state: State): string {
    return JSON.stringify(state);
  }

  isDone({ acknowledged, delivered, lossNamed }: State): boolean {
    if (lossNamed) return true;
    const { puts, gets } = this.#options;
    return acknowledged.length === puts && delivered.length === (gets ? puts : 0);
  }

  idleViolation(): null {
    return null;
  }

  violation(state: State): string | null {
    const { rows: { log, epoch, revision }, acknowledged, failed, delivered } = state;
    if (state.broken !== null) return state.broken;
    const stored = log.filter((message) => message !== null);
    if (new Set(stored).size !== stored.length) return "a message is stored twice";
    if (stored.some((message) => failed.includes(message))) return "a put that was reported as failed is stored";
    if (state.lossNamed) return null; // subscribers, publishers and the operator are told
    const isServed = state.servers.some(({ opened }) => opened?.epoch === epoch && opened.revision === revision);
    if (this.#options.failovers > 0 && !isServed) return null; // a loss is named when the topic is opened
    if (acknowledged.some((message) => !stored.includes(message))) return "an acknowledged message is lost, unnamed";
    const isChanged = delivered.some((message, index) => log[index] !== message);
    return isChanged ? "a delivered message is another one now, unnamed" : null;
  }

  transitions(state: State): Transition<State>[] {
    const found: Transition<State>[] = [];
    const add = (kind: TransitionKind, label: string, change: (next: State) => void) => {
      const next = structuredClone(state);
      change(next);
      found.push({ kind, label, state: settled(next) });
    };
    for (const [index, { kind, server, epoch, result }] of state.statements.entries()) {
      if (result !== null) continue;
      add("step", `the database runs ${kind} of s${server} of epoch ${epoch}`, (next) => {
        this.#run(next, next.statements[index] as Statement);
      });
    }
    if (this.#options.failovers > 0 && JSON.stringify(state.rows) !== JSON.stringify(state.standby)) {
      add("step", "the standby has everything", (next) => next.standby = structuredClone(next.rows));
    }
    if (state.failovers > 0) add("fault", "fail-over to the standby", failOver);
    for (const server of [0, 1]) this.#serverTransitions(state, server, add);
    return found;
  }

  #has(mistake: PostgresStoreMistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }

  #serverTransitions(
    state: State,
    at: number,
    add: (kind: TransitionKind, label: string, change: (next: State) => void) => void,
  ): void {
    const server = state.servers[at] as ServerState;
    const { hasSession, waitsFor, opened } = server;
    const of = (next: State) => next.servers[at] as ServerState;
    const waited = state.statements.find(({ id }) => id === waitsFor);
    if (waited?.result && this.#isConfirmed(state, waited)) {
      add("step", `s${at} gets the reply to ${waited.kind}: ${waited.result.outcome}`, (next) => {
        this.#reply(next, at, next.statements.find(({ id }) => id === waitsFor) as Statement);
      });
    }
    if (waited !== undefined && state.faults > 0) {
      add("fault", `s${at} loses its connection, ${waited.kind} is on its way`, (next) => {
        next.faults--;
        this.#loseConnection(next, of(next));
      });
    }
    if (state.faults > 0 && (opened !== null || waited !== undefined)) {
      add("fault", `s${at} is killed and starts again`, (next) => {
        next.faults--;
        next.servers[at] = { ...dropped(of(next)), hasSession: false, known: null, durable: 0, foundLoss: false };
      });
    }
    if (state.expiries > 0 && hasSession) {
      add("fault", `the session of s${at} ends, and it does not know`, (next) => {
        next.expiries--;
        of(next).hasSession = false;
      });
    }
    if (!hasSession) {
      add("step", `s${at} has a new session`, (next) => {
        next.servers[at] = { ...dropped(of(next)), hasSession: true, known: next.node };
      });
    }
    if (waited === undefined && opened === null && hasSession) this.#own(state, at, add);
    if (waited === undefined && opened !== null) this.#serve(state, at, add);
  }

  /** A server that has not opened the topic does what the product decides. */
  #own(state: State, at: number, add: (kind: TransitionKind, label: string, change: (next: State) => void) => void) {
    const { known } = state.servers[at] as ServerState;
    const set = (next: State, node: TopicNode) => (next.servers[at] as ServerState).known = node;
    if (JSON.stringify(known) !== JSON.stringify(state.node)) {
      add("step", `s${at} reads the node`, (next) => set(next, next.node));
    }
    const shared = {
      store: "db",
      isOwnerThere: known !== null && state.servers[Number(known.owner.slice(1))]?.hasSession === true,
    };
    const action = decideTopic({ me: `s${at}`, node: known, copy: null, staged: null, shared });
    if (action.do === "activate" && known !== null) {
      const kind = this.#has("reads the rows before it raises the epoch") ? "read" : "open";
      add("step", `s${at} opens at epoch ${known.epoch}`, (next) => send(next, at, { kind, epoch: known.epoch }, null));
    }
    if (action.do !== "write" || action.why !== "take over") return;
    // A compare-and-set on the node that was read.
    if (JSON.stringify(known) !== JSON.stringify(state.node)) return;
    const epoch = this.#has("takes over at the same epoch") ? state.node.epoch : action.next.epoch;
    add("step", `s${at} takes over`, (next) => set(next, next.node = { ...action.next, epoch }));
  }

  #serve(state: State, at: number, add: (kind: TransitionKind, label: string, change: (next: State) => void) => void) {
    const rows = (state.servers[at] as ServerState).opened as Rows;
    const { epoch, revision, log, position } = rows;
    const fence = { epoch, revision };
    for (let message = 1; message <= this.#options.puts; message++) {
      if (state.acknowledged.includes(message) || state.failed.includes(message)) continue;
      if (log.includes(message)) {
        add("step", `s${at} is asked for put ${message} again`, (next) => {
          if (this.#options.repeats === undefined) acknowledge(next, message);
          else send(next, at, { kind: "confirm", ...fence }, { kind: "put", message });
        });
        continue;
      }
      add("step", `s${at} is asked for put ${message}`, (next) => {
        const statement = { kind: "put", ...fence, place: log.length, value: message } as const;
        send(next, at, statement, { kind: "put", message });
        if (this.#has("answers OK before the commit")) acknowledge(next, message);
      });
    }
    if (this.#options.marks) {
      const { mark } = state.rows;
      if (mark === 0) add("step", `s${at} raises the mark`, (next) => next.rows.mark++);
      if (state.recorded < mark) add("step", `s${at} records the mark`, (next) => next.recorded = mark);
    }
    const last = state.delivered.length;
    const isNothing = log.length <= last;
    if (!this.#options.gets || (isNothing && state.repeats <= 0)) return;
    const stored = state.acknowledged.length;
    const request: ClientRequest = { kind: "get", last, epoch: state.rows.epoch, stored };
    add("step", `s${at} is asked for what follows message ${last}`, (next) => {
      if (isNothing) next.repeats--;
      if (isNothing && this.#has("answers that there is no message from memory")) this.#answer(next, at, request);
      else if (position < last) send(next, at, { kind: "move", ...fence, value: last }, request);
      else if (this.#has("answers a get from memory")) this.#answer(next, at, request);
      else send(next, at, { kind: "confirm", ...fence }, request);
    });
  }

  /** Runs a statement in the database: it is one transaction. */
  #run(state: State, statement: Statement): void {
    const { rows } = state;
    const { kind, epoch, revision, place, value, server } = statement;
    const nothing = { outcome: "nothing", rows: null, revision: 0 } as const;
    if (kind === "read") {
      statement.result = { outcome: "done", rows: structuredClone(rows), revision: 0 };
      return;
    }
    if (kind === "open") {
      if (rows.epoch > epoch) return void (statement.result = nothing);
      rows.epoch = epoch;
      rows.revision++;
      const { timeline } = rows;
      const read = statement.before === null
        ? structuredClone(rows)
        : { ...statement.before, epoch, revision: rows.revision, timeline };
      const isWaited = !this.#has("opens by a statement that does not wait for the standby");
      statement.result = { outcome: "done", rows: read, revision: isWaited ? rows.revision : 0 };
      return;
    }
    const comparesEpoch = !this.#has("compares nothing in its statements");
    const comparesRevision = comparesEpoch && !this.#has("compares the epoch, and not the revision") &&
      !this.#has("takes a unique violation for a repetition");
    const isMine = (!comparesEpoch || rows.epoch === epoch) && (!comparesRevision || rows.revision === revision);
    if (!isMine) return void (statement.result = nothing);
    if (kind === "put" && rows.log.length > place && this.#options.lacksUniqueIndex !== true) {
      return void (statement.result = { ...nothing, outcome: "unique violation" });
    }
    if (kind === "put") rows.log[place] = value;
    if (kind === "move") rows.position = value;
    rows.revision++;
    statement.result = { outcome: "done", rows: null, revision: rows.revision };
    const writer = state.writers[epoch];
    if (writer !== undefined && writer !== server) state.broken = `two servers have written in epoch ${epoch}`;
    state.writers[epoch] = server;
    if (epoch < rows.epoch) state.broken = "a write of an older epoch was accepted";
  }

  /** Whether the reply may come: with a synchronous standby, only what the standby has is confirmed. */
  #isConfirmed(state: State, { result }: Statement): boolean {
    const { isSynchronous, failovers } = this.#options;
    if (!isSynchronous || failovers === 0) return true;
    if (this.#has("ignores the warning that the standby did not confirm")) return true;
    return state.standby.revision >= (result?.revision ?? 0);
  }

  #reply(state: State, at: number, statement: Statement): void {
    const server = state.servers[at] as ServerState;
    const { request } = server;
    const { outcome, rows, revision } = statement.result as NonNullable<Statement["result"]>;
    state.statements = state.statements.filter(({ id }) => id !== statement.id);
    server.waitsFor = 0;
    server.request = null;
    if (statement.kind === "read") {
      return send(state, at, { kind: "open", epoch: statement.epoch, before: rows }, null);
    }
    if (statement.kind === "open") return this.#opened(state, server, rows);
    const memory = server.opened as Rows;
    if (outcome === "done") {
      memory.revision = revision;
      server.durable = revision;
      if (statement.kind === "put") memory.log[statement.place] = statement.value;
      if (statement.kind === "move") memory.position = statement.value;
      if (request !== null) this.#answer(state, at, request);
    } else if (outcome === "unique violation" && this.#has("takes a unique violation for a repetition")) {
      if (request !== null) this.#answer(state, at, request);
      memory.log[statement.place] = statement.value;
      memory.revision++;
    } else server.opened = null; // not mine any more, or a unique violation: the topic is opened again
  }

  #opened(state: State, server: ServerState, rows: Rows | null): void {
    if (rows === null) {
      server.known = null;
      return;
    }
    server.opened = rows;
    const isTrusted = this.#has("takes a mark that is not behind for no loss") && state.rows.mark >= state.recorded;
    // A mark that is behind after a fail-over is raised: the topics look for the loss themselves.
    state.rows.mark = Math.max(state.rows.mark, state.recorded);
    if (!this.#has("does not look for lost commits") && !isTrusted) {
      const looksAtRow = !this.#has("looks for lost commits in its own memory only");
      const isOther = looksAtRow && rows.timeline !== state.notedTimeline;
      const isLoss = rows.revision - 1 < server.durable || (isOther && !this.#options.isSynchronous);
      if (isLoss) this.#noteLoss(state, server);
      if (isOther && server.opened !== null) state.notedTimeline = rows.timeline;
    }
    server.durable = server.opened?.revision ?? 0;
  }

  /**
   * One statement, like every change of the row. Subscribers that had lost messages are placed at the end of what there
   * is.
   */
  #noteLoss(state: State, server: ServerState): void {
    const { rows } = state;
    const opened = server.opened as Rows;
    if (opened.epoch !== rows.epoch || opened.revision !== rows.revision) return void (server.opened = null);
    opened.revision = ++rows.revision;
    opened.lossAt = rows.lossAt = rows.log.length;
    state.delivered = state.delivered.slice(0, rows.log.length);
    server.foundLoss = true;
    state.lossNamed = true;
  }

  #answer(state: State, at: number, request: ClientRequest): void {
    const { opened, foundLoss } = state.servers[at] as ServerState;
    if (request.kind === "put") return acknowledge(state, request.message);
    const message = opened?.log[request.last];
    if (message === undefined && request.stored > request.last && !state.lossNamed) {
      state.broken = "a message that was acknowledged before is not there, says a get";
    } else if ((opened?.epoch ?? 0) < request.epoch && !state.lossNamed) {
      state.broken = "a stale owner has answered a get";
    }
    if (request.last !== state.delivered.length || message === undefined) return;
    const isTold = this.#has("tells of a loss from memory") ? foundLoss : opened?.lossAt === request.last;
    if (state.rows.lossAt === request.last && !isTold) state.broken = "a subscriber was not told of the loss";
    state.delivered.push(message);
  }

  #loseConnection(state: State, server: ServerState): void {
    const { request } = server;
    if (this.#has("reports an unknown outcome as a failure") && request?.kind === "put") {
      state.failed.push(request.message);
    }
    Object.assign(server, dropped(server));
  }
}

/** A server without the memory of the topic, and without a statement that it waits for. */
function dropped(server: ServerState): ServerState {
  return { ...server, opened: null, waitsFor: 0, request: null };
}

function failOver(state: State): void {
  state.failovers--;
  state.rows = { ...structuredClone(state.standby), timeline: state.rows.timeline + 1 };
  state.statements = [];
  state.servers = state.servers.map(dropped);
  state.writers = {};
}

function send(
  state: State,
  server: number,
  { kind, epoch, revision = 0, place = 0, value = 0, before = null }:
    & Pick<Statement, "kind" | "epoch">
    & Partial<Statement>,
  request: ClientRequest | null,
): void {
  const id = state.nextId++;
  state.statements.push({ id, server, kind, epoch, revision, place, value, before, result: null });
  Object.assign(state.servers[server] as ServerState, { waitsFor: id, request });
}

function acknowledge(state: State, message: number): void {
  if (!state.acknowledged.includes(message)) state.acknowledged = [...state.acknowledged, message].sort();
}

/** Drops replies that are not waited for, and numbers statements by their order: the same states get the same key. */
function settled(state: State): State {
  state.statements = state.statements.filter(({ id, server, result }) =>
    result === null || state.servers[server]?.waitsFor === id
  );
  const numbers = new Map(state.statements.map(({ id }, index) => [id, index + 1]));
  state.statements = state.statements.map((statement, index) => ({ ...statement, id: index + 1 }));
  for (const server of state.servers) server.waitsFor = numbers.get(server.waitsFor) ?? 0;
  state.nextId = state.statements.length + 1;
  return state;
}
