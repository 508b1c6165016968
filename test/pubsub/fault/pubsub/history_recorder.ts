/** Records a history event by event, and joins what several processes have recorded. Knows no files and no clock. */
import type { History, HistoryEvent, Invocation, NamedLoss, NodeSeen, Operation, Result, Sample } from "./history.ts";

type Handed = HistoryEvent & { readonly kind: "saw" | "had" };

export class HistoryRecorder {
  readonly #nowMs: () => number;
  readonly #write: (event: HistoryEvent) => void;
  #next = 1;

  constructor(nowMs: () => number, write: (event: HistoryEvent) => void) {
    this.#nowMs = nowMs;
    this.#write = write;
  }

  /** Returns the operation's number, for what becomes of it. */
  invoke(operation: Invocation): number {
    const n = this.#next++;
    this.#write({ kind: "invoke", n, at: this.#nowMs(), operation });
    return n;
  }

  return(n: number, result: Result): void {
    this.#write({ kind: "return", n, at: this.#nowMs(), result });
  }

  saw(n: number, what: Pick<Handed & { readonly kind: "saw" }, "upTo" | "got" | "again">): void {
    this.#write({ kind: "saw", n, at: this.#nowMs(), ...what });
  }

  had(n: number, upTo: number, { soft = false }: { readonly soft?: boolean } = {}): void {
    this.#write({ kind: "had", n, at: this.#nowMs(), upTo, ...(soft ? { soft } : {}) });
  }

  state(client: string, what: History["states"][number]["what"]): void {
    this.#write({ kind: "state", at: this.#nowMs(), client, what });
  }

  fault(name: string, target: string): void {
    this.#write({ kind: "fault", at: this.#nowMs(), name, target });
  }

  healed(): void {
    this.#write({ kind: "healed", at: this.#nowMs() });
  }

  node(node: NodeSeen): void {
    this.#write({ kind: "node", at: this.#nowMs(), node });
  }

  content(topic: string, epoch: number, digest: string): void {
    this.#write({ kind: "content", at: this.#nowMs(), topic, epoch, digest });
  }

  sample(sample: Sample): void {
    this.#write({ kind: "sample", at: this.#nowMs(), sample });
  }

  loss(loss: NamedLoss): void {
    this.#write({ kind: "loss", at: this.#nowMs(), loss });
  }
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
