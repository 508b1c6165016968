import type { ZeroMqSocket } from "../../src/protocols/zeromq/zeromq_socket.ts";

/** Yields every message until the socket is closed. */
export async function* messagesOf(socket: ZeroMqSocket): AsyncGenerator<Uint8Array[], void, void> {
  for await (const batch of socket.batches()) yield* batch;
}
