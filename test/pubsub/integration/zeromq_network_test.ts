import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";
import { ReplySocket } from "../../support/reply_socket.ts";
import { RequestSocket } from "../../support/request_socket.ts";
import { RouterSocket } from "../../../src/protocols/zeromq/router_socket.ts";
import type { ZeroMqSocketEvent } from "../../../src/protocols/zeromq/socket_event.ts";
import type { ZeroMqSocket } from "../../../src/protocols/zeromq/zeromq_socket.ts";
import { eventually } from "../../support/eventually.ts";
import { StreamProxy } from "../../support/stream_proxy.ts";
import { greeting, ready } from "../../support/zmtp_bytes.ts";
import { messagesOf } from "../../support/messages_of.ts";
import { QuietTime } from "../../support/quiet_time.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-zeromq-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let paths = 0;
const open: (ZeroMqSocket | StreamProxy | net.Socket)[] = [];
afterEach(async () => {
  for (const item of open.splice(0)) {
    if (item instanceof net.Socket) item.destroy();
    else if (item instanceof StreamProxy) await item.close();
    else await item.close({ lingerMs: 0 });
  }
});
const kept = <S extends ZeroMqSocket | StreamProxy | net.Socket>(item: S): S => (open.push(item), item);

const transports: Record<string, () => string> = {
  tcp: () => "tcp://127.0.0.1:0",
  ipc: () => `ipc://${folder}/${++paths}.sock`,
};
const reconnect = { minMs: 5, maxMs: 50 };
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (frame: Uint8Array | undefined) => new TextDecoder().decode(frame);
const portOf = (endpoint: string) => Number(/\d+$/.exec(endpoint)?.[0]);

/** A peer that shakes hands and then reads as it is told to. */
async function rawDealer(endpoint: string): Promise<net.Socket> {
  const socket = kept(net.connect(portOf(endpoint), "127.0.0.1"));
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  socket.write(greeting());
  socket.write(ready("DEALER", bytes("raw")));
  return socket;
}

for (const [name, endpointOf] of Object.entries(transports)) {
  describe(`over ${name}`, () => {
    test("requests are answered, and again after the server's restart", async () => {
      const endpoint = endpointOf();
      const serve = async (at: string) => {
        const rep = kept(new ReplySocket());
        const real = await rep.bind(at);
        void (async () => {
          for await (const message of messagesOf(rep)) await rep.send(message);
        })();
        return { rep, real };
      };
      const first = await serve(endpoint);
      const req = kept(new RequestSocket({ reconnect }));
      req.connect(first.real);
      await req.send([bytes("before")]);
      expect(text((await req.receive())[0])).toBe("before");
      await first.rep.close();
      await serve(first.real);
      await req.send([bytes("after")]);
      const answer = await req.receive().catch(async () => {
        await req.send([bytes("after")]);
        return await req.receive();
      });
      expect(text(answer[0])).toBe("after");
    }, 10_000);

    test("a slow reader pushes back, and gets everything in order", async () => {
      const router = kept(new RouterSocket({ receiveHighWater: 50 }));
      const dealer = kept(new DealerSocket({ sendHighWater: 50 }));
      dealer.connect(await router.bind(endpointOf()));
      await dealer.send([bytes("first")]);
      let sent = 0;
      const numbered = () => [bytes(String(sent)), new Uint8Array(50_000)];
      await eventually(async () => {
        while (dealer.trySend(numbered())) sent++;
        await new Promise((resolve) => setImmediate(resolve));
        return !dealer.trySend(numbered()) && (sent === 0 || router.counters.received === 0) && isStuck(sent);
      }, { what: "the queues to fill" });
      // What both queues and the kernel's buffers hold, and no more.
      expect(sent).toBeLessThan(1500);
      let got = -1;
      for await (const message of messagesOf(router)) {
        if (got >= 0) expect(text(message[1])).toBe(String(got));
        if (++got === sent) break;
      }
      expect(dealer.trySend([bytes("room again")])).toBe(true);
    }, 20_000);

    test("a message of 64 MiB goes there and back", async () => {
      const [router, dealer] = [kept(new RouterSocket()), kept(new DealerSocket())];
      dealer.connect(await router.bind(endpointOf()));
      const large = new Uint8Array(64 << 20);
      for (let at = 0; at < large.length; at += 4097) large[at] = at;
      await dealer.send([bytes("head"), large, bytes("")]);
      await router.send(await router.receive());
      const [head, body, tail] = await dealer.receive();
      expect([text(head), tail?.byteLength]).toEqual(["head", 0]);
      expect(Buffer.compare(body as Uint8Array, large)).toBe(0);
    }, 20_000);

    test("what was sent before a close arrives, even where the closer leaves messages unread", async () => {
      const router = kept(new RouterSocket({ receiveHighWater: 100_000 }));
      const endpoint = await router.bind(endpointOf());
      for (let round = 0; round < 5; round++) {
        const dealer = kept(new DealerSocket({ sendHighWater: 100_000, identity: `d${round}`, receiveHighWater: 10 }));
        dealer.connect(endpoint);
        await dealer.send([bytes("hello")]);
        expect((await router.receive()).map(text)).toEqual([`d${round}`, "hello"]);
        for (let number = 0; number < 2000; number++) router.trySend([bytes(`d${round}`), new Uint8Array(500)]);
        for (let number = 0; number < 5000; number++) expect(dealer.trySend([new Uint8Array(200)])).toBe(true);
        await dealer.close({ lingerMs: 5000 });
        expect(dealer.counters.dropped).toBe(0);
        let got = 0;
        await eventually(() => (got += router.receiveReady().length) >= 5000, { what: "5000 messages" });
        expect(got).toBe(5000);
      }
    }, 30_000);

    test("a client that comes again under its identity takes it over", async () => {
      const router = kept(new RouterSocket());
      const endpoint = await router.bind(endpointOf());
      // Those that lost the name would come back for it.
      const never = { random: () => 1, reconnect: { minMs: 60_000, maxMs: 60_000 } };
      for (let round = 0; round < 3; round++) {
        const dealer = kept(new DealerSocket({ identity: "client", ...never }));
        dealer.connect(endpoint);
        await dealer.send([bytes(`round ${round}`)]);
        const [identity, body] = await router.receive();
        expect([text(identity), text(body)]).toEqual(["client", `round ${round}`]);
        await router.send([bytes("client"), bytes(`answer ${round}`)]);
        expect(text((await dealer.receive())[0])).toBe(`answer ${round}`);
      }
      expect(router.identities.length).toBe(1);
    });
  });
}

let lastSent = -1;
/** No more was sent than at the last look. */
function isStuck(sent: number): boolean {
  const isSame = sent === lastSent;
  lastSent = sent;
  return isSame;
}

describe("a bad network", () => {
  test("that cuts again and again loses some, and neither doubles nor reorders any", async () => {
    const router = kept(new RouterSocket({ receiveHighWater: 1_000_000 }));
    const proxy = kept(await StreamProxy.start(portOf(await router.bind("tcp://127.0.0.1:0"))));
    const dealer = kept(new DealerSocket({ reconnect, identity: "d" }));
    dealer.connect(proxy.endpoint);
    let sent = 0;
    const got: number[] = [];
    const gather = () => got.push(...router.receiveReady().map(([, body]) => Number(text(body))));
    for (let round = 0; round < 20; round++) {
      for (let batch = 0; batch < 20; batch++) {
        while (dealer.trySend([bytes(String(sent))]) && ++sent % 100 !== 0);
        await new Promise((resolve) => setImmediate(resolve));
      }
      proxy.cut();
      await eventually(() => (gather(), dealer.trySend([bytes(String(sent))]) && ++sent), { what: "room again" });
    }
    const goal = sent;
    const another = () => dealer.trySend([bytes(String(sent))]) && ++sent;
    await eventually(() => (another(), gather(), (got.at(-1) ?? -1) >= goal), { what: "what was sent last" });
    expect(got).toEqual([...new Set(got)].sort((a, b) => a - b));
    expect(dealer.counters.reconnects).toBeGreaterThanOrEqual(5);
    expect(got.length).toBeGreaterThan(1000);
  }, 30_000);

  test("that swallows everything is noticed by both sides, and a new connection is made", async () => {
    const heartbeat = { everyMs: 50, timeoutMs: 200 };
    const events: ZeroMqSocketEvent[] = [];
    const settings = { heartbeat, handshakeMsMax: 200 };
    const router = kept(new RouterSocket(settings));
    const proxy = kept(await StreamProxy.start(portOf(await router.bind("tcp://127.0.0.1:0"))));
    const dealer = kept(new DealerSocket({ ...settings, reconnect, onEvent: (event) => events.push(event) }));
    dealer.connect(proxy.endpoint);
    await dealer.send([bytes("before")]);
    await router.receive();
    proxy.isHole = true;
    await eventually(() => router.identities.length === 0, { what: "the server's end" });
    await eventually(() => events.some(({ kind }) => kind === "disconnected"), { what: "the client's end" });
    expect(events.find(({ kind }) => kind === "disconnected")).toMatchObject({ reason: { reason: "SILENT" } });
    proxy.isHole = false;
    await dealer.send([bytes("after")]);
    expect(text((await router.receive({ signal: AbortSignal.timeout(10_000) }))[1])).toBe("after");
  }, 20_000);

  test(
    "a peer that never reads costs what the marks allow, and a close in spite of it takes its time only",
    async () => {
      const router = kept(new RouterSocket({ sendHighWater: 100, sendHighWaterBytes: 10 << 20 }));
      const endpoint = await router.bind("tcp://127.0.0.1:0");
      const raw = await rawDealer(endpoint);
      raw.pause();
      await eventually(() => router.identities.length === 1);
      let sent = 0;
      await eventually(async () => {
        while (router.trySend([bytes("raw"), new Uint8Array(100_000)])) sent++;
        await new Promise((resolve) => setImmediate(resolve));
        return isStuck(sent);
      }, { everyMs: 50 });
      expect(sent * 100_000).toBeLessThan((10 << 20) + (20 << 20)); // the mark, and what the kernel holds
      const quiet = new QuietTime();
      await router.close({ lingerMs: 300 });
      expect(quiet.elapsedMs).toBeGreaterThan(290);
      expect(quiet.ms).toBeLessThan(3000);
      expect(router.counters.dropped).toBeGreaterThan(50);
    },
    20_000,
  );

  test("a connection that says nothing, or half of a greeting, ends with the handshake's time", async () => {
    const router = kept(new RouterSocket({ handshakeMsMax: 100 }));
    const endpoint = await router.bind("tcp://127.0.0.1:0");
    for (const said of [new Uint8Array(0), greeting().slice(0, 20)]) {
      const raw = kept(net.connect(portOf(endpoint), "127.0.0.1"));
      raw.write(said);
      raw.resume();
      await new Promise<void>((resolve) => raw.once("close", () => resolve()));
    }
    expect(router.counters.handshakesFailed).toBe(2);
  });
});
