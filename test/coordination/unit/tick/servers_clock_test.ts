import { expect, test } from "bun:test";
import { TickServersClock } from "../../../../src/coordination/tick/servers_clock.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const startMs = Date.UTC(2026, 0, 1);

/** A host whose clock is `behindMs` behind that of the servers, and can be set. */
function host(behindMs: number) {
  const clock = new FakeClock();
  const hands = { setMs: 0 };
  const wallMs = () => startMs + clock.now() + hands.setMs;
  const serversMs = () => startMs + clock.now() + behindMs;
  const servers = new TickServersClock(clock, wallMs);
  /** Asks the servers: the request and the response take some time. */
  const ask = async (thereMs: number, backMs: number) => {
    const sentWallMs = wallMs();
    await clock.advance(thereMs);
    const told = serversMs();
    await clock.advance(backMs);
    servers.learn(told, sentWallMs);
  };
  return { clock, hands, servers, ask, errorMs: () => servers.nowMs() - serversMs() };
}

test("what is known is never ahead; a slow answer does not replace it, and one that took less time does", async () => {
  const { servers, ask, errorMs } = host(3000);
  await ask(1000, 3000);
  expect(errorMs()).toBe(-3000);
  await ask(20, 20);
  expect(errorMs()).toBe(-20);
  await ask(0, 8000);
  expect(errorMs()).toBe(-20);
  expect(servers.takeQuestion()).toBe(false);
});

test("an answer that an earlier one rules out replaces it: a clock was set slowly", async () => {
  const { servers, clock, ask, errorMs, hands } = host(0);
  await ask(5, 5);
  for (let count = 0; count < 10; count++) {
    hands.setMs += 40; // below what is noticed
    await clock.advance(1000);
  }
  await ask(50, 50);
  expect(errorMs()).toBe(-50);
  expect(servers.takeQuestion()).toBe(false);
});

test("the servers are asked again after ten seconds if the answer was slow, else after an hour", async () => {
  const { servers, clock, ask } = host(3000);
  expect(servers.takeQuestion()).toBe(true);
  await ask(500, 500);
  expect(servers.takeQuestion()).toBe(false);
  await clock.advance(9000);
  expect(servers.takeQuestion()).toBe(true);
  await ask(5, 5);
  await clock.advance(3_599_000);
  expect(servers.takeQuestion()).toBe(false);
  await clock.advance(1000);
  expect(servers.takeQuestion()).toBe(true);
});
