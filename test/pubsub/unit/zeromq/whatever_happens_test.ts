/** Random networks: what must hold whatever they do. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { ReplySocket } from "../../../support/reply_socket.ts";
import { RequestSocket } from "../../../support/request_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { dose } from "../../../support/dose.ts";
import { bytes, SocketRig, words } from "./socket_rig.ts";
import { messagesOf } from "../../../support/messages_of.ts";
import { testSeed } from "../../../support/random.ts";

const seed = testSeed();

const actions = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("send" as const), count: fc.integer({ min: 1, max: 30 }), size: fc.nat(400) }),
    fc.record({ do: fc.constant("wait to send" as const) }),
    fc.record({ do: fc.constant("receive" as const), count: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ do: fc.constantFrom("stop reading" as const, "read" as const, "cut" as const, "settle" as const) }),
    fc.record({ do: fc.constant("pass time" as const), ms: fc.integer({ min: 1, max: 3000 }) }),
  ),
  { minLength: 5, maxLength: 40 },
);

test(
  `nothing comes twice, out of order or out of nowhere, and what is lost was lost with a connection ` +
    `[BATON_SEED=${seed}]`,
  async () => {
    await fc.assert(
      fc.asyncProperty(actions, fc.integer({ min: 1, max: 12 }), async (steps, highWater) => {
        const rig = new SocketRig();
        const router = new RouterSocket({ ...rig.options, receiveHighWater: highWater });
        const dealer = new DealerSocket({ ...rig.options, sendHighWater: highWater, identity: "d" });
        await rig.join(router, dealer);
        let sent = 0;
        const got: number[] = [];
        const message = (size = 0) => [bytes(String(sent)), new Uint8Array(size)];
        const waiting: Promise<void>[] = [];
        const receive = (count: number) => {
          for (const [identity, body, ...rest] of router.receiveReady(count)) {
            expect([words([identity as Uint8Array])[0], rest.length]).toEqual(["d", 1]);
            got.push(Number(words([body as Uint8Array])[0]));
          }
        };
        for (const step of steps) {
          if (step.do === "send") { for (let n = 0; n < step.count && dealer.trySend(message(step.size)); n++) sent++; }
          else if (step.do === "wait to send") {
            waiting.push(dealer.send(message()));
            sent++;
          } else if (step.do === "receive") receive(step.count);
          else if (step.do === "stop reading") rig.network.last.other.pause();
          else if (step.do === "read") rig.network.last.other.resume();
          else if (step.do === "settle") await rig.settle();
          else if (step.do === "pass time") await rig.clock.advance(step.ms);
          else rig.network.last.close(new Error("cut"));
        }
        const drain = async () => {
          for (let idle = 0; idle < 80; idle++) {
            const before = got.length;
            rig.network.last.other.resume();
            await rig.clock.advance(500); // all waits before a reconnect come to less than 80 of these
            await rig.settle();
            receive(Infinity);
            if (got.length > before) idle = 0;
            if (idle > 3 && router.identities.length > 0) break;
          }
        };
        await drain();
        expect(dealer.trySend(message())).toBe(true); // the last word
        await drain();
        await Promise.all(waiting);
        expect(got).toEqual([...new Set(got)].sort((a, b) => a - b));
        expect(got.at(-1)).toBe(sent);
        // By a cut, or by the heartbeats of one that was not read for long.
        if (!rig.kinds().includes("disconnected")) expect(got.length).toBe(sent + 1);
        expect(dealer.counters.sent).toBeGreaterThanOrEqual(got.length);
        await Promise.all([dealer.close({ lingerMs: 0 }), router.close({ lingerMs: 0 })]);
        await rig.settle();
        expect(rig.clock.timers).toBe(0);
      }),
      { seed, numRuns: dose({ gate: 60, full: 5000 }) },
    );
  },
  60_000,
);

const mishaps = fc.array(fc.constantFrom("cut", "stop reading", "read", "settle", "pass time", "nothing"), {
  minLength: 10,
  maxLength: 80,
});

test(`a REQ gets the answer to what it has asked, or hears that none will come [BATON_SEED=${seed}]`, async () => {
  await fc.assert(
    fc.asyncProperty(mishaps, fc.boolean(), fc.boolean(), async (steps, correlate, reqBinds) => {
      const rig = new SocketRig();
      const req = new RequestSocket({ ...rig.options, correlate });
      const rep = new ReplySocket(rig.options);
      await (reqBinds ? rig.join(req, rep) : rig.join(rep, req));
      const served = (async () => {
        for await (const [body] of messagesOf(rep)) await rep.send([body as Uint8Array]).catch(() => {});
      })();
      let isOver = false;
      let answers = 0;
      const asking = (async () => {
        for (let number = 0; !isOver; number++) {
          await req.send([bytes(String(number)), new Uint8Array(number % 3 === 0 ? 3000 : 0)]);
          try {
            expect(words(await req.receive())).toEqual([String(number)]);
            answers++;
          } catch (error) {
            expect(error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
          }
        }
      })();
      for (const step of steps) {
        const { last } = rig.network;
        if (step === "cut") last.close(new Error("cut"));
        else if (step === "stop reading") last.other.pause();
        else if (step === "read") last.other.resume();
        else if (step === "pass time") await rig.clock.advance(700);
        else if (step === "settle") await rig.settle();
        else await Promise.resolve();
      }
      const before = answers;
      for (let round = 0; round < 100 && answers < before + 3; round++) {
        rig.network.last.other.resume();
        await rig.clock.advance(500);
      }
      expect(answers).toBeGreaterThanOrEqual(before + 3);
      isOver = true;
      await asking;
      await Promise.all([req.close({ lingerMs: 0 }), rep.close({ lingerMs: 0 })]);
      await served;
      await rig.settle();
      expect(rig.clock.timers).toBe(0);
    }),
    { seed, numRuns: dose({ gate: 60, full: 3000 }) },
  );
}, 60_000);
