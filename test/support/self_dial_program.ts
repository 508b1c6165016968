/**
 * Dials a port where nobody listens, in a network that has hardly another one for the own end. Prints what came of each
 * dial.
 */
import process from "node:process";
import { bunDial } from "../../src/base/sockets/bun_dial.ts";
import { nodeDial } from "../../src/base/sockets/node_dial.ts";

const port = Number(process.argv[2]);
const handlers = { onData: () => {}, onEnded: () => {}, onClosed: () => {}, onDrained: () => {} };
for (const dial of [bunDial, nodeDial]) {
  for (let count = 0; count < 20; count++) {
    const outcome = await dial({ kind: "tcp", host: "127.0.0.1", port }, handlers).then(
      (connection) => {
        connection.destroy();
        return "connected";
      },
      ({ code, message }) => `${code}${message.includes("no process listens there") ? " itself" : ""}`,
    );
    console.log(`${dial === bunDial ? "bun" : "node"} ${outcome}`);
  }
}
process.exit(0);
