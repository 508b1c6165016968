/**
 * Random comings and goings: whatever happens, a place that was taken is free again in the end, and none is free too
 * early.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { dose } from "../../../support/dose.ts";
import { frame, greeting, join, ready, text } from "../../../support/zmtp_bytes.ts";
import type { FakeEnd } from "./fake_network.ts";
import { SocketRig, words } from "./socket_rig.ts";
import { testSeed } from "../../../support/random.ts";

const seed = testSeed();
const places = 4;
const mark = 3;

const actions = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("come" as const), name: fc.constantFrom("", "a", "b", "c") }) },
    fc.record({ do: fc.constant("come and say nothing" as const) }),
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant("say and go" as const),
        name: fc.constantFrom("", "a", "b"),
        count: fc.integer({ min: 1, max: 5 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("say" as const), who: fc.nat(7), count: fc.integer({ min: 1, max: 6 }) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("go" as const), who: fc.nat(7) }) },
    fc.record({ do: fc.constant("break the protocol" as const), who: fc.nat(7) }),
    fc.record({ do: fc.constant("receive" as const), count: fc.integer({ min: 1, max: 9 }) }),
    { weight: 3, arbitrary: fc.record({ do: fc.constant("settle" as const) }) },
    fc.record({ do: fc.constant("pass time" as const), ms: fc.integer({ min: 1, max: 12_000 }) }),
  ),
  { minLength: 5, maxLength: 60 },
);

test(`places are taken and given back, and what is unread stays within its limits [BATON_SEED=${seed}]`, async () => {
  await fc.assert(
    fc.asyncProperty(actions, async (steps) => {
      const rig = new SocketRig();
      const router = new RouterSocket({ ...rig.options, connectionsMax: places, receiveHighWater: mark });
      const endpoint = await router.bind("tcp://127.0.0.1:0");
      const port = Number(/\d+$/.exec(endpoint)?.[0]);
      const ends: FakeEnd[] = [];
      const come = async (...said: Uint8Array[]) => {
        await rig.network.dial({ kind: "tcp", host: "127.0.0.1", port }, { onData() {}, onClosed() {} });
        ends.push(rig.network.last);
        rig.network.last.write(join(said));
      };
      let said = 0;
      const sayAndGo = async ({ name, count }: { name: string; count: number }) => {
        const messages = Array.from({ length: count }, () => frame(0, text(String(said++))));
        await come(greeting(), ready("DEALER", text(name)), ...messages);
        await rig.settle();
        rig.network.last.close(null);
        await rig.settle();
      };
      const numbers = new Map<string, number>();
      const receive = (count: number) => {
        for (const message of router.receiveReady(count)) {
          const [name = "", body = ""] = words(message);
          // Of each name in the order of saying, whatever connection it came by.
          if (name.length === 1) expect(Number(body)).toBeGreaterThan(numbers.get(name) ?? -1);
          if (name.length === 1) numbers.set(name, Number(body));
        }
      };
      for (const step of steps) {
        const end = "who" in step ? ends.at(-1 - step.who) : undefined;
        if (step.do === "come") await come(greeting(), ready("DEALER", text(step.name)));
        else if (step.do === "come and say nothing") await come(greeting().slice(0, 20));
        else if (step.do === "say and go") await sayAndGo(step);
        else if (step.do === "say") {
          for (let n = 0; n < step.count; n++) end?.write(frame(0, text(String(said++))));
        } else if (step.do === "go") end?.close(null);
        else if (step.do === "break the protocol") end?.write(new Uint8Array([0xff, 0xff]));
        else if (step.do === "receive") receive(step.count);
        else if (step.do === "settle") await rig.settle();
        else await rig.clock.advance(step.ms);
        expect(ends.filter((one) => !one.isClosed).length).toBeLessThanOrEqual(places + 1);
      }
      await rig.settle();
      for (const end of ends) end.close(null);
      // Now nobody takes anything: as many as ever may come leave what ever may stay.
      for (const name of ["", "a", "", "a", "", "", "", "a"]) await sayAndGo({ name, count: mark + 2 });
      await rig.settle();
      const { length } = router.receiveReady();
      expect(length).toBeLessThanOrEqual(places * mark);
      await rig.settle();
      expect(router.receiveReady()).toEqual([]);
      const { connectionsRefused } = router.counters;
      for (let place = 0; place < places; place++) await come(greeting().slice(0, 1));
      await rig.settle();
      expect(router.counters.connectionsRefused).toBe(connectionsRefused);
      await come(greeting().slice(0, 1));
      expect(router.counters.connectionsRefused).toBe(connectionsRefused + 1);
      expect(router.identities).toEqual([]);
      await router.close({ lingerMs: 0 });
      await rig.settle();
      expect(rig.clock.timers).toBe(0);
    }),
    { seed, numRuns: dose({ gate: 100, full: 5000 }) },
  );
}, 60_000);
