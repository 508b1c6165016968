/**
 * Two messages with the same key in a database, what accepts them, and processors on several machines that claim, try and record them. A statement
 * is atomic in the database, runs at any time after it was sent, also after its client gave it up, and its reply may be lost. Statements that do
 * not lock what they decide by are in two parts: what they read, and their commit.
 */
import type { Model, Transition } from "./explore.ts";

export const claimMistakes = [
  "claims without a lock on its own row",
  "gives back before it has fenced its claims",
  "records without the number of the claim",
  "takes an unknown result for one that was not recorded",
  "repeats an unknown acceptance as a new one",
  "passes the turn by a snapshot",
  "gives a redriven message the turn of one in flight",
  "counts its lease from the reply",
] as const;
export type ClaimMistake = (typeof claimMistakes)[number];

export interface SharedClaimsOptions {
  readonly workers: number;
  readonly faultsMax: number;
  /** The first message is dead at the end of its first try, and an operator redrives it at any time. */
  readonly redrives: boolean;
  readonly mistake?: ClaimMistake;
}

type MessageState = "none" | "waiting" | "in_flight" | "done" | "dead";
interface Message {
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
interface ProcessorRow {
  readonly epoch: number;
  readonly lease: "held" | "over" | "ended" | "gone";
}

interface Claimed {
  readonly message: number;
  readonly fence: number;
  readonly rev: number;
}

type Phase = "new" | "idle" | "claimed" | "trying" | "tried" | "claim_unknown" | "fenced" | "finish_unknown";
interface Worker {
  readonly phase: Phase;
  readonly id: number;
  readonly epoch: number;
  readonly claimed: Claimed | null;
  /** Its own clock says that the lease is over. */
  readonly isOver: boolean;
  /** A try that has ended and is not recorded yet. */
  readonly ended: Claimed | null;
}

interface Statement {
  /** The worker that waits for the reply, -1: none; -2: the acceptor. */
  readonly client: number;
  readonly kind: "claim" | "finish" | "fence" | "give_back" | "accept";
  readonly id: number;
  readonly epoch: number;
  readonly target: Claimed | null;
  /** What was read before the commit; null: nothing yet. */
  readonly seen: readonly boolean[] | null;
  /** The result, which is on its way to the client. */
  readonly result: readonly Claimed[] | "recorded" | "not mine" | null;
}

interface World {
  readonly messages: readonly Message[];
  readonly processors: readonly ProcessorRow[];
  readonly workers: readonly Worker[];
  readonly statements: readonly Statement[];
  readonly accepted: number;
  readonly redriven: boolean;
  readonly faults: number;
  readonly wrong: string | null;
}

const noMessage: Message = { state: "none", fence: 0, rev: 0, owner: -1, turn: false, copies: 0, succeeded: 0 };
const newWorker: Worker = { phase: "new", id: -1, epoch: 0, claimed: null, isOver: false, ended: null };
const isOpen = ({ state }: Message): boolean => state === "waiting" || state === "in_flight";

export class SharedClaimsModel implements Model<World> {
  readonly initial: readonly World[];
  readonly #options: SharedClaimsOptions;

  constructor(options: SharedClaimsOptions) {
    this.#options = options;
    this.initial = [{
      messages: [noMessage, noMessage],
      processors: [],
      workers: Array.from({ length: options.workers }, () => newWorker),
      statements: [],
      accepted: 0,
      redriven: !options.redrives,
      faults: 0,
      wrong: null,
    }];
  }

  key(world: World): string {
    return JSON.stringify({ ...world, statements: world.statements.map((one) => JSON.stringify(one)).sort() });
  }

  violation({ wrong, workers, messages }: World): string | null {
    if (wrong !== null) return wrong;
    if (workers.filter(({ phase }) => phase === "trying").length > 1) return "Two tries of one key at the same time";
    if (messages.some(({ copies }) => copies > 1)) return "A message is stored twice";
    if (messages.some(({ succeeded }) => succeeded > 1)) return "A message whose try was recorded is tried again";
    return null;
  }

  idleViolation({ messages }: World): string | null {
    return messages.some(({ state }) => state !== "done") ? "Nothing moves, and a message is not done" : null;
  }

  isDone({ messages }: World): boolean {
    return messages.every(({ state }) => state === "done");
  }

  transitions(world: World): Transition<World>[] {
    return [
      ...this.#accepting(world),
      ...world.statements.flatMap((_, at) => this.#ofStatement(world, at)),
      ...world.workers.flatMap((_, at) => this.#ofWorker(world, at)),
      ...world.processors.flatMap((_, id) => this.#ofProcessor(world, id)),
      ...this.#redriving(world),
    ];
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
    } else found.push(step(`${statement.client} gets the reply to ${statement.kind}`, this.#reply(world, at)));
    if (statement.client !== -1 && world.faults < this.#options.faultsMax) {
      found.push({ kind: "fault", label: `the reply to ${statement.kind} is lost`, state: this.#loseReply(world, at) });
    }
    return found;
  }

  #mayClaim({ processors }: World, { id, epoch }: Statement): boolean {
    return processors[id]?.lease === "held" && processors[id]?.epoch === epoch;
  }

  /** Executes a statement. One that no client waits for leaves nothing else behind. */
  #run(world: World, at: number): World {
    const statement = world.statements[at] as Statement;
    const [result, next] = this.#execute(world, statement);
    if (statement.client === -1) return { ...next, statements: next.statements.filter((one) => one !== statement) };
    return replace(next, at, { ...statement, seen: null, result });
  }

  #execute(world: World, statement: Statement): [Exclude<Statement["result"], null>, World] {
    switch (statement.kind) {
      case "accept":
        return ["recorded", this.#store(world, statement)];
      case "claim":
        return this.#claim(world, statement);
      case "finish":
        return this.#finish(world, statement);
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
    // The processor compares the row with what it wanted to write: an earlier copy of this statement was executed.
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
        return to({ phase: claimed === null ? "idle" : "fenced", claimed, epoch: worker.epoch + 1 });
      }
      default:
        return to({ phase: "idle", claimed: null, ended: kind === "finish" ? null : worker.ended });
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
    const phase = statement.kind === "finish" ? finishPhase : "claim_unknown";
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
        return [...found, step(`${at} registers`, changeWorker({ ...world, processors }, at, registered))];
      }
      case "idle":
        if (!world.messages.some(({ state, turn }) => state === "waiting" && turn)) return found;
        return [...found, sends("claim")];
      case "claimed":
        return [...found, step(`${at} begins a try`, changeWorker(world, at, { phase: "trying" }))];
      case "trying":
        return [...found, step(`${at} ends a try`, this.#endTry(world, at))];
      case "tried":
      case "finish_unknown":
        return [...found, sends("finish", claimed)];
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
    const wrong = row.state === "done" ? "A message whose try was recorded is tried again" : world.wrong;
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

function step(label: string, state: World): Transition<World> {
  return { kind: "step", label, state };
}

function send(world: World, statement: Omit<Statement, "seen" | "result">): World {
  return { ...world, statements: [...world.statements, { ...statement, seen: null, result: null }] };
}

function replace(world: World, at: number, statement: Statement): World {
  return { ...world, statements: world.statements.with(at, statement) };
}

function changeWorker(world: World, at: number, changes: Partial<Worker>): World {
  return { ...world, workers: world.workers.with(at, { ...world.workers[at] as Worker, ...changes }) };
}

/** Changes a message under its next revision. */
function write(world: World, at: number, changes: Partial<Message>): World {
  const row = world.messages[at] as Message;
  return { ...world, messages: world.messages.with(at, { ...row, ...changes, rev: row.rev + 1 }) };
}

/** No client waits for the statement of this worker; it may still run. */
function orphaned(world: World, at: number): World {
  const statements = world.statements.filter(({ client, result }) => client !== at || result === null)
    .map((one) => (one.client === at ? { ...one, client: -1 } : one));
  return { ...world, statements };
}
