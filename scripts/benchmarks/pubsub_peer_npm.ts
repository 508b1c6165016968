/**
 * Clients from npm as peers of the publish/subscribe benchmark, under Node: node BUNDLE.cjs FOLDER KIND HOST PORT BYTES
 * OUTSTANDING MS. The folder has them in its node_modules. As their documentation uses them; no types of theirs are
 * here.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { type PubsubLoadHooks, type PubsubLoadPeer, runPubsubLoad } from "./pubsub_npm_loop.ts";

const [folder = ".", ...words] = process.argv.slice(2);
// deno-lint-ignore no-explicit-any -- packages that this project does not depend on
const load = createRequire(join(folder, "package.json")) as (name: string) => any;
const topic = `t${process.hrtime.bigint().toString(36)}`;
const batch = 256;

/** Opens a stream with a consumer group, as in pubsub_peer.c. Reads again when its messages have been acknowledged. */
function ioredisPeer(port: number): PubsubLoadPeer {
  const Redis = load("ioredis");
  const publisher = new Redis(port, "127.0.0.1");
  const consumer = new Redis(port, "127.0.0.1");
  let hooks: PubsubLoadHooks;
  const read = async () => {
    for (;;) {
      const group = ["GROUP", "g", "c", "COUNT", batch, "BLOCK", 1000, "STREAMS", topic, ">"];
      const streams = await consumer.xreadgroup(...group);
      const messages: [string, string[]][] = streams?.[0]?.[1] ?? [];
      for (const [, fields] of messages) hooks.received(fields[1] ?? "");
      if (messages.length > 0) consumer.xack(topic, "g", ...messages.map(([id]) => id)).catch(hooks.fail);
    }
  };
  return {
    async begin(given) {
      hooks = given;
      await consumer.xgroup("CREATE", topic, "g", "$", "MKSTREAM");
      read().catch(hooks.fail);
    },
    put: (body) => publisher.xadd(topic, "*", "d", Buffer.from(body)).then(() => hooks.acked(), hooks.fail),
  };
}

function redisPeer(port: number): PubsubLoadPeer {
  const { createClient } = load("redis");
  const [publisher, consumer] = [0, 1].map(() => createClient({ url: `redis://127.0.0.1:${port}` }));
  let hooks: PubsubLoadHooks;
  const read = async () => {
    for (;;) {
      const streams = await consumer.xReadGroup("g", "c", { key: topic, id: ">" }, { COUNT: batch, BLOCK: 1000 });
      const messages: { id: string; message: { d: string } }[] = streams?.[0]?.messages ?? [];
      for (const { message } of messages) hooks.received(message.d);
      if (messages.length > 0) consumer.xAck(topic, "g", messages.map(({ id }) => id)).catch(hooks.fail);
    }
  };
  return {
    async begin(given) {
      hooks = given;
      await Promise.all([publisher.connect(), consumer.connect()]);
      await consumer.xGroupCreate(topic, "g", "$", { MKSTREAM: true });
      read().catch(hooks.fail);
    },
    put: (body) => publisher.xAdd(topic, "*", { d: Buffer.from(body) }).then(() => hooks.acked(), hooks.fail),
  };
}

/** Publishes each message with an id, by which the server drops duplicates. */
function natsPeer(port: number): PubsubLoadPeer {
  const nats = load("nats");
  let hooks: PubsubLoadHooks;
  // deno-lint-ignore no-explicit-any -- as above
  let stream: any;
  let next = 0;
  const read = async () => {
    const messages = await (await stream.consumers.get(topic, "c")).consume({ max_messages: batch });
    for await (const message of messages) {
      hooks.received(message.data);
      message.ack();
    }
  };
  return {
    async begin(given) {
      hooks = given;
      const [publisher, consumer] = await Promise.all([0, 1].map(() => nats.connect({ servers: `127.0.0.1:${port}` })));
      const manager = await publisher.jetstreamManager();
      await manager.streams.add({ name: topic, subjects: [`s.${topic}`], storage: "file" });
      await manager.consumers.add(topic, { durable_name: "c", ack_policy: "explicit", max_ack_pending: 65_536 });
      stream = consumer.jetstream();
      read().catch(hooks.fail);
      const jetstream = publisher.jetstream();
      this.put = (body) =>
        jetstream.publish(`s.${topic}`, body, { msgID: String(next++) }).then(() => hooks.acked(), hooks.fail);
    },
    put() {},
  };
}

function amqplibPeer(port: number): PubsubLoadPeer {
  const amqp = load("amqplib");
  return {
    async begin(hooks) {
      const [publisher, consumer] = await Promise.all([0, 1].map(() => amqp.connect(`amqp://127.0.0.1:${port}`)));
      const puts = await publisher.createConfirmChannel();
      const gets = await consumer.createChannel();
      await gets.assertQueue(topic, { durable: true });
      await gets.prefetch(4 * batch);
      await gets.consume(topic, (message: { content: Uint8Array }) => {
        hooks.received(message.content);
        gets.ack(message);
      });
      this.put = (body) => {
        const told = (error: unknown) => error === null ? hooks.acked() : hooks.fail(error);
        puts.sendToQueue(topic, Buffer.from(body), { persistent: true }, told);
      };
    },
    put() {},
  };
}

const peers: Record<string, (port: number) => PubsubLoadPeer> = {
  ioredis: ioredisPeer,
  redis: redisPeer,
  nats: natsPeer,
  amqplib: amqplibPeer,
};

void runPubsubLoad(words, (kind, port) => {
  const peer = peers[kind];
  if (peer === undefined) throw new Error(`There is no client "${kind}"`);
  return peer(port);
});
