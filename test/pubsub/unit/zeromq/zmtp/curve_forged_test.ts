/** Commands made by hand, by somebody who has keys and breaks one rule: what no change on the way could make. */
import { expect, test } from "bun:test";
import { prepareX25519Secret } from "../../../../../src/base/support/x25519.ts";
import {
  type CurveNoncePrefix,
  deriveCurveBoxKey,
  sealCurveBox,
} from "../../../../../src/protocols/zeromq/zmtp/curve_box.ts";
import {
  curveBoxLayouts,
  curveCommandLayouts,
  curveLongNonceBoxLayout,
  curveVersion,
} from "../../../../../src/protocols/zeromq/zmtp/curve_layout.ts";
import { CurveNonceCounter, CurveNonceOrderCheck } from "../../../../../src/protocols/zeromq/zmtp/curve_nonce.ts";
import { CurveTrafficCipher } from "../../../../../src/protocols/zeromq/zmtp/curve_traffic.ts";
import type {
  SecurityMechanism,
  ZmtpHandshakeStep,
} from "../../../../../src/protocols/zeromq/zmtp/security_mechanism.ts";
import { clientKey, CurveRig, only, seededBytes, seededKey, serverKey } from "../../../../support/curve_rig.ts";

const transient = seededKey(50);
const zeros = new Uint8Array(64);

function key(one: typeof transient, publicKey: Uint8Array): Uint8Array {
  const shared = deriveCurveBoxKey(one, publicKey);
  if (shared === null) throw new Error("The key is of low order");
  return shared;
}

function counted(count: number): Uint8Array {
  const nonce = new Uint8Array(8);
  nonce[7] = count;
  return nonce;
}

function box(shared: Uint8Array, prefix: CurveNoncePrefix, rest: Uint8Array, plain: Uint8Array): Uint8Array {
  return sealCurveBox(shared, { prefix, rest }, plain);
}

function sayHello(
  server: SecurityMechanism,
  { transientKey = transient.publicKey, signature = zeros } = {},
): ZmtpHandshakeStep {
  const nonce = counted(1);
  const helloBox = box(key(transient, serverKey.publicKey), "CurveZMQHELLO---", nonce, signature);
  const fields = { version: curveVersion, padding: new Uint8Array(72), clientTransientKey: transientKey, nonce };
  return server.receive({ name: "HELLO", data: curveCommandLayouts.HELLO.write({ ...fields, box: helloBox }) });
}

/** The server's answer to a HELLO, opened. */
function welcomed(
  server: SecurityMechanism,
): { shared: Uint8Array; serverTransientKey: Uint8Array; cookie: Uint8Array } {
  const { nonce, box: sealed } = curveCommandLayouts.WELCOME.read(only(sayHello(server)).data);
  const open = key(transient, serverKey.publicKey);
  const plain = opened(open, "WELCOME-", nonce, sealed);
  const { serverTransientKey, cookie } = curveBoxLayouts.WELCOME.read(plain);
  return { shared: key(transient, serverTransientKey), serverTransientKey, cookie };
}

/** XSalsa20 is its own inverse; the tag is left out. */
function opened(shared: Uint8Array, prefix: CurveNoncePrefix, rest: Uint8Array, sealed: Uint8Array): Uint8Array {
  return box(shared, prefix, rest, sealed.subarray(16)).subarray(16);
}

function initiate(
  server: SecurityMechanism,
  { vouchedKey = transient.publicKey, claims = clientKey.publicKey, nonce = 2 } = {},
) {
  const { shared, serverTransientKey, cookie } = welcomed(server);
  const long = seededBytes(9)(16);
  const vouched = curveBoxLayouts.vouch.write({ clientTransientKey: vouchedKey, serverKey: serverKey.publicKey });
  const vouch = curveLongNonceBoxLayout.write({
    nonce: long,
    box: box(key(clientKey, serverTransientKey), "VOUCH---", long, vouched),
  });
  const inside = curveBoxLayouts.INITIATE.write({ clientKey: claims, vouch, metadata: new Uint8Array(0) });
  const data = curveCommandLayouts.INITIATE.write({
    cookie,
    nonce: counted(nonce),
    box: box(shared, "CurveZMQINITIATE", counted(nonce), inside),
  });
  return { shared, step: () => server.receive({ name: "INITIATE", data }) };
}

const lowOrder = [0, 1].map((first) => Uint8Array.from({ length: 32 }, (_, at) => at === 0 ? first : 0));

test("made by hand as it should be, a handshake succeeds", () => {
  expect(initiate(new CurveRig().server).step().outcome?.kind).toBe("done");
});

test("a HELLO whose signature is not of zeros", () => {
  expect(() => sayHello(new CurveRig().server, { signature: new Uint8Array(64).fill(1) })).toThrow("not all zeros");
});

test("a HELLO with a key of low order, for which everybody knows what the two agree on", () => {
  for (const transientKey of lowOrder) {
    expect(() => sayHello(new CurveRig().server, { transientKey })).toThrow("no secret key belongs to it");
  }
});

test("a vouch for another transient key: somebody else's INITIATE, taken over", () => {
  const { step } = initiate(new CurveRig().server, { vouchedKey: seededKey(51).publicKey });
  expect(step).toThrow("for another connection or another server");
});

test("a long-term key of low order", () => {
  for (const claims of lowOrder) {
    expect(initiate(new CurveRig().server, { claims }).step).toThrow("no secret key belongs to it");
  }
});

test("the first MESSAGE with the nonce of the INITIATE", () => {
  const { server } = new CurveRig();
  const { shared, step } = initiate(server, { nonce: 5 });
  step();
  const seal = (last: number) => {
    const sent = new CurveNonceCounter({ last });
    return new CurveTrafficCipher({ side: "client", key: shared, sent, received: new CurveNonceOrderCheck() }).seal(
      0,
      zeros,
    );
  };
  expect(() => server.traffic?.open(seal(3))).toThrow("replayed");
  expect(() => server.traffic?.open(seal(4))).toThrow("replayed");
  expect(server.traffic?.open(seal(5)).body).toEqual(zeros);
});

/** A server made by hand, up to its READY. */
function served(serverTransient = seededKey(52), serverTransientKey = serverTransient.publicKey, readyNonce = 7) {
  const { client } = new CurveRig();
  const hello = curveCommandLayouts.HELLO.read(only({ send: client.start() }).data);
  const nonce = seededBytes(8)(16);
  const inside = curveBoxLayouts.WELCOME.write({ serverTransientKey, cookie: new Uint8Array(96) });
  const shared = key(serverKey, hello.clientTransientKey);
  const welcome = curveCommandLayouts.WELCOME.write({ nonce, box: box(shared, "WELCOME-", nonce, inside) });
  client.receive({ name: "WELCOME", data: welcome });
  const transientShared = key(serverTransient, hello.clientTransientKey);
  const rest = counted(readyNonce);
  const ready = box(transientShared, "CurveZMQREADY---", rest, new Uint8Array(0));
  client.receive({ name: "READY", data: curveCommandLayouts.READY.write({ nonce: rest, box: ready }) });
  return { client, shared: transientShared };
}

test("a WELCOME with a transient key of low order", () => {
  for (const publicKey of lowOrder) {
    expect(() => served(prepareX25519Secret(new Uint8Array(32)), publicKey)).toThrow("no secret key belongs to it");
  }
});

test("the server's first MESSAGE with the nonce of its READY", () => {
  const { client, shared } = served();
  const seal = (last: number) => {
    const sent = new CurveNonceCounter({ last });
    return new CurveTrafficCipher({ side: "server", key: shared, sent, received: new CurveNonceOrderCheck() }).seal(
      0,
      zeros,
    );
  };
  expect(() => client.traffic?.open(seal(6))).toThrow("replayed");
  expect(client.traffic?.open(seal(7)).body).toEqual(zeros);
});
