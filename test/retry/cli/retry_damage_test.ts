/**
 * A message store with damaged rows, by its commands: what is whole is served, each command ends, and its exit code
 * says so.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { DatabaseSync } from "node:sqlite";
import { BatonSession } from "../../support/baton_session.ts";
import { RetryShell } from "../../support/retry_shell.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

/** Three messages that are dead, numbers 1 to 3, and three that wait, 4 to 6; and what `sql` makes of them. */
async function damagedStore(sql: string): Promise<RetryShell> {
  const store = new RetryShell(session);
  for (const body of ["one", "two", "three"]) {
    await store.run(`printf ${body} | @retry submit --key ${body} -- sh -c 'cat > /dev/null; exit 1'`);
  }
  await store.run("@retry run --once --max-retries 0");
  for (const body of ["four", "five", "six"]) {
    await store.run(`printf ${body} | @retry submit --key same -- sh -c 'cat; echo'`);
  }
  const database = new DatabaseSync(`${store.folder}/messages.sqlite`);
  database.exec(sql);
  database.close();
  return store;
}

const bodiesOf = (lines: string): string[] =>
  lines.trimEnd().split("\n").map((line) => Buffer.from(JSON.parse(line).body, "base64").toString());

test("run --until-empty tries what is whole, and ends with 74 where a message is damaged", async () => {
  const store = await damagedStore("UPDATE messages SET tries = 9 WHERE seq = 5");
  const ended = await store.run("@retry run --until-empty --order none");
  expect(ended).toMatchObject({ code: 74, stdout: "four\nsix\n" });
  expect(ended.stderr).toMatch(/\nbaton: 1 damaged message was not tried; list them with baton retry-processor verify/);
  const cancelled = await store.run("@retry cancel 5");
  expect(cancelled.code).toBe(0);
  expect((await store.run("@retry run --until-empty")).code).toBe(0);
});

test("run --until-empty does not wait for messages behind a damaged one of the same key", async () => {
  const store = await damagedStore("UPDATE messages SET tries = 9 WHERE seq = 5");
  const ended = await store.run("@retry run --until-empty --order key");
  expect(ended).toMatchObject({ code: 74, stdout: "four\n" });
});

test("run --once ends with 74 where a message is damaged", async () => {
  const store = await damagedStore("UPDATE messages SET tries = 9 WHERE seq = 4");
  expect(await store.run("@retry run --once")).toMatchObject({ code: 74, stdout: "five\nsix\n" });
});

test("a number that is too large for any that was stored keeps no other message back", async () => {
  const store = await damagedStore(`UPDATE messages SET next_ms = ${2n ** 61n} WHERE seq = 4;
    UPDATE messages SET ended_ms = ${2n ** 61n} WHERE seq = 1; UPDATE totals SET count = ${2n ** 61n} WHERE state = 0`);
  expect(await store.run("@retry stats --json")).toMatchObject({ code: 0 });
  expect(await store.run("@retry run --until-empty")).toMatchObject({ code: 74, stdout: "five\nsix\n" });
  const exported = await store.run("@retry dlq export");
  expect(exported.code).toBe(74);
  expect(bodiesOf(exported.stdout)).toEqual(["two", "three"]);
  expect((await store.run("@retry dlq purge --all")).code).toBe(0);
  expect((await store.run("@retry cancel 4")).code).toBe(0);
  expect((await store.run("@retry verify")).code).toBe(0);
});

test("dlq redrive --rate ends where a dead letter is damaged, and redrives the others", async () => {
  const store = await damagedStore("UPDATE messages SET tries = 9 WHERE seq = 1");
  const ended = await store.run("@retry dlq redrive --all --rate 100/s");
  expect(ended).toMatchObject({ code: 0, stderr: "baton: 2 messages are redriven\n" });
});

test("dlq export goes on behind a damaged dead letter, or one whose content is missing, and ends with 74", async () => {
  for (
    const sql of [
      "UPDATE bodies SET body = CAST('pay' AS BLOB) WHERE seq = 1",
      "UPDATE messages SET tries = 9 WHERE seq = 1",
      "DELETE FROM bodies WHERE seq = 1",
    ]
  ) {
    const store = await damagedStore(sql);
    const ended = await store.run("@retry dlq export");
    expect([sql, ended.code, bodiesOf(ended.stdout)]).toEqual([sql, 74, ["two", "three"]]);
    expect(ended.stderr).toBe(
      "baton: 1 damaged dead letter skipped by the export; list what is damaged with baton retry-processor verify\n",
    );
  }
});

test("a store whose own row is damaged is refused with 74 by each command", async () => {
  const store = await damagedStore("UPDATE store SET redrives = 7");
  for (const command of ["stats", "ls", "dlq ls", "dlq purge --all", "cancel 1", "run --once"]) {
    const { code, stderr } = await store.run(`@retry ${command}`);
    expect([command, code]).toEqual([command, 74]);
    expect(stderr).toContain("cannot be read or written: row 0 of the store of this folder is damaged");
    expect(stderr).not.toContain("    at ");
  }
});
