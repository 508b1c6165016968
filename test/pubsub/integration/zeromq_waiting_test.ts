/** What must not wait for ever, between real sockets. */
import { expect, test } from "bun:test";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";
import { ReplySocket } from "../../support/reply_socket.ts";
import { RequestSocket } from "../../support/request_socket.ts";
import { RouterSocket } from "../../../src/protocols/zeromq/router_socket.ts";
import type { ZeroMqSocketEvent } from "../../../src/protocols/zeromq/socket_event.ts";
import { eventually } from "../../support/eventually.ts";

const reconnect = { minMs: 5, maxMs: 20 };
const one = new Uint8Array([1]);

test("what has waited for a peer and left takes no room any more, however long the peer's name is", async () => {
  const identity = new TextEncoder().encode("x".repeat(255));
  const named = () => new DealerSocket({ identity: "x".repeat(255) });
  let isDown = false;
  const onEvent = ({ kind }: ZeroMqSocketEvent) => void (isDown = kind === "disconnected" || isDown);
  await using router = new RouterSocket({ sendHighWaterBytes: 5000, reconnect, onEvent });
  const before = named();
  const endpoint = await before.bind("tcp://127.0.0.1:0");
  router.connect(endpoint);
  await eventually(() => router.peer(identity));
  await before.close({ lingerMs: 0 });
  await eventually(() => isDown);
  let taken = 0;
  while (taken < 20 && router.trySend([identity, one])) taken++;
  expect(taken).toBe(20);
  await using after = named();
  await after.bind(endpoint);
  await eventually(() => after.counters.received + after.receiveReady().length > 0);
  expect(router.trySend([identity, one])).toBe(true);
});

test("of two who wait to answer requests each gets one, though both came at once", async () => {
  let asking = 0;
  await using reply = new ReplySocket({ onEvent: ({ kind }) => void (asking += kind === "connected" ? 1 : 0) });
  const endpoint = await reply.bind("tcp://127.0.0.1:0");
  const bothCame = Promise.withResolvers<void>();
  const serve = async () => {
    const request = await reply.receive({ signal: AbortSignal.timeout(5000) });
    await bothCame.promise;
    await reply.send(request);
  };
  const served = Promise.all([serve(), serve()]);
  const ask = async () => {
    await using request = new RequestSocket();
    request.connect(endpoint);
    await request.send([one]);
    return await request.receive({ signal: AbortSignal.timeout(5000) });
  };
  const answers = Promise.all([ask(), ask()]);
  await eventually(() => asking === 2);
  await new Promise((resolve) => setImmediate(resolve)); // what came with the handshake is read
  bothCame.resolve();
  expect(await answers).toEqual([[one], [one]]);
  await served;
});
