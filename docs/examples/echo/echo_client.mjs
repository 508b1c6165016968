/** echo_client.mjs PORT [COUNT]: sends Hello-0, Hello-1 …, each when the one before was answered, and prints the answers. */
import { connect } from "node:net";
import process from "node:process";
import { createInterface } from "node:readline";

const [port = "", count = "10"] = process.argv.slice(2);
/** For an answer; then the connection is given up, and made again. Milliseconds. */
const answerMs = 5000;
/** Between two tries; a new leader takes up to the session timeout and the start of its server. */
const againMs = 200;
const giveUpMs = 60_000;

let socket = null;
let answers = null;

/** Resolves with the answer; rejects when the connection is lost, or silent for too long. */
async function send(line) {
  if (socket === null) {
    socket = connect(Number(port), "127.0.0.1");
    socket.setTimeout(answerMs, () => socket?.destroy(new Error("no answer")));
    socket.on("error", () => {}); // seen below, as the end of the answers
    const lines = createInterface({ input: socket });
    lines.on("error", () => {});
    answers = lines[Symbol.asyncIterator]();
  }
  socket.write(`${line}\n`);
  const { value, done } = await answers.next();
  if (done) throw new Error("the connection was lost");
  return value;
}

/**
 * A line whose answer was lost with the connection is sent again, to whoever leads then. The server may have had it
 * before: an echo does no harm twice, and what does harm needs a number that the server remembers.
 */
async function echo(line) {
  const beganMs = performance.now();
  for (;;) {
    try {
      return await send(line);
    } catch (error) {
      socket?.destroy();
      socket = null;
      if (performance.now() - beganMs > giveUpMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }
}

for (let number = 0; number < Number(count); number++) console.log(await echo(`Hello-${number}`));
socket?.end();
