import { expect, test } from "bun:test";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { TopicTransferSender } from "../../../../src/pubsub/server/transfer_sender.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const content = { incarnation: "b", baseOffset: 0, owner: "s1", epoch: 1 };
const outgoing = {
  pieces: (async function* () {})(),
  hash: () => "h",
};

test("a receiver that goes away ends the transfer at once, not after the time for a silent one", async () => {
  await using router = new RouterSocket();
  const endpoint = await router.bind("tcp://127.0.0.1:0");
  const sender = new TopicTransferSender("s1", new FakeClock());
  const { signal } = new AbortController();
  const transfer = sender.transfer({ id: "s2", endpoint }, "t", content, { outgoing, signal });
  const outcome = transfer.then(() => "done", (error: Error) => error.message);
  await router.receive();
  await router.close({ lingerMs: 0 });
  expect(await outcome).toContain(`s2 at ${endpoint} cannot receive "t"`);
});

test("nor is one waited for that does not listen", async () => {
  const router = new RouterSocket();
  const endpoint = await router.bind("tcp://127.0.0.1:0");
  await router.close({ lingerMs: 0 });
  const { signal } = new AbortController();
  const sender = new TopicTransferSender("s1", new FakeClock());
  const transfer = sender.transfer({ id: "s2", endpoint }, "t", content, { outgoing, signal });
  await expect(transfer).rejects.toThrow(`s2 at ${endpoint} cannot receive "t"`);
});
