import { Buffer } from "node:buffer";
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { sealCurveBox } from "../../../../../src/protocols/zeromq/zmtp/curve_box.ts";
import { CurveNonceCounter, CurveNonceOrderCheck } from "../../../../../src/protocols/zeromq/zmtp/curve_nonce.ts";
import { CurveTrafficCipher } from "../../../../../src/protocols/zeromq/zmtp/curve_traffic.ts";
import { sealedFrameFlags } from "../../../../../src/protocols/zeromq/zmtp/security_mechanism.ts";
import { CurveRig, seededBytes } from "../../../../support/curve_rig.ts";
import { property } from "../../../../support/property.ts";

const key = seededBytes(7)(32);
const text = new TextEncoder();

function ends({ last = 0 }: { last?: number } = {}): { client: CurveTrafficCipher; server: CurveTrafficCipher } {
  const side = (name: "client" | "server") =>
    new CurveTrafficCipher({
      side: name,
      key,
      sent: new CurveNonceCounter({ last }),
      received: new CurveNonceOrderCheck(),
    });
  return { client: side("client"), server: side("server") };
}

/** A MESSAGE made of a NaCl box, without anything of CurveTraffic's. */
function messageOf(nonce: Uint8Array, payload: Uint8Array): Uint8Array {
  const box = sealCurveBox(key, { prefix: "CurveZMQMESSAGEC", rest: nonce }, payload);
  return new Uint8Array([...text.encode("\x07MESSAGE"), ...nonce, ...box]);
}

function counted(value: bigint): Uint8Array {
  const nonce = new Uint8Array(8);
  new DataView(nonce.buffer).setBigUint64(0, value);
  return nonce;
}

const bodies = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.constantFrom(0, 30, 31, 32, 33, 63, 64, 65, 65_534, 65_535, 65_536, 200_000).map((length) =>
    new Uint8Array(length).fill(length)
  ),
);
const flags = fc.constantFrom(0, sealedFrameFlags.more, sealedFrameFlags.command);

property("a MESSAGE is the NaCl box of flags and body", fc.tuple(flags, bodies), ([flag, body]) => {
  const payload = new Uint8Array([flag, ...body]);
  expect(ends().client.seal(flag, body)).toEqual(messageOf(counted(1n), payload));
}, 100);

property(
  "frames come out as they went in, in both directions, wherever they lie in memory",
  fc.tuple(fc.array(fc.tuple(flags, bodies), { maxLength: 5 }), fc.nat({ max: 7 })),
  ([frames, offset]) => {
    const { client, server } = new CurveRig().established();
    for (const [from, to] of [[client, server], [server, client]] as const) {
      for (const [flag, body] of frames) {
        const sealed = from.seal(flag, body);
        expect(sealed.byteLength).toBe(body.byteLength + from.overheadBytes);
        const received = Buffer.alloc(sealed.byteLength + offset);
        received.set(sealed, offset);
        const before = received.toHex();
        expect(to.open(received.subarray(offset))).toEqual({ flags: flag, body });
        expect(received.toHex()).toBe(before);
      }
    }
  },
  50,
);

test("a small body that was opened keeps nothing else in memory", () => {
  const { client, server } = ends();
  for (const length of [0, 1, 100]) {
    const { body } = server.open(client.seal(0, new Uint8Array(length)));
    expect([body.byteLength, body.buffer.byteLength]).toEqual([length, length]);
  }
});

test("what is sealed is not changed by what its owner does to the body afterwards", () => {
  const { client, server } = ends();
  const body = text.encode("as it was");
  const sealed = client.seal(0, body);
  body.fill(0);
  expect(server.open(sealed).body).toEqual(text.encode("as it was"));
});

describe("is refused:", () => {
  test("a MESSAGE changed in one bit, wherever it is", () => {
    const sealed = ends().client.seal(sealedFrameFlags.more, text.encode("transfer 100 to Alice"));
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = sealed.slice();
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => ends().server.open(changed)).toThrow(/sealed/);
    }
  });

  test("a MESSAGE cut short anywhere, or with a byte more", () => {
    const sealed = ends().client.seal(0, text.encode("whole"));
    for (let length = 0; length < sealed.length; length++) {
      expect(() => ends().server.open(sealed.subarray(0, length))).toThrow(/sealed|needed/);
    }
    expect(() => ends().server.open(new Uint8Array([...sealed, 0]))).toThrow("sealed");
  });

  test("the same MESSAGE again, and one from before", () => {
    const { client, server } = ends();
    const [first, second, third] = [1, 2, 3].map((number) => client.seal(0, text.encode(`${number}`)));
    if (first === undefined || second === undefined || third === undefined) throw new Error();
    server.open(second);
    expect(() => server.open(second)).toThrow("replayed");
    expect(() => server.open(first)).toThrow("replayed");
    expect(server.open(third).body).toEqual(text.encode("3"));
  });

  test("one's own MESSAGE sent back", () => {
    const { client } = ends();
    expect(() => client.open(client.seal(0, text.encode("hello")))).toThrow("not sealed by the peer");
  });

  test("a forged MESSAGE, which does not make the peer's next one too low", () => {
    const { client, server } = ends();
    const forged = messageOf(counted(2n ** 64n - 1n), new Uint8Array(5));
    forged[36] = (forged[36] ?? 0) ^ 1;
    expect(() => server.open(forged)).toThrow("not sealed by the peer");
    expect(server.open(client.seal(0, text.encode("genuine"))).body).toEqual(text.encode("genuine"));
  });

  test.each([3, 4, 128, 255])("flags of no meaning: %d", (flag) => {
    expect(() => ends().server.open(messageOf(counted(1n), new Uint8Array([flag])))).toThrow(
      `flags inside a MESSAGE are ${flag}`,
    );
  });

  test("a frame that was never sealed", () => {
    expect(() => ends().server.open(text.encode("GET /secret HTTP/1.1\r\nHost: example.org\r\n"))).toThrow(
      "sent unsealed bytes",
    );
  });
});

test("a peer's nonces may use all 64 bits, and have only to grow", () => {
  const { server } = ends();
  const open = (nonce: bigint) => server.open(messageOf(counted(nonce), new Uint8Array(1)));
  for (const nonce of [0n, 1n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n]) {
    open(nonce);
    expect(() => open(nonce)).toThrow("replayed");
    if (nonce > 0n) expect(() => open(nonce - 1n)).toThrow("replayed");
  }
});

test("own nonces count through 2^32", () => {
  const { client, server } = ends({ last: 2 ** 32 - 2 });
  const sealed = [1, 2, 3].map(() => client.seal(0, new Uint8Array(1)));
  expect(sealed.map((message) => message.subarray(8, 16).toHex())).toEqual([
    "00000000ffffffff",
    "0000000100000000",
    "0000000100000001",
  ]);
  for (const message of sealed) server.open(message);
});

test("the connection ends before a nonce comes again", () => {
  const { client } = ends({ last: Number.MAX_SAFE_INTEGER - 1 });
  expect(client.seal(0, new Uint8Array(1)).subarray(8, 16).toHex()).toBe("001fffffffffffff");
  for (let again = 0; again < 3; again++) {
    expect(() => client.seal(0, new Uint8Array(1))).toThrow("the connection ends before a nonce is repeated");
  }
});

test("nothing is sealed with a key that was forgotten", () => {
  const { client, server } = ends();
  const sealed = client.seal(0, new Uint8Array(1));
  client.destroy();
  server.destroy();
  expect(() => client.seal(0, new Uint8Array(1))).toThrow("its keys were erased");
  expect(() => server.open(sealed)).toThrow("its keys were erased");
});
