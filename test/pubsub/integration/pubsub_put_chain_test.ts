/**
 * Puts of which each names the one before it: when the first was lost and comes at last, the others are not held up.
 */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../../support/eventually.ts";
import { ProxyRig, put } from "../../support/proxy_rig.ts";

setDefaultTimeout(60_000);

const rig = new ProxyRig();
afterEach(() => rig.end());

const session = { number: 3, key: "k" };
/** As a publisher's window has them, a message each. */
const chained = 120;

test("a window whose first put was lost is stored as soon as that one comes, in its order", async () => {
  const { proxy, directory, client } = await rig.start({ requestTimeoutMs: 50_000 });
  const server = await rig.server("s1");
  directory.add(server, "a");
  const stored: number[] = [];
  let refusals = 0;
  server.behaviour = (message) => {
    if (message.name !== "PUT") return { status: "BAD_REQUEST" };
    const { after } = message.headers ?? {};
    if (after !== undefined && !stored.includes(after)) {
      refusals++;
      return { status: "OVERLOADED" };
    }
    stored.push(message.counter);
    return { status: "OK" };
  };
  const say = client();
  const counters = Array.from({ length: chained - 1 }, (_, place) => place + 2);
  const others = counters.map((counter) =>
    say.say(put("a", counter, { session, firstUnacked: 1, after: counter - 1 }))
  );
  // Until each of them waits for long before it is tried again.
  await eventually(() => refusals > 6 * chained, { withinMs: 20_000, what: "everybody to have been refused often" });
  const beganMs = performance.now();
  expect(await say.say(put("a", 1, { session, firstUnacked: 1 }))).toMatchObject({ status: "OK" });
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual(others.map(() => "OK"));
  // A wait for each of them, one after the other, takes half a minute.
  expect(performance.now() - beganMs).toBeLessThan(10_000);
  expect(stored).toEqual([1, ...counters]);
  expect(proxy.inFlight.requests).toBe(0);
});
