/** Benchmark: durable puts into a topic store without a network, limited by the storage thread and the disk. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TopicStore } from "../../src/pubsub/store/topic_store.ts";
import type { ClientOperation } from "../../src/pubsub/store/operations/store_operations.ts";
import type { EncodedResponse } from "../../src/pubsub/store/topic_store.ts";
import { requestOf, responseOf } from "../../test/support/store_requests.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

interface Load {
  readonly bodyBytes: number;
  readonly outstanding: number;
  readonly puts: number;
}

interface Outcome {
  readonly putsPerSecond: number;
  readonly commitsPerPut: number;
  readonly latenciesMs: readonly number[];
  readonly getsPerSecond: number;
}

const loads: readonly Load[] = [100, 1024].flatMap((bodyBytes) => [
  { bodyBytes, outstanding: 1, puts: 2_000 },
  { bodyBytes, outstanding: 256, puts: 50_000 },
]);

/** Returns a table of medians over the rounds for each load; each round has a new store. */
export async function topicStore(rounds: number): Promise<string> {
  const head = ["topic store", "puts/s", "min", "max", "p50 ms", "p99 ms", "flushes/put", "gets/s by 256"];
  const rows: string[][] = [];
  for (const load of loads) {
    const outcomes: Outcome[] = [];
    for (let round = 0; round < rounds; round++) outcomes.push(await putAll(load));
    const rate = summarizeMeasurements(outcomes.map(({ putsPerSecond }) => putsPerSecond));
    const latency = outcomes.flatMap(({ latenciesMs }) => latenciesMs).toSorted((a, b) => a - b);
    rows.push([
      `${load.bodyBytes} B, ${load.outstanding} outstanding`,
      formatFigure(rate.p50),
      formatFigure(rate.min),
      formatFigure(rate.max),
      formatFigure(latency[Math.floor(latency.length / 2)] ?? 0),
      formatFigure(latency[Math.floor(latency.length * 0.99)] ?? 0),
      formatFigure(summarizeMeasurements(outcomes.map(({ commitsPerPut }) => commitsPerPut)).p50),
      formatFigure(summarizeMeasurements(outcomes.map(({ getsPerSecond }) => getsPerSecond)).p50),
    ]);
  }
  return alignedTable([head, ...rows]);
}

async function putAll({ bodyBytes, outstanding, puts }: Load): Promise<Outcome> {
  const dir = mkdtempSync(join(tmpdir(), "baton-bench-store-"));
  let receive: (answers: readonly EncodedResponse[]) => void = () => {};
  const store = await TopicStore.open(dir, {
    onResponses: (answers) => receive(answers),
    onBroken: (error) => {
      throw error;
    },
  });
  try {
    const submit = (operation: ClientOperation) => store.submit(requestOf(operation));
    const topic = { topic: "bench", epoch: 1 } as const;
    await store.create("bench", { incarnation: "b", baseOffset: 0, epoch: 1 });
    const reader = { ...topic, client: "reader", session: null, op: null };
    const ask = (submit: () => void) =>
      new Promise<EncodedResponse>((resolve) => {
        receive = ([answer]) => resolve(answer as EncodedResponse);
        submit();
      });
    await ask(() => submit({ kind: "subscribe", ticket: 0, ...reader }));
    const before = (await store.statistics()).commits;
    const body = new Uint8Array(bodyBytes).fill(66);
    const publisher = { ...topic, client: "writer", session: { number: 1, key: "k" }, fromSession: null };
    const startedMs = new Float64Array(puts + 1);
    const latenciesMs: number[] = [];
    const start = performance.now();
    await new Promise<void>((done, failed) => {
      let next = 1;
      const put = () => {
        const counter = next++;
        startedMs[counter] = performance.now();
        const firstUnacked = Math.max(0, counter - outstanding);
        submit({
          kind: "put",
          ticket: counter,
          ...publisher,
          counter,
          firstUnacked,
          after: null,
          msgId: null,
          bodies: [body],
        });
      };
      receive = (answers) => {
        const nowMs = performance.now();
        for (const answer of answers) {
          const { ticket, code } = answer;
          if (code !== "OK") failed(new Error(`${code}: ${responseOf(answer).reason}`));
          latenciesMs.push(nowMs - (startedMs[ticket] ?? 0));
          if (next <= puts) put();
        }
        if (latenciesMs.length === puts) done();
      };
      for (let started = 0; started < outstanding; started++) put();
    });
    const putMs = performance.now() - start;
    const commits = (await store.statistics()).commits - before;
    const getsPerSecond = await getAll(
      puts,
      (last) =>
        ask(() => submit({ kind: "get", ticket: 0, ...reader, last, max: 256, maxBytes: 0, wait: false, peek: false })),
    );
    return { putsPerSecond: puts / putMs * 1000, commitsPerPut: commits / puts, latenciesMs, getsPerSecond };
  } finally {
    await store.close();
    rmSync(dir, { recursive: true });
  }
}

/** Gets all messages as one consumer, which acknowledges each batch with the next get. Returns the rate. */
async function getAll(count: number, get: (last: number) => Promise<EncodedResponse>): Promise<number> {
  const start = performance.now();
  for (let last = -1; last < count;) {
    const { code, reason, messages = [] } = responseOf(await get(last));
    if (code !== "OK") throw new Error(`${code}: ${reason}`);
    last = messages.at(-1)?.id ?? last;
  }
  return count / (performance.now() - start) * 1000;
}
