/** Known defects of message stores in PostgreSQL. */
import type { Mutant } from "../../../world/mutant.ts";

export const databaseMutants: readonly Mutant[] = [
  {
    name: "what a claim without an answer has taken is not given back",
    world: "retry-database",
    changes: [
      {
        in: "postgres_processors:PostgresProcessors.#claimRows",
        from: 'if (error instanceof StatementError && error.outcome === "unknown") this.#isUnknown = true;',
        to: "void [error, StatementError];",
      },
      {
        in: "postgres_processors:PostgresProcessors.unknown",
        from: "(!this.#isUnknown && this.#reconnects === reconnects)",
        to: "(!this.#isUnknown && reconnects >= 0)",
      },
    ],
    kinds: ["never at its end"],
    seeds: 40,
  },
  {
    name: "a claim that comes late is not fenced before its messages are given back",
    world: "retry-database",
    changes: [{
      in: "postgres_processors:PostgresProcessors.unknown",
      from: "const epoch = this.#epoch + 1;",
      to: "const epoch = this.#epoch;",
    }],
    kinds: ["never at its end"],
    from: 110,
    seeds: 60,
  },
  {
    name: "messages that are being tried are given back with those that are unknown",
    world: "retry-database",
    changes: [{
      in: "postgres_processors:PostgresProcessors.unknown",
      from: ".filter((row) => !this.#isKnown(row));",
      to: ".filter((row) => !this.#isKnown(row) || row !== undefined);",
    }],
    kinds: ["too early", "two tries at the same time", "tried after its end", "order"],
    seeds: 40,
  },
  {
    name: "a repetition of an acceptance stores its messages again",
    world: "retry-database",
    changes: [{
      in: "postgres_queue:PostgresQueue.run",
      from: "return await this.runOnce(name, text, values, {",
      to:
        'return await this.runOnce(name, text, name === "queue_accept" ? values.with(1, crypto.randomUUID()) : values, {',
    }],
    kinds: ["stored twice"],
    seeds: 40,
  },
  {
    name: "a processor that registers again claims under its old epoch",
    world: "retry-database",
    changes: [{
      in: "postgres_processors:PostgresProcessors.register",
      from: "this.#epoch = 0;",
      to: "",
    }],
    kinds: ["never at its end"],
    seeds: 60,
  },
];
