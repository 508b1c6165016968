/** Large messages, many messages, several peers, and a peer that does not read. */
import { describe, expect, test } from "bun:test";
import { eventually } from "../../support/eventually.ts";
import { labels } from "../../support/zeromq_peers/frames.ts";
import { libzmqInNode, own } from "../../support/zeromq_peers/implementations.ts";
import type { PeerSocket } from "../../support/zeromq_peers/peer_process.ts";
import type { Frame } from "../../support/zeromq_peers/peer_protocol.ts";
import { mechanisms, securityOf, transports, type ZmtpFixture } from "./zmtp_fixture.ts";

const mebibyte = 2 ** 20;

/** In no time to be delivered: the kernel's buffers and both high-water marks hold less than a tenth of them. */
const moreThanFits = { messages: 6000, bytes: 16 * 1024 };

export function flowSuite(fixture: ZmtpFixture): void {
  for (const mechanism of mechanisms) {
    const size = isForLargeFrames(fixture) ? 64 : 4;
    test(`a frame of ${size} MiB passes unchanged there and back with ${mechanism}`, async () => {
      const router = await fixture.open("b", "ROUTER", securityOf(mechanism, true));
      const dealer = await fixture.open("a", "DEALER", securityOf(mechanism, false));
      await fixture.link(router, dealer);
      const message: Frame[] = ["before", { size: size * mebibyte, seed: 5 }, "behind"];
      await dealer.send(message, { withinMs: 30_000 });
      const [identity = "", ...received] = await router.receive(30_000);
      expect(received).toEqual(labels(message));
      await router.send([identity, ...message], { withinMs: 30_000 });
      expect(await dealer.receive(30_000)).toEqual(labels(message));
    }, 120_000);
  }

  for (const transport of transports) {
    for (const mechanism of mechanisms) {
      test(`thousands of messages arrive once and in their order over ${transport} with ${mechanism}`, async () => {
        const receiver = await fixture.open("b", "DEALER", securityOf(mechanism, true));
        const sender = await fixture.open("a", "DEALER", securityOf(mechanism, false));
        await fixture.link(receiver, sender, transport);
        const first = 900; // they wait at the receiver, below its high-water mark
        const count = 3000;
        const numbered = (times: number) => sender.send(["number", "."], { times, numbered: true, withinMs: 30_000 });
        await numbered(first);
        const [received] = await Promise.all([receiver.receiveMany(first + count, 30_000), numbered(count)]);
        const sent = [...Array(first).keys(), ...Array(count).keys()].map((number) => ["number", `${number} .`]);
        expect(received).toEqual(sent);
        await sender.send(["behind all of them"]);
        expect(await receiver.receive()).toEqual(["behind all of them"]);
      }, 60_000);
    }
  }

  describe("with several peers", () => {
    for (const type of ["DEALER", "REQ"] as const) {
      test(`a ${type} gives each of them its turn`, async () => {
        const workers = [
          await fixture.open("b", "REP"),
          await fixture.open("b", "REP"),
          await fixture.open("b", "REP"),
        ];
        const asker = await fixture.open("a", type);
        for (const worker of workers) await asker.connect(await worker.bind(fixture.endpoint()));
        await asker.happened("ready", workers.length);
        const answers: string[] = [];
        const envelope = type === "DEALER" ? [""] : [];
        for (let round = 0; round < 3; round++) {
          for (let at = 0; at < workers.length; at++) {
            await asker.send([...envelope, "whose turn?"]);
            answers.push(await answerOfOne(workers, asker));
          }
        }
        const turn = answers.slice(0, workers.length);
        expect(turn.toSorted()).toEqual(["worker 0", "worker 1", "worker 2"]);
        expect(answers).toEqual([...turn, ...turn, ...turn]);
      });
    }

    test("one that floods does not keep the others waiting", async () => {
      const router = await fixture.open("a", "ROUTER");
      const endpoint = await router.bind(fixture.endpoint());
      const [flooding, quiet] = [await fixture.open("b", "DEALER"), await fixture.open("b", "DEALER")];
      await flooding.connect(endpoint);
      await quiet.connect(endpoint);
      await router.happened("ready", 2);
      const total = 6000;
      const flood = flooding.offer(["flood"], { times: total, withinMs: 30_000 });
      await router.receiveMany(100);
      await quiet.send(["quiet"]);
      let received = 100;
      for (let heard = false; !heard; received += 500) {
        const messages = await router.receiveMany(500);
        heard = messages.some(([, body]) => body === "quiet");
        expect(heard || received < total / 2).toBe(true);
      }
      await router.receiveMany(total + 1 - received, 30_000);
      expect(await flood).toBe(total);
    }, 60_000);
  });

  test("a peer that does not read pushes back on its sender, and then gets everything in order", async () => {
    const reader = await fixture.open("b", "ROUTER", { receiveHighWaterMark: 5 });
    const writer = await fixture.open("a", "DEALER", { sendHighWaterMark: 5 });
    await fixture.link(reader, writer);
    const message: Frame[] = [{ size: moreThanFits.bytes, seed: 9 }, ""];
    let taken = 0;
    // Until none was taken in a time in which one would have been.
    for (let more = 1; more > 0 && taken < moreThanFits.messages; taken += more) {
      more = await writer.offer(message, { times: moreThanFits.messages, numbered: true, withinMs: 300 });
    }
    expect(taken).toBeLessThan(moreThanFits.messages);
    const received = await reader.receiveMany(taken, 30_000);
    expect(received).toHaveLength(taken);
    expect(new Set(received.map((frames) => frames[1]))).toEqual(new Set(labels(message.slice(0, 1))));
    const numbers = received.map(numberOf);
    // Each offer numbers from 0.
    expect(numbers.every((number, at) => number === 0 || number === (numbers[at - 1] ?? -1) + 1)).toBe(true);
    await writer.send(["on it goes"]);
    expect((await reader.receive())[1]).toBe("on it goes");
  }, 60_000);

  test("a peer that does not read does not keep a ROUTER from the others", async () => {
    const router = await fixture.open("a", "ROUTER", { sendHighWaterMark: 5 });
    const endpoint = await router.bind(fixture.endpoint());
    const deaf = await fixture.open("b", "DEALER", { identity: "deaf", receiveHighWaterMark: 5 });
    const other = await fixture.open("b", "DEALER", { identity: "other" });
    await deaf.connect(endpoint);
    await other.connect(endpoint);
    await router.happened("ready", 2);
    const body: Frame = { size: moreThanFits.bytes, seed: 9 };
    await router.offer(["deaf", body], { times: moreThanFits.messages, withinMs: 300 });
    await router.send(["other", "hello"]);
    expect(await other.receive()).toEqual(["hello"]);
  }, 60_000);

  test("what was accepted is still delivered when the sender closes at once", async () => {
    const receiver = await fixture.open("b", "DEALER", { receiveHighWaterMark: 5 });
    const sender = await fixture.open("a", "DEALER");
    await fixture.link(receiver, sender);
    // More than the kernel holds: some of it is still in the sender's process.
    const count = 60;
    await sender.send(["last words", { size: 256 * 1024, seed: 1 }], { times: count, numbered: true });
    const closing = sender.close(10_000);
    expect(await receiver.receiveMany(count)).toHaveLength(count);
    await closing;
  });

  test("what waits behind a peer that does not read goes to the one that comes after its crash", async () => {
    const crashing = await fixture.start("b");
    const deaf = await crashing.open("DEALER", { receiveHighWaterMark: 5 });
    const writer = await fixture.open("a", "DEALER");
    const endpoint = await fixture.link(deaf, writer);
    // As many as may wait for one peer: they are taken at once, and the kernel has no room for half of them.
    const taken = 1000;
    await writer.send([{ size: moreThanFits.bytes, seed: 9 }, ""], { times: taken, numbered: true });
    await crashing.kill();
    await writer.happened("lost");
    const reader = await fixture.open("b", "DEALER");
    await eventually(() => reader.bind(endpoint));
    await writer.send(["", "the end"]);
    const numbers: number[] = [];
    for (let message = await reader.receive(); message[1] !== "the end"; message = await reader.receive()) {
      numbers.push(numberOf(message));
    }
    // What was on its way is lost, at the beginning, and nothing else.
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, at) => taken - numbers.length + at));
    expect(numbers.length).toBeGreaterThan(100);
  }, 60_000);
}

/** They take seconds, encrypted ones above all where nothing is compiled: one pairing is enough. */
function isForLargeFrames({ implementations: { a, b } }: ZmtpFixture): boolean {
  return a === own && b === libzmqInNode;
}

function numberOf(message: readonly string[]): number {
  return Number.parseInt(message.at(-1) ?? "", 10);
}

/** Whichever worker was asked says so, and the asker hears it. */
async function answerOfOne(workers: readonly PeerSocket[], asker: PeerSocket): Promise<string> {
  const patienceMs = 10_000;
  const everyMs = 20;
  for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += everyMs * workers.length) {
    for (const [at, worker] of workers.entries()) {
      const [request] = await worker.receiveMany(1, everyMs);
      if (request === undefined) continue;
      await worker.send([`worker ${at}`]);
      return (await asker.receive()).at(-1) ?? "";
    }
  }
  throw new Error("No worker was asked");
}
