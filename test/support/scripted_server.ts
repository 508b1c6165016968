/** A publish/subscribe server that is announced, and whose answers to operators the test decides. */
import { announceProcess } from "../../src/pubsub/ownership/announcements.ts";
import type { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { makeStatusMessage } from "../../src/pubsub/status_message.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { decodePubsubMessage } from "../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../src/pubsub/wire/encode_message.ts";
import type { PubsubMessageOf } from "../../src/pubsub/wire/pubsub_messages.ts";
import { RouterSocket } from "../../src/protocols/zeromq/router_socket.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";

/** OK with the epoch, or OVERLOADED with the reason. */
export type ScriptedAnswer = number | string;

export class ScriptedServer implements AsyncDisposable {
  readonly #socket = new RouterSocket();

  static async start(
    zk: ZooKeeper,
    path: PubsubPath,
    { id, answer }: {
      readonly id: string;
      readonly answer: (question: PubsubMessageOf<"MERGE">) => Promise<ScriptedAnswer>;
    },
  ): Promise<ScriptedServer> {
    const server = new ScriptedServer();
    const endpoint = await server.#socket.bind("tcp://127.0.0.1:*");
    const { signal } = new AbortController();
    await announceProcess(zk, path.server(id), { id, endpoint, storeId: id }, { clock: systemClock(), signal });
    const serve = async (): Promise<never> => {
      for (;;) {
        const [peer = new Uint8Array(), empty = new Uint8Array(), ...frames] = await server.#socket.receive();
        const question = decodePubsubMessage(frames) as PubsubMessageOf<"MERGE">;
        const told = await answer(question);
        const [code, more] = typeof told === "number"
          ? ["OK", { headers: { epoch: told } }] as const
          : ["OVERLOADED", { reason: told }] as const;
        await server.#socket.send([peer, empty, ...encodePubsubMessage(makeStatusMessage(id, question, code, more))]);
      }
    };
    serve().catch(() => {}); // the socket is closed
    return server;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#socket.close();
  }
}
