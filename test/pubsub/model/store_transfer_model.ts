/**
 * A topic that moves between a server with a store of its own, "a", and two servers that share a database, "p1" and
 * "p2". Transfers stay in the network for ever, and the database runs a statement at any time after its server has
 * given it up. Replies of writes and statements are lost, processes killed, sessions end without their server knowing,
 * staged rows are lost. Every server acts on a node that it has read at any time of its session, and the database's
 * servers answer without looking at their lease. The decisions are the product's (`decideTopic`,
 * `decideTopicTransfer`).
 *
 * Models: docs/protocol/pubsub_ownership.md, src/pubsub/ownership/owned_topic.ts,
 * src/pubsub/ownership/topic_decision.ts, src/pubsub/ownership/topic_node.ts,
 * src/pubsub/store/operations/owned_store.ts
 */
import { decideTopic, decideTopicTransfer, type TopicAction } from "../../../src/pubsub/ownership/topic_decision.ts";
import {
  type TopicNode,
  topicNodeAfterReturn,
  topicNodeAfterTakeBack,
  topicNodeAfterTakeover,
} from "../../../src/pubsub/ownership/topic_node.ts";
import type { Model, Transition, TransitionKind } from "../../support/explore.ts";
import {
  type Answering,
  content,
  firstTransferState,
  isServer,
  ownCopy,
  type PrivateServer,
  runStatement,
  type SharedServer,
  type Statement,
  type TransferMistake,
  type TransferOptions,
  type TransferState,
  type VersionedNode,
} from "./store_transfer_world.ts";

type Add = (kind: TransitionKind, label: string, change: (next: TransferState) => void) => void;
const shared = ["p1", "p2"] as const;

export class StoreTransferModel implements Model<TransferState> {
  readonly #options: TransferOptions;
  readonly initial: readonly TransferState[];

  constructor(options: TransferOptions) {
    this.#options = options;
    this.initial = [firstTransferState(options)];
  }

  key(state: TransferState): string {
    return JSON.stringify(state);
  }

  /** Everything that was put is answered, the owner serves, and no second copy is left anywhere. */
  isDone(state: TransferState): boolean {
    const { node: { value }, rows, a, acknowledged } = state;
    if (acknowledged.length < this.#options.puts || value.state !== "stored") return false;
    if (!a.hasSession || shared.some((id) => !state[id].hasSession)) return false;
    if (value.owner === "a") return rows.length === 0 && a.staged === null && a.copy?.sealedFor === null;
    const [row] = rows;
    return a.copy === null && a.staged === null && rows.length === 1 && row?.place === "served" &&
      row.sealedFor === null;
  }

  idleViolation(): null {
    return null;
  }

  violation(state: TransferState): string | null {
    if (state.broken !== null) return state.broken;
    const truth = contentOf(state);
    if (truth === null) return "the owner does not have the topic's content";
    if (new Set(truth).size !== truth.length) return `a message is stored twice: ${truth}`;
    const lost = state.acknowledged.filter((message) => !truth.includes(message));
    return lost.length === 0 ? null : `an acknowledged message is lost: ${lost}`;
  }

  transitions(state: TransferState): Transition<TransferState>[] {
    const found: Transition<TransferState>[] = [];
    const add: Add = (kind, label, change) => {
      const next = copyOf(state);
      change(next);
      found.push({ kind, label, state: settled(next) });
    };
    for (const [index, { kind, server, result }] of state.statements.entries()) {
      if (result !== null) continue;
      add("step", `the database runs ${kind} of ${server}`, (next) => {
        runStatement(next, next.statements[index] as Statement, (mistake) => this.#has(mistake));
      });
    }
    this.#privateSteps(state, add);
    for (const id of shared) this.#sharedSteps(state, id, add);
    if (state.faults > 0) this.#faults(state, add);
    return found;
  }

  #has(mistake: TransferMistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }

  #faults(state: TransferState, add: Add): void {
    const { a, node: { value }, rows } = state;
    const fault = (label: string, change: (next: TransferState) => void) =>
      add("fault", label, (next) => {
        next.faults--;
        change(next);
      });
    // Its disk has everything: a server that was killed only has to begin a session.
    if (a.hasSession) fault("a is killed, or its session ends", (next) => Object.assign(next.a, noSession));
    for (const id of shared) {
      const { hasSession, opened, waitsFor } = state[id];
      if (hasSession) fault(`the session of ${id} ends, and it does not know`, (next) => next[id].hasSession = false);
      if (opened !== null || waitsFor > 0) fault(`${id} is killed`, (next) => Object.assign(next[id], killed));
      const waited = state.statements.find(({ id: number }) => number === waitsFor);
      if (waited !== undefined) {
        fault(
          `${id} loses its connection, ${waited.kind} is on its way`,
          (next) => this.#loseConnection(next[id], waited),
        );
      }
    }
    if (this.#options.losesStaged === true && rows.some(({ place }) => place === "staged")) {
      fault("the database fails over, and has no staged rows", (next) => {
        next.rows = next.rows.filter(({ place }) => place !== "staged");
        next.statements = [];
        for (const id of shared) Object.assign(next[id], { opened: null, waitsFor: 0, request: null });
      });
    }
    const back = topicNodeAfterReturn(value);
    const isGone = isServer(value.owner) && !state[value.owner].hasSession;
    if (this.#options.forgets === true && back !== null && isGone) {
      fault(`${value.owner} is forgotten`, (next) => {
        writeNode(next, back);
        // What it has is set aside, or dropped when it comes back.
        if (value.owner === "a") next.a = { ...next.a, copy: null, staged: null };
      });
    }
  }

  #loseConnection(server: SharedServer, waited: Statement): void {
    const isTakenForDone = this.#has("takes an unknown activation for done") && waited.kind === "activate";
    const opened = isTakenForDone
      ? { row: waited.row, epoch: waited.epoch, revision: 0, log: "", sealedFor: null }
      : null;
    Object.assign(server, { opened, waitsFor: 0, request: null });
  }

  // The server with a store of its own: what it does to its disk is done at once, in one transaction.

  #privateSteps(state: TransferState, add: Add): void {
    const { a } = state;
    if (!a.hasSession) return add("step", "a begins a session", (next) => Object.assign(next.a, { hasSession: true }));
    if (a.known?.version !== state.node.version) {
      add("step", "a reads the node", (next) => next.a.known = next.node);
    }
    if (a.known === null) return;
    const { copy, staged, dropped } = a;
    const known = a.known.value;
    const action = decideTopic({ me: "a", node: known, copy: copy && ownCopy(copy), staged, shared: null });
    const store = (label: string, change: Partial<PrivateServer>) =>
      add("step", `a ${label}`, (next) => Object.assign(next.a, change));
    switch (action.do) {
      case "write":
        return this.#write(state, "a", this.#takenByPrivate(action.next, action.why, known), action.why, add);
      case "activate": {
        const from = action.what === "copy" ? copy : staged;
        if (from === null) return;
        const opened = { epoch: known.epoch, sealedFor: null, log: from.log };
        return store(`activates its ${action.what}`, { copy: opened, staged: action.what === "copy" ? staged : null });
      }
      case "drop":
        return store("drops its copy", { copy: null, dropped: { incarnation: "b", epoch: action.epoch } });
      case "discard":
        return store("discards what it staged", { staged: null });
      case "hand off":
        if (copy !== null) this.#send(state, { to: action.to, owner: "a", epoch: copy.epoch, log: copy.log }, add);
        if (action.mayTakeBack) this.#write(state, "a", topicNodeAfterTakeBack(known), "take back", add);
        return;
      case "serve":
        if (copy !== null) this.#servePrivate(state, copy.log, add);
    }
    this.#receivePrivate(state, { copy, staged, dropped, known }, add);
  }

  #takenByPrivate(next: TopicNode, why: string, from: TopicNode): TopicNode {
    const keepsStore = this.#has("names the sender's store when it takes") && why === "take" &&
      from.store !== undefined;
    return keepsStore ? { ...next, store: from.store as string } : next;
  }

  #servePrivate(state: TransferState, log: string, add: Add): void {
    for (const message of this.#unanswered(state)) {
      add("step", `a stores ${message}`, (next) => {
        if (next.a.copy !== null && !log.includes(message)) next.a.copy.log += message;
        acknowledge(next, message);
      });
    }
    if (state.moves === 0) return;
    for (const to of shared) {
      add("choice", `a seals for ${to}`, (next) => {
        next.moves--;
        if (next.a.copy !== null) next.a.copy.sealedFor = to;
      });
    }
  }

  #receivePrivate(
    state: TransferState,
    { copy, staged, dropped, known }: Pick<PrivateServer, "copy" | "staged" | "dropped"> & { known: TopicNode },
    add: Add,
  ): void {
    for (const sent of state.transfers) {
      if (sent.to !== "a") continue;
      const facts = { node: known, copy: copy && ownCopy(copy), staged, dropped };
      if (decideTopicTransfer({ incarnation: "b", owner: sent.owner, epoch: sent.epoch }, facts) !== "stage") continue;
      add("step", `a stages what ${sent.owner} sealed at ${sent.epoch}`, (next) => {
        next.a.staged = { incarnation: "b", owner: sent.owner, epoch: sent.epoch, log: sent.log };
      });
    }
  }

  // A server of the database: everything that it does to the rows is a statement, which may be late.

  #sharedSteps(state: TransferState, id: Answering, add: Add): void {
    const server = state[id];
    const waited = state.statements.find(({ id: number }) => number === server.waitsFor);
    if (waited?.result) {
      return add("step", `${id} gets the reply to ${waited.kind}: ${waited.result.outcome}`, (next) => {
        this.#reply(next, id, next.statements.find(({ id: number }) => number === server.waitsFor) as Statement);
      });
    }
    if (!server.hasSession) {
      // It closes everything; what is on its way stays there.
      add("step", `${id} begins a session`, (next) => Object.assign(next[id], { ...killed, hasSession: true }));
    }
    if (server.known?.version !== state.node.version && server.hasSession) {
      add("step", `${id} reads the node`, (next) => next[id].known = next.node);
    }
    if (waited !== undefined || server.known === null) return;
    this.#act(state, id, server.known.value, add);
    for (const sent of state.transfers) if (sent.to === id) this.#receiveShared(state, id, sent, add);
  }

  #factsOf(state: TransferState, { opened }: SharedServer) {
    const staged = state.rows.find(({ place }) => place === "staged");
    const served = state.rows.find(({ place }) => place === "served");
    return {
      copy: opened && ownCopy(opened),
      staged: staged === undefined ? null : { incarnation: "b", owner: staged.sender, epoch: staged.epoch },
      dropped: state.dropped,
      ...(opened === null ? { unopened: served === undefined ? null : ownCopy(served) } : {}),
      stagedRow: staged?.id ?? 0,
    };
  }

  #decide(state: TransferState, id: Answering, known: TopicNode): TopicAction & { readonly row?: number } {
    const { stagedRow, ...facts } = this.#factsOf(state, state[id]);
    const looksAtStore = !this.#has("takes topics of another store over");
    const isOther = known.owner === id || (known.store !== "db" && looksAtStore);
    const isOwnerThere = isOther || (isServer(known.owner) && state[known.owner].hasSession);
    const node = looksAtStore || known.store === "db" || known.owner === id ? known : { ...known, store: "db" };
    const action = decideTopic({ me: id, node, shared: { store: "db", isOwnerThere }, ...facts });
    if (
      this.#has("opens rows of an earlier time") && known.owner === id && known.state === "moving" && facts.unopened
    ) {
      return { do: "activate", what: "copy" };
    }
    const isAgain = known.owner === id && known.state === "moving" && facts.staged?.epoch === known.source?.epoch;
    if (this.#has("activates what was staged twice") && isAgain && facts.copy === null) {
      return { do: "activate", what: "staged", row: stagedRow };
    }
    const isOld = facts.unopened && known.store !== "db" && facts.unopened.epoch < known.epoch;
    if (this.#has("drops its rows when the topic is taken") && isOld) return { do: "drop", epoch: known.epoch };
    return { ...action, row: stagedRow };
  }

  #act(state: TransferState, id: Answering, known: TopicNode, add: Add): void {
    const { opened } = state[id];
    const action = this.#decide(state, id, known);
    const send = (kind: Statement["kind"], values: Partial<Statement>) =>
      add("step", `${id} sends ${kind}`, (next) => sendStatement(next, id, kind, values));
    switch (action.do) {
      case "write":
        if (action.why === "return" && this.#has("does not return what the database has lost")) return;
        return this.#write(state, id, this.#takenByShared(action.next, action.why), action.why, add);
      case "activate":
        if (action.what === "copy") return send("open", { epoch: known.epoch });
        return send("replace", { epoch: known.epoch, row: action.row ?? 0 });
      case "drop":
        if (opened === null) return send("drop unopened", { epoch: action.epoch });
        return send("drop", {
          row: opened.row,
          epoch: opened.epoch,
          revision: opened.revision,
          value: `${action.epoch}`,
        });
      case "discard":
        return send("discard", { row: action.row ?? 0 });
      case "release":
        return add("step", `${id} releases the topic`, (next) => next[id].opened = null);
      case "hand off": {
        const row = state.rows.find(({ id: number }) => number === opened?.row);
        if (opened !== null && row !== undefined) {
          this.#send(state, { to: action.to, owner: id, epoch: opened.epoch, log: row.log }, add);
        }
        return this.#write(state, id, topicNodeAfterTakeBack(known), "take back", add);
      }
      case "serve":
        this.#serveShared(state, id, known, add);
    }
  }

  #takenByShared(next: TopicNode, why: string): TopicNode {
    if (!this.#has("does not name its store when it takes") || why !== "take") return next;
    const { store: _, ...without } = next;
    return without;
  }

  #serveShared(state: TransferState, id: Answering, known: TopicNode, add: Add): void {
    const { opened } = state[id];
    if (opened === null) return;
    const { row, epoch, revision } = opened;
    for (const message of this.#unanswered(state)) {
      const kind = opened.log.includes(message) ? "confirm" : "put";
      add("step", `${id} is asked for put ${message}`, (next) => {
        sendStatement(next, id, kind, { row, epoch, revision, value: message });
        next[id].request = message;
      });
    }
    if (state.moves === 0) return;
    add("choice", `${id} is asked to move to a`, (next) => {
      next.moves--;
      if (!this.#has("sends before it has sealed")) {
        return sendStatement(next, id, "seal", { row, epoch, revision, value: "a" });
      }
      next.transfers.push({ to: "a", owner: id, epoch, log: opened.log });
    });
    const other = id === "p1" ? "p2" : "p1";
    if (state.node.version !== state[id].known?.version || !state[id].hasSession) return;
    add("choice", `${id} gives the topic to ${other}`, (next) => {
      next.moves--;
      next[id].opened = null;
      writeNode(next, topicNodeAfterTakeover(known, other));
      next[id].known = next.node;
    });
  }

  #receiveShared(state: TransferState, id: Answering, sent: TransferState["transfers"][number], add: Add): void {
    const known = state[id].known as VersionedNode;
    const { stagedRow: row, ...facts } = this.#factsOf(state, state[id]);
    const { owner, epoch, log } = sent;
    const decision = decideTopicTransfer({ incarnation: "b", owner, epoch }, { node: known.value, ...facts });
    if (decision !== "stage") return;
    // The content of the last moment, if another server was faster.
    if (facts.staged !== null && facts.staged.epoch >= epoch) return;
    add("step", `${id} receives what ${owner} sealed at ${epoch}`, (next) => {
      if (facts.staged === null) return sendStatement(next, id, "stage", { epoch, sender: owner, value: log });
      sendStatement(next, id, "discard", { row });
    });
  }

  #reply(state: TransferState, id: Answering, statement: Statement): void {
    const server = state[id];
    const { request } = server;
    const { kind, epoch, row } = statement;
    const { outcome, opened } = statement.result as NonNullable<Statement["result"]>;
    state.statements = state.statements.filter((one) => one !== statement);
    Object.assign(server, { waitsFor: 0, request: null });
    if (kind === "replace") {
      sendStatement(state, id, "activate", { row, epoch });
      return;
    }
    if (kind === "stage" || kind === "discard" || kind === "drop unopened") return;
    server.opened = outcome === "done" ? opened : null;
    if (outcome === "done" && request !== null) acknowledge(state, request);
  }

  // What all servers do.

  #unanswered(state: TransferState): string[] {
    return [..."xyz".slice(0, this.#options.puts)].filter((message) => !state.acknowledged.includes(message));
  }

  #send(state: TransferState, sent: TransferState["transfers"][number], add: Add): void {
    if (state.transfers.some((one) => JSON.stringify(one) === JSON.stringify(sent))) return;
    add("step", `${sent.owner} sends to ${sent.to} at epoch ${sent.epoch}`, (next) => next.transfers.push(sent));
  }

  /** A compare-and-set on the node that was read; a session that has ended writes nothing. */
  #write(state: TransferState, id: Answering | "a", next: TopicNode, why: string, add: Add): void {
    const { known, hasSession } = state[id];
    if (!hasSession || known === null) return;
    const label = `${id} writes ${next.owner} ${next.epoch} ${next.state} (${why})`;
    const isBlind = this.#has("takes back without comparing") && why === "take back";
    if (known.version !== state.node.version && !isBlind) {
      return add("step", `${label}, refused`, (to) => to[id].known = null);
    }
    add("step", label, (to) => {
      writeNode(to, next);
      to[id].known = to.node;
    });
    if (state.faults === 0) return;
    add("fault", `${label}, done, unanswered`, (to) => {
      to.faults--;
      writeNode(to, next);
      to[id].known = null;
    });
  }
}

/** A copy in which everything may be changed that ever is. */
function copyOf(state: TransferState): TransferState {
  const { a } = state;
  const server = (from: SharedServer): SharedServer => ({ ...from, opened: from.opened && { ...from.opened } });
  return {
    ...state,
    a: { ...a, copy: a.copy && { ...a.copy } },
    p1: server(state.p1),
    p2: server(state.p2),
    rows: state.rows.map((row) => ({ ...row })),
    transfers: [...state.transfers],
    statements: state.statements.map((statement) => {
      const { result } = statement;
      return { ...statement, result: result && { ...result, opened: result.opened && { ...result.opened } } };
    }),
  };
}

const noSession = { hasSession: false, known: null };
const killed = { ...noSession, opened: null, waitsFor: 0, request: null };

function writeNode(state: TransferState, value: TopicNode): void {
  state.node = { value, version: state.node.version + 1 };
}

function acknowledge(state: TransferState, message: string): void {
  if (!state.acknowledged.includes(message)) state.acknowledged = [...state.acknowledged, message].sort();
}

function sendStatement(
  state: TransferState,
  server: Answering,
  kind: Statement["kind"],
  { row = 0, epoch = 0, revision = 0, value = "", sender = "" }: Partial<Statement>,
): void {
  const id = state.nextId++;
  state.statements.push({ id, server, kind, row, epoch, revision, value, sender, result: null });
  state[server].waitsFor = id;
}

/** The content that counts: what the node's owner has, or has yet to open. Null: it does not have it. */
function contentOf(state: TransferState): string | null {
  const { node: { value }, rows, a } = state;
  const copyAt = (epoch: number | undefined) => a.copy?.epoch === epoch ? content(a.copy) : null;
  const { source } = value;
  if (value.store === undefined && value.owner === "a") {
    if (value.state === "stored") return copyAt(value.epoch);
    const isStaged = a.staged?.owner === source?.owner && a.staged?.epoch === source?.epoch;
    return copyAt(value.epoch) ?? (source?.owner === "a" ? copyAt(source.epoch) : isStaged ? content(a.staged) : null);
  }
  const served = rows.find(({ place }) => place === "served");
  if (value.state === "stored") return content(served);
  if (served !== undefined && served.epoch > (source?.epoch ?? 0)) return served.log;
  const staged = rows.find(({ place, sender, epoch }) =>
    place === "staged" && sender === source?.owner && epoch === source.epoch
  );
  // What the database has lost is still at its source.
  return content(staged) ?? copyAt(source?.epoch);
}

/** Drops replies that are not waited for, and gives numbers in order: the same states get the same key. */
function settled(state: TransferState): TransferState {
  state.statements = state.statements.filter(({ id, server, result }) =>
    result === null || state[server].waitsFor === id
  );
  const numbers = new Map(state.statements.map(({ id }, index) => [id, index + 1]));
  state.statements = state.statements.map((statement, index) => ({ ...statement, id: index + 1 }));
  for (const id of shared) state[id].waitsFor = numbers.get(state[id].waitsFor) ?? 0;
  state.nextId = state.statements.length + 1;
  const rows = new Map(state.rows.map(({ id }, index) => [id, index + 1]));
  const rowOf = (id: number) => rows.get(id) ?? 0; // a row that is gone never comes back
  state.statements = state.statements.map((statement) => ({ ...statement, row: rowOf(statement.row) }));
  for (const { result } of state.statements) if (result?.opened) result.opened.row = rowOf(result.opened.row);
  for (const id of shared) {
    const { opened } = state[id];
    if (opened !== null) opened.row = rowOf(opened.row);
  }
  state.rows = state.rows.map((row, index) => ({ ...row, id: index + 1 }));
  state.nextRow = state.rows.length + 1;
  state.transfers.sort((one, other) => JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);
  return state;
}
