/** Known defects of the retry engine. */
import type { Mutant } from "../../../world/mutant.ts";

export const retryMutants: readonly Mutant[] = [
  {
    name: "a pause does not keep a processor from claiming messages",
    world: "retry",
    changes: [{
      in: "sqlite_processors:SqliteProcessors.take",
      from: "const rows = this.#messages.isPaused() ? []",
      to: "const rows = this.#messages.isPaused() && owner < 0 ? []",
    }],
    kinds: ["tried in a pause"],
    seeds: 100,
  },
  {
    name: "the store answers before its commit is flushed",
    world: "retry",
    changes: [{
      in: "retry_store_thread:serveRetryStore",
      from: "        return database.transaction(work);\n",
      to: `        database.begin();
        const result = work();
        queueMicrotask(() => port.run(() => database.commit()));
        return result;
`,
    }],
    kinds: ["lost", "tried after its end", "fence used twice", "too early", "id given twice", "judge"],
    from: 11,
    seeds: 40,
  },
  {
    name: "a message is dead one try too early",
    world: "retry",
    changes: [{
      in: "retry_policy:decideNextTry",
      from: "if (tries > policy.maxRetries) return",
      to: "if (tries >= policy.maxRetries) return",
    }],
    kinds: ["judge"],
    from: 3,
    seeds: 40,
  },
  {
    name: "a delay is counted by the wrong clock",
    world: "retry",
    changes: [{
      in: "retry_processor:RetryProcessor.#recordResult",
      from: 'store.call("finish", { seq, fence, owner, end, error, nowMs: wallClockMs(), pauseMs });',
      to: 'store.call("finish", { seq, fence, owner, end, error, nowMs: this.#options.clock.now(), pauseMs });',
    }],
    kinds: ["too early", "lost"],
    seeds: 40,
  },
  {
    name: "Retry-After does not delay the next try",
    world: "retry",
    changes: [{
      in: "retry_policy:decideNextTry",
      from: "nowMs + Math.max(wanted, Math.min(retryAfterMs ?? 0, retryAfterMsMax));",
      to: "nowMs + Math.max(wanted, Math.min(retryAfterMs ?? 0, 0));",
    }],
    kinds: ["too early"],
    from: 24,
    seeds: 40,
  },
  {
    name: "after a crash a message is tried again without a delay",
    world: "retry",
    changes: [{
      in: "message_life",
      from: 'nextAtMs: next.kind === "at" ? next.atMs : nowMs };\n}\n\n/**',
      to: "nextAtMs: nowMs };\n}\n\n/**",
    }],
    kinds: ["too early"],
    from: 195,
    seeds: 40,
  },
  {
    name: "a renewed lease is not stored: a second try starts beside the first one",
    world: "retry",
    changes: [{
      in: "sqlite_processors:SqliteProcessors.renew",
      from: "return this.#database.changeRow(sqliteRetryTables.processors, { id: owner }, { end_ms: endMs });",
      to: "return endMs > 0 && this.#database.changeRow(sqliteRetryTables.processors, { id: owner }, {});",
    }],
    kinds: ["two tries at the same time", "stale result counted", "order"],
    from: 25,
    seeds: 40,
  },
  {
    name: "a processor that starts takes back what others have in flight",
    world: "retry",
    changes: [{
      in: "sqlite_processors:SqliteProcessors.#readAll",
      from: "{ boot, bootMs, graceMs }: Pick<",
      to: "{ boot, bootMs, nowMs }: Pick<",
    }, {
      in: "sqlite_processors:SqliteProcessors.#readAll",
      from: 'const isHeld = isWhole && row["boot"] === boot && bootMs <= Number(row["end_ms"]) + graceMs;',
      to:
        'const isHeld = isWhole && row["boot"] === boot && bootMs <= Number(row["end_ms"]) && Number(row["since_ms"]) > nowMs - 3000;',
    }],
    kinds: ["two tries at the same time", "stale result counted", "order", "too early"],
    from: 39,
    seeds: 40,
  },
  {
    name: "the result of a lost lease counts",
    world: "retry",
    changes: [{
      in: "sqlite_processors:SqliteProcessors.claimed",
      from: 'if (row === null || Number(row["owner"]) !== owner) return null;',
      to: "if (row === null) return null;",
    }, {
      in: "retry_engine:RetryEngine.finish",
      from: "if (next === null || life.fence !== fence) return null;",
      to: "if (next === null) return null;",
    }, {
      in: "message_life:lifeAfterTry",
      from: "  { rules, nowMs, random }: { readonly rules: LifeRules; readonly nowMs: number; " +
        "readonly random: () => number },\n" +
        '): MessageLife | null {\n  if (life.state !== "in_flight" || life.fence !== fence) return null;',
      to: "  { rules, nowMs, random }: { readonly rules: LifeRules; readonly nowMs: number; " +
        "readonly random: () => number },\n" +
        '): MessageLife | null {\n  if (fence < 0 || life.state === "done") return null;',
    }, {
      in: "retry_processor:RetryProcessor.#deliver",
      from: '    if (result.kind === "lost") return;\n',
      to:
        '    if (result.kind === "lost") result = { kind: "tried", end: { outcome: "retry", retryAfterMs: null }, error: null };\n',
    }],
    kinds: [
      "stale result counted",
      "unknown result",
      "two tries at the same time",
      "tried after its end",
      "order",
      "judge",
    ],
    seeds: 1,
    faults: "test/world/found/result_of_a_lost_lease.json",
  },
  {
    name: "the order of a key does not hold after a try that failed",
    world: "retry",
    changes: [{
      in: "due_messages:nextOfKeyCondition",
      from: 'return order === "key" ? "AND is_next = 1 AND +is_next = 1" : "";',
      to: 'return order === "key" ? "AND (is_next = 1 OR fence > 0)" : "";',
    }],
    kinds: ["order"],
    from: 27,
    seeds: 40,
  },
  {
    name: "a redriven message is lost when its processor dies",
    world: "retry",
    changes: [{
      in: "sqlite_processors:SqliteProcessors.inFlight",
      from: '"SELECT * FROM messages WHERE state = 1 AND owner = ?"',
      to: '"SELECT * FROM messages WHERE state = 1 AND redriven = 0 AND owner = ?"',
    }],
    kinds: ["never at its end", "judge"],
    from: 92,
    seeds: 40,
  },
  {
    name: "a dead letter is marked before it is in its file",
    world: "retry",
    changes: [{
      in: "dead_letter_forwarder:DeadLetterForwarder.#send",
      from: `    await open.send(letter, offset, signal);
`,
      to: `    await store.call("markForwarded", letter.seq, letter.fence, wallClockMs());
    await open.send(letter, offset, signal);
`,
    }],
    kinds: ["judge"],
    from: 125,
    seeds: 40,
  },
  {
    name: "a dead letter that was being sent is sent to the end of the file",
    world: "retry",
    changes: [{
      in: "dead_letter_forwarder:DeadLetterForwarder.#send",
      from: 'const startedAt = letter.forwardState === "sending" ? letter.forwardOffset : null;',
      to: "const startedAt = null;",
    }],
    kinds: ["judge"],
    seeds: 1,
    faults: "test/world/found/dead_letter_sent_twice.json",
  },
  {
    name: "a line that a power cut left incomplete stays in front of the next dead letter",
    world: "retry",
    changes: [{ in: "file_sink:FileSink.open", from: "        endLastLine(fd);\n", to: "" }],
    kinds: ["judge"],
    seeds: 1,
    faults: "test/world/found/dead_letter_behind_half_a_line.json",
  },
  {
    name: "with fifo a redriven message does not wait for the one in flight",
    world: "retry",
    changes: [{
      in: "due_messages:dueMessages",
      from: 'if (database.get("SELECT 1 FROM messages WHERE state = 1 LIMIT 1") !== undefined) return [];\n',
      to: "",
    }],
    kinds: ["order"],
    seeds: 1,
    faults: "test/world/found/redriven_beside_one_in_flight.json",
  },
  {
    name: "by key a message without one has no mark after a redrive",
    world: "retry",
    changes: [{
      in: "sqlite_messages:KeyOrdering.restoreMark",
      from: "    if (key === null) return this.#setNext(seq, 1);\n    const holder",
      to: "    if (key === null) return;\n    const holder",
    }],
    kinds: ["never at its end", "judge", "run ended wrong"],
    from: 17,
    seeds: 40,
  },
  {
    name: "a batch waits until a clock that was set back is there again",
    world: "retry",
    changes: [{
      in: "batch_pacer:batchPacerAtTime",
      from: "  if (nowMs < seenMs) return { ...startPacer(options, nowMs), messagesLeft };\n",
      to: "  void [seenMs, messagesLeft];\n",
    }],
    kinds: ["never at its end"],
    seeds: 1,
    faults: "test/world/found/batch_waits_for_a_clock_set_back.json",
  },
  {
    name: "a run until the store is empty ends while a message waits for its interval",
    world: "retry",
    changes: [{
      in: "retry_processor:RetryProcessor.#isFinished",
      from: '    return await this.#retryWhileBusy(() => store.call("canBeTried", order)) === false;\n',
      to:
        '    return this.#nextDueMs !== null || await this.#retryWhileBusy(() => store.call("canBeTried", order)) === false;\n',
    }],
    kinds: ["run ended wrong"],
    seeds: 40,
  },
  {
    name: "a run until the store is empty ends while another processor has a message in flight",
    world: "retry",
    changes: [{
      in: "due_messages:canBeTried",
      from:
        "database.all(`SELECT * FROM messages WHERE state < 2 ${nextOfKeyCondition(order)} ORDER BY seq LIMIT ?`, limit);",
      to:
        "database.all(`SELECT * FROM messages WHERE state = 0 ${nextOfKeyCondition(order)} ORDER BY seq LIMIT ?`, limit);",
    }],
    kinds: ["run ended wrong"],
    from: 21,
    seeds: 40,
  },
  {
    name: "a run of one try each tries again what has failed since it began",
    world: "retry",
    changes: [{
      in: "retry_processor:RetryProcessor.#claimDue",
      from: 'const nowMs = until === "tried" ? this.#startedMs : wallClockMs();',
      to: "const nowMs = wallClockMs();",
    }],
    kinds: ["tried twice by one run"],
    from: 73,
    seeds: 40,
  },
  {
    name: "a run of one try each counts from its start when the clock was set back",
    world: "retry",
    changes: [{
      in: "retry_processor:RetryProcessor.#claimDue",
      from: "    this.#startedMs = Math.min(this.#startedMs, wallClockMs());\n",
      to: "",
    }],
    kinds: ["too early"],
    seeds: 1,
    faults: "test/world/found/run_of_one_try_each_whose_clock_is_set_back.json",
  },
  {
    name: "a run ends with success while a dead letter is not delivered",
    world: "retry",
    changes: [{
      in: "store_processor:StoreProcessor.#checkDeadLetters",
      from:
        '    const { count, error } = await this.#parts.store.call("deadLetterBacklog");\n    if (count === 0) return;\n',
      to:
        '    const { count, error } = await this.#parts.store.call("deadLetterBacklog");\n    if (count >= 0) return;\n',
    }],
    kinds: ["run ended wrong"],
    from: 56,
    seeds: 40,
  },
  {
    name: "serve passes a temporary status on before the request is stored",
    world: "retry",
    changes: [{
      in: "retry_http_proxy:RetryHttpProxy.#passResult",
      from: "      const kept = await this.#store(call, tried, tried.error);\n",
      to: `      const storing = this.#store(call, tried, tried.error);
      await passResponse(response, result, { method: call.method, added: [], clock: this.#options.clock });
      const kept = await storing;
`,
    }],
    kinds: ["not stored"],
    seeds: 40,
  },
  {
    name: "a request is stored without its Idempotency-Key",
    world: "retry",
    changes: [{
      in: "retry_http_proxy:RetryHttpProxy.#store",
      from: 'const head: MessageHead = { kind: "http", method, path, headers };',
      to:
        'const head: MessageHead = { kind: "http", method, path, headers: headers.filter(([name]) => name.toLowerCase() !== idempotencyHeader) };',
    }],
    kinds: ["key changed"],
    from: 4,
    seeds: 40,
  },
  {
    name: "a request with a final status is stored, too",
    world: "retry",
    changes: [{
      in: "retry_http_proxy:RetryHttpProxy.#passResult",
      from: 'if (outcomeOfStatus(status, this.#options.rules) === "retry" &&',
      to: 'if (outcomeOfStatus(status, this.#options.rules) !== "done" &&',
    }],
    kinds: ["stored for nothing"],
    from: 14,
    seeds: 40,
  },
  {
    name: "a request counts as not stored when the disk has failed",
    world: "retry",
    changes: [{
      in: "retry_http_proxy:RetryHttpProxy.#store",
      from: 'mayBeStored(error) ? "maybe_stored"',
      to: 'code === "OUTCOME_UNKNOWN" ? "maybe_stored"',
    }],
    kinds: ["stored twice", "sent again"],
    from: 138,
    seeds: 40,
  },
  {
    name: "a dead letter is not marked when its command has ended well",
    world: "retry",
    changes: [{
      in: "dead_letter_forwarder:DeadLetterForwarder.#send",
      from: 'await store.call("markForwarded", letter.seq, letter.fence, wallClockMs())',
      to: "true",
    }],
    kinds: ["dead letter sent again"],
    from: 3,
    seeds: 40,
  },
  {
    name: "a dead letter whose command has failed leaves the store",
    world: "retry",
    changes: [{
      in: "command_sink:CommandSink.#send",
      from: "if (ended.code !== 0) throw",
      to: 'if (ended.code === "INTERNAL") throw',
    }],
    kinds: ["judge"],
    from: 4,
    seeds: 40,
  },
];
