/** When requests leave for a server: together, but much of them at once. */
import { expect, test } from "bun:test";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { proxyLimitsDefault } from "../../../../src/pubsub/proxy/proxy_limits.ts";
import type { ProxyRequest } from "../../../../src/pubsub/proxy/proxy_request.ts";
import { readRequestTraits } from "../../../../src/pubsub/proxy/request_traits.ts";
import { ServerLink, type ServerLinkHost } from "../../../../src/pubsub/proxy/server_link.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { CachedClock } from "../../../../src/base/support/cached_clock.ts";
import { eventually } from "../../../support/eventually.ts";

const clock = systemClock();
const nothing = () => {};
const host: ServerLinkHost = {
  id: "p1",
  clock,
  cachedClock: new CachedClock(clock),
  limits: proxyLimitsDefault,
  socketOptions: { clock },
  onResponse: nothing,
  onLateResponse: nothing,
  onLost: nothing,
  onUnreachable: nothing,
  onConnected: nothing,
  onUnsendable: nothing,
};

const client = { identity: new Uint8Array([1]), requests: 0, bytes: 0 };
function request(bytes: number): ProxyRequest {
  return {
    client,
    traits: readRequestTraits({ name: "PUT", sender: "w", topic: "t", counter: 1 }, 1000),
    envelope: [client.identity, new Uint8Array(0)],
    frames: [new Uint8Array(bytes)],
    bytes,
    arrivedMs: 0,
    tick: 0,
    tries: 0,
    connectionLosses: 0,
    mayBeDone: false,
    location: { kind: "over" },
    putOrder: null,
    target: null,
    delayCount: 0,
    pendingReason: "",
  };
}

test("a request leaves at once while no other is in flight, with those that came with it", async () => {
  await using router = new RouterSocket({ clock });
  const link = new ServerLink("s1", await router.bind("tcp://127.0.0.1:0"), host);
  await eventually(() => link.isConnected);
  for (const _ of [1, 2, 3]) link.enqueue(request(100));
  expect([link.sentCount, link.waitingCount]).toEqual([0, 3]);
  await Promise.resolve();
  expect([link.sentCount, link.waitingCount]).toEqual([3, 0]);
  link.enqueue(request(100));
  await Promise.resolve();
  expect([link.sentCount, link.waitingCount]).toEqual([3, 1]);
  await eventually(() => link.sentCount === 4);
  await link.close();
});

for (
  const { name, count, bytes } of [
    { name: "many requests", count: 64, bytes: 100 },
    { name: "large requests", count: 4, bytes: 16 << 10 },
  ]
) {
  test(`${name} that come in one turn do not wait for its end, and fewer do`, async () => {
    await using router = new RouterSocket({ clock });
    const link = new ServerLink("s1", await router.bind("tcp://127.0.0.1:0"), host);
    await eventually(() => link.isConnected);
    for (let sent = 1; sent < count; sent++) link.enqueue(request(bytes));
    expect(link.sentCount).toBe(0);
    link.enqueue(request(bytes));
    expect(link.sentCount).toBe(count);
    link.enqueue(request(bytes));
    expect(link.waitingCount).toBe(1);
    await eventually(() => link.sentCount === count + 1);
    await link.close();
  });
}
