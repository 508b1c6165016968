/**
 * What publish/subscribe clients did and were told: the history that judge.ts judges. Pure, types alone.
 *
 * How to use it. Every process that acts as clients has a HistoryWriter of its own (history_file.ts): a file of a line
 * for each event, written at once, so that kill −9 loses no more than the last line. RecordingSession
 * (recording_session.ts) writes it for whoever uses the client session; around `baton pubsub client` the harness writes
 * it itself. `readHistory` joins the files of a folder, `judge(history)` says what is wrong with them:
 *
 *     const writer = new HistoryWriter(join(folder, "w1.jsonl"));
 *     const n = writer.invoke({ client: "p1", session: 1, do: "put", topic: "news", counter: 7, puts: [putOf(body)] });
 *     writer.return(n, { outcome: "ok", ids: [41] });
 *     …
 *     const verdict = judge(readHistory(folder));      // once everything is healed, and every subscriber has had all
 *     if (verdict.violations.length > 0) throw new Error(verdictText(verdict));
 *
 * Rules for who writes it:
 * - Bodies come from `markedBody`: unique, each with its name in it. A name is put once; the same put again, by another
 *   process that resumes it, is an operation with `resumed`, and names it again.
 * - ok: the answer said so, and NO_MESSAGE is ok without messages. fail: definitely not done. unknown: all else, and
 *   what has no return. Of several messages in one operation that may have been done in part, and failed: unknown.
 * - `got` of a return is what the answer had in it. `saw` is what a user was handed: the mark `redelivered` is owed to
 *   him when it comes again. `had`: it is promised that it does not come again.
 *     out-dir                 saw and had, when the file is taken away
 *     stdout, --exec          saw with each message, had for all before it; had for the last one when it ended with 0
 *     client session          return with got, saw when it was noted (handingOut), had when the place was moved (had)
 * - `session` of a put: within one of a client, in one topic, the counters are the order that is promised.
 * - A state that was lost, restored, is in use twice, or has lost what was not flushed (`power`) is a `state` event,
 *   before the first operation with it.
 */

/** Milliseconds of the machine's monotonic clock, which all processes share. */
export type At = number;

export type Outcome = "ok" | "fail" | "unknown";

/** The name in the body, and a hash of all of the body. */
export type Put = readonly [name: string, hash: string];
export type Got = readonly [id: number, name: string, hash: string];

export interface Invocation {
  readonly client: string;
  readonly session: number;
  readonly do: "subscribe" | "unsubscribe" | "seek" | "put" | "get";
  readonly topic: string;
  /** put: the counter of the first. */
  readonly counter?: number;
  readonly puts?: readonly Put[];
  /** put: all of it was tried before. */
  readonly resumed?: boolean;
  /** seek: where to. */
  readonly to?: number | "start" | "end";
  /** get: the place that the request named. */
  readonly last?: number;
  /** get: what is seen comes in no order (files that are found). */
  readonly unordered?: boolean;
}

export interface Result {
  readonly outcome: Outcome;
  /** What the answer said, as the protocol has it. */
  readonly status?: string;
  /** put: of each message, where the answer told them. */
  readonly ids?: readonly number[];
  readonly got?: readonly Got[];
  /** get: so many were given up by retention. */
  readonly missed?: number;
  /** The server that answered. */
  readonly by?: string;
}

/** A topic's node, as the coordination service had it. */
export interface NodeSeen {
  readonly topic: string;
  readonly owner: string;
  readonly epoch: number;
  readonly state: string;
  readonly incarnation: string;
  readonly version: number;
}

export interface Sample {
  /** A role's id. */
  readonly of: string;
  /** baseline: before the load. end: after it, healed and drained. */
  readonly when: "baseline" | "end";
  readonly rssBytes?: number;
  readonly descriptors?: number;
  readonly diskBytes?: number;
}

/**
 * What servers have written down after a fail-over of their database: messages of the topic after `last` may be lost.
 */
export interface NamedLoss {
  readonly topic: string;
  readonly last: number;
}

export type HistoryEvent =
  | { readonly kind: "invoke"; readonly n: number; readonly at: At; readonly operation: Invocation }
  | { readonly kind: "return"; readonly n: number; readonly at: At; readonly result: Result }
  /** Handed to the user. `got`: what no return tells. `again`: ids that were marked as redelivered. */
  | {
    readonly kind: "saw";
    readonly n: number;
    readonly at: At;
    readonly upTo: number;
    readonly got?: readonly Got[];
    readonly again?: readonly number[];
  }
  /** `soft`: a loss of power may undo it. */
  | { readonly kind: "had"; readonly n: number; readonly at: At; readonly upTo: number; readonly soft?: boolean }
  | {
    readonly kind: "state";
    readonly at: At;
    readonly client: string;
    readonly what: "lost" | "restored" | "shared" | "power";
  }
  | { readonly kind: "fault"; readonly at: At; readonly name: string; readonly target: string }
  /** From here on every operation is to succeed. */
  | { readonly kind: "healed"; readonly at: At }
  | { readonly kind: "node"; readonly at: At; readonly node: NodeSeen }
  /** What a topic held when nothing was put or had: equal wherever it is handed to. */
  | {
    readonly kind: "content";
    readonly at: At;
    readonly topic: string;
    readonly epoch: number;
    readonly digest: string;
  }
  | { readonly kind: "sample"; readonly at: At; readonly sample: Sample }
  | { readonly kind: "loss"; readonly at: At; readonly loss: NamedLoss };

/** An operation from its begin to its end, if it had one. */
export interface Operation extends Invocation {
  readonly process: string;
  readonly invokedAt: At;
  /** Infinity: it never returned. */
  readonly returnedAt: At;
  readonly result: Result;
  readonly handed: readonly (HistoryEvent & { readonly kind: "saw" | "had" })[];
}

export interface History {
  readonly operations: readonly Operation[];
  readonly states: readonly (HistoryEvent & { readonly kind: "state" })[];
  readonly faults: readonly (HistoryEvent & { readonly kind: "fault" })[];
  readonly nodes: readonly (HistoryEvent & { readonly kind: "node" })[];
  readonly contents: readonly (HistoryEvent & { readonly kind: "content" })[];
  readonly samples: readonly Sample[];
  readonly losses: readonly NamedLoss[];
  /** Infinity: it was not. */
  readonly healedAt: At;
}
