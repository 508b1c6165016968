/** Names, items and settings that are not UTF-8: refused, before two of them become one. Commands get every byte. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

/** Two words that differ in a byte which is no UTF-8: before they were refused, each was the other. */
const [one, other] = [`"$(printf 'caf\\351')"`, `"$(printf 'caf\\350')"`];

test("each word of a command line that names or sets something is refused", async () => {
  const lines = [
    `lock ${one} -- true`,
    `lock -n ${other} -- true`,
    `lock a --reason ${one} -- true`,
    `lock a --root /${one} -- true`,
    `lock --recipe curator /${one} -- true`,
    `hold ${one} --pid $$`,
    `release ${one}`,
    `elect ${one} -- true`,
    `elect a --value ${one} -- true`,
    `elect a --leader-file ${one} -- true`,
    `leader ${one}`,
    `forward ${one} --listen :0`,
    `resign ${one}`,
    `barrier ${one} -N 1 -- true`,
    `barrier ${one} --set`,
    `barrier ${one} --wait`,
    `pool ${one} --items a -- true {item}`,
    `pool a --items ${one} -- true {item}`,
    `pool a --items=b,${one} -- true {item}`,
    `pool a --query "echo "${one} -- true {item}`,
    `pool status ${one}`,
    `who ${one}`,
    `who -- ${one}`,
    `break ${one} --holder x`,
    `fence run --store ${one} --token 1 -- true`,
    `pubsub client ${one} ls`,
    `pubsub client bob subscribe ${one}`,
    `pubsub client bob put news --msg-id ${one} latin`,
    `pubsub client bob put ${one} latin`,
    `pubsub client bob put news ${one}`,
    `pubsub server --id ${one}`,
    `pubsub server forget ${one}`,
    `pubsub proxy --id ${one}`,
    `retry-processor submit --name ${one} latin`,
    `retry-processor submit --key ${one} latin`,
    `retry-processor submit latin -- echo ${one}`,
    `retry-processor call -- echo ${one}`,
    `retry-processor show ${one}`,
    `retry-processor cancel --where key=${one}`,
    `keeper --listen ${one}`,
    `config show --config ${one}`,
  ];
  await session.run("printf 'a message' >latin");
  for (const line of lines) {
    const ended = await session.run(`"$baton" ${line} </dev/null`);
    expect([line, ended.code, ended.stderr]).toEqual([line, 64, expect.stringMatching(/is not valid UTF-8/)]);
    expect(ended.stderr).toContain("\\xe");
  }
});

test("the character U+FFFD is a name like any other, and no other name", async () => {
  const job = `printf '%s' "$BATON_LOCK_NAME" | od -An -tx1`;
  const ended = await session.run(
    `"$baton" lock -q "$(printf 'a\\357\\277\\275')" -- sh -c '${job.replaceAll("'", `'"'"'`)}'`,
  );
  expect([ended.code, ended.stdout.trim()]).toEqual([0, "61 ef bf bd"]);
});

test("the words of a command reach it byte for byte", async () => {
  const ended = await session.run(`"$baton" lock -q a -- printf '%s' ${one} | od -An -tx1`);
  expect(ended.stdout.trim()).toBe("63 61 66 e9");
});

test("variables and files with settings have to be UTF-8", async () => {
  const variable = await session.run(`BATON_ROOT="/"${one} "$baton" lock -q a -- true`);
  expect([variable.code, variable.stderr]).toEqual([78, "baton: BATON_ROOT: the value is not valid UTF-8\n"]);
  const secret = await session.run(`BATON_AUTH_CREDENTIALS="digest:u:"${one} "$baton" who a`);
  expect([secret.code, secret.stderr]).toEqual([
    78,
    "baton: BATON_AUTH_CREDENTIALS: the value is not valid UTF-8\n",
  ]);
  // A flag has the last word: the variable is not read.
  expect((await session.run(`BATON_ROOT="/"${one} "$baton" lock -q --root /r a -- true`)).code).toBe(0);
  await session.run(`printf 'scope = "user"\\nroot = "/%s"\\n' ${one} >latin.toml`);
  const file = await session.run(`"$baton" lock -q --config latin.toml a -- true`);
  expect([file.code, file.stderr]).toEqual([
    78,
    "baton: The configuration file latin.toml, line 2, is not valid UTF-8\n",
  ]);
  await session.run(`printf 'digest:u:p\\ndigest:u:%s\\n' ${one} >auth; chmod 600 auth`);
  const auth = await session.run(`"$baton" who a --auth-file auth`);
  expect([auth.code, auth.stderr]).toEqual([64, expect.stringContaining("auth, line 2, is not valid UTF-8")]);
});

test("items in other bytes are refused, wherever they come from", async () => {
  const sources = [`--items - <list`, `--items @list`, `--query 'cat list'`];
  await session.run(`printf 'good\\nbad\\377\\n' >list`);
  for (const source of sources) {
    const ended = await session.run(
      `"$baton" pool -q p-${sources.indexOf(source)} ${source.replace(" <list", "")} -- touch ran-{item} ${
        source.includes("<") ? "<list" : ""
      }`,
    );
    expect([source, ended.code]).toEqual([source, 65]);
    expect(ended.stderr).toContain("line 2");
    expect(ended.stderr).toContain("UTF-8");
  }
  expect((await session.run("ls ran-*")).stdout).toBe("");
});
