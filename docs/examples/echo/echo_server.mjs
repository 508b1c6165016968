/** echo_server.mjs NAME PORT: answers every line with `NAME: line`. */
import { createServer } from "node:net";
import process from "node:process";
import { createInterface } from "node:readline";

const [name = "", port = ""] = process.argv.slice(2);

createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {});
  const lines = createInterface({ input: socket });
  // It throws the socket's errors once more: without this a client that resets its connection would end the server.
  lines.on("error", () => {});
  lines.on("line", (line) => socket.write(`${name}: ${line}\n`));
  lines.on("close", () => socket.end());
}).listen(Number(port), "127.0.0.1");
