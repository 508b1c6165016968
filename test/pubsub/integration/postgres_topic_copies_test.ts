/** Copies of topics that another store sends into a database which servers share, or that have left it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { runSteps } from "../../../src/base/support/steps.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { databaseAddress, PostgresTopicStore } from "../../support/postgres_topic_store.ts";
import { codes, get, newSchema, newTopics, put, texts } from "../../support/postgres_topics.ts";
import { StatementCutter } from "../../support/statement_cutter.ts";

describeWithPeer("postgres", "copies of topics in a database", () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = await PostgresServer.start({ settings: ["fsync = off"] })), 60_000);
  afterAll(async () => await server?.[Symbol.asyncDispose]());

  const topics = (url = server.url) => newTopics(server, url);

  /** The content of a topic that is sealed for another store. */
  async function sealedContent(from: PostgresTopicStore): Promise<{ pieces: Uint8Array[]; hash: string }> {
    await runSteps(from.transfer.seal("news", 1, "elsewhere"));
    const transfer = from.transfer.exportBegin("news", 1);
    const pieces: Uint8Array[] = [];
    for (;;) {
      const { piece, hash } = await runSteps(from.transfer.exportNext(transfer));
      if (piece !== null) pieces.push(piece);
      if (hash !== null) return { pieces, hash };
    }
  }

  /** Another store sends the content, which it has sealed at this epoch. Returns the step that stages it. */
  async function arrived(to: PostgresTopicStore, { pieces, hash }: { pieces: Uint8Array[]; hash: string }, epoch = 1) {
    const content = { incarnation: "of news", baseOffset: 0, owner: "old", epoch };
    const transfer = await runSteps(to.transfer.importBegin("news", content));
    for (const piece of pieces) await runSteps(to.transfer.importPiece(transfer, piece));
    return () => runSteps(to.transfer.importDone(transfer, hash));
  }

  test("content that two servers of a database receive is staged once, and what is late changes nothing", async () => {
    const { s1: source } = await topics();
    await using _source = source;
    await source.execute(put(1, "one"), put(2, "two"));
    const content = await sealedContent(source);
    const schema = await newSchema(server);
    const address = databaseAddress(server.url, schema);
    await using s1 = new PostgresTopicStore(address, "s1");
    await using s2 = new PostgresTopicStore(address, "s2");
    const [first, second] = [await arrived(s1, content), await arrived(s2, content)];
    await first();
    const staged = { incarnation: "of news", owner: "old", epoch: 1 };
    const stagedRows = () => server.sql(`SELECT string_agg(id::text, ' ') FROM ${schema}.topic WHERE place = 1`);
    const id = await stagedRows();
    await second();
    expect(await stagedRows()).toBe(id); // that of s1, which may have taken the topic
    expect(await runSteps(s2.transfer.copiesOf("news"))).toMatchObject({ copy: null, staged, unopened: null });
    expect(await runSteps(s2.transfer.topics())).toEqual(["news"]);
    // What was decided about other content is not done to this one.
    await runSteps(s2.transfer.discard("news", { ...staged, epoch: 9 }));
    await runSteps(s2.transfer.activate("news", 2, "staged", "of news"));
    expect(texts(await s2.execute({ ...get, epoch: 2, last: -1 }))).toEqual(["one", "two"]);
    await expect(runSteps(s1.transfer.activate("news", 2, "staged", "of news"))).rejects.toMatchObject({
      code: "NOT_HELD",
    });
    await runSteps(s1.transfer.discard("news", staged));
    // A drop that was decided before the topic came back.
    await runSteps(s1.transfer.drop("news", 2, "of news"));
    await runSteps(s1.transfer.drop("news", 9, "of other content"));
    expect(codes(await s2.execute(put(3, "three", { epoch: 2 })))).toEqual(["OK"]);
    // It has moved on to another store, from a server that is gone.
    await runSteps(s1.transfer.drop("news", 3, "of news"));
    expect(await runSteps(s1.transfer.copiesOf("news"))).toMatchObject({
      ...{ unopened: null, staged: null },
      dropped: { incarnation: "of news", epoch: 3 },
    });
    expect(codes(await s2.execute(put(4, "late", { epoch: 2 })))).toEqual(["NOT_OWNER"]);
  });

  test("rows of a transfer with a lost connection are removed, and the next reading asks again", async () => {
    await using cutter = await StatementCutter.start({ host: "127.0.0.1", port: server.port });
    const { s1, schema } = await topics(`postgres://baton@127.0.0.1:${cutter.port}/postgres`);
    await using _s1 = s1;
    await s1.execute(put(1, "one"));
    await runSteps(s1.transfer.seal("news", 1, "elsewhere"));
    const transfer = s1.transfer.exportBegin("news", 1);
    cutter.arm("after", "topic_read_messages");
    await expect(runSteps(s1.transfer.exportNext(transfer))).rejects.toMatchObject({ code: "UNREACHABLE" });
    const content = await sealedContent(s1);
    expect(content.pieces.length).toBeGreaterThan(0);
    await runSteps(s1.transfer.drop("news", 2));
    cutter.arm("after", "topic_insert");
    await expect(arrived(s1, content)).rejects.toMatchObject({ code: expect.stringMatching(/UNREACHABLE|OUTCOME/) });
    const arriving = () => server.sql(`SELECT count(*) FROM ${schema}.topic WHERE place = 3`);
    expect(await arriving()).toBe("1");
    await s1.execute(put(1, "other", { topic: "other" }));
    expect(await arriving()).toBe("0");
  });
});
