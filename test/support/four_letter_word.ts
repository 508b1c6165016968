/** ZooKeeper's four-letter words: one word in, some text out, end of the connection. */
import { connect } from "node:net";
import type { Address } from "../../src/base/sockets/connection.ts";

/**
 * The answer; empty for a word the server does not know. Rejects when nothing listens or nothing ends within
 * `withinMs`.
 */
export function fourLetterWord(address: Address, word: string, withinMs = 3000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = address.kind === "tcp" ? connect(address.port, address.host) : connect(address.path);
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`No end of the answer to "${word}" within ${withinMs} ms`));
    }, withinMs);
    let text = "";
    socket.on("connect", () => socket.write(word));
    socket.on("data", (chunk) => text += chunk.toString());
    socket.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(text);
    });
  });
}
