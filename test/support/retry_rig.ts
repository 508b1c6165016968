/** A message store in a folder of its own, without a thread, and what tests say to it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RetryDatabase } from "../../src/retry/queue/sqlite/retry_database.ts";
import type { StoreRules } from "../../src/retry/queue/store_rules.ts";
import type { StoreMethod, StoreMethods } from "../../src/retry/queue/store_methods.ts";
import { SqliteRows } from "../../src/retry/queue/sqlite/sqlite_rows.ts";
import { RetryEngine } from "../../src/retry/queue/retry_engine.ts";
import { runStepsNow } from "../../src/base/support/steps.ts";
import type { NewMessage } from "../../src/retry/queue/stored_message.ts";

export const rigRules: StoreRules = {
  policy: {
    maxRetries: 2,
    backoff: "fixed",
    intervalMs: 10,
    delaysMs: [],
    maxDelayMs: 1000,
    jitter: "none",
    maxElapsedMs: null,
  },
  maxCrashes: 2,
  drops: false,
  letters: "open",
  maxBytes: 1 << 20,
  maxMessages: 1000,
};

export const rigFailure = { outcome: "retry", retryAfterMs: null } as const;
export const rigSuccess = { outcome: "done", retryAfterMs: null } as const;

export function rigMessage(text: string, change: Partial<NewMessage> = {}): NewMessage {
  return {
    head: { kind: "command", argv: ["./send"], cwd: "/srv" },
    body: new TextEncoder().encode(text),
    key: null,
    tried: null,
    ...change,
  };
}

/** The calls of a store, each to be made inside a transaction. */
export function folderCalls(database: RetryDatabase, rules: StoreRules, random?: () => number): StoreMethods {
  const engine = new RetryEngine(new SqliteRows(database, rules), rules, random);
  const call = (method: StoreMethod) => (...values: Parameters<StoreMethods[StoreMethod]>) =>
    runStepsNow(engine.call(method, ...values));
  return new Proxy({} as StoreMethods, { get: (_, method) => call(method as StoreMethod) });
}

export class RetryRig implements Disposable {
  readonly folder: string;
  readonly #isOwn: boolean;
  readonly #database: RetryDatabase;
  readonly #methods: StoreMethods;

  /** `folder`: a store that somebody else has, and removes. */
  constructor({ folder, ...rules }: Partial<StoreRules> & { readonly folder?: string } = {}) {
    this.#isOwn = folder === undefined;
    this.folder = folder ?? join(mkdtempSync(join(tmpdir(), "baton-retry-")), "store");
    this.#database = new RetryDatabase(this.folder);
    this.#methods = folderCalls(this.#database, { ...rigRules, ...rules }, () => 0.5);
  }

  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): ReturnType<StoreMethods[Name]> {
    const call = this.#methods[method] as (...values: Parameters<StoreMethods[Name]>) => ReturnType<StoreMethods[Name]>;
    return this.#database.transaction(() => call(...values));
  }

  get commits(): number {
    return this.#database.commits;
  }

  [Symbol.dispose](): void {
    this.#database.close();
    if (this.#isOwn) rmSync(join(this.folder, ".."), { recursive: true, force: true });
  }
}
