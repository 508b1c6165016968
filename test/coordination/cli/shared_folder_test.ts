/** Files that a call writes in a folder where other users may write: never through a link that one of them has made. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import process from "node:process";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

const isRoot = process.geteuid?.() === 0;
if (!isRoot) console.log("links of other users are not tested: only root can make them");

let session: BatonSession;
beforeAll(() => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  mkdirSync(session.path("shared"));
  chmodSync(session.path("shared"), 0o1777);
});
afterAll(() => session[Symbol.asyncDispose]());

/** A link of another user in the shared folder, to a file or a folder that it must not reach. */
function plant(name: string, target = "victim"): void {
  rmSync(session.path(target), { recursive: true, force: true });
  if (target === "victim") writeFileSync(session.path(target), "kept");
  else mkdirSync(session.path(target));
  rmSync(session.path(`shared/${name}`), { force: true });
  symlinkSync(session.path(target), session.path(`shared/${name}`));
  lchownSync(session.path(`shared/${name}`), 65534, 65534);
}

const files = {
  "--status-file": 'lock -q --status-file "$dir/shared/out" x -- true',
  "--joblog": 'pool -q p --items a --joblog "$dir/shared/out" -- true',
  "--joblog +FILE": 'pool -q p --items a --joblog "+$dir/shared/out" -- true',
  "the store of fence run": 'fence run --store "$dir/shared/out" --token 1 true',
} as const;

describe.skipIf(!isRoot)("a link of another user", () => {
  test.each(Object.entries(files))("in the place of %s is refused before anything is done", async (_, call) => {
    plant("out");
    const ended = await session.run(`"$baton" ${call.replace(/true$/, "touch ran")}; echo $?; ls`);
    expect(ended.stdout).toStartWith("73\n");
    expect(ended.stdout).not.toContain("ran");
    expect(ended.stderr).toContain(`shared/out" is a link of user 65534 in a folder where other users may write`);
    expect(session.read("victim")).toBe("kept");
    rmSync(session.path("shared/out"));
    expect((await session.run(`"$baton" ${call}`)).code).toBe(0);
    expect(lstatSync(session.path("shared/out")).isFile()).toBe(true);
    rmSync(session.path("shared/out"));
  });

  test("in the place of a dead-letter file is refused, and the dead letter stays in the store", async () => {
    plant("dead");
    const deliver =
      '"$baton" retry-processor run --store store --until-empty --max-retries 0 --dead-letter "file:$dir/shared/dead"';
    await session.run('"$baton" retry-processor submit -q --store store -- false </dev/null');
    const refused = await session.run(deliver);
    expect([refused.code, refused.stderr]).toEqual([
      69,
      expect.stringContaining(`shared/dead" is a link of user 65534`),
    ]);
    expect(session.read("victim")).toBe("kept");
    rmSync(session.path("shared/dead"));
    expect((await session.run(deliver)).code).toBe(0);
    expect(session.read("shared/dead")).toContain('"last_error":"exited with 1"');
  });

  // The new file gets the name of the link.
  const replaced = {
    "key": 'pubsub keygen --force "$dir/shared/key"',
    "key.pub": 'pubsub keygen --force "$dir/shared/key"',
    "numbers.prom": 'metrics --textfile "$dir/shared/numbers.prom"',
  } as const;
  test.each(Object.entries(replaced))("in the place of %s is replaced, and its target stays", async (name, call) => {
    plant(name);
    expect((await session.run(`"$baton" ${call}`)).code).toBe(0);
    expect(session.read("victim")).toBe("kept");
    expect(lstatSync(session.path(`shared/${name}`))).toMatchObject({ uid: 0, nlink: 1 });
    expect(lstatSync(session.path(`shared/${name}`)).isFile()).toBe(true);
  });

  test("in the place of a new key is refused", async () => {
    plant("new");
    expect((await session.run('"$baton" pubsub keygen "$dir/shared/new"')).code).toBe(73);
    expect([session.read("victim"), readdirSync(session.path("shared"))]).toEqual([
      "kept",
      expect.not.arrayContaining(["new.pub"]),
    ]);
  });

  const folders = {
    "--output-dir": 'cron "$dir/c" --output-dir "$dir/shared/way"',
    "--out-dir": 'pubsub client a get t --out-dir "$dir/shared/way"',
    "--state-dir": 'publish --state-dir "$dir/shared/way" t x',
    "--store of call": 'retry-processor call --store "$dir/shared/way/store" --no-stdin -- false',
    "the copy of keeper backup": 'keeper backup --data-dir "$dir/keeper" "$dir/shared/way/copy"',
    "pubsub server --data-dir": 'pubsub server --id s --data-dir "$dir/shared/way/data"',
  } as const;
  test.each(Object.entries(folders))("on the way to %s is refused", async (_, call) => {
    plant("way", "inner");
    writeFileSync(session.path("c"), "0 3 * * * true\n");
    const ended = await session.run(`timeout -s KILL 20 "$baton" ${call}`);
    expect(ended.stderr).toContain(`shared/way" is a link of user 65534`);
    expect(ended.code).not.toBe(0);
    expect(readdirSync(session.path("inner"))).toEqual([]);
  });

  test("in the place of the draft of --leader-file is replaced, and the file is right", async () => {
    const script = `ln -s "$dir/victim" "$dir/shared/leader.$$.new"; chown -h 65534 "$dir/shared/leader.$$.new"
      exec "$baton" elect -q e --value v --leader-file "$dir/shared/leader" -- sh -c 'until grep -q v "$dir/shared/leader"; do sleep 0.02; done'`;
    writeFileSync(session.path("victim"), "kept");
    expect(await session.run(script)).toMatchObject({ code: 0, stderr: "" });
    expect(session.read("victim")).toBe("kept");
    expect(readFileSync(session.path("shared/leader"), "utf8")).toBe("");
  });
});
