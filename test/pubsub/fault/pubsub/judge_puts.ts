/** What was put into each topic, what became of it, and in which order it stands there. Pure. */
import { messageIdsSkippedAfterLoss } from "../../../../src/pubsub/store/decisions/decide_read.ts";
import type { Findings } from "./findings.ts";
import type { At, Got, History, Operation, Outcome } from "./history.ts";

export interface PutMessage {
  readonly name: string;
  readonly hash: string;
  readonly client: string;
  /**
   * The process and its session that put it first, and its counter there. A state that was lost begins at session 1
   * again.
   */
  readonly process: string;
  readonly session: number;
  readonly counter: number;
  readonly invokedAt: At;
  /** When the first OK returned; Infinity: none did. */
  returnedAt: At;
  outcome: Outcome;
  /** A later try, by another process; and whether that is the first that is known. */
  isResumed: boolean;
  readonly isFirstResumed: boolean;
  /** Null as long as nobody has told it. */
  id: number | null;
}

/** One topic: its messages by name, and who has which id. */
export interface TopicLog {
  readonly topic: string;
  readonly byName: Map<string, PutMessage>;
  readonly byId: Map<number, PutMessage>;
  /** Told and delivered to at least one subscriber. */
  readonly delivered: Set<PutMessage>;
  readonly lost: NamedIds;
}

/** Ids of messages that may be lost, because servers have said so. */
export class NamedIds {
  readonly #lasts: readonly number[];

  /** Messages after each of these. */
  constructor(lasts: readonly number[]) {
    this.#lasts = lasts;
  }

  has(id: number | null): boolean {
    return id !== null && this.#lasts.some((last) => id > last && id <= last + messageIdsSkippedAfterLoss);
  }

  /** Whether one of them is between these. */
  hasBetween(after: number, before: number): boolean {
    return this.#lasts.some((last) => last + 1 < before && after < last + messageIdsSkippedAfterLoss);
  }
}

export function logsOf(
  { operations, losses }: Pick<History, "operations" | "losses">,
  findings: Findings,
): Map<string, TopicLog> {
  const logs = new Map<string, TopicLog>();
  const lostOf = (topic: string) => new NamedIds(losses.filter((loss) => loss.topic === topic).map(({ last }) => last));
  for (const operation of operations) {
    const { topic } = operation;
    let log = logs.get(topic);
    if (log === undefined) {
      const lost = lostOf(topic);
      logs.set(topic, log = { topic, byName: new Map(), byId: new Map(), delivered: new Set(), lost });
    }
    if (operation.do === "put") takePut(log, operation, findings);
  }
  for (const operation of operations) {
    if (operation.do !== "get") continue;
    const log = logs.get(operation.topic) as TopicLog;
    for (const got of deliveredBy(operation)) takeGot(log, got, { operation, findings });
  }
  return logs;
}

/** All that it brought, in its order. */
export function* deliveredBy({ result, handed }: Operation): Generator<Got, void, void> {
  yield* result.got ?? [];
  for (const event of handed) if (event.kind === "saw") yield* event.got ?? [];
}

function takePut(log: TopicLog, operation: Operation, findings: Findings): void {
  const { puts = [], result, client, process, session, counter = 0, invokedAt, returnedAt, resumed = false } =
    operation;
  for (const [place, [name, hash]] of puts.entries()) {
    let message = log.byName.get(name);
    if (message === undefined) {
      const more = {
        outcome: result.outcome,
        returnedAt: Infinity,
        isResumed: resumed,
        isFirstResumed: resumed,
        id: null,
      };
      message = { name, hash, client, process, session, counter: counter + place, invokedAt, ...more };
      log.byName.set(name, message);
    } else message.isResumed ||= resumed;
    // Once unknown, a later try that was refused says nothing of the first; and the other way round.
    if (result.outcome === "unknown" && message.outcome === "fail") message.outcome = "unknown";
    if (result.outcome === "ok") {
      message.outcome = "ok";
      message.returnedAt = Math.min(message.returnedAt, returnedAt);
    }
    const id = result.ids?.[place];
    if (id !== undefined) identify(log, message, { id, findings, how: `the put by ${client} was answered` });
  }
}

function takeGot(
  log: TopicLog,
  [id, name, hash]: Got,
  { operation, findings }: { readonly operation: Operation; readonly findings: Findings },
): void {
  const where = () => `${operation.client} got message ${id} of "${log.topic}" at ${at(operation.returnedAt)}`;
  const message = log.byName.get(name);
  if (message === undefined) {
    findings.add("unexpected", () => `${where()}: "${name}", which nobody has put there`);
    return;
  }
  if (message.hash !== hash) {
    findings.add("corrupted", () => `${where()}: "${name}", ${hash} instead of ${message.hash}`);
  }
  if (message.outcome === "fail") {
    findings.add("fail delivered", () => `${where()}: "${name}", whose put by ${message.client} definitely failed`);
  }
  identify(log, message, { id, findings, how: where() });
  log.delivered.add(message);
}

function identify(
  { byId, topic, lost }: TopicLog,
  message: PutMessage,
  { id, findings, how }: { readonly id: number; readonly findings: Findings; readonly how: string },
): void {
  // A put that was lost and is repeated by its publisher is stored anew.
  if (lost.has(message.id) || (message.id !== null && lost.has(id))) {
    byId.set(id, message);
    if (lost.has(message.id)) message.id = id;
    return;
  }
  if (message.id !== null && message.id !== id) {
    findings.add("stored twice", () => `"${message.name}" of "${topic}" is message ${message.id}, and ${id}: ${how}`);
  }
  const other = byId.get(id);
  if (other === undefined) byId.set(id, message);
  else if (other !== message) {
    findings.add("id reused", () => `message ${id} of "${topic}" is "${other.name}", and "${message.name}": ${how}`);
  }
  message.id ??= id;
}

/** Puts that were answered OK, by the time of that, and the greatest id up to each. */
export class ReturnedPuts {
  readonly #puts: readonly PutMessage[];
  readonly #greatest: PutMessage[] = [];

  constructor(log: TopicLog) {
    this.#puts = [...log.byName.values()]
      .filter(({ returnedAt, id }) => returnedAt < Infinity && id !== null)
      .sort((a, b) => a.returnedAt - b.returnedAt);
    for (const put of this.#puts) {
      const before = this.#greatest.at(-1);
      this.#greatest.push(before === undefined || (before.id ?? 0) < (put.id ?? 0) ? put : before);
    }
  }

  /** The message of the greatest id that had returned by then. */
  before(time: At): PutMessage | null {
    let [low, high] = [0, this.#puts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#puts[middle]?.returnedAt ?? Infinity) < time) low = middle + 1;
      else high = middle;
    }
    return this.#greatest[low - 1] ?? null;
  }
}

/** Of one publisher, and between all of them by the clock. */
export function judgeOrder(log: TopicLog, findings: Findings): void {
  const messages = [...log.byName.values()];
  const lines = new Map<string, PutMessage[]>();
  for (const message of messages) {
    // Its process was killed between the note on its disk and ours: which session put it is not known.
    if (message.isFirstResumed) continue;
    const key = `${message.process} ${message.session} ${message.client}`;
    const line = lines.get(key);
    if (line === undefined) lines.set(key, [message]);
    else line.push(message);
  }
  for (const line of lines.values()) judgeLine(log, line.sort((a, b) => a.counter - b.counter), findings);
  const known = messages.filter(({ id }) => id !== null);
  const returned = known.filter(({ returnedAt }) => returnedAt < Infinity).sort((a, b) => a.returnedAt - b.returnedAt);
  let next = 0;
  let greatest: PutMessage | null = null;
  for (const message of known.sort((a, b) => a.invokedAt - b.invokedAt)) {
    for (
      let done = returned[next];
      done !== undefined && done.returnedAt < message.invokedAt;
      done = returned[++next]
    ) {
      if (greatest === null || (done.id ?? 0) > (greatest.id ?? 0)) greatest = done;
    }
    const before: PutMessage | null = greatest;
    if (before === null || (before.id ?? 0) <= (message.id ?? 0)) continue;
    findings.add(
      "real-time order",
      () =>
        `the put of "${before.name}" into "${log.topic}" returned at ${
          at(before.returnedAt)
        } with id ${before.id}, that of ` +
        `"${message.name}" began at ${at(message.invokedAt)} and has id ${message.id}`,
    );
  }
}

/** Of one session of one publisher, by counter. */
function judgeLine({ topic, delivered, lost }: TopicLog, line: readonly PutMessage[], findings: Findings): void {
  let before: PutMessage | null = null;
  let failed: PutMessage | null = null;
  for (const message of line) {
    if (message.outcome === "fail" && !delivered.has(message)) failed ??= message;
    const refused: PutMessage | null = failed;
    if (refused !== null && message.outcome === "ok" && !message.isResumed) {
      findings.add(
        "gap",
        () => `${message.client} put "${message.name}" into "${topic}" behind "${refused.name}", which had failed`,
      );
    }
    // One that was lost is not stored anew, and one before it of unknown outcome is.
    if (message.id === null || lost.has(message.id)) continue;
    const last: PutMessage | null = before;
    if (last !== null && (last.id ?? 0) > message.id) {
      findings.add(
        "publisher order",
        () =>
          `${message.client} put "${last.name}" before "${message.name}" into "${topic}"; ` +
          `their ids are ${last.id} and ` +
          `${message.id}`,
      );
    }
    before = message;
  }
}

/** For people. */
export const at = (ms: At): string => Number.isFinite(ms) ? `${ms.toFixed(1)} ms` : "an unknown time";
