/**
 * One way of being a bad client of a keeper, until it is killed: keeper_attacks NAME SOCKET. Prints "at work" when it
 * has begun. A process of its own, so that what it costs itself is not taken for what it does to others.
 */
import { connect, type Socket } from "node:net";
import process from "node:process";
import { type ByteWriter } from "../../src/base/wire/bytes.ts";
import { encodeLengthFrame, JuteFrameDecoder } from "../../src/base/wire/length_frame.ts";
import { type MultiRequest, multiRequestCodec } from "../../src/protocols/zookeeper/jute/multi_request.ts";
import { openAcl } from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import {
  createFlag,
  multiOperationCode,
  multiReadOperationCode,
  specialXid,
  type ZooKeeperOperationName,
  type ZooKeeperOperationRequest,
  zooKeeperOperations,
} from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { AuthPacket, RequestHeader } from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { connectRequestCodec } from "../../src/protocols/zookeeper/jute/session_frames.ts";
import type { JuteCodec } from "../../src/base/wire/record_codec.ts";
import { type AttackName, attackNames } from "./keeper_attack_names.ts";

const [name = "", path = ""] = process.argv.slice(2);
const nothing = new Uint8Array(0);

const greeting = encodeLengthFrame((writer) =>
  connectRequestCodec.write(writer, {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: 30_000,
    sessionId: 0n,
    passwd: new Uint8Array(16),
    readOnly: false,
  })
);

function request(code: number, body: (writer: ByteWriter) => void = () => {}, xid = 1): Uint8Array {
  return encodeLengthFrame((writer) => {
    RequestHeader.write(writer, { xid, type: code });
    body(writer);
  });
}

function call<Name extends ZooKeeperOperationName>(
  operation: Name,
  value: ZooKeeperOperationRequest<Name>,
): Uint8Array {
  const { code } = zooKeeperOperations[operation];
  return request(
    code,
    (writer) =>
      (zooKeeperOperations[operation].request as unknown as JuteCodec<ZooKeeperOperationRequest<Name>>).write(
        writer,
        value,
      ),
  );
}

const create = (at: string, data = nothing, flags: number = createFlag.persistent) =>
  call("create", { path: at, data, acl: [...openAcl], flags });
const multi = (requests: MultiRequest[], code = multiOperationCode) =>
  request(code, (writer) => multiRequestCodec.write(writer, requests));
const repeated = (frame: Uint8Array, count: number) => Buffer.concat(Array<Uint8Array>(count).fill(frame));

/** A connection that never complains. */
function open(bytes: Uint8Array = greeting): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on("error", () => resolve(socket));
    socket.once("connect", () => {
      socket.write(bytes);
      resolve(socket);
    });
  });
}

function ended(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.destroyed ? resolve() : socket.once("close", () => resolve()));
}

/** Sends the same again whenever it was taken, reading as fast as it comes; connects anew when it is thrown out. */
async function flood(bytes: Uint8Array | (() => Uint8Array), { before = [] as Uint8Array[] } = {}): Promise<never> {
  for (;;) {
    const socket = await open();
    for (const frame of before) socket.write(frame);
    socket.on("data", () => {});
    const push = () => {
      while (!socket.destroyed && socket.write(typeof bytes === "function" ? bytes() : bytes));
    };
    socket.on("drain", push);
    push();
    await ended(socket);
  }
}

/** So many answers. */
function answers(socket: Socket, count: number): Promise<void> {
  const decoder = new JuteFrameDecoder(64 << 20);
  return new Promise((resolve) => {
    let seen = 0;
    socket.on("data", (chunk: Uint8Array) => {
      for (const _ of decoder.push(chunk)) if (++seen === count) resolve();
    });
    socket.on("close", () => resolve());
  });
}

async function made(frames: readonly Uint8Array[]): Promise<void> {
  const socket = await open();
  const all = answers(socket, frames.length + 1);
  for (let at = 0; at < frames.length; at += 1000) socket.write(Buffer.concat(frames.slice(at, at + 1000)));
  await all;
  socket.destroy();
}

const numbered = (count: number, frame: (index: number) => Uint8Array) =>
  Array.from({ length: count }, (_, index) => frame(index));
const forever = () => new Promise<never>(() => setInterval(() => {}, 1 << 30));
const large = new Uint8Array(1_000_000).fill(0x61);
let serial = 0;

/** What each does until it is killed; `prepare` comes before "at work". */
const attacks: Readonly<Record<AttackName, { prepare?: () => Promise<void>; work: () => Promise<unknown> }>> = {
  garbage: {
    work: async () => {
      for (;;) {
        const socket = await open(crypto.getRandomValues(new Uint8Array(60_000)));
        socket.on("data", () => {});
        await ended(socket);
      }
    },
  },
  "half frames": {
    work: async () => {
      for (let count = 0; count < 500; count++) {
        const socket = await open();
        socket.write(new Uint8Array([0, 0x0f, 0xff, 0xff]));
        socket.write(large.subarray(0, 900_000));
      }
      await forever();
    },
  },
  "tiny frames": {
    work: () => flood(repeated(request(zooKeeperOperations.ping.code, undefined, specialXid.ping), 20_000)),
  },
  "empty frames": { work: () => flood(new Uint8Array(200_000)) },
  "small reads": { work: () => flood(repeated(call("exists", { path: "/", watch: false }), 5_000)) },
  "never reads": {
    prepare: () => made([create("/large", large)]),
    work: async () => {
      for (let count = 0; count < 100; count++) {
        const socket = await open();
        socket.pause();
        socket.write(repeated(call("getData", { path: "/large", watch: false }), 100));
      }
      await forever();
    },
  },
  "slow hello": {
    work: async () => {
      for (;;) {
        const sockets = await Promise.all(Array.from({ length: 2000 }, () => open(new Uint8Array([0]))));
        const again = setInterval(
          () => sockets.forEach((socket) => !socket.destroyed && socket.write(new Uint8Array([0]))),
          1000,
        );
        await Promise.all(sockets.map(ended));
        clearInterval(again);
      }
    },
  },
  connections: {
    work: async () => {
      for (;;) {
        const sockets = await Promise.all(Array.from({ length: 500 }, () => open()));
        for (const socket of sockets) socket.destroy();
      }
    },
  },
  "long watches": {
    work: () => flood(() => call("exists", { path: `/${++serial}${"x".repeat(500_000)}`, watch: true })),
  },
  "many watches": {
    work: () =>
      flood(() => Buffer.concat(numbered(1000, () => call("exists", { path: `/w${++serial}`, watch: true })))),
  },
  "watches again": {
    work: () => {
      const dataWatches = numbered(25_000, () => nothing).map((_, index) => `/a${index}`);
      const lists = {
        dataWatches,
        existWatches: [],
        childWatches: [],
        persistentWatches: [],
        persistentRecursiveWatches: [],
      };
      return flood(call("setWatches2", { relativeZxid: 0n, ...lists }));
    },
  },
  "giant multi": {
    prepare: () => made([create("/multi")]),
    work: () => {
      const sets = Array<MultiRequest>(10_000).fill({ type: "setData", path: "/multi", data: nothing, version: -1 });
      return flood(multi(sets));
    },
  },
  "giant creates": {
    work: () =>
      flood(() => {
        const folder = `/g${process.pid}-${++serial}`;
        const children = numbered(9_999, () => nothing).map((_, index): MultiRequest => ({
          type: "create",
          path: `${folder}/${index}`,
          data: nothing,
          acl: [...openAcl],
          flags: createFlag.ephemeral,
        }));
        return multi([{ type: "create", path: folder, data: nothing, acl: [...openAcl], flags: 0 }, ...children]);
      }),
  },
  "many reads at once": {
    prepare: () => made([create("/large", large)]),
    work: () =>
      flood(
        multi(Array<MultiRequest>(8).fill({ type: "getData", path: "/large", watch: false }), multiReadOperationCode),
      ),
  },
  "many children": {
    prepare: () => made([create("/crowd"), ...numbered(50_000, (index) => create(`/crowd/child-number-${index}`))]),
    work: () => flood(repeated(call("getChildren2", { path: "/crowd", watch: false }), 2000)),
  },
  counting: {
    prepare: () => made([create("/count"), ...numbered(50_000, (index) => create(`/count/${index}`))]),
    work: () => flood(repeated(call("getAllChildrenNumber", { path: "/" }), 2000)),
  },
  identities: {
    work: () =>
      flood(() =>
        Buffer.concat(
          numbered(1000, () =>
            request(
              zooKeeperOperations.auth.code,
              (writer) =>
                AuthPacket.write(writer, {
                  type: 0,
                  scheme: "digest",
                  auth: new TextEncoder().encode(`u${++serial}:p`),
                }),
              specialXid.auth,
            )),
        )
      ),
  },
  words: {
    prepare: () =>
      made([
        create("/words"),
        ...numbered(20_000, (index) => create(`/words/${index}`, nothing, createFlag.ephemeral)),
      ]),
    work: async () => {
      const one = async () => {
        for (;;) {
          const socket = await open(new TextEncoder().encode(["dump", "cons", "mntr", "ruok"][++serial % 4]));
          socket.on("data", () => {});
          await ended(socket);
        }
      };
      await Promise.all(numbered(20, () => nothing).map(one));
    },
  },
  "data without end": {
    work: () => flood(() => create(`/d${process.pid}-${++serial}`, large)),
  },
  "a deep path": {
    prepare: async () => {
      const socket = await open();
      socket.write(call("addWatch", { path: "/", mode: 1 }));
      const frames: Uint8Array[] = [];
      for (let at = "/p"; at.length < 6000; at += "/p") frames.push(create(at));
      await made(frames);
    },
    work: () => flood(repeated(call("setData", { path: "/p".repeat(2000), data: nothing, version: -1 }), 100)),
  },
};

if (!attackNames.includes(name as AttackName)) {
  console.error(`There is no such attack; there are: ${attackNames.join(", ")}`);
  process.exit(64);
}
const attack = attacks[name as AttackName];
await attack.prepare?.();
console.log("at work");
await attack.work();
