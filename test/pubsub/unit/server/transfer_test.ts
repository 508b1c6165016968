import { expect, test } from "bun:test";
import { BatonError } from "../../../../src/base/errors.ts";
import type { TopicTransferReply } from "../../../../src/pubsub/ownership/transfer_channel.ts";
import type { ResponseStatusMessage } from "../../../../src/pubsub/status_message.ts";
import { incomingTransfersMax, transferIdleMsMax } from "../../../../src/pubsub/server/server_limits.ts";
import { TopicTransferReceiver } from "../../../../src/pubsub/server/transfer_receiver.ts";
import type { PubsubHeaders } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
/** Everything that was set off has come to its end. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A receiver whose store takes everything, or does what the test says. */
function rig(end: (taken: string[]) => Promise<TopicTransferReply> = () => Promise.resolve({ kind: "taken" })) {
  const clock = new FakeClock();
  const responses: [from: string, ResponseStatusMessage][] = [];
  const taken: string[] = [];
  const failures: string[] = [];
  const receiver = new TopicTransferReceiver({
    server: "s2",
    clock,
    receive: async (_topic, _content, { pieces }) => {
      try {
        for await (const piece of pieces) taken.push(new TextDecoder().decode(piece));
      } catch (thrown) {
        failures.push((thrown as Error).message);
        throw thrown;
      }
      return await end(taken);
    },
    reply: ([identity], status) => responses.push([new TextDecoder().decode(identity), status]),
  });
  const send = (part: number, text: string, more: PubsubHeaders = {}, from = "a", topic = "t") => {
    const headers = { epoch: 1, hash: "h", incarnation: "b", baseOffset: 0, part, ...more };
    const body = text === "" ? undefined : bytes(text);
    receiver.handle([bytes(from), new Uint8Array(0)], { name: "TRANSFER", sender: "s1", topic, headers, body });
  };
  const said = () =>
    responses.map(([, { status, headers }]) => `${status}${headers?.part ?? ""}${headers?.final ? "!" : ""}`);
  return { clock, receiver, responses, taken, failures, send, said };
}

test("each piece is answered when the store has it, the last one by what has become of the topic", async () => {
  const { send, said, taken, receiver } = rig();
  for (const [part, text] of ["x", "y", "z"].entries()) send(part, text);
  await settled();
  expect(said()).toEqual(["OK0", "OK1", "OK2"]);
  send(3, "", { final: true });
  await settled();
  expect(said()).toEqual(["OK0", "OK1", "OK2", "OK3!"]);
  expect(taken).toEqual(["x", "y", "z"]);
  expect(receiver.size).toBe(0);
});

test("passed, refused and unknown are told apart", async () => {
  const ends: [() => Promise<TopicTransferReply>, string, true | undefined][] = [
    [() => Promise.resolve({ kind: "passed" }), "STALE_OP", undefined],
    [() => Promise.resolve({ kind: "refused", why: "full" }), "ERROR", undefined],
    [() => Promise.reject(new BatonError("SESSION_EXPIRED", "over")), "ERROR", true],
  ];
  for (const [end, code, unknown] of ends) {
    const { send, responses } = rig(end);
    send(0, "", { final: true });
    await settled();
    const [, status] = responses[0] ?? [];
    const found = {
      status: status?.status as string,
      final: status?.headers?.final,
      unknown: status?.headers?.unknown,
    };
    expect(found).toEqual({ status: code, final: true, unknown });
  }
});

test("a piece out of order, of another connection, or of nothing is refused and changes nothing", async () => {
  const { send, said, taken } = rig();
  send(1, "early");
  send(0, "x");
  send(2, "skipped");
  send(1, "stranger", {}, "b");
  send(1, "y");
  send(2, "", { final: true });
  await settled();
  expect(said().filter((one) => one.startsWith("BAD_REQUEST"))).toHaveLength(3);
  expect(taken).toEqual(["x", "y"]);
});

test("a sender that begins again ends what it had begun, and nothing of that is mixed in", async () => {
  const { send, taken, failures, responses } = rig();
  send(0, "old");
  await settled();
  send(0, "new", {}, "b");
  send(1, "", { final: true }, "b");
  await settled();
  expect(failures).toEqual([expect.stringContaining("started to send")]);
  expect(taken).toEqual(["old", "new"]);
  expect(responses.filter(([from, { headers }]) => from === "b" && headers?.final === true)).toHaveLength(1);
  send(1, "late", {}, "a");
  expect(responses.at(-1)?.[1].status).toBe("BAD_REQUEST");
});

test("a sender that says nothing more is given up, and what it sent is not kept waiting", async () => {
  const { clock, send, failures, receiver } = rig();
  send(0, "x");
  await settled();
  await clock.advance(transferIdleMsMax);
  await settled();
  expect(failures).toEqual([expect.stringContaining("No piece arrived")]);
  expect(receiver.size).toBe(0);
});

test("so many topics arrive at once, and not one more", async () => {
  const { send, responses } = rig();
  for (let topic = 0; topic <= incomingTransfersMax; topic++) send(0, "x", {}, "a", `t${topic}`);
  await settled();
  expect(responses.filter(([, { status }]) => status === "OVERLOADED")).toHaveLength(1);
});
