/**
 * A program that puts into a topic store and says what was answered OK, until it is killed. Run by tests as a process
 * of its own, under Bun, under Deno and compiled: DIR COUNT. Prints `open`, then a line for each response: `ok COUNTER
 * ID`. With COUNT it ends by itself after so many, having read them all back: `read COUNT`, `closed`.
 */
import { writeSync } from "node:fs";
import process from "node:process";
import { TopicStore } from "../../src/pubsub/store/topic_store.ts";
import type { ClientOperation, StoreResponse } from "../../src/pubsub/store/operations/store_operations.ts";
import { requestOf, responseOf } from "./store_requests.ts";

const dir = process.argv.at(-2) ?? "";
const count = Number(process.argv.at(-1));
const outstanding = 16;
const say = (line: string) => void writeSync(1, `${line}\n`);

let receive: (responses: readonly StoreResponse[]) => void = () => {};
const store = await TopicStore.open(dir, {
  onResponses: (responses) => receive(responses.map(responseOf)),
  onBroken: (error) => {
    say(`broken ${error.message}`);
    process.exit(1);
  },
});
const submit = (operation: ClientOperation) => store.submit(requestOf(operation));
const common = { topic: "news", epoch: 1, session: null } as const;
await store.create("news", { incarnation: "b", baseOffset: 0, epoch: 1 });
const answerTo = (submit: () => void) =>
  new Promise<StoreResponse>((resolve) => {
    receive = ([response]) => resolve(response as StoreResponse);
    submit();
  });
const reader = { ...common, client: "reader", op: null };
await answerTo(() => submit({ kind: "subscribe", ticket: 0, ...reader }));
say("open");

const publisher = { ...common, client: "writer", fromSession: null, firstUnacked: 0, after: null, msgId: null };
let next = 1, answered = 0;
await new Promise<void>((done) => {
  const put = () => {
    const counter = next++;
    const bodies = [new TextEncoder().encode(`body ${counter}`)];
    submit({ kind: "put", ticket: counter, ...publisher, counter, bodies });
  };
  receive = (responses) => {
    for (const { ticket, code, reason, ids } of responses) {
      say(code === "OK" ? `ok ${ticket} ${ids?.[0]?.first}` : `failed ${ticket} ${code} ${reason}`);
      answered++;
      if (count === 0 || next <= count) put();
    }
    if (answered === count) done();
  };
  for (let started = 0; started < outstanding; started++) put();
});

let read = 0, last = -1;
for (;;) {
  const get = { kind: "get", ticket: 0, ...reader, last, max: 7, maxBytes: 0, wait: false, peek: false } as const;
  const { code, messages = [] } = await answerTo(() => submit(get));
  if (code !== "OK") break;
  read += messages.length;
  last = messages.at(-1)?.id ?? last;
}
say(`read ${read}`);
await store.close();
say("closed");
