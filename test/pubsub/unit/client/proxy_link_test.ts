import { expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { ProxyLink } from "../../../../src/pubsub/client/proxy_link.ts";
import { encodeZmtpGreeting } from "../../../../src/protocols/zeromq/zmtp/zmtp_greeting.ts";
import { eventually } from "../../../support/eventually.ts";

/** How a link ends that never comes about, with somebody who says this and nothing else. */
async function lossOf(said: string | Uint8Array): Promise<{ readonly isRefused: boolean; readonly why: string }> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.write(said);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const link = new ProxyLink(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    await eventually(() => link.state === "lost", { what: "the end of the link" });
    return { isRefused: link.isRefused, why: link.lostReason };
  } finally {
    await link.close();
    server.close();
  }
}

test.each([
  ["an sshd", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"],
  ["a web server", "HTTP/1.1 400 Bad Request\r\n\r\n"],
])("%s is no proxy, and has refused nobody", async (_, says) => {
  expect(await lossOf(says)).toEqual({ isRefused: false, why: expect.stringContaining("does not speak ZMTP 3") });
});

test("nor has a socket of another kind", async () => {
  const ready = "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB";
  const said = Buffer.concat([encodeZmtpGreeting({ name: "NULL", asServer: false }), Buffer.from(ready, "latin1")]);
  expect(await lossOf(said)).toEqual({ isRefused: false, why: expect.stringContaining('the peer is "PUB"') });
});

test("who wants keys of a client that has none refuses it", async () => {
  expect(await lossOf(encodeZmtpGreeting({ name: "CURVE", asServer: true }))).toEqual({
    isRefused: true,
    why: expect.stringContaining('wants the security mechanism "CURVE"'),
  });
});
