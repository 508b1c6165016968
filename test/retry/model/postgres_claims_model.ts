/**
 * Two messages with the same key in a database, what accepts them, and processors on several machines that claim, try
 * and record them. A statement is atomic in the database, runs at any time after it was sent, also after its client
 * gave it up, and its reply may be lost. Statements that do not lock what they decide by are in two parts: what they
 * read, and their commit.
 *
 * With fail-overs there is a standby, which has everything at any later time, and is promoted at any time. With a
 * synchronous one no reply comes before the standby has what the statement has written; a statement that writes nothing
 * waits for nothing.
 *
 * Models: src/retry/queue/retry_engine.ts, src/retry/queue/postgres/postgres_processors.ts,
 * src/retry/queue/postgres/postgres_queue.ts, src/retry/queue/postgres/postgres_queue_tables.ts
 */
import type { Model, Transition } from "../../support/explore.ts";
import {
  changeWorker,
  type Claimed,
  hasEverything,
  isOpen,
  type Message,
  newWorker,
  noMessage,
  orphaned,
  type ProcessorRow,
  replace,
  type Rows,
  send,
  type Statement,
  step,
  type Worker,
  type World,
  write,
} from "./postgres_claims_world.ts";

export const claimMistakes = [
  "claims without a lock on its own row",
  "gives back before it has fenced its claims",
  "records without the number of the claim",
  "takes an unknown result for one that was not recorded",
  "repeats an unknown acceptance as a new one",
  "passes the turn by a snapshot",
  "gives a redriven message the turn of one in flight",
  "counts its lease from the reply",
  "ignores the warning that the standby did not confirm",
  "compares by a query that does not wait for the standby",
  "gives up a result that a fail-over has undone",
  "gives nothing back after a reconnect",
] as const;
export type ClaimMistake = (typeof claimMistakes)[number];

export interface ClaimsModelOptions {
  readonly workers: number;
  readonly faultsMax: number;
  /** The first message is dead at the end of its first try, and an operator redrives it at any time. */
  readonly redrives: boolean;
  /** Promotions of the standby; left out: there is none. */
  readonly failovers?: number;
  /**
   * False: a fail-over may undo what was answered. Messages are then tried again, and none stays in flight for ever.
   */
  readonly isSynchronous?: boolean;
  readonly mistake?: ClaimMistake;
}

export class PostgresClaimsModel implements Model<World> {
  readonly initial: readonly World[];
  readonly #options: ClaimsModelOptions;

  constructor(options: ClaimsModelOptions) {
    this.#options = options;
    const failovers = options.failovers ?? 0;
    const messages = [noMessage, noMessage];
    this.initial = [{
      messages,
      processors: [],
      workers: Array.from({ length: options.workers }, () => newWorker),
      statements: [],
      accepted: 0,
      redriven: !options.redrives,
      faults: 0,
      standby: failovers > 0 ? { messages, processors: [] } : null,
      failovers,
      recorded: [false, false],
      wrong: null,
    }];
  }

  key(world: World): string {
    return JSON.stringify({ ...world, statements: world.statements.map((one) => JSON.stringify(one)).sort() });
  }

  violation({ wrong, workers, messages, accepted }: World): string | null {
    // What was answered may be undone, and its message is then tried again, perhaps beside a try that has begun before.
    if (this.#isAsynchronous) return null;
    if (wrong !== null) return wrong;
    if (messages.some(({ state }, at) => at < accepted && state === "none")) return "An accepted message is lost";
    if (workers.filter(({ phase }) => phase === "trying").length > 1) return "Two tries of one key at the same time";
    if (messages.some(({ copies }) => copies > 1)) return "A message is stored twice";
    if (messages.some(({ succeeded }) => succeeded > 1)) return "A message whose try was recorded is tried again";
    return null;
  }

  idleViolation({ messages }: World): string | null {
    // A message that an asynchronous fail-over has lost is none.
    const isLost = ({ state }: Message) => state === "none" && this.#isAsynchronous;
    return messages.some((message) => message.state !== "done" && !isLost(message))
      ? "Nothing moves, and a message is not done"
      : null;
  }

  isDone({ messages, accepted }: World): boolean {
    if (this.#isAsynchronous && accepted < 2) return false;
    return messages.every(({ state }) => state === "done" || (this.#isAsynchronous && state === "none"));
  }

  transitions(world: World): Transition<World>[] {
    return [
      ...this.#accepting(world),
      ...world.statements.flatMap((_, at) => this.#ofStatement(world, at)),
      ...world.workers.flatMap((_, at) => this.#ofWorker(world, at)),
      ...world.processors.flatMap((_, id) => this.#ofProcessor(world, id)),
      ...this.#redriving(world),
      ...this.#ofStandby(world),
    ];
  }

  get #isAsynchronous(): boolean {
    return this.#options.isSynchronous === false;
  }

  #ofStandby(world: World): Transition<World>[] {
    const { messages, processors, standby, failovers } = world;
    if (standby === null) return [];
    const found: Transition<World>[] = [];
    if (!hasEverything(world)) {
      const statements = world.statements.map((one) => one.result === null ? one : { ...one, isConfirmed: true });
      found.push(step("the standby has everything", { ...world, statements, standby: { messages, processors } }));
    }
    if (failovers > 0) found.push({ kind: "fault", label: "fail-over", state: this.#failOver(world, standby) });
    return found;
  }

  /** The old primary executes nothing more, and whoever waits for a reply gets none. */
  #failOver(world: World, standby: Rows): World {
    let next: World = { ...world, failovers: world.failovers - 1 };
    for (let at = next.statements.length - 1; at >= 0; at--) {
      if (next.statements[at]?.client !== -1) next = this.#loseReply({ ...next, faults: next.faults - 1 }, at);
    }
    const workers = next.workers.map((worker) => ({ ...worker, reconnected: worker.phase !== "new" }));
    const messages = standby.messages.map((row, at) => ({ ...row, succeeded: world.messages[at]?.succeeded ?? 0 }));
    return {
      ...next,
      statements: [],
      workers,
      messages,
      processors: standby.processors,
      standby: { ...standby, messages },
    };
  }

  #has(mistake: ClaimMistake): boolean {
    return this.#options.mistake === mistake;
  }

  #accepting(world: World): Transition<World>[] {
    if (world.accepted === 2 || world.statements.some(({ client }) => client === -2)) return [];
    const target = { message: world.accepted, fence: 0, rev: 0 };
    return [step("the acceptor sends a message", send(world, { client: -2, kind: "accept", id: 0, epoch: 0, target }))];
  }

  #ofStatement(world: World, at: number): Transition<World>[] {
    const statement = world.statements[at] as Statement;
    const found: Transition<World>[] = [];
    if (statement.result === null) {
      const readsFirst = statement.kind === "claim"
        ? this.#has("claims without a lock on its own row")
        : (statement.kind === "finish" || statement.kind === "accept") && this.#has("passes the turn by a snapshot");
      if (readsFirst && statement.seen === null) {
        const seen = statement.kind === "claim" ? [this.#mayClaim(world, statement)] : world.messages.map(isOpen);
        found.push(step(`the database reads for ${statement.kind}`, replace(world, at, { ...statement, seen })));
      } else found.push(step(`the database runs ${statement.kind} of ${statement.client}`, this.#run(world, at)));
    } else if (this.#mayReply(world, statement)) {
      found.push(step(`${statement.client} gets the reply to ${statement.kind}`, this.#reply(world, at)));
    }
    if (statement.client !== -1 && world.faults < this.#options.faultsMax) {
      found.push({ kind: "fault", label: `the reply to ${statement.kind} is lost`, state: this.#loseReply(world, at) });
    }
    return found;
  }

  #mayReply(world: World, { isConfirmed }: Statement): boolean {
    return this.#isAsynchronous || isConfirmed || hasEverything(world) ||
      this.#has("ignores the warning that the standby did not confirm");
  }

  #mayClaim({ processors }: World, { id, epoch }: Statement): boolean {
    return processors[id]?.lease === "held" && processors[id]?.epoch === epoch;
  }

  /** Executes a statement. One that no client waits for leaves nothing else behind. */
  #run(world: World, at: number): World {
    const statement = world.statements[at] as Statement;
    const [result, next] = this.#execute(world, statement);
    if (statement.client === -1) return { ...next, statements: next.statements.filter((one) => one !== statement) };
    // A comparison writes something, so that it waits; an acceptance locks the queue.
    const waits = statement.kind === "accept" ||
      (statement.kind === "compare" && !this.#has("compares by a query that does not wait for the standby"));
    const isConfirmed = next.messages === world.messages && next.processors === world.processors && !waits;
    return replace(next, at, { ...statement, seen: null, result, isConfirmed });
  }

  #execute(world: World, statement: Statement): [Exclude<Statement["result"], null>, World] {
    switch (statement.kind) {
      case "accept":
        return ["recorded", this.#store(world, statement)];
      case "claim":
        return this.#claim(world, statement);
      case "finish":
        return this.#finish(world, statement);
      case "compare": {
        const { message = 0, fence, rev } = statement.target ?? {};
        const row = world.messages[message] as Message;
        if (row.rev === rev) return ["undone", world];
        return [row.fence === fence && row.rev === (rev ?? 0) + 1 && !isOpen(row) ? "recorded" : "not mine", world];
      }
      case "fence": {
        const row = world.processors[statement.id] as ProcessorRow;
        const processors = world.processors.with(statement.id, { ...row, epoch: row.epoch + 1 });
        const found = world.messages.flatMap(({ state, owner, fence, rev }, message) =>
          state === "in_flight" && owner === statement.id ? [{ message, fence, rev }] : []
        );
        return [found, { ...world, processors }];
      }
      case "give_back": {
        const { message = 0, rev } = statement.target ?? {};
        const row = world.messages[message] as Message;
        if (row.rev !== rev) return ["not mine", world];
        const isEnded = world.workers.some(({ ended }) => ended?.message === message && ended.rev === rev);
        const wrong = isEnded ? "A try that has ended is not counted" : world.wrong;
        return ["recorded", write({ ...world, wrong }, message, { state: "waiting", owner: -1 })];
      }
    }
  }

  #store(world: World, { target, seen }: Statement): World {
    const at = target?.message ?? 0;
    const row = world.messages[at] as Message;
    if (row.copies > 0 && !this.#has("repeats an unknown acceptance as a new one")) return world;
    const isFirst = !(seen ?? world.messages.map(isOpen)).some(Boolean);
    if (row.copies > 0) return { ...world, messages: world.messages.with(at, { ...row, copies: row.copies + 1 }) };
    return { ...world, messages: world.messages.with(at, { ...row, state: "waiting", turn: isFirst, copies: 1 }) };
  }

  #claim(world: World, statement: Statement): [Exclude<Statement["result"], null>, World] {
    if (!(statement.seen?.[0] ?? this.#mayClaim(world, statement))) return ["not mine", world];
    const at = world.messages.findIndex(({ state, turn }) => state === "waiting" && turn);
    if (at < 0) return [[], world];
    const { fence } = world.messages[at] as Message;
    const next = write(world, at, { state: "in_flight", owner: statement.id, fence: fence + 1 });
    return [[{ message: at, fence: fence + 1, rev: (next.messages[at] as Message).rev }], next];
  }

  #finish(world: World, { target, seen }: Statement): [Exclude<Statement["result"], null>, World] {
    const { message: at = 0, fence, rev } = target ?? {};
    const row = world.messages[at] as Message;
    const isMine = row.rev === rev ||
      (this.#has("records without the number of the claim") && row.state === "in_flight");
    // The processor compares the row with what it wanted to write: an earlier copy of this statement was executed. With
    // a standby that is another statement, and a fail-over may be between the two.
    if (!isMine && world.standby !== null) return ["not mine", world];
    if (!isMine) {
      return [row.fence === fence && row.rev === (rev ?? 0) + 1 && !isOpen(row) ? "recorded" : "not mine", world];
    }
    const wrong = row.fence === fence ? world.wrong : "The result of an old claim was recorded";
    const state = at === 0 && !world.redriven ? "dead" : "done";
    const closed = write({ ...world, wrong }, at, { state, owner: -1, turn: false });
    if (!row.turn) return ["recorded", closed];
    const open = seen ?? closed.messages.map(isOpen);
    const heir = closed.messages.findIndex((_, index) => index !== at && open[index]);
    if (heir < 0) return ["recorded", closed];
    return ["recorded", {
      ...closed,
      messages: closed.messages.with(heir, { ...closed.messages[heir] as Message, turn: true }),
    }];
  }

  #reply(world: World, at: number): World {
    const { client, kind, result } = world.statements[at] as Statement;
    const rest = { ...world, statements: world.statements.toSpliced(at, 1) };
    if (client === -2) return { ...rest, accepted: rest.accepted + 1 };
    const worker = rest.workers[client] as Worker;
    const to = (changes: Partial<Worker>) => changeWorker(rest, client, changes);
    if (result === "not mine" && kind === "claim") return to(newWorker); // its lease was given up
    switch (kind) {
      case "claim": {
        const [claimed = null] = result as readonly Claimed[];
        return to({ phase: claimed === null ? "idle" : "claimed", claimed });
      }
      case "fence": {
        const [claimed = null] = result as readonly Claimed[];
        return to({
          phase: claimed === null ? "idle" : "fenced",
          claimed,
          epoch: worker.epoch + 1,
          reconnected: claimed === null ? false : worker.reconnected,
        });
      }
      case "finish":
      case "compare": {
        if (kind === "finish" && result === "not mine" && rest.standby !== null) return to({ phase: "comparing" });
        if (result === "undone") {
          const givesUp = this.#has("gives up a result that a fail-over has undone");
          return to(givesUp ? { phase: "idle", claimed: null } : { phase: "tried" });
        }
        const at = worker.claimed?.message ?? 0;
        const done = to({ phase: "idle", claimed: null, ended: null });
        return result === "recorded" && rest.messages[at]?.state === "done"
          ? { ...done, recorded: done.recorded.with(at, true) }
          : done;
      }
      default:
        return to({ phase: "idle", claimed: null });
    }
  }

  #loseReply(world: World, at: number): World {
    const statement = world.statements[at] as Statement;
    const faulty = { ...world, faults: world.faults + 1 };
    const left = statement.result === null
      ? replace(faulty, at, { ...statement, client: -1 })
      : { ...faulty, statements: faulty.statements.toSpliced(at, 1) };
    if (statement.client === -2) return left; // it is sent again, as `accepted` has not been raised
    const worker = left.workers[statement.client] as Worker;
    const finishPhase = this.#has("takes an unknown result for one that was not recorded")
      ? "claim_unknown"
      : "finish_unknown";
    const isResult = statement.kind === "finish" || statement.kind === "compare";
    const phase = isResult ? finishPhase : "claim_unknown";
    return changeWorker(left, statement.client, { phase, claimed: phase === "finish_unknown" ? worker.claimed : null });
  }

  #ofWorker(world: World, at: number): Transition<World>[] {
    const worker = world.workers[at] as Worker;
    const { phase, id, epoch, claimed, isOver } = worker;
    const found: Transition<World>[] = [];
    if (phase !== "new" && world.faults < this.#options.faultsMax) {
      const killed = changeWorker({ ...orphaned(world, at), faults: world.faults + 1 }, at, newWorker);
      found.push({ kind: "fault", label: `${at} is killed and starts again`, state: killed });
    }
    if (isOver && phase !== "new") {
      // It stops its try and registers again; what it has sent goes on.
      return [...found, step(`${at} notices that its lease is over`, changeWorker(orphaned(world, at), at, newWorker))];
    }
    if (world.statements.some(({ client }) => client === at)) return found;
    const sends = (kind: Statement["kind"], target: Claimed | null = null) =>
      step(`${at} sends ${kind}`, send(world, { client: at, kind, id, epoch, target }));
    switch (phase) {
      case "new": {
        const processors = [...world.processors, { epoch: 0, lease: "held" as const }];
        const registered = { ...newWorker, phase: "idle" as const, id: world.processors.length };
        // It has waited for the standby, which has all that was written before.
        const standby = world.standby === null ? null : { messages: world.messages, processors };
        return [...found, step(`${at} registers`, changeWorker({ ...world, processors, standby }, at, registered))];
      }
      case "idle":
        if (worker.reconnected && !this.#has("gives nothing back after a reconnect")) return [...found, sends("fence")];
        if (!world.messages.some(({ state, turn }) => state === "waiting" && turn)) return found;
        return [...found, sends("claim")];
      case "claimed":
        return [...found, step(`${at} begins a try`, changeWorker(world, at, { phase: "trying" }))];
      case "trying":
        return [...found, step(`${at} ends a try`, this.#endTry(world, at))];
      case "tried":
      case "finish_unknown":
        return [...found, sends("finish", claimed)];
      case "comparing":
        return [...found, sends("compare", claimed)];
      case "claim_unknown":
        return [
          ...found,
          this.#has("gives back before it has fenced its claims")
            ? step(`${at} reads what it has`, this.#readOwn(world, at))
            : sends("fence"),
        ];
      case "fenced":
        return [...found, sends("give_back", claimed)];
    }
  }

  #endTry(world: World, at: number): World {
    const message = world.workers[at]?.claimed?.message ?? 0;
    const row = world.messages[message] as Message;
    const isDead = message === 0 && !world.redriven;
    const isRecorded = row.state === "done" || world.recorded[message] === true;
    const wrong = isRecorded ? "A message whose try was recorded is tried again" : world.wrong;
    const tried = { ...row, succeeded: isDead ? 0 : row.state === "done" ? 2 : row.succeeded };
    return changeWorker({ ...world, wrong, messages: world.messages.with(message, tried) }, at, {
      phase: "tried",
      ended: world.workers[at]?.claimed ?? null,
    });
  }

  #readOwn(world: World, at: number): World {
    const { id } = world.workers[at] as Worker;
    const message = world.messages.findIndex(({ state, owner }) => state === "in_flight" && owner === id);
    if (message < 0) return changeWorker(world, at, { phase: "idle", claimed: null });
    const { fence, rev } = world.messages[message] as Message;
    return changeWorker(world, at, { phase: "fenced", claimed: { message, fence, rev } });
  }

  /** Time, and what other processors do with an expired lease. */
  #ofProcessor(world: World, id: number): Transition<World>[] {
    const row = world.processors[id] as ProcessorRow;
    const set = (lease: ProcessorRow["lease"]) => ({
      ...world,
      processors: world.processors.with(id, { ...row, lease }),
      // The end of a lease is a time, which the standby has from before.
      standby: world.standby === null || lease !== "over" ? world.standby : {
        ...world.standby,
        processors: world.standby.processors.map((one, at) => at === id ? { ...one, lease } : one),
      },
    });
    const user = world.workers.findIndex((worker) => worker.id === id);
    const own = world.messages.findIndex(({ state, owner }) => state === "in_flight" && owner === id);
    switch (row.lease) {
      case "held": {
        if (user < 0) return [step(`the lease of processor ${id} ends`, set("over"))];
        if (world.faults >= this.#options.faultsMax) return [];
        // The processor's own lease ends first, and its tries are dead before the database lets others begin.
        const worker = world.workers[user] as Worker;
        const stopped = this.#has("counts its lease from the reply")
          ? set("over")
          : changeWorker(set("over"), user, { isOver: true, phase: worker.phase === "trying" ? "idle" : worker.phase });
        return [{
          kind: "fault",
          label: `worker ${user} stands still, its lease ends`,
          state: { ...stopped, faults: world.faults + 1 },
        }];
      }
      case "over":
        return [step(`processor ${id} is marked as ended`, set("ended"))];
      case "ended":
        return own < 0
          ? [step(`processor ${id} is removed`, set("gone"))]
          : [step(`message ${own} is taken back`, write(world, own, { state: "waiting", owner: -1 }))];
      case "gone":
        return [];
    }
  }

  #redriving(world: World): Transition<World>[] {
    const [first, second] = world.messages as [Message, Message];
    if (world.redriven || first.state !== "dead") return [];
    const yields = second.turn && second.state === "waiting";
    const takes = !second.turn || yields || this.#has("gives a redriven message the turn of one in flight");
    const waiting = write({ ...world, redriven: true }, 0, { state: "waiting", turn: takes });
    const messages = waiting.messages.with(1, { ...second, turn: second.turn && !takes });
    return [step("an operator redrives the first message", { ...waiting, messages })];
  }
}
