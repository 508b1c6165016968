/** A history on the disk: a file for each process, a line for each event. */
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { History, HistoryEvent, Invocation, NamedLoss, NodeSeen, Operation, Result, Sample } from "./history.ts";
import { monotonicMs } from "./monotonic.ts";

const extension = ".jsonl";
type Handed = HistoryEvent & { readonly kind: "saw" | "had" };

/** Each event is with the kernel when its method returns. */
export class HistoryWriter implements Disposable {
  readonly #file: number;
  #next = 1;

  /** `path` ends in .jsonl; no other process writes to it. */
  constructor(path: string) {
    this.#file = openSync(path, "ax");
  }

  /** Returns the operation's number, for what becomes of it. */
  invoke(operation: Invocation): number {
    const n = this.#next++;
    this.#write({ kind: "invoke", n, at: monotonicMs(), operation });
    return n;
  }

  return(n: number, result: Result): void {
    this.#write({ kind: "return", n, at: monotonicMs(), result });
  }

  saw(n: number, what: Pick<Handed & { readonly kind: "saw" }, "upTo" | "got" | "again">): void {
    this.#write({ kind: "saw", n, at: monotonicMs(), ...what });
  }

  had(n: number, upTo: number, { soft = false }: { readonly soft?: boolean } = {}): void {
    this.#write({ kind: "had", n, at: monotonicMs(), upTo, ...(soft ? { soft } : {}) });
  }

  state(client: string, what: History["states"][number]["what"]): void {
    this.#write({ kind: "state", at: monotonicMs(), client, what });
  }

  fault(name: string, target: string): void {
    this.#write({ kind: "fault", at: monotonicMs(), name, target });
  }

  healed(): void {
    this.#write({ kind: "healed", at: monotonicMs() });
  }

  node(node: NodeSeen): void {
    this.#write({ kind: "node", at: monotonicMs(), node });
  }

  content(topic: string, epoch: number, digest: string): void {
    this.#write({ kind: "content", at: monotonicMs(), topic, epoch, digest });
  }

  sample(sample: Sample): void {
    this.#write({ kind: "sample", at: monotonicMs(), sample });
  }

  loss(loss: NamedLoss): void {
    this.#write({ kind: "loss", at: monotonicMs(), loss });
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }

  #write(event: HistoryEvent): void {
    writeSync(this.#file, `${JSON.stringify(event)}\n`);
  }
}

/** All files of the folder. A line that was cut off by a kill is passed over; a whole one that is no event throws. */
export function readHistory(folder: string): History {
  const names = readdirSync(folder).filter((name) => name.endsWith(extension)).sort();
  return historyOf(
    new Map(
      names.map((name) => [name.slice(0, -extension.length), eventsIn(readFileSync(join(folder, name), "utf8"))]),
    ),
  );
}

function eventsIn(text: string): HistoryEvent[] {
  const lines = text.split("\n");
  lines.pop(); // behind the last newline: nothing, or a line that was cut off
  return lines.map((line) => JSON.parse(line) as HistoryEvent);
}

/** Joins what each process wrote. Throws for a return without an invocation. Pure. */
export function historyOf(events: ReadonlyMap<string, readonly HistoryEvent[]>): History {
  const operations: Operation[] = [];
  const all = {
    states: [] as Extract<HistoryEvent, { kind: "state" }>[],
    faults: [] as Extract<HistoryEvent, { kind: "fault" }>[],
    nodes: [] as Extract<HistoryEvent, { kind: "node" }>[],
    contents: [] as Extract<HistoryEvent, { kind: "content" }>[],
    samples: [] as Sample[],
    losses: [] as NamedLoss[],
  };
  let healedAt = Infinity;
  for (const [process, its] of events) {
    const open = new Map<number, Operation & { result: Result; returnedAt: number; handed: Handed[] }>();
    const opened = (n: number) => {
      const operation = open.get(n);
      if (operation === undefined) throw new Error(`Process ${process} tells of operation ${n}, which was not begun`);
      return operation;
    };
    for (const event of its) {
      if (event.kind === "invoke") {
        const rest = { result: { outcome: "unknown" } as Result, returnedAt: Infinity, handed: [] as Handed[] };
        const operation = { ...event.operation, process, invokedAt: event.at, ...rest };
        open.set(event.n, operation);
        operations.push(operation);
      } else if (event.kind === "return") {
        const operation = opened(event.n);
        [operation.result, operation.returnedAt] = [event.result, event.at];
      } else if (event.kind === "saw" || event.kind === "had") opened(event.n).handed.push(event);
      else if (event.kind === "healed") healedAt = Math.min(healedAt, event.at);
      else if (event.kind === "loss") all.losses.push(event.loss);
      else if (event.kind === "sample") all.samples.push(event.sample);
      else if (event.kind === "state") all.states.push(event);
      else if (event.kind === "fault") all.faults.push(event);
      else if (event.kind === "node") all.nodes.push(event);
      else all.contents.push(event);
    }
  }
  operations.sort((a, b) => a.invokedAt - b.invokedAt);
  for (const events of [all.states, all.faults, all.nodes]) events.sort((a, b) => a.at - b.at);
  return { ...all, operations, healedAt };
}
