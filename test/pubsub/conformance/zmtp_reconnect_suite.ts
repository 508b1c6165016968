/** Peers that go away, say nothing any more, or come back. */
import { describe, expect, test } from "bun:test";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { mechanisms, otherSide, securityOf, type Side, transports, type ZmtpFixture } from "./zmtp_fixture.ts";

export function reconnectSuite(fixture: ZmtpFixture): void {
  describe("a restart", () => {
    for (const transport of transports) {
      for (const mechanism of mechanisms) {
        test(`of the side that binds, over ${transport} with ${mechanism}: the other one reconnects`, async () => {
          const connecter = await fixture.open("a", "DEALER", securityOf(mechanism, false));
          const first = await fixture.open("b", "ROUTER", securityOf(mechanism, true));
          const endpoint = await fixture.link(first, connecter, transport);
          await connecter.send(["before"]);
          expect((await first.receive())[1]).toBe("before");
          await first.close();
          await connecter.happened("lost");
          const second = await fixture.open("b", "ROUTER", securityOf(mechanism, true));
          // The one that closed may let go of the address a moment later.
          await eventually(() => second.bind(endpoint));
          // The connecter may have been ready once more with the first one, while that was closing.
          await second.happened("ready");
          await connecter.send(["behind"]);
          const [identity = "", body] = await second.receive();
          expect(body).toBe("behind");
          await second.send([identity, "answer"]);
          expect(await connecter.receive()).toEqual(["answer"]);
        });
      }

      test(`of the side that connects, over ${transport}: it is known again by its identity`, async () => {
        // The ROUTER may hear of the new peer before it heard of the end of the old one.
        const router = await fixture.open("a", "ROUTER", { handOver: true });
        const first = await fixture.open("b", "DEALER", { identity: "the same" });
        const endpoint = await fixture.link(router, first, transport);
        await first.send(["from the first"]);
        expect(await router.receive()).toEqual(["the same", "from the first"]);
        await first.close();
        await router.happened("lost");
        const second = await fixture.open("b", "DEALER", { identity: "the same" });
        await second.connect(endpoint);
        await second.send(["from the second"]);
        expect(await router.receive()).toEqual(["the same", "from the second"]);
        await router.send(["the same", "answer"]);
        expect(await second.receive()).toEqual(["answer"]);
      });
    }

    for (const killed of ["a", "b"] as const) {
      test(`after a crash of ${killed}, which binds: what waits to be sent arrives, once`, async () => {
        const crashing = await fixture.start(killed);
        const connecter = await fixture.open(otherSide[killed], "DEALER");
        const before = await crashing.open("DEALER");
        const endpoint = await fixture.link(before, connecter);
        await connecter.send(["before"]);
        expect(await before.receive()).toEqual(["before"]);
        await crashing.kill();
        await connecter.happened("lost");
        const sending = connecter.send(["waited"], { times: 5, numbered: true, withinMs: 20_000 });
        const behind = await fixture.open(killed, "DEALER");
        await eventually(() => behind.bind(endpoint));
        await sending;
        const all = ["0 waited", "1 waited", "2 waited", "3 waited", "4 waited"].map((text) => [text]);
        expect(await behind.receiveMany(5)).toEqual(all);
        await connecter.send(["the last"]);
        expect(await behind.receive()).toEqual(["the last"]);
      }, 60_000);
    }

    test("a REQ that is relaxed asks again when its REP went away without an answer", async () => {
      const first = await fixture.open("b", "REP");
      const req = await fixture.open("a", "REQ", { correlate: true, relaxed: true });
      const endpoint = await fixture.link(first, req);
      await req.send(["never answered"]);
      expect(await first.receive()).toEqual(["never answered"]);
      await first.close();
      await req.happened("lost");
      const second = await fixture.open("b", "REP");
      await eventually(() => second.bind(endpoint));
      await second.happened("ready");
      await req.send(["asked again"]);
      expect(await second.receive()).toEqual(["asked again"]);
      await second.send(["answered"]);
      expect(await req.receive()).toEqual(["answered"]);
    });

    test("who connects before anybody binds is served once somebody does", async () => {
      const [port = 0] = await freePorts(1);
      const endpoint = `tcp://127.0.0.1:${port}`;
      const connecter = await fixture.open("a", "DEALER");
      await connecter.connect(endpoint);
      const sending = connecter.send(["early"]);
      const later = await fixture.open("b", "ROUTER");
      await eventually(() => later.bind(endpoint));
      await sending;
      expect((await later.receive())[1]).toBe("early");
    });
  });

  for (const sends of ["a", "b"] as const) {
    test(`a connection that is cut again and again loses messages of ${sends}, and brings none twice`, async () => {
      const binder = await fixture.open("b", "DEALER");
      const connecter = await fixture.open("a", "DEALER");
      const tap = await fixture.tap(await binder.bind(fixture.endpoint()));
      await connecter.connect(tap.endpoint);
      const [sender, receiver] = sends === "a" ? [connecter, binder] : [binder, connecter];
      // All of them fit below the high-water marks: libzmq does not see the end of a connection that it does not read.
      const [count, cuts] = [150, 5];
      const ready = (times: number) => Promise.all([binder, connecter].map((each) => each.happened("ready", times)));
      for (let cut = 1; cut <= cuts; cut++) {
        await ready(cut);
        const sending = sender.send([`${cut}`, ""], { times: count, numbered: true });
        tap.cut();
        await sending;
      }
      await ready(cuts + 1);
      const seen = new Set<string>();
      await sender.send(["the end"]);
      for (let message = await receiver.receive(); message[0] !== "the end"; message = await receiver.receive()) {
        expect(seen.has(message.join())).toBe(false);
        seen.add(message.join());
      }
    }, 60_000);
  }

  describe("heartbeats", () => {
    for (const pings of ["a", "b"] as const) {
      const { [pings]: pinger, [otherSide[pings]]: pinged } = fixture.implementations;
      // libzmq 4.3.2 may crash: it uses the timers of its heartbeats after it has freed them (pull request 3594).
      if (pinger.zmtp === "3.0") continue;
      if (pinger.peer === null && pinged.zmtp === "3.0") {
        test(`${pings} does not ping ${otherSide[pings]}, which greets with ZMTP 3.0`, async () => {
          const { binder, connecter, tap } = await tapped(fixture, { pings, binds: otherSide[pings] });
          for (let round = 0; round < 20; round++) {
            await connecter.send(["there"]);
            expect(await binder.receive()).toEqual(["there"]);
            await binder.send(["back"]);
            expect(await connecter.receiveMany(1)).toEqual([["back"]]);
          }
          expect([tap.commands("up"), tap.connections]).toEqual([["READY"], 1]);
        });
        continue;
      }
      for (const binds of ["a", "b"] as const) {
        const from = pings === binds ? "down" : "up";
        test(`${pings} pings, ${otherSide[pings]} answers, and the connection stays (${binds} binds)`, async () => {
          const { binder, connecter, tap } = await tapped(fixture, { pings, binds });
          await eventually(() => tap.commands(from).filter((name) => name === "PING").length >= 4);
          const back = from === "up" ? "down" : "up";
          await eventually(() => tap.commands(back).filter((name) => name === "PONG").length >= 3);
          await connecter.send(["still there"]);
          expect(await binder.receive()).toEqual(["still there"]);
          expect([tap.connections, await binder.count("lost")]).toEqual([1, 0]);
        });

        test(`${pings} gives up on a peer that says nothing any more (${binds} binds)`, async () => {
          // A machine that stands still for longer makes both sides connect once more, which does no harm here.
          const { binder, connecter, tap } = await tapped(fixture, { pings, binds, timeoutMs: 250 });
          tap.silence("up", "down");
          await (pings === binds ? binder : connecter).happened("lost");
          tap.heal();
          await Promise.all([binder.happened("ready", 2), connecter.happened("ready", 2)]);
          await connecter.send(["back again"]);
          expect(await binder.receive()).toEqual(["back again"]);
        });
      }

      // baton's own time to live is its timeout, so that it gives up as well, and at the same time.
      if (pinger.peer === null) continue;
      test(`${otherSide[pings]} gives up on a peer whose time to live, sent with its ping, is over`, async () => {
        const { binder, tap } = await tapped(fixture, { pings, binds: otherSide[pings], ttlMs: 300 });
        await eventually(() => tap.commands("up").includes("PING"));
        tap.silence("up");
        await binder.happened("lost");
      });
    }
  });
}

/** Two DEALERs, of which one pings, with a tap between them. */
async function tapped(
  fixture: ZmtpFixture,
  { pings, binds, timeoutMs = 60_000, ttlMs }: { pings: Side; binds: Side; timeoutMs?: number; ttlMs?: number },
) {
  const ttl = ttlMs === undefined ? {} : { heartbeatTtlMs: ttlMs };
  const heartbeat = { heartbeatIntervalMs: 50, heartbeatTimeoutMs: timeoutMs, ...ttl };
  const open = (side: Side) => fixture.open(side, "DEALER", side === pings ? heartbeat : {});
  const binder = await open(binds);
  const connecter = await open(otherSide[binds]);
  const tap = await fixture.tap(await binder.bind(fixture.endpoint()));
  await connecter.connect(tap.endpoint);
  await Promise.all([binder.happened("ready"), connecter.happened("ready")]);
  return { binder, connecter, tap };
}
