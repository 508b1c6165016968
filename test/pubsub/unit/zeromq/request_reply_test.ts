import { expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { ReplySocket } from "../../../support/reply_socket.ts";
import { RequestSocket } from "../../../support/request_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { bytes, outcome, SocketRig, words } from "./socket_rig.ts";

const state = expect.objectContaining({ code: "ZMTP_STATE" });

test("a request and its answer go by turns, and anything else is an error", async () => {
  const rig = new SocketRig();
  const rep = new ReplySocket(rig.options);
  const req = new RequestSocket(rig.options);
  await rig.join(rep, req);
  await expect(req.receive()).rejects.toEqual(state);
  expect(() => rep.trySend([bytes("x")])).toThrow(state);
  for (const text of ["one", "two"]) {
    await req.send([bytes(text), bytes("more")]);
    expect(() => req.trySend([bytes("x")])).toThrow(state);
    expect(words(await rep.receive())).toEqual([text, "more"]);
    await expect(rep.receive()).rejects.toEqual(state);
    await rep.send([bytes(`${text}!`)]);
    expect(words(await req.receive())).toEqual([`${text}!`]);
  }
});

test("REQ sends an empty frame before its request, with correlation a number before that", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const plain = new RequestSocket(rig.options);
  const numbered = new RequestSocket({ ...rig.options, correlate: true });
  await rig.join(router, plain);
  await plain.send([bytes("a")]);
  expect((await router.receive()).map((frame) => frame.byteLength)).toEqual([5, 0, 1]);
  await rig.join(router, numbered);
  await numbered.send([bytes("b")]);
  const [identity = bytes(""), id = bytes(""), ...rest] = await router.receive();
  expect([identity.byteLength, id.byteLength, ...rest.map((frame) => frame.byteLength)]).toEqual([5, 4, 0, 1]);
  const other = id.map((byte) => byte ^ 1);
  for (const envelope of [[bytes("")], [other, bytes("")], [id], [id, bytes("x")]]) {
    router.trySend([identity, ...envelope, bytes("wrong")]);
  }
  router.trySend([identity, id, bytes(""), bytes("right")]);
  expect(words(await numbered.receive())).toEqual(["right"]);
  expect(numbered.discarded).toBe(4);
});

test("REQ takes an answer from whom it has asked, and from nobody else", async () => {
  const rig = new SocketRig();
  const req = new RequestSocket(rig.options);
  const routers = [new RouterSocket(rig.options), new RouterSocket(rig.options)];
  for (const router of routers) req.connect(await router.bind("tcp://127.0.0.1:0"));
  await rig.settle();
  const identities = routers.map((router) => router.identities[0] as Uint8Array);
  await req.send([bytes("to the first")]);
  await rig.settle();
  expect(routers.map((router) => router.receiveReady().length)).toEqual([1, 0]);
  routers[1]?.trySend([identities[1] as Uint8Array, bytes(""), bytes("stranger")]);
  await rig.settle();
  routers[0]?.trySend([identities[0] as Uint8Array, bytes(""), bytes("asked")]);
  expect(words(await req.receive())).toEqual(["asked"]);
  await req.send([bytes("to the second")]);
  await rig.settle();
  expect(routers.map((router) => router.receiveReady().length)).toEqual([0, 1]);
});

test("a relaxed REQ may ask again, and the answer to the first is thrown away", async () => {
  const rig = new SocketRig();
  const rep = new RouterSocket(rig.options);
  const req = new RequestSocket({ ...rig.options, relaxed: true, correlate: true });
  await rig.join(rep, req);
  await req.send([bytes("first")]);
  await req.send([bytes("second")]);
  await rig.settle();
  const [first = [], second = []] = rep.receiveReady();
  for (const [identity = bytes(""), id = bytes(""), , body = bytes("")] of [first, second]) {
    rep.trySend([identity, id, bytes(""), body]);
  }
  expect(words(await req.receive())).toEqual(["second"]);
  expect(req.discarded).toBe(1);
});

test("a REQ whose peer is lost is told so, and may ask again", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const req = new RequestSocket(rig.options);
  await rig.join(router, req);
  await req.send([bytes("asked")]);
  const answer = outcome(req.receive());
  await rig.settle();
  rig.network.last.close(null);
  await rig.settle();
  expect(answer.of).toBe("OUTCOME_UNKNOWN");
  await rig.clock.advance(100);
  await rig.settle();
  expect(router.receiveReady().length).toBe(1);
  await req.send([bytes("asked again")]);
  await rig.settle();
  expect(words(router.receiveReady()[0] ?? []).at(-1)).toBe("asked again");
});

test("an answer that came before its connection was lost counts", async () => {
  const rig = new SocketRig();
  const rep = new ReplySocket(rig.options);
  const req = new RequestSocket(rig.options);
  await rig.join(rep, req);
  await req.send([bytes("asked")]);
  await rep.receive();
  await rep.send([bytes("answered")]);
  await rig.settle();
  rig.network.last.close(null);
  await rig.settle();
  expect(words(await req.receive())).toEqual(["answered"]);
});

test("a request that was not sent yet goes out with the next connection", async () => {
  const rig = new SocketRig();
  const rep = new ReplySocket(rig.options);
  const req = new RequestSocket(rig.options);
  const endpoint = "tcp://127.0.0.1:7";
  req.connect(endpoint);
  await req.send([bytes("early")]);
  const answer = outcome(req.receive().then(words));
  await rig.settle();
  await rep.bind(endpoint);
  await rig.clock.advance(200);
  await rig.settle();
  expect(words(await rep.receive())).toEqual(["early"]);
  await rep.send([bytes("late")]);
  await rig.settle();
  expect(answer.of).toEqual(["late"]);
});

test("REP keeps the whole envelope, and throws away what has none", async () => {
  const rig = new SocketRig();
  const rep = new ReplySocket(rig.options);
  const dealer = new DealerSocket(rig.options);
  await rig.join(rep, dealer);
  for (const broken of [["no delimiter"], ["no", "delimiter"], ["nothing behind", ""]]) {
    dealer.trySend(broken.map(bytes));
  }
  dealer.trySend(["hop1", "hop2", "", "", "body"].map(bytes));
  expect(words(await rep.receive())).toEqual(["", "body"]);
  await rep.send([bytes("answer")]);
  expect(words(await dealer.receive())).toEqual(["hop1", "hop2", "", "answer"]);
  expect(rep.discarded).toBe(3);
});

test("an answer to a peer that has gone is counted, and the next request is served", async () => {
  const rig = new SocketRig();
  const rep = new ReplySocket(rig.options);
  const first = new RequestSocket(rig.options);
  const second = new RequestSocket(rig.options);
  await rig.join(rep, first);
  await first.send([bytes("gone")]);
  await rep.receive();
  rig.network.last.close(null);
  await rig.settle();
  await rep.send([bytes("nobody")]);
  expect(rep.counters.unroutable).toBe(1);
  await rig.join(rep, second);
  await second.send([bytes("here")]);
  expect(words(await rep.receive())).toEqual(["here"]);
});
