import { expect, test } from "bun:test";
import {
  formatZeroMqEndpoint,
  parseBindEndpoint,
  parseConnectEndpoint,
} from "../../../../src/protocols/zeromq/zeromq_endpoint.ts";

test("endpoints are read and written back", () => {
  for (const text of ["tcp://127.0.0.1:5555", "tcp://db1.example:1", "tcp://[::1]:65535", "ipc:///run/x.sock"]) {
    expect(formatZeroMqEndpoint(parseConnectEndpoint(text))).toBe(text);
    expect(formatZeroMqEndpoint(parseBindEndpoint(text))).toBe(text);
  }
});

test("to bind, any address and any port have signs of their own", () => {
  expect(parseBindEndpoint("tcp://*:5555")).toEqual({ kind: "tcp", host: "0.0.0.0", port: 5555 });
  expect(parseBindEndpoint("tcp://127.0.0.1:*")).toEqual({ kind: "tcp", host: "127.0.0.1", port: 0 });
  expect(parseBindEndpoint("tcp://[::1]:0")).toEqual({ kind: "tcp", host: "::1", port: 0 });
});

const wrong: Record<string, RegExp> = {
  "db1:5555": /neither tcp:\/\/host:port nor ipc/,
  "tcp://db1": /neither/,
  "tcp://db1:66000": /66000 is not a port/,
  "tcp://::1:5555": /in brackets/,
  "tcp://db1:5555/path": /neither/,
  "udp://db1:5": /neither/,
  "ipc://relative": /absolute path/,
  "ipc://": /absolute path/,
  [`ipc:///${"a".repeat(107)}`]: /has 108 bytes, and a socket's path has at most 107/,
};
for (const [text, why] of Object.entries(wrong)) {
  test(`"${text.slice(0, 30)}" is refused with the reason`, () => {
    for (const parse of [parseConnectEndpoint, parseBindEndpoint]) {
      expect(() => parse(text)).toThrow(
        expect.objectContaining({ code: "USAGE", message: expect.stringMatching(why) }),
      );
    }
  });
}

test("a path of 107 bytes is taken, counted in bytes", () => {
  expect(parseConnectEndpoint(`ipc:///${"a".repeat(106)}`).kind).toBe("unix");
  expect(() => parseConnectEndpoint(`ipc:///${"ä".repeat(54)}`)).toThrow("has 109 bytes");
});

test("to connect, host and port have to be there", () => {
  expect(() => parseConnectEndpoint("tcp://*:5555")).toThrow("a host and a port");
  expect(() => parseConnectEndpoint("tcp://db1:0")).toThrow("a host and a port");
});
