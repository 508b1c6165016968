import * as fc from "fast-check";
import { expect } from "bun:test";
import { BatonError } from "../../../../../src/base/errors.ts";
import type { SecurityMechanism } from "../../../../../src/protocols/zeromq/zmtp/security_mechanism.ts";
import { ZmtpError } from "../../../../../src/protocols/zeromq/zmtp/zmtp_error.ts";
import { CurveRig, only } from "../../../../support/curve_rig.ts";
import { property } from "../../../../support/property.ts";

/** Anything else is a bug. */
function isRefusal(thrown: unknown): boolean {
  return thrown instanceof ZmtpError || (thrown instanceof BatonError && thrown.code === "PROTOCOL");
}

const lengths = [0, 1, 16, 24, 160, 194, 248, 300].flatMap((length) => [length, length + 1]);
const anyData = fc.oneof(
  fc.uint8Array({ maxLength: 400 }),
  fc.constantFrom(...lengths).chain((length) => fc.uint8Array({ minLength: length, maxLength: length })),
  fc.constantFrom(...lengths).map((length) => new Uint8Array(length)),
);
const anyCommand = fc.record({
  name: fc.constantFrom("HELLO", "WELCOME", "INITIATE", "READY", "MESSAGE", "ERROR", "PING", "X"),
  data: anyData,
});

/** Each side where it awaits each of its commands. */
const stages: Readonly<Record<string, () => SecurityMechanism>> = {
  "a server that awaits HELLO": () => new CurveRig().server,
  "a server that awaits INITIATE": () => {
    const { client, server } = new CurveRig();
    server.receive(only({ send: client.start() }));
    return server;
  },
  "a client that awaits WELCOME": () => {
    const { client } = new CurveRig();
    client.start();
    return client;
  },
  "a client that awaits READY": () => {
    const { client, server } = new CurveRig();
    client.receive(only(server.receive(only({ send: client.start() }))));
    return client;
  },
};

for (const [name, make] of Object.entries(stages)) {
  property(`${name} refuses anything made up, and gets nowhere`, fc.array(anyCommand, { minLength: 1 }), (commands) => {
    const mechanism = make();
    for (const command of commands) {
      try {
        expect(mechanism.receive(command).outcome?.kind).toBe("failed"); // an ERROR, by the client
      } catch (thrown) {
        if (!isRefusal(thrown)) throw thrown;
      }
    }
    expect(mechanism.traffic).toBeNull();
  }, 100);
}

property(
  "properties that make no sense are refused, by either side, though they were sealed as they should be",
  fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 60 }), fc.constantFrom("client", "server")),
  ([ownMetadata, side]) => {
    const rig = new CurveRig({ [side]: { context: { ownMetadata } } });
    try {
      rig.run();
    } catch (thrown) {
      if (!isRefusal(thrown)) throw thrown;
    }
  },
  100,
);

property("a body of garbage is no MESSAGE", fc.uint8Array({ maxLength: 200 }), (body) => {
  const { server } = new CurveRig().established();
  const headed = new Uint8Array([7, ...new TextEncoder().encode("MESSAGE"), ...body]);
  for (const message of [body, headed]) {
    expect(() => server.open(message)).toThrow(ZmtpError);
  }
}, 50);
