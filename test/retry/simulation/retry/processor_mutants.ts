/**
 * Known defects of processors and of what they store: too many tries at the same time, tries beyond a lease, messages
 * that end too early.
 */
import type { Mutant } from "../../../world/mutant.ts";

export const processorMutants: readonly Mutant[] = [
  {
    name: "a suspended processor notices the end of its lease with its timer only",
    world: "retry",
    changes: [{
      in: "processor_lease:ProcessorLease.isOver",
      from:
        "    if (this.#options.clock.now() >= this.#endMs) this.lose(endedByClock);\n    return this.#lost.signal.aborted;",
      to: "    return this.#lost.signal.aborted || this.#options.clock.now() >= this.#endMs;",
    }],
    kinds: ["tried beyond its lease"],
    seeds: 100,
  },
  {
    name: "the end of a lease does not end the tries",
    world: "retry",
    changes: [{
      in: "processor_lease:ProcessorLease.makeTryLease",
      from: "onAbort(this.#lost.signal, abort), onAbort(this.#stopped.signal, abort)",
      to: "onAbort(this.#stopped.signal, abort)",
    }],
    kinds: ["tried beyond its lease", "two tries at the same time"],
    seeds: 100,
  },
  {
    name: "a processor tries three messages more at the same time than it may",
    world: "retry",
    changes: [{
      in: "retry_processor:RetryProcessor.#freeSlots",
      from: '(order === "fifo" ? 1 : concurrency)',
      to: '(order === "fifo" ? 1 : concurrency + 3)',
    }],
    kinds: ["too many tries at the same time"],
    seeds: 20,
  },
  {
    name: "a message is too old after a quarter of the time",
    world: "retry",
    changes: [{
      in: "retry_policy:decideNextTry",
      from: "atMs > sinceMs + maxElapsedMs)",
      to: "atMs > sinceMs + maxElapsedMs / 4)",
    }],
    kinds: ["too old too early"],
    from: 14,
    seeds: 100,
  },
  {
    name: "the age of a redriven message is counted from its first life",
    world: "retry",
    changes: [{
      in: "message_life:lifeAfterRedrive",
      from: 'state: "waiting", tries: 0, crashes: 0, sinceMs: nowMs, nextAtMs: nowMs, reason: null };',
      to: 'state: "waiting", tries: 0, crashes: 0, nextAtMs: nowMs, reason: null };',
    }],
    kinds: ["too old too early"],
    from: 140,
    seeds: 20,
  },
  {
    name: "a message that was redriven is not forwarded when it is dead again",
    world: "retry",
    changes: [{
      in: "sqlite_messages:SqliteMessages.changeRow",
      from: "    if (before === next.state) return;\n    const key",
      to: `    if (next.state === "dead" && next.fence > next.tries + next.crashes) {
      this.#database.changeRow(sqliteRetryTables.messages, { seq }, { forwarding: -1 });
    }
    if (before === next.state) return;
    const key`,
    }],
    kinds: ["judge"],
    from: 27,
    seeds: 100,
  },
  {
    name: "a dead letter of a process without a destination is left in the store",
    world: "retry",
    changes: [{
      in: "retry_engine:RetryEngine.pendingDeadLetters",
      from: "    yield* awaitAnswer(letters.takeOpen());\n",
      to: "",
    }],
    kinds: ["never at its end"],
    seeds: 20,
  },
  {
    name: "the content of a message is cut when it is claimed",
    world: "retry",
    changes: [{
      in: "sqlite_messages:SqliteMessages.contentOf",
      from: 'body: row["body"] as Uint8Array };',
      to: 'body: (row["body"] as Uint8Array).subarray(0, 100) };',
    }],
    kinds: ["content changed"],
    seeds: 20,
  },
  {
    name: "delays are twice as long as the policy says",
    world: "retry",
    changes: [{
      in: "retry_policy:decideNextTry",
      from: "Math.max(wanted",
      to: "Math.max(2 * wanted",
    }],
    kinds: ["next try too late"],
    seeds: 20,
  },
  {
    name: "a message is tried at a time at which it is too old",
    world: "retry",
    changes: [{
      in: "retry_policy:decideNextTry",
      from: "atMs > sinceMs + maxElapsedMs)",
      to: "nowMs > sinceMs + maxElapsedMs)",
    }],
    kinds: ["next try too late"],
    from: 41,
    seeds: 100,
  },
];
