/**
 * Opens connections to a port of this machine without end, and closes none: connection_flood PORT FIRST HEX. Each sends
 * these bytes and no more. Prints "at work" when it has opened the first so many.
 */
import { connect } from "node:net";
import process from "node:process";

const [port = 0, first = 0] = process.argv.slice(2, 4).map(Number);
const bytes = Buffer.from(process.argv[4] ?? "", "hex");
/** Connections that are being opened at the same time. */
const openingMax = 200;

let opened = 0;

function open(): void {
  const socket = connect(port, "127.0.0.1");
  let isOver = false;
  const next = () => {
    if (!isOver) setImmediate(open);
    isOver = true;
  };
  socket.on("error", () => {}); // the server may close it
  socket.on("close", next);
  socket.on("connect", () => {
    if (bytes.byteLength > 0) socket.write(bytes);
    if (++opened === first) console.log("at work");
    next();
  });
}

for (let count = 0; count < openingMax; count++) open();
