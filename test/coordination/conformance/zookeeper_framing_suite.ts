/** Frames: their order, and what becomes of those that make no sense. Four-letter words. */
import { describe, expect, test } from "bun:test";
import {
  checkOperationCode,
  createFlag,
  reconfigOperationCode,
} from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { CheckVersionRequest } from "../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { type Fixture, node } from "./zookeeper_fixture.ts";

const length = (value: number) => {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setInt32(0, value);
  return bytes;
};

export function framingSuite(fixture: Fixture): void {
  test("replies come in the order of the requests, pings included", async () => {
    const client = await fixture.connect();
    const root = await fixture.root(client);
    client.arrivals.length = 0;
    const replies = [];
    for (let index = 0; index < 50; index++) {
      replies.push(client.call("create", node(`${root}/a-`, { flags: createFlag.ephemeralSequential })));
      replies.push(client.call("getChildren", { path: root, watch: false }));
      if (index % 10 === 0) replies.push(client.ping());
      replies.push(client.call("delete", { path: `${root}/a-${String(index).padStart(10, "0")}`, version: -1 }));
      replies.push(client.call("exists", { path: root, watch: false }));
    }
    const answered = await Promise.all(replies);
    expect(answered.every(({ err }) => err === 0)).toBe(true);
    expect(client.arrivals.flatMap((a) => a.kind === "reply" ? [a.reply.xid] : []))
      .toEqual(answered.map(({ xid }) => xid));
    const zxids = answered.map(({ zxid }) => zxid);
    expect(zxids).toEqual(zxids.toSorted((a, b) => Number(a - b)));
  });

  test("requests sent in one write with the handshake are answered", async () => {
    const client = await fixture.open();
    const hello = client.handshake();
    const created = client.call("exists", { path: "/", watch: false });
    await hello;
    expect((await created).err).toBe(0);
  });

  test("a request cut anywhere is still one request", async () => {
    const client = await fixture.connect();
    const frame = new Uint8Array([0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11]); // a ping
    for (let cut = 1; cut < frame.byteLength; cut++) {
      const answered = client.arrivals.length;
      client.sendBytes(frame.subarray(0, cut));
      await fixture.connect(); // a round trip elsewhere, so that the halves travel apart
      client.sendBytes(frame.subarray(cut));
      await client.call("exists", { path: "/", watch: false });
      expect(client.arrivals.length).toBe(answered + 2);
    }
  });

  test("the error number of a ping's reply is 0, its zxid the last", async () => {
    const client = await fixture.connect();
    const { zxid } = await client.call("create", node(await fixture.root(client).then((root) => `${root}/k`)));
    expect(await client.ping()).toMatchObject({ xid: -2, err: 0, zxid });
  });

  test.each([["2^31-1", 0x7fffffff], ["-1", -1], ["one more than the limit", 0x100000]])(
    "a frame length of %s closes the connection, not the session",
    async (_, value) => {
      const client = await fixture.connect();
      client.sendBytes(length(value));
      await client.closed;
      const again = await fixture.connect({
        sessionId: client.sessionId,
        passwd: client.hello.passwd ?? new Uint8Array(),
      });
      expect(again.sessionId).toBe(client.sessionId);
    },
  );

  test("a body that cannot be read is answered with -5, and the next request is served", async () => {
    const client = await fixture.connect();
    const reply = await client.send(1, (writer) => {
      writer.i32(1000); // the path claims more bytes than there are
      writer.i32(0);
    });
    expect(reply.err).toBe(-5);
    if (!client.isClosed) expect((await client.ping()).err).toBe(0);
  });

  test("an unknown operation is answered with -6, and the connection closed", async () => {
    const client = await fixture.connect();
    expect((await client.send(999)).err).toBe(-6);
    await client.closed;
  });

  test("reconfig is refused", async () => {
    const client = await fixture.connect();
    const reply = await client.send(reconfigOperationCode, (writer) => {
      for (let field = 0; field < 3; field++) writer.i32(-1);
      writer.i64(-1n);
    });
    // -123 says that it is switched off, -6 that it does not exist.
    expect(reply.err).toBe(fixture.backend.kind === "keeper" ? -6 : -123);
  });

  // Never sent to the real server: 3.8.0 does not answer it and cannot start on that data again (ZOOKEEPER-2623).
  if (fixture.backend.kind === "keeper") {
    test("a check outside a multi is answered with -6 and changes nothing", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      const before = (await client.ping()).zxid;
      const reply = await client.send(
        checkOperationCode,
        (writer) => CheckVersionRequest.write(writer, { path: root, version: 0 }),
      );
      expect(reply.err).toBe(-6);
      const other = await fixture.connect();
      expect((await other.ping()).zxid - before).toBeLessThanOrEqual(1n);
    });
  }

  test("garbage instead of a handshake closes the connection", async () => {
    const client = await fixture.open();
    client.sendBytes(new Uint8Array([0, 0, 0, 3, 1, 2, 3]));
    await client.closed;
  });

  describe("four-letter words", () => {
    const ask = (word: string) => fourLetterWord(fixture.address, word);
    test("ruok, isro", async () => {
      expect([await ask("ruok"), await ask("isro")]).toEqual(["imok", "rw"]);
    });

    test("srvr and stat say version, mode, zxid and node count", async () => {
      for (const word of ["srvr", "stat"]) {
        const answer = await ask(word);
        expect(answer).toMatch(/^Zookeeper version: /);
        for (
          const line of [/^Mode: standalone$/m, /^Zxid: 0x[0-9a-f]+$/m, /^Node count: \d+$/m, /^Connections: \d+$/m]
        ) {
          expect(answer).toMatch(line);
        }
      }
    });

    test("envi has the version line kazoo looks for", async () => {
      expect(await ask("envi")).toMatch(/^zookeeper\.version=\d+\.\d+\.\d+-.*, built on .+$/m);
    });

    test("mntr is a table of names and values", async () => {
      const answer = await ask("mntr");
      for (const name of ["zk_version", "zk_server_state", "zk_znode_count", "zk_num_alive_connections"]) {
        expect(answer).toMatch(new RegExp(`^${name}\t.+$`, "m"));
      }
    });

    test("conf, cons, dump and wchs answer", async () => {
      await fixture.connect();
      expect(await ask("conf")).toMatch(/^tickTime=\d+$/m);
      expect(await ask("cons")).toMatch(/queued=\d+/);
      expect(await ask("dump")).toMatch(/^SessionTracker dump:/);
      expect(await ask("wchs")).toMatch(/Total watches:\d+/);
    });

    test("tell of ephemerals, watches and connections by the same lines", async () => {
      const client = await fixture.connect();
      const root = await fixture.root(client);
      await client.call("create", node(`${root}/e`, { flags: createFlag.ephemeral }));
      await client.call("getData", { path: root, watch: true });
      const dump = await ask("dump");
      expect(dump).toMatch(/^ephemeral nodes dump:\nSessions with Ephemerals \(\d+\):$/m);
      expect(dump).toContain(`0x${client.sessionId.toString(16)}:\n\t${root}/e\n`);
      expect(await ask("wchs")).toMatch(/^\d+ connections watching \d+ paths\nTotal watches:[1-9]\d*\n?$/);
      for (const word of ["stat", "cons"]) {
        // ZooKeeper lowers "queued" after it has sent the response, so the last request may still be counted.
        expect(await ask(word)).toMatch(/^ \/127\.0\.0\.1:\d+\[1\]\(queued=\d+,recved=\d+,sent=\d+/m);
      }
      const conf = await ask("conf");
      for (const key of ["dataDir", "tickTime", "minSessionTimeout", "maxSessionTimeout", "serverId"]) {
        expect(conf).toMatch(new RegExp(`^${key}=.+$`, "m"));
      }
      for (const line of [/^Received: \d+$/m, /^Sent: \d+$/m, /^Outstanding: \d+$/m]) {
        expect(await ask("srvr")).toMatch(line);
      }
      const mntr = await ask("mntr");
      for (const name of ["outstanding_requests", "watch_count", "ephemerals_count", "approximate_data_size"]) {
        expect(mntr).toMatch(new RegExp(`^zk_${name}\\t\\d+$`, "m"));
      }
    });

    test("an unknown word is not answered", async () => {
      expect(await ask("zzzz")).toBe("");
    });
  });
}
