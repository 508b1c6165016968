/** A connection that sends most of a message and never its end. */
import { connect as dial, type Socket } from "node:net";
import { command, frame, greeting, join, ready } from "./zmtp_bytes.ts";

export class HalfMessage implements Disposable {
  readonly #socket: Socket;
  #isClosed = false;

  /** `frameCount` frames of a message that is not complete with them, as fast as the other end takes them. */
  constructor(endpoint: string, { frameBytes, frameCount }: { frameBytes: number; frameCount: number }) {
    const [, host = "", port = ""] = /^tcp:\/\/(.*):(\d+)$/.exec(endpoint) ?? [];
    const one = frame(1, new Uint8Array(frameBytes));
    let left = frameCount;
    const socket = dial(Number(port), host, () => {
      socket.write(join([greeting(), ready("DEALER")]));
      const send = () => {
        while (left > 0 && socket.writableLength === 0) {
          left--;
          socket.write(one);
        }
      };
      socket.on("drain", send);
      send();
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#isClosed = true);
    // PINGs are answered, between the frames as libzmq does: it is not silence that ends such a connection.
    socket.on("data", () => left <= 0 && socket.write(command("PONG")));
    this.#socket = socket;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
