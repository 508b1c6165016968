/**
 * One store with one topic: topic_growth_program BACKLOG SUBSCRIBERS FOLDER. Fills it, measures what a put costs then,
 * closes it, opens it again. Prints JSON; a process of its own, because memory is measured.
 */
import { readFileSync } from "node:fs";
import { TopicStore } from "../../src/pubsub/store/topic_store.ts";
import type { ClientOperation, StoreResponse } from "../../src/pubsub/store/operations/store_operations.ts";
import { requestOf, responseOf } from "../../test/support/store_requests.ts";

export interface TopicGrowthOutcome {
  /** Processor time of all threads per put, with 256 puts in flight. */
  readonly cpuUsPerPut: number;
  readonly usPerPut: number;
  /** Time from the start of opening the store to its first answer. */
  readonly openMs: number;
  /** Peak memory of the process that opened the store and answered. */
  readonly rssMib: number;
  readonly fillRssMib: number;
}

const topic = "grows";
const bodyBytes = 100;
const measuredPuts = 20_000;
const outstanding = 256;

class Load {
  #store!: TopicStore;
  #ticket = 0;
  #counter = 1;
  readonly #waiting = new Map<number, (answer: StoreResponse) => void>();

  async open(dataDir: string): Promise<void> {
    this.#store = await TopicStore.open(dataDir, {
      onResponses: (answers) => {
        for (const answer of answers) {
          this.#waiting.get(answer.ticket)?.(responseOf(answer));
          this.#waiting.delete(answer.ticket);
        }
      },
      onBroken: (error) => {
        throw error;
      },
    });
  }

  get store(): TopicStore {
    return this.#store;
  }

  async ask(operation: Record<string, unknown>): Promise<StoreResponse> {
    const ticket = this.#ticket++;
    const answered = new Promise<StoreResponse>((resolve) => this.#waiting.set(ticket, resolve));
    const whole = { session: null, topic, epoch: 1, ...operation, ticket } as unknown as ClientOperation;
    if (!this.#store.submit(requestOf(whole))) throw new Error("the store has no room");
    const answer = await answered;
    if (answer.code !== "OK") throw new Error(`${answer.code}: ${answer.reason}`);
    return answer;
  }

  /** Puts `count` messages, `each` in one operation. */
  async put(count: number, each: number): Promise<void> {
    const body = new Uint8Array(bodyBytes).fill(66);
    const session = { number: 1, key: "k" };
    let left = count;
    const worker = async () => {
      while (left > 0) {
        left -= each;
        const counter = this.#counter;
        this.#counter += each;
        const firstUnacked = Math.max(0, counter - 4 * outstanding);
        const rest = { fromSession: null, after: null, msgId: null, bodies: Array.from({ length: each }, () => body) };
        await this.ask({ kind: "put", client: "writer", session, counter, firstUnacked, ...rest });
      }
    };
    await Promise.all(Array.from({ length: Math.ceil(outstanding / each) }, worker));
  }
}

function peakMib(): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? 0) / 1024;
}

const [backlog = 0, subscribers = 0] = process.argv.slice(2).map(Number);
const dataDir = process.argv[4] ?? "";
const isSecond = process.argv[5] === "again";
const load = new Load();
const startMs = performance.now();
await load.open(dataDir);
if (isSecond) {
  const { messages = [] } = await load.ask({
    kind: "get",
    client: "s0",
    op: null,
    last: -1,
    max: 1,
    maxBytes: 0,
    wait: false,
    peek: true,
  });
  const openMs = performance.now() - startMs;
  console.log(JSON.stringify({ openMs, rssMib: peakMib(), messages: messages.length }));
} else {
  await load.store.create(topic, { incarnation: "b", baseOffset: 0, epoch: 1 });
  for (let at = 0; at < subscribers; at++) await load.ask({ kind: "subscribe", client: `s${at}`, op: null });
  await load.put(Math.max(backlog, 20_000), 128); // warm, in any case
  for (let at = 0; at < (backlog === 0 ? subscribers : 0); at++) {
    await load.ask({ kind: "seek", client: `s${at}`, op: null, to: "end" });
  }
  const before = process.cpuUsage();
  const beganMs = performance.now();
  await load.put(measuredPuts, 1);
  const { user, system } = process.cpuUsage(before);
  const usPerPut = (performance.now() - beganMs) * 1000 / measuredPuts;
  console.log(JSON.stringify({ cpuUsPerPut: (user + system) / measuredPuts, usPerPut, fillRssMib: peakMib() }));
}
await load.store.close();
