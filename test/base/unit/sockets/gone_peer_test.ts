import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { bunDial } from "../../../../src/base/sockets/bun_dial.ts";
import { bunListen } from "../../../../src/base/sockets/bun_listen.ts";
import { nodeListen } from "../../../../src/base/sockets/node_listen.ts";

/** Connects, and resets when it is connected. The server cannot accept meanwhile: its process waits for this one. */
const impatientClient = `
  const socket = require("node:net").connect(Number(process.env.PORT), "127.0.0.1");
  socket.on("error", () => {});
  socket.on("connect", () => socket.write("hello", () => socket.resetAndDestroy()));`;

for (const [name, listen] of [["Bun", bunListen], ["node", nodeListen]] as const) {
  test(`a ${name} listener outlives clients that are gone before it accepts them`, async () => {
    const accepted: string[] = [];
    const secondAccepted = Promise.withResolvers<void>();
    const listener = await listen({ kind: "tcp", host: "127.0.0.1", port: 0 }, ({ peer }) => {
      accepted.push(peer);
      if (/^127\.0\.0\.1:\d+$/.test(peer)) secondAccepted.resolve();
      return { onData: () => {}, onClosed: () => {} };
    });
    if (listener.address.kind !== "tcp") throw new Error("no port");
    const env = { ...process.env, PORT: String(listener.address.port) };
    expect(spawnSync(process.execPath, ["--eval", impatientClient], { env }).status).toBe(0);
    const client = await bunDial(listener.address, { onData: () => {}, onClosed: () => {} });
    await secondAccepted.promise;
    client.destroy();
    await listener.close();
    expect(accepted.length).toBeGreaterThan(0);
  });
}
