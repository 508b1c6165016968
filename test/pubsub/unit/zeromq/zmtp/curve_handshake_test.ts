import { describe, expect, test } from "bun:test";
import { encodeZ85 } from "../../../../../src/base/wire/z85.ts";
import { encodeZmtpCommand } from "../../../../../src/protocols/zeromq/zmtp/zmtp_command.ts";
import type { ZmtpHandshakeOutcome } from "../../../../../src/protocols/zeromq/zmtp/security_mechanism.ts";
import { zmtpPropertyText } from "../../../../../src/protocols/zeromq/zmtp/zmtp_metadata.ts";
import { ZmtpError } from "../../../../../src/protocols/zeromq/zmtp/zmtp_error.ts";
import { clientKey, CurveRig, only, read, seededKey, serverKey } from "../../../../support/curve_rig.ts";

const text = new TextEncoder();
const clientName = encodeZ85(clientKey.publicKey);

function failureOf(outcome: ZmtpHandshakeOutcome | null): ZmtpError {
  if (outcome?.kind !== "failed") throw new Error(`The outcome is ${outcome?.kind}`);
  return outcome.error;
}

function doneOf(outcome: ZmtpHandshakeOutcome | null): Extract<ZmtpHandshakeOutcome, { kind: "done" }> {
  if (outcome?.kind !== "done") throw new Error(`The outcome is ${outcome?.kind}`);
  return outcome;
}

/** What the error says that `action` throws. */
function thrownBy(action: () => unknown): ZmtpError {
  try {
    action();
  } catch (thrown) {
    if (thrown instanceof ZmtpError) return thrown;
    throw thrown;
  }
  throw new Error("Nothing was thrown");
}

const handshake = ["HELLO", "WELCOME", "INITIATE", "READY"] as const;

/** Of the command's body in a handshake as it should be. */
function lengthOf(name: string): number {
  let length = 0;
  new CurveRig().run((command, itsName) => {
    if (itsName === name) length = command.byteLength;
    return command;
  });
  return length;
}

test("both sides know each other's properties, and the server knows whose key it is", () => {
  const rig = new CurveRig();
  const { client } = rig.run();
  expect(zmtpPropertyText(doneOf(client).properties, "Socket-Type")).toBe("ROUTER");
  expect(rig.server.traffic).not.toBeNull();
  const alone = new CurveRig();
  const initiate = only(alone.client.receive(only(alone.server.receive(only({ send: alone.client.start() })))));
  const done = doneOf(alone.server.receive(initiate).outcome);
  expect([zmtpPropertyText(done.properties, "Identity"), done.userId]).toEqual(["dealer 1", clientName]);
});

test("the commands have the lengths of RFC 26, name included", () => {
  const context = { ownMetadata: new Uint8Array(0) };
  const lengths: Record<string, number> = {};
  new CurveRig({ client: { context }, server: { context } }).run((command, name) => {
    lengths[name] = command.byteLength;
    return command;
  });
  expect(lengths).toEqual({ HELLO: 200, WELCOME: 168, INITIATE: 257, READY: 30 });
});

test("no two connections share a key, a cookie or a box", () => {
  const seen = new Set<string>();
  for (const seed of [10, 20, 30]) {
    new CurveRig({ client: { seed }, server: { seed: seed + 1 } }).run((command) => {
      for (let at = 90; at + 16 <= command.length; at++) {
        const piece = command.subarray(at, at + 16).toHex();
        expect(seen.has(`${seed - 10} ${piece}`)).toBe(false);
        seen.add(`${seed} ${piece}`);
      }
      return command;
    });
  }
  expect(seen.size).toBeGreaterThan(500);
});

describe("is refused:", () => {
  test("a client that expects another server key", () => {
    const error = thrownBy(() => new CurveRig({ client: { serverKey: seededKey(9).publicKey } }).run());
    expect([error.code, error.message]).toEqual([
      "REFUSED",
      "The peer's HELLO cannot be opened: it expects another server key than this one",
    ]);
  });

  test("a server that was not the one expected", () => {
    const other = new CurveRig({ client: { seed: 8 } });
    const welcome = only(other.server.receive(only({ send: other.client.start() })));
    const { client } = new CurveRig();
    client.start();
    expect(thrownBy(() => client.receive(welcome)).message).toContain(
      "the server has another key than the one expected",
    );
  });

  test("a client with a public key that is not its own", () => {
    const key = { publicKey: seededKey(9).publicKey, deriveSharedSecret: clientKey.deriveSharedSecret };
    const error = thrownBy(() => new CurveRig({ client: { key } }).run());
    expect(error.message).toBe(
      "The peer's vouch cannot be opened: the peer does not have the secret key of the public key it claims",
    );
  });

  test("a vouch that was made for another server", () => {
    const expected = serverKey.publicKey.slice();
    const rig = new CurveRig({ client: { serverKey: expected } });
    const welcome = only(rig.server.receive(only({ send: rig.client.start() })));
    expected.set(seededKey(9).publicKey);
    const initiate = only(rig.client.receive(welcome));
    expect(thrownBy(() => rig.server.receive(initiate)).message).toContain("for another connection or another server");
  });

  test.each(handshake)("a %s changed at any of its bytes", (name) => {
    const bytes = lengthOf(name);
    for (let at = 1 + name.length; at < bytes; at++) {
      const run = () =>
        new CurveRig().run((command, itsName) => {
          const changed = command.slice();
          if (itsName === name) changed[at] = (changed[at] ?? 0) ^ (1 << (at & 7));
          return changed;
        });
      expect(thrownBy(run)).toBeInstanceOf(ZmtpError);
    }
  });

  test("a HELLO with the bit of the key that X25519 ignores", () => {
    const run = () =>
      new CurveRig().run((command, name) => {
        const changed = command.slice();
        if (name === "HELLO") changed[6 + 2 + 72 + 31] = (changed[6 + 2 + 72 + 31] ?? 0) ^ 0x80;
        return changed;
      });
    expect(thrownBy(run).message).toBe("The peer's public key cannot be one: no secret key belongs to it");
  });

  test.each(handshake)("a %s cut short anywhere, or with bytes more", (name) => {
    const bytes = lengthOf(name);
    for (let length = 1 + name.length; length < bytes + 3; length++) {
      if (length === bytes) continue;
      const run = () =>
        new CurveRig().run((command, itsName) =>
          itsName === name ? Uint8Array.from({ length }, (_, at) => command[at] ?? 0) : command
        );
      expect(thrownBy(run)).toBeInstanceOf(ZmtpError);
    }
  });

  test("another version of CurveZMQ", () => {
    const run = () =>
      new CurveRig().run((command, name) => {
        const changed = command.slice();
        if (name === "HELLO") changed[6] = 2;
        return changed;
      });
    expect(thrownBy(run).message).toBe("The peer speaks CurveZMQ 2.0, and 1.0 is expected");
  });
});

describe("out of order, and is refused:", () => {
  const wrongFirst = ["INITIATE", "MESSAGE", "READY", "WELCOME", "ERROR", "PING", "hello"];
  test.each(wrongFirst)("a %s in place of a HELLO", (name) => {
    const { server } = new CurveRig();
    const error = thrownBy(() => server.receive(read(encodeZmtpCommand(name, new Uint8Array(200)))));
    expect([error.code, error.message]).toEqual([
      "ZMTP_PROTOCOL",
      `The peer sends the command ${name}, and HELLO is to come`,
    ]);
  });

  test("a second HELLO", () => {
    const { client, server } = new CurveRig();
    const hello = only({ send: client.start() });
    server.receive(hello);
    expect(thrownBy(() => server.receive(hello)).message).toBe(
      "The peer sends the command HELLO, and INITIATE is to come",
    );
  });

  test("a second INITIATE, after which nothing is taken any more", () => {
    const { client, server } = new CurveRig();
    const initiate = only(client.receive(only(server.receive(only({ send: client.start() })))));
    server.receive(initiate);
    for (let again = 0; again < 2; again++) {
      expect(thrownBy(() => server.receive(initiate)).message).toContain("the handshake is over");
    }
  });

  test("a MESSAGE before the READY, on either side", () => {
    const { client, server } = new CurveRig();
    const message = read(encodeZmtpCommand("MESSAGE", new Uint8Array(40)));
    const welcome = only(server.receive(only({ send: client.start() })));
    client.receive(welcome);
    expect(thrownBy(() => client.receive(message)).message).toContain("READY is to come");
    expect(thrownBy(() => server.receive(message)).message).toContain("INITIATE is to come");
    expect([client.traffic, server.traffic]).toEqual([null, null]);
  });

  test("anything after a command that was refused: a broken handshake cannot be tried again", () => {
    const { client, server } = new CurveRig();
    const hello = only({ send: client.start() });
    thrownBy(() => server.receive({ name: "HELLO", data: hello.data.subarray(1) }));
    expect(thrownBy(() => server.receive(hello)).message).toContain("the handshake is over");
  });
});

describe("a handshake that was recorded", () => {
  const record = () => {
    const commands = new Map<string, Uint8Array>();
    new CurveRig().run((command, name) => {
      commands.set(name, command);
      return command;
    });
    return (name: string) => read(commands.get(name) ?? new Uint8Array());
  };

  test("does not open a second connection to the same server", () => {
    const recorded = record();
    const { server } = new CurveRig({ server: { seed: 5 } });
    expect(only(server.receive(recorded("HELLO"))).name).toBe("WELCOME");
    expect(thrownBy(() => server.receive(recorded("INITIATE"))).message).toBe(
      "The peer's cookie cannot be opened: it was made for another connection, or changed on the way",
    );
  });

  test("does not pass for a server", () => {
    const recorded = record();
    const { client } = new CurveRig({ client: { seed: 5 } });
    client.start();
    expect(thrownBy(() => client.receive(recorded("WELCOME"))).message).toContain("WELCOME cannot be opened");
    const rig = new CurveRig({ client: { seed: 6 } });
    rig.client.receive(only(rig.server.receive(only({ send: rig.client.start() }))));
    expect(thrownBy(() => rig.client.receive(recorded("READY"))).message).toContain("READY cannot be opened");
  });

  test("an INITIATE whose nonce is not above the HELLO's", () => {
    const rig = new CurveRig();
    const initiate = only(rig.client.receive(only(rig.server.receive(only({ send: rig.client.start() })))));
    const data = initiate.data.slice();
    data[96 + 7] = 1;
    expect(thrownBy(() => rig.server.receive({ name: "INITIATE", data })).message).toContain("it was replayed");
  });
});

describe("who is let in", () => {
  test("is asked with the public key that the client has proven, which is the user", () => {
    const asked: string[] = [];
    const rig = new CurveRig({ server: { isAllowed: (publicKey) => asked.push(publicKey) > 0 } });
    const { client, server } = rig.run();
    expect(asked).toEqual([clientName]);
    expect(doneOf(server).userId).toBe(clientName);
    expect(doneOf(client).kind).toBe("done");
    const sealed = rig.client.traffic?.seal(0, text.encode("in")) ?? new Uint8Array();
    expect(rig.server.traffic?.open(sealed).body).toEqual(text.encode("in"));
  });

  test("a client that is not: both sides have a typed error, and the reason stays with the server", () => {
    const rig = new CurveRig({ server: { isAllowed: () => false } });
    const welcome = only(rig.server.receive(only({ send: rig.client.start() })));
    const step = rig.server.receive(only(rig.client.receive(welcome)));
    expect(failureOf(step.outcome)).toMatchObject({
      code: "REFUSED",
      reason: "AUTHENTICATION",
      message: `The client with the public key ${clientName} is refused (400): this key is not accepted`,
    });
    expect(new TextDecoder().decode(only(step).data)).toBe("\x03400");
    const error = failureOf(rig.client.receive(only(step)).outcome);
    expect([error.code, error.reason]).toEqual(["REFUSED", "REFUSED_BY_PEER"]);
    expect(error.message).toContain(`The client with the public key ${clientName} was refused`);
    expect(error.message).toContain("does not know this key");
    expect([rig.client.traffic, rig.server.traffic]).toEqual([null, null]);
  });
});

describe("properties that will not do", () => {
  const error = new ZmtpError("PROPERTIES", "A PUB does not go with a ROUTER");
  const acceptProperties = () => error;

  test("are answered by the server with an ERROR, which its client quotes", () => {
    const rig = new CurveRig({ server: { context: { acceptProperties } } });
    const { client } = rig.run();
    expect(failureOf(client).message).toContain(`the server says "${error.message}"`);
    expect(rig.server.traffic).toBeNull();
  });

  test("end it on the client's side without a word", () => {
    const rig = new CurveRig({ client: { context: { acceptProperties } } });
    const { client } = rig.run();
    expect(failureOf(client)).toBe(error);
    expect(rig.client.traffic).toBeNull();
  });
});
