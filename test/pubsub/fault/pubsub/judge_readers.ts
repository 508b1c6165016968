/** Whether each subscriber had what it was to have, once, in order, and nothing else. Pure. */
import type { Findings } from "./findings.ts";
import { type At, type Got, type History, type Operation } from "./history.ts";
import { at, type PutMessage, type ReturnedPuts, type TopicLog } from "./judge_puts.ts";
import { isToldGone, type PassedOver, passedOverOf, type Seek, seeksOf } from "./gaps.ts";
import { judgeGaps, judgePlaces } from "./judge_places.ts";
import { judgeSeeks } from "./judge_seeks.ts";
import { type Subscription, subscriptionsOf } from "./subscriptions.ts";

export interface ReaderFigures {
  /** Messages that came to a subscriber for the first time. */
  deliveries: number;
  /** … and again, as is allowed: they were not had, or the client's state was lost. */
  redelivered: number;
  /** Messages that did not come, and that servers have named as lost. */
  named: number;
}

/** One client at one topic: all that it asked there, in the order in which it did. */
export interface Reader {
  readonly client: string;
  readonly log: TopicLog;
  readonly operations: readonly Operation[];
  readonly states: History["states"];
}

/** What happened to a reader, in the order of time. */
type Moment =
  | { readonly kind: "got"; readonly at: At; readonly operation: Operation; readonly got: readonly Got[] }
  | {
    readonly kind: "saw";
    readonly at: At;
    readonly operation: Operation;
    readonly got: readonly Got[];
    readonly upTo: number;
    readonly again: readonly number[];
  }
  | {
    readonly kind: "had";
    readonly at: At;
    readonly operation: Operation;
    readonly upTo: number;
    readonly isSoft: boolean;
  }
  | { readonly kind: "none"; readonly at: At; readonly operation: Operation }
  | { readonly kind: "seek"; readonly at: At; readonly seek: Seek }
  | { readonly kind: "state"; readonly at: At; readonly what: string };

/** `returned`: the topic's messages that were answered OK, by the time of that. */
export function judgeReader(
  reader: Reader,
  { stored, returned, lastAsked, findings, isDrained, retains, keeps, expiresAfterMs }: {
    readonly stored: readonly PutMessage[];
    readonly returned: ReturnedPuts;
    /** When any subscriber asked last for what brought it each message. */
    readonly lastAsked: ReadonlyMap<number, At>;
    readonly findings: Findings;
    /** Everybody had the time to have all. */
    readonly isDrained: boolean;
    /** Servers give up messages, and say so. */
    readonly retains: boolean;
    /** The number of the newest messages that they keep. */
    readonly keeps: number;
    /** A message may be gone so long after it was put. */
    readonly expiresAfterMs: number;
  },
): ReaderFigures {
  const subscriptions = subscriptionsOf(reader.operations);
  const pass = new Pass(reader, { subscriptions, returned, findings, expiresAfterMs });
  for (const moment of momentsOf(reader)) pass.take(moment);
  judgePlaces(reader, { findings, retains });
  const seeks = seeksOf(reader.operations);
  const gaps = retains ? passedOverOf(reader.operations) : [];
  judgeGaps(reader, { gaps, seen: pass.seen, keeps, findings });
  judgeSeeks(reader, { lastAsked, gaps, findings });
  for (const [place, subscription] of subscriptions.entries()) {
    const what = { reader, subscription, isFirst: place === 0, had: pass.hadIn(subscription), seeks, gaps, retains };
    pass.figures.named += judgeSubscription(what, { stored, returned, findings, isDrained });
  }
  return pass.figures;
}

function momentsOf({ operations, states }: Reader): Moment[] {
  const moments: Moment[] = states.map(({ at, what }) => ({ kind: "state", at, what }));
  for (const seek of seeksOf(operations)) {
    moments.push({ kind: "seek", at: seek.isSure ? seek.doneBy : seek.invokedAt, seek });
  }
  for (const operation of operations) {
    if (operation.do !== "get") continue;
    const { result, returnedAt } = operation;
    if (result.outcome === "ok" && result.got !== undefined) {
      moments.push({ kind: "got", at: returnedAt, operation, got: result.got });
    }
    if (result.status === "NO_MESSAGE") moments.push({ kind: "none", at: returnedAt, operation });
    for (const event of operation.handed) {
      if (event.kind === "had") {
        moments.push({ kind: "had", at: event.at, operation, upTo: event.upTo, isSoft: event.soft === true });
      } else {
        const { upTo, got = [], again = [] } = event;
        moments.push({ kind: "saw", at: event.at, operation, got, upTo, again });
      }
    }
  }
  return moments.sort((a, b) => a.at - b.at);
}

/** Goes through a reader's life once. */
class Pass {
  readonly figures: ReaderFigures = { deliveries: 0, redelivered: 0, named: 0 };
  readonly #reader: Reader;
  readonly #findings: Findings;
  readonly #returned: ReturnedPuts;
  readonly #expiresAfterMs: number;
  readonly #subscriptions: readonly Subscription[];
  readonly #had = new Map<Subscription, Set<number>>();
  readonly #seen = new Set<number>();
  /** Of an operation: what it brought again, and had been handed out before. */
  readonly #owesMark = new Map<Operation, number[]>();
  #greatest = -1;
  #handedUpTo = -1;
  #hadUpTo = -1;
  /** … and what a loss of power does not undo. */
  #hardUpTo = -1;
  /** The server knows that the client had all up to it. */
  #confirmed = -1;
  /** Up to it the client's state may have forgotten what was had. */
  #forgottenUpTo = -1;
  /** The same after a loss of power: what is between the two. */
  #unflushed: { readonly from: number; readonly upTo: number }[] = [];
  /** A topic does not keep what all its subscribers have had: behind a seek to the start all up to it may be gone. */
  #goneUpTo = -1;
  /** By then it had asked to be put to the end. */
  #endSoughtBy = -1;
  /** Two processes may have had the same state. */
  #isShared = false;
  /** The newest session that was answered, and when it was first. */
  #session = -1;
  #takenOverAt = -1;

  constructor(reader: Reader, { subscriptions, returned, findings, expiresAfterMs }: {
    readonly subscriptions: readonly Subscription[];
    readonly returned: ReturnedPuts;
    readonly findings: Findings;
    readonly expiresAfterMs: number;
  }) {
    this.#reader = reader;
    this.#expiresAfterMs = expiresAfterMs;
    this.#subscriptions = subscriptions;
    this.#returned = returned;
    this.#findings = findings;
  }

  hadIn(subscription: Subscription): ReadonlySet<number> {
    return this.#had.get(subscription) ?? new Set();
  }

  /** All that ever came. */
  get seen(): ReadonlySet<number> {
    return this.#seen;
  }

  take(moment: Moment): void {
    switch (moment.kind) {
      case "seek":
        return this.#sought(moment.seek);
      case "state":
        if (moment.what === "power") this.#unflushed.push({ from: this.#hardUpTo, upTo: this.#hadUpTo });
        else this.#forgottenUpTo = this.#hadUpTo;
        this.#handedUpTo = -1;
        this.#isShared ||= moment.what === "shared";
        return;
      case "had":
        this.#hadUpTo = Math.max(this.#hadUpTo, moment.upTo);
        if (!moment.isSoft) this.#flushed(moment.upTo);
        // What an older process had is not in the newer one's state.
        if (this.#isOfOlderTwin(moment.operation)) this.#forgottenUpTo = Math.max(this.#forgottenUpTo, moment.upTo);
        return;
      case "none":
        this.#takeOver(moment.operation);
        // The server need not have stored the place: it does so later, and not at all while its disk is full.
        this.#judgeNone(moment);
        return;
      case "got":
        this.#takeOver(moment.operation);
        this.#takeGot(moment);
        this.#confirm(moment.operation);
        return;
      case "saw":
        this.#takeGot(moment);
        this.#judgeMarks(moment);
        // What an older process was handed is not in the newer one's state.
        if (this.#isOfOlderTwin(moment.operation)) return;
        this.#handedUpTo = Math.max(this.#handedUpTo, moment.upTo);
    }
  }

  /** What was had comes again if it is behind the new place, as if it had never been had. */
  #sought({ to, isSure, doneBy }: Seek): void {
    this.#handedUpTo = -1;
    if (to === "end") {
      this.#endSoughtBy = Math.max(this.#endSoughtBy, doneBy);
      return;
    }
    if (to === "start") this.#goneUpTo = Math.max(this.#goneUpTo, this.#hadUpTo);
    const place = to === "start" || !isSure ? -1 : to;
    this.#hadUpTo = Math.min(this.#hadUpTo, place);
    this.#hardUpTo = Math.min(this.#hardUpTo, place);
    this.#confirmed = Math.min(this.#confirmed, place);
    this.#greatest = -1;
  }

  #flushed(upTo: number): void {
    this.#hardUpTo = Math.max(this.#hardUpTo, upTo);
    // Another process of the same state may not know of it.
    if (!this.#isShared) this.#unflushed = this.#unflushed.filter((lost) => lost.upTo > upTo);
  }

  /** The server has answered a session, perhaps a newer one than before. */
  #takeOver({ session, returnedAt }: Operation): void {
    if (session <= this.#session) return;
    // What an older process had, and could not tell the server of any more, is not in the newer one's copy of the
    // state.
    if (this.#isShared) {
      this.#forgottenUpTo = this.#hadUpTo;
      this.#handedUpTo = -1;
    }
    this.#session = session;
    this.#takenOverAt = returnedAt;
  }

  /** Of two processes with copies of one state: neither copy knows what the other process does. */
  #isOfOlderTwin({ session }: Operation): boolean {
    return this.#isShared && session < this.#session;
  }

  /** The server knows the place. */
  #confirm({ last = -1 }: Operation): void {
    this.#confirmed = Math.max(this.#confirmed, last);
  }

  /** Whether what was had may come again: the client's state did not know it, and the server had not been told. */
  #mayComeAgain(id: number, operation: Operation): boolean {
    // An answer to an older process of the same state, that was on its way when the newer one took over.
    if (this.#isOfOlderTwin(operation) && operation.invokedAt < this.#takenOverAt) return true;
    const isForgotten = id <= this.#forgottenUpTo || this.#unflushed.some(({ from, upTo }) => id > from && id <= upTo);
    return isForgotten && id > this.#confirmed;
  }

  #takeGot({ operation, got, at: when }: Moment & { readonly kind: "got" | "saw" }): void {
    const { client, log } = this.#reader;
    const subscription = this.#subscriptionOf(operation, got);
    for (const [id, name] of got) {
      const say = (what: string) => () =>
        `${client} got message ${id}, "${name}", of "${log.topic}" in session ${operation.session} at ${
          at(when)
        }: ${what}`;
      if (!this.#seen.has(id)) {
        if (id < this.#greatest && operation.unordered !== true) {
          this.#findings.add("subscribers' order", say(`message ${this.#greatest} had come before it`));
        }
        this.#seen.add(id);
        this.#greatest = Math.max(this.#greatest, id);
        this.figures.deliveries++;
      } else if (id <= this.#hadUpTo && !this.#mayComeAgain(id, operation)) {
        this.#findings.add("duplicated", say(`all up to ${this.#hadUpTo} were had`));
      } else {
        this.figures.redelivered++;
        if (id <= this.#handedUpTo && !this.#isOfOlderTwin(operation)) append(this.#owesMark, operation, id);
      }
      if (subscription !== null) this.#hadSet(subscription).add(id);
    }
  }

  #judgeMarks({ operation, upTo, again, at: when }: Moment & { readonly kind: "saw" }): void {
    const marked = new Set(again);
    for (const id of this.#owesMark.get(operation) ?? []) {
      if (id > upTo || marked.has(id)) continue;
      this.#findings.add(
        "not marked",
        () =>
          `${this.#reader.client} was handed message ${id} of "${this.#reader.log.topic}" a second time at ${at(when)}`,
      );
    }
    this.#owesMark.delete(operation);
  }

  /** That there is none is true only of what had not returned before it was asked. */
  #judgeNone({ operation }: Moment & { readonly kind: "none" }): void {
    const { client, log } = this.#reader;
    const put = this.#returned.before(operation.invokedAt);
    const subscription = this.#subscriptions.findLast(({ mustFrom }) => mustFrom < operation.invokedAt);
    if (put === null || put.id === null || subscription === undefined) return;
    const isMine = put.invokedAt > subscription.mustFrom && subscription.endFrom > operation.returnedAt;
    if (!isMine || put.id <= Math.max(operation.last ?? -1, this.#greatest, this.#goneUpTo)) return;
    if (log.lost.has(put.id)) return;
    if (put.invokedAt < this.#endSoughtBy || operation.returnedAt - put.invokedAt > this.#expiresAfterMs) return;
    const { id, name, returnedAt } = put;
    this.#findings.add(
      "hidden",
      () =>
        `${client} asked "${log.topic}" at ${
          at(operation.invokedAt)
        } behind ${operation.last} and was told that there is no ` +
        `message; "${name}", ${id}, had been put by ${at(returnedAt)}`,
    );
  }

  #subscriptionOf(operation: Operation, got: readonly Got[]): Subscription | null {
    const subscription = this.#subscriptions.findLast(({ begin, session }) => {
      return begin <= operation.returnedAt && session <= operation.session;
    }) ?? null;
    const { client, log } = this.#reader;
    const [first] = got;
    if (first === undefined) return subscription;
    if (subscription === null) {
      this.#findings.add(
        "before subscription",
        () => `${client} got "${first[1]}" of "${log.topic}", never subscribed`,
      );
    } else if (operation.invokedAt > subscription.endBy) {
      this.#findings.add(
        "after unsubscribe",
        () =>
          `${client} asked at ${at(operation.invokedAt)}, had unsubscribed from "${log.topic}" by ${
            at(subscription.endBy)
          }, ` +
          `and got "${first[1]}"`,
      );
    }
    return subscription;
  }

  #hadSet(subscription: Subscription): Set<number> {
    let ids = this.#had.get(subscription);
    if (ids === undefined) this.#had.set(subscription, ids = new Set());
    return ids;
  }
}

interface SubscriptionCase {
  readonly reader: Reader;
  readonly subscription: Subscription;
  readonly isFirst: boolean;
  readonly had: ReadonlySet<number>;
  readonly seeks: readonly Seek[];
  readonly gaps: readonly PassedOver[];
  readonly retains: boolean;
}

/**
 * All from its begin on, and nothing from before. `stored`: in the order of their ids. Returns how many messages did
 * not come that servers have named as lost.
 */
function judgeSubscription(
  { reader: { client, log }, subscription, isFirst, had, seeks: all, gaps, retains }: SubscriptionCase,
  { stored, returned, findings, isDrained }: {
    readonly stored: readonly PutMessage[];
    readonly returned: ReturnedPuts;
    readonly findings: Findings;
    readonly isDrained: boolean;
  },
): number {
  const { begin, mustFrom, endFrom, isSure } = subscription;
  const seeks = all.filter(({ invokedAt, doneBy }) => invokedAt < subscription.endBy && doneBy > begin);
  // The start is the oldest that is there: where retention has given messages up, it may be behind the place.
  const skips = seeks.filter(({ to }) => to === "end" || (retains && to === "start"));
  // Whoever asks for what was there before is given it.
  const asked = seeks.some(({ to }) => to !== "end");
  const low = isSure && !asked ? returned.before(begin)?.id ?? -1 : -1;
  let [least, greatest] = [Infinity, -1];
  for (const id of had) {
    least = Math.min(least, id);
    greatest = Math.max(greatest, id);
    if (id > low) continue;
    findings.add(
      isFirst ? "before subscription" : "old backlog revived",
      () =>
        `${client} subscribed to "${log.topic}" at ${at(begin)}, and got message ${id}; ${low} had been put by then`,
    );
  }
  const isOpen = endFrom === Infinity && isDrained;
  let named = 0;
  for (const message of stored) {
    const { id, name } = message;
    if (id !== null && (id <= low || had.has(id))) continue;
    const isWanted = message.invokedAt > mustFrom || (id !== null && id > least);
    if (!isWanted || !(isOpen || (id !== null && id < greatest))) continue;
    if (skips.some(({ doneBy }) => message.invokedAt < doneBy)) continue;
    if (isToldGone(message, gaps)) continue;
    if (log.lost.has(id)) {
      named++;
      continue;
    }
    const say = () =>
      `"${name}" (${id ?? "no id"}) of "${log.topic}", put by ${message.client} at ${
        at(message.invokedAt)
      } and answered ` +
      `at ${at(message.returnedAt)}, did not reach ${client}, subscribed by ${at(mustFrom)}` +
      (isOpen ? "" : `, which got ${greatest} ${endFrom === Infinity ? "so far" : "before it unsubscribed"}`);
    if (message.outcome === "ok") findings.add("lost", say);
    else if (message.outcome === "unknown" && log.delivered.has(message)) findings.add("all or none", say);
  }
  return named;
}

function append<K>(lists: Map<K, number[]>, key: K, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
