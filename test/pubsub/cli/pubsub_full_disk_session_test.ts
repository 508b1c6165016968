/** A disk that is really full, by whoever: a file system of 48 MiB below a server. It needs root, to mount one. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { statSync } from "node:fs";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { canMountDisk, SmallDisk } from "../../support/small_disk.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

const hasDisks = canMountDisk("nothing is tried on a disk that is really full");

let session: BatonSession;
beforeEach(() => void (session = new BatonSession({ BATON_PUBSUB_STATE_DIR: "state", BATON_SERVERS: "embedded" })));
let disk: SmallDisk | null = null;
afterEach(async () => {
  disk?.[Symbol.dispose]();
  await session[Symbol.asyncDispose]();
});

const client = (words: string) => session.run(`"$baton" pubsub client ${words}`);

test.skipIf(!hasDisks)(
  "a disk that is full: gets go on, puts are refused with 85, and both go on when there is room again",
  async () => {
    disk = new SmallDisk(session.path("disk"), 48);
    const server = await startRole(session, "server --id s1 --data-dir disk/s1");
    await startRole(session, "proxy --id p1");
    for (const id of ["alice", "carol"]) await client(`${id} subscribe news`);
    await session.run("seq -f '%01000g' 1 3000 >lines");
    expect(await client("bob put news --lines lines")).toMatchObject({ code: 0 });
    await eventually(() => statSync(session.path("disk/s1/topics.sqlite-wal")).size === 8 << 20, { withinMs: 10_000 });
    disk.fill();
    // One commit of messages may find room in the log; then it is seen that there is no more.
    const refused = await session.run('"$baton" pubsub client bob put news --lines lines');
    expect(refused).toMatchObject({
      code: 85,
      stdout: "",
      stderr: expect.stringMatching(/FULL, .*the file system is used/),
    });
    const taken = Number((await client("carol pending news")).stdout);
    expect(taken).toBeLessThan(3500);
    const had = async (words: string) => {
      const got = await client(`alice get news ${words}`);
      expect(got).toMatchObject({ code: 0, stderr: "" });
      return got.stdout.trim().split("\n").length;
    };
    expect(await had("-n 1000")).toBe(1000);
    disk.fill();
    expect(await had("--until-empty")).toBe(taken - 1000);
    expect((await client("carol pending news")).stdout).toBe(`${taken}\n`);
    disk.makeRoom();
    expect(await session.run('echo more | "$baton" pubsub client bob put news --lines - --timeout 10s')).toMatchObject({
      code: 0,
    });
    expect((await client("carol get news --until-empty")).stdout.split("\n")).toHaveLength(taken + 2);
    server.child.kill("SIGTERM");
    expect(await server.ended).toMatchObject({ code: 0 });
    expect(verifyTopicStore(session.path("disk/s1")).problems).toEqual([]);
  },
);
