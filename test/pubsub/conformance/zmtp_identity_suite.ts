/** Who is who: identities that peers bring or are given, their hand-over, and the correlation of requests. */
import { expect, test } from "bun:test";
import type { ZmtpFixture } from "./zmtp_fixture.ts";

export function identitySuite(fixture: ZmtpFixture): void {
  // RFC 37, "The Identity Property": these types send one.
  for (const type of ["DEALER", "REQ", "ROUTER"] as const) {
    for (const identity of ["I", "i".repeat(255)]) {
      test(`a ${type} is known by its identity of ${identity.length} octets`, async () => {
        const router = await fixture.open("a", "ROUTER", { identity: "router" });
        const peer = await fixture.open("b", type, { identity });
        await fixture.link(router, peer);
        await peer.send(type === "ROUTER" ? ["router", "hello"] : ["hello"]);
        expect((await router.receive())[0]).toBe(identity);
      });
    }
  }

  test("peers without an identity are given different ones, which begin with a zero octet and last", async () => {
    const router = await fixture.open("a", "ROUTER");
    const endpoint = await router.bind(fixture.endpoint());
    const peers = await Promise.all([1, 2, 3].map(() => fixture.open("b", "DEALER")));
    const given = new Set<string>();
    for (const peer of peers) {
      await peer.connect(endpoint);
      await peer.send(["first"]);
      const [identity = ""] = await router.receive();
      await peer.send(["second"]);
      expect(await router.receive()).toEqual([identity, "second"]);
      expect(identity[0]).toBe("\0");
      given.add(identity);
    }
    expect(given.size).toBe(peers.length);
  });

  test("a ROUTER that hands over gives an identity to the peer that brings it last", async () => {
    const { router, first, second } = await rivals(fixture, { handOver: true });
    expect(await router.receive()).toEqual(["same", "from the second"]);
    await router.send(["same", "for the second"]);
    expect(await second.receive()).toEqual(["for the second"]);
    expect(await first.receiveMany(1, 50)).toEqual([]);
    // libzmq leaves the connection open, and what comes by it is lost; the first one had better know.
    if (fixture.implementations.a.peer === null) await first.happened("lost");
  });

  test("a REQ that correlates puts a number before the delimiter, and drops late answers", async () => {
    const router = await fixture.open("b", "ROUTER");
    const req = await fixture.open("a", "REQ", { correlate: true, relaxed: true });
    await fixture.link(router, req);
    await req.send(["first question"]);
    const [identity = "", firstNumber = "", ...first] = await router.receive();
    expect([firstNumber.length, ...first]).toEqual([4, "", "first question"]);
    await req.send(["second question"]);
    const [sameIdentity = "", secondNumber = "", ...second] = await router.receive();
    expect(second).toEqual(["", "second question"]);
    expect(secondNumber).not.toBe(firstNumber);
    await router.send([identity, firstNumber, "", "first answer"]);
    await router.send([sameIdentity, secondNumber, "", "second answer"]);
    expect(await req.receive()).toEqual(["second answer"]);
  });

  test("a REP gives the number of a REQ that correlates back", async () => {
    const rep = await fixture.open("b", "REP");
    const req = await fixture.open("a", "REQ", { correlate: true });
    await fixture.link(rep, req);
    for (const question of ["one", "two"]) {
      await req.send([question]);
      expect(await rep.receive()).toEqual([question]);
      await rep.send([`${question} answered`]);
      expect(await req.receive()).toEqual([`${question} answered`]);
    }
  });

  test("a REP sends an envelope of several frames back as it came", async () => {
    const rep = await fixture.open("a", "REP");
    const dealer = await fixture.open("b", "DEALER");
    await fixture.link(rep, dealer);
    await dealer.send(["hop 1", "hop 2", "", "question", "", "more"]);
    expect(await rep.receive()).toEqual(["question", "", "more"]);
    await rep.send(["answer"]);
    expect(await dealer.receive()).toEqual(["hop 1", "hop 2", "", "answer"]);
  });

  test("a message without a delimiter does not reach a REP, and the next one does", async () => {
    const rep = await fixture.open("a", "REP");
    const dealer = await fixture.open("b", "DEALER");
    await fixture.link(rep, dealer);
    await dealer.send(["no delimiter", "anywhere"]);
    await dealer.send(["", "proper"]);
    expect(await rep.receive()).toEqual(["proper"]);
    await rep.send(["answer"]);
    expect(await dealer.receive()).toEqual(["", "answer"]);
  });
}

/**
 * A ROUTER, and two peers with the same identity: the first has been heard, the second has come and said something too.
 */
async function rivals(fixture: ZmtpFixture, options: { readonly handOver: boolean }) {
  const router = await fixture.open("a", "ROUTER", options);
  const endpoint = await router.bind(fixture.endpoint());
  const first = await fixture.open("b", "DEALER", { identity: "same" });
  const second = await fixture.open("b", "DEALER", { identity: "same" });
  await first.connect(endpoint);
  await first.send(["from the first"]);
  expect(await router.receive()).toEqual(["same", "from the first"]);
  await second.connect(endpoint);
  await second.send(["from the second"]);
  return { router, first, second };
}
