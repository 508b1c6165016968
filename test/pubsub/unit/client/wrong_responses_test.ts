/**
 * Responses that no server has sent: whatever a proxy says, the client's state can be used afterwards with one that
 * tells the truth.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../../../../src/base/errors.ts";
import { ClientState } from "../../../../src/pubsub/client/client_state.ts";
import { Publisher } from "../../../../src/pubsub/client/publisher.ts";
import { PubsubClientSession } from "../../../../src/pubsub/client/pubsub_client_session.ts";
import type {
  ClientResponseMessage,
  PubsubRequester,
  PubsubRequestOutcome,
} from "../../../../src/pubsub/client/requester.ts";
import { Subscriber } from "../../../../src/pubsub/client/subscriber.ts";
import {
  type ClientRequestMessage,
  storeResponseToStatusMessage,
  toStoreOperation,
} from "../../../../src/pubsub/store/thread/client_request.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { decodePubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../../../src/pubsub/wire/encode_message.ts";
import type { PubsubMessage } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import { statusCodes } from "../../../../src/pubsub/wire/status_codes.ts";
import { dose } from "../../../support/dose.ts";
import { seededRandom, testSeed } from "../../../support/random.ts";
import { engineDrivers } from "../store/engine_driver.ts";

setDefaultTimeout(120_000);

let folder = "";
beforeEach(() => folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-wrong-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const driver = engineDrivers();

type Answer = (message: PubsubMessage) => PubsubRequestOutcome;

/** One call of a program: opens the state, does one thing, and closes it. Returns its error; null: done. */
async function call(
  answer: Answer,
  work: (client: PubsubClientSession) => Promise<unknown>,
): Promise<BatonError | null> {
  using state = await ClientState.open(folder, "alice", { waitMs: 0, clock: systemClock() });
  const requester = {
    request: (message: PubsubMessage) => Promise.resolve(answer(message)),
  } as unknown as PubsubRequester;
  try {
    await work(new PubsubClientSession(state, requester));
    return null;
  } catch (error) {
    // Everything else ends a program with a stack trace, or says that the state is damaged.
    if (!(error instanceof BatonError)) throw error;
    expect(error.message).not.toContain("state of client");
    return error;
  }
}

async function* one(text: string): AsyncGenerator<Uint8Array[], void, void> {
  yield [new TextEncoder().encode(text)];
}

const put = (text: string) => async (client: PubsubClientSession) => {
  const publisher = new Publisher(client, "news");
  await publisher.resume();
  await new Publisher(client, "news").putAll(one(text));
};
const get = (taken: string[]) => async (client: PubsubClientSession) => {
  const subscriber = new Subscriber(client, "news");
  const { messages } = await subscriber.fetch({ max: 100 });
  for (const { id, body } of messages) {
    subscriber.recordDelivery(id);
    taken.push(new TextDecoder().decode(body));
    subscriber.acknowledge(id);
  }
};
const works = [
  put("message"),
  get([]),
  (client: PubsubClientSession) => client.subscribe("news"),
  (client: PubsubClientSession) => client.seek("news", "start"),
  (client: PubsubClientSession) => client.position("news"),
  async (client: PubsubClientSession) => {
    await client.register("news");
    await client.endSession("news", 1);
  },
];

/** A number as wrong responses have them. */
function anyNumber(random: () => number): number {
  const high = [0, 1, 2 ** 31, 2 ** 32, 2 ** 48, 2 ** 53 - 1];
  const near = high[Math.floor(random() * high.length)] as number;
  return random() < 0.3
    ? Math.floor(random() * 2 ** 53)
    : Math.min(Math.max(0, near + Math.floor(random() * 5) - 2), Number.MAX_SAFE_INTEGER);
}

function wrongOutcome(random: () => number): PubsubRequestOutcome {
  const chosen = <Value>(value: () => Value): Value | undefined => random() < 0.4 ? value() : undefined;
  if (random() < 0.1) return { kind: "unknown", why: "nothing came", response: null };
  const number = () => anyNumber(random);
  const first = number();
  const headers = {
    currentSession: chosen(number),
    registration: chosen(number),
    ids: chosen(() => [{ first, last: Math.min(first + Math.floor(random() * 3), Number.MAX_SAFE_INTEGER) }]),
    position: chosen(number),
    first: chosen(number),
    end: chosen(number),
    pending: chosen(number),
    missed: chosen(number),
    op: chosen(number),
  };
  const known = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  const batch = Array.from({ length: Math.floor(random() * 4) }, () => new TextEncoder().encode("invented"));
  return {
    kind: "response",
    response: {
      name: "STATUS",
      sender: "s1",
      headers: known,
      messageId: chosen(number),
      status: statusCodes[Math.floor(random() * statusCodes.length)],
      ...(random() < 0.5 ? { batch } : { body: new TextEncoder().encode("invented") }),
    } as ClientResponseMessage,
  };
}

/** The outcome of a store, through the frames that are sent. */
function honest(store: ReturnType<typeof driver>): Answer {
  return (message) => {
    const request = decodePubsubMessage(encodePubsubMessage(message)) as ClientRequestMessage;
    const operation = toStoreOperation(request, { ticket: 1, epoch: 1, wait: false });
    const [response] = store.execute(operation as never);
    if (response === undefined) throw new Error("no response");
    const status = decodePubsubMessage(encodePubsubMessage(storeResponseToStatusMessage("s1", request, response, 1)));
    return { kind: "response", response: status as ClientResponseMessage };
  };
}

/** How many calls may fail, with a sentence, before one succeeds. */
const failuresMax = 8;

async function untilDone(answer: Answer, work: (client: PubsubClientSession) => Promise<unknown>): Promise<void> {
  const errors: string[] = [];
  while (errors.length <= failuresMax) {
    const error = await call(answer, work);
    if (error === null) return;
    errors.push(error.message);
  }
  expect(errors).toEqual([]);
}

const seed = testSeed();
test(`whatever a proxy answers, the client continues with another one [BATON_SEED=${seed}]`, async () => {
  for (let round = 0; round < dose({ gate: 60, full: 2000 }); round++) {
    const random = seededRandom(seed + round);
    rmSync(folder, { recursive: true, force: true });
    const store = driver();
    const answer = honest(store);
    if (random() < 0.7) await untilDone(answer, (client) => client.subscribe("news"));
    for (let calls = Math.floor(random() * 12); calls >= 0; calls--) {
      await call(() => wrongOutcome(random), works[Math.floor(random() * works.length)] as (typeof works)[number]);
    }
    await untilDone(answer, (client) => client.subscribe("news"));
    await untilDone(answer, put(`round ${round}`));
    const taken: string[] = [];
    for (let tries = 0; tries <= failuresMax && !taken.includes(`round ${round}`); tries++) {
      await call(answer, get(taken));
    }
    expect(taken.filter((text) => text === `round ${round}`)).toEqual([`round ${round}`]);
    store.close();
  }
});

test("a session near the end of the numbers, sent by another program, takes nothing from the client", async () => {
  const store = driver();
  const answer = honest(store);
  await untilDone(answer, put("first"));
  for (const number of [2 ** 53 - 1, 2 ** 53 - 2, 2 ** 52, 2 ** 48 + 1, 2 ** 48, 2 ** 48 + 2 ** 20]) {
    const session = { number, key: "another" };
    store.execute({ kind: "put", client: "alice", counter: 1, session, bodies: [new Uint8Array(1)] });
    await untilDone(answer, put(`after ${number}`));
  }
  store.close();
});

test("a counter near the end of the numbers is refused from a client without sessions, which continues", () => {
  const store = driver();
  const bodies = [new Uint8Array(1)];
  const codeOf = (counter: number) => store.execute({ kind: "put", client: "plain", counter, bodies })[0]?.code;
  expect(codeOf(1)).toBe("OK");
  for (const counter of [2 ** 53 - 1, 2 ** 53 - 2, 2 ** 52, 2 ** 48 + 1]) expect(codeOf(counter)).toBe("BAD_REQUEST");
  expect(codeOf(2)).toBe("OK");
  const subscribe = (op: number) => store.execute({ kind: "subscribe", client: "plain", op })[0]?.code;
  expect(subscribe(2 ** 53 - 1)).toBe("BAD_REQUEST");
  expect(subscribe(1)).toBe("OK");
  store.close();
});
