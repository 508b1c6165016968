/** Key files as shell scripts meet them. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { describeWithPeer } from "../../support/peers.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

const key = /^[0-9a-zA-Z.\-:+=^!/*?&<>()[\]{}@%$#]{40}\n$/;

test("a pair is made once, and shows its public key again", async () => {
  const made = await session.run('"$baton" pubsub keygen a.key');
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining("a.key has the secret key") });
  expect(made.stdout).toMatch(key);
  const secret = session.read("a.key");
  expect((await session.run("stat -c %a a.key")).stdout).toBe("600\n");
  expect(await session.run('"$baton" pubsub keygen a.key')).toMatchObject({
    code: 73,
    stdout: "",
    stderr: "baton: Cannot make the key file a.key: it exists already; --force replaces it\n",
  });
  expect(session.read("a.key")).toBe(secret);
  expect(await session.run('"$baton" pubsub keygen --public a.key')).toMatchObject({
    code: 0,
    stdout: made.stdout,
    stderr: "",
  });
  const again = await session.run('"$baton" pubsub keygen -q --force a.key');
  expect(again).toMatchObject({ code: 0, stderr: "" });
  expect(again.stdout).not.toBe(made.stdout);
  expect((await session.run("ls -A")).stdout.split("\n").filter((name) => name.startsWith(".a.key"))).toEqual([]);
});

test("without a file the pair goes to stdout, as it would stand in one", async () => {
  const script = '"$baton" pubsub keygen >pair; chmod 600 pair; "$baton" pubsub keygen --public pair';
  expect(await session.run(script)).toMatchObject({ code: 0, stdout: expect.stringMatching(key), stderr: "" });
});

test.each([
  [
    "-p nowhere.key",
    78,
    "Cannot read the key file nowhere.key: it does not exist; baton pubsub keygen nowhere.key makes one",
  ],
  ["-p open.key", 78, "The secret key open.key has mode 644, which lets other users read it: chmod 600 open.key"],
  ["-p b.key.pub", 78, "b.key.pub has only a public key, and the secret key is needed here; it is probably in b.key"],
  ["nowhere/a.key", 73, "Cannot make the key file nowhere/a.key: there is no folder nowhere"],
  ["''", 64, "baton pubsub keygen: FILE is empty"],
  ["-p ''", 64, "baton pubsub keygen: FILE is empty"],
  [".", 73, "Cannot make the key file .: it is a folder"],
  ["--force /tmp", 73, "Cannot make the key file /tmp: it is a folder"],
  ["folder/", 73, "Cannot make the key file folder/: it is a folder"],
  ["c.key", 73, "Cannot make the key file c.key.pub: it is a folder"],
  ["a b", 64, 'baton pubsub keygen takes one file, not "a", "b"'],
  ["--force", 64, "baton pubsub keygen --force needs a FILE"],
  ["--public --force a", 64, "use only one of --force and --public"],
])("keygen %s is %d", async (words, code, sentence) => {
  await session.run(
    '"$baton" pubsub keygen -q open.key; chmod 644 open.key; "$baton" pubsub keygen -q b.key; mkdir -p folder c.key.pub',
  );
  const ended = await session.run(`"$baton" pubsub keygen ${words}`);
  expect([ended.code, ended.stdout, ended.stderr.split("\n")[0]]).toEqual([code, "", `baton: ${sentence}`]);
});

test("a key stays whose public half cannot be replaced", async () => {
  const ended = await session.run(
    '"$baton" pubsub keygen -q d.key; cp d.key d.copy; rm d.key.pub; mkdir d.key.pub; "$baton" pubsub keygen -f d.key',
  );
  expect(ended).toMatchObject({ code: 73, stderr: "baton: Cannot make the key file d.key.pub: it is a folder\n" });
  expect(session.read("d.key")).toBe(session.read("d.copy"));
});

describeWithPeer("pyzmq", "PyZMQ and baton share key files:", () => {
  test("each reads what the other has written", async () => {
    const made = await session.run('"$baton" pubsub keygen -q shared.key');
    const read = 'import zmq.auth; print(*(k.decode() for k in zmq.auth.load_certificate("shared.key")))';
    const [publicKey, secretKey] = (await session.run(`/usr/bin/python3 -c '${read}'`)).stdout.split(" ");
    expect(`${publicKey}\n`).toBe(made.stdout);
    expect(session.read("shared.key")).toContain(secretKey?.trim() ?? "nothing");
    await session.run(`/usr/bin/python3 -c 'import zmq.auth; zmq.auth.create_certificates(".", "py")'`);
    const shown = await session.run('chmod 600 py.key_secret; "$baton" pubsub keygen -p py.key_secret');
    expect(session.read("py.key")).toContain(shown.stdout.trim());
  });
});
