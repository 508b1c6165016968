/** What `put` says of an input that it could not put to its end: what servers have accepted of it, and nothing else. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { putInputMessages } from "../../../../commands/pubsub/client_put.ts";
import { type ClientPutInput, openPutFilesInput, openSplitPutInput } from "../../../../commands/pubsub/put_input.ts";
import { ClientState } from "../../../../src/pubsub/client/client_state.ts";
import { PubsubClientSession } from "../../../../src/pubsub/client/pubsub_client_session.ts";
import type {
  PubsubRequester,
  PubsubRequestOptions,
  PubsubRequestOutcome,
} from "../../../../src/pubsub/client/requester.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import type { PubsubMessageOf } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import { fakeIo } from "../../../support/fake_io.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-count-"));
  writeFileSync(join(folder, "lines"), Array.from({ length: 300 }, (_, at) => `${at}\n`).join(""));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ok = (subscribers?: number): PubsubRequestOutcome => ({
  kind: "response",
  response: { name: "STATUS", sender: "s1", status: "OK", headers: subscribers === undefined ? {} : { subscribers } },
});
const silent: PubsubRequestOutcome = { kind: "unknown", why: "nothing came", response: null };

/** One call of `put`, whose requests with messages get these outcomes, the last one from then on. */
async function put(
  input: ClientPutInput | null,
  resume: boolean,
  outcomes: readonly PubsubRequestOutcome[],
  registers = true,
) {
  using state = await ClientState.open(folder, "a", { waitMs: 0, clock: systemClock() });
  const left = [...outcomes];
  const request = ({ batch }: PubsubMessageOf<"PUT">, { onSent }: PubsubRequestOptions = {}) => {
    onSent?.();
    if (batch?.length === 0) return Promise.resolve(registers ? ok() : silent);
    const [outcome = silent] = left;
    if (left.length > 1) left.shift();
    return Promise.resolve(outcome);
  };
  const io = fakeIo();
  const result = await putInputMessages({
    call: { values: { resume, json: false, progress: false, quiet: false, verbose: false } as never, io },
    client: new PubsubClientSession(state, { request } as unknown as PubsubRequester),
    topic: "news",
    stop: { finish: new AbortController().signal, now: new AbortController().signal },
    input,
    command: "put",
  }).catch((error) => error.code as string);
  return { result, said: io.stderr().trimEnd().split("\n") };
}

const lines = () => openSplitPutInput(join(folder, "lines"), "lines");

test("a call that has put nothing says nothing of what an earlier one has put", async () => {
  expect(await put(lines(), false, [ok()])).toMatchObject({ result: { messages: 300 } });
  expect(await put(lines(), false, [ok()], false)).toEqual({ result: "UNREACHABLE", said: [""] });
});

test("messages of unknown outcome are not counted as put, and --resume counts those it continues after", async () => {
  expect(await put(lines(), false, [ok(), silent])).toEqual({
    result: "OUTCOME_UNKNOWN",
    said: [
      "baton: the outcome of 192 messages is unknown; to send them again: put --resume",
      "baton: 64 messages of the input were put; --resume continues after that",
    ],
  });
  const resumed = await put(lines(), true, [ok()]);
  expect(resumed).toMatchObject({ result: { messages: 236 } });
  expect(resumed.said).toEqual(["baton: put 192 messages again; each is stored once"]);
  expect(await put(lines(), true, [ok()])).toEqual({
    result: { messages: 0, withoutSubscribers: 0, loss: null, isComplete: true },
    said: ["baton: nothing was left to put"],
  });
});

test("messages that are sent again and reach no client are counted as such", async () => {
  await put(lines(), false, [silent]);
  const { result } = await put(lines(), true, [ok(0)]);
  expect(result).toMatchObject({ messages: 300, withoutSubscribers: 300 });
});

test("of several files those that are stored are counted", async () => {
  for (const name of ["x", "y", "z"]) writeFileSync(join(folder, name), name);
  const files = () => openPutFilesInput(["x", "y", "z"].map((name) => join(folder, name)));
  expect((await put(files(), false, [ok(), silent])).said).toContain(
    "baton: 1 message of the input was put; --resume continues after that",
  );
});
