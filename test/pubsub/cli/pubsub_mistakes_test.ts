/**
 * What people get wrong with publish/subscribe: each mistake has its code, a sentence that says what to do, and nothing
 * on stdout.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(async () => {
  session = new BatonSession({ BATON_PUBSUB_STATE_DIR: "state", BATON_SERVERS: "embedded" });
  for (const role of ["server --id s1 --data-dir s1", "proxy --id p1 --listen ipc://$dir/p1"]) {
    await startRole(session, role);
  }
  await session.run(
    'echo x >file; mkdir folder; "$baton" pubsub client alice subscribe news; "$baton" pubsub keygen -q k; "$baton" pubsub keygen -q other',
  );
  await session.run("truncate -s 67108865 big; printf '\\377' >latin");
  await session.run("printf '# ours\\npx1:5001\\n  px2:port\\n' >addresses; echo px1:0 >null");
});
afterAll(() => session[Symbol.asyncDispose]());

type Mistake = readonly [code: number, words: string, says: string];

async function expectRefused([code, words, says]: Mistake): Promise<void> {
  const ended = await session.run(`"$baton" pubsub ${words} </dev/null`);
  expect([words, ended.code, ended.stdout]).toEqual([words, code, ""]);
  expect([words, ended.stderr]).toEqual([words, expect.stringContaining(says)]);
  expect(ended.stderr).not.toContain("internal error");
}

test("words of a client: missing, unknown, in another order, too many", async () => {
  const mistakes: Mistake[] = [
    [64, "client", "missing operation, one of subscribe, "],
    [64, "client get news", "missing client ID: baton pubsub client ID get"],
    [64, "client alice gte news", 'unknown operation "gte", did you mean "get"?'],
    [64, "client alice news get", 'unknown operation "news"; the order is: ID get TOPIC'],
    [64, "client alice get", "get: TOPIC is missing; usage: baton pubsub client ID get TOPIC"],
    [64, "client alice get news more", 'get: "more" is an unexpected argument'],
    [
      64,
      "client alice topics news",
      'topics: "news" is an unexpected argument; usage: baton pubsub client ID topics\n',
    ],
    [64, "client alice get news --id bob", 'the client ID is given twice: "alice", and "bob" by --id'],
    [64, "client '' get news", "the client ID and the topic must not be empty"],
    [64, "client alice get ''", "the client ID and the topic must not be empty"],
    [64, 'client alice get "$(cat latin)"', "it is not valid UTF-8"],
    [64, 'client "$(cat latin)" get news', "it is not valid UTF-8"],
    [64, 'client alice get "$(head -c 1025 /dev/zero | tr "\\0" a)"', "A token has 1025 bytes; 1024 are the limit"],
    [64, "client alice seek news foo", 'seek: "foo" is not start, end or the id of a message'],
    [64, "client alice ack news", "ack: MESSAGE-ID is missing"],
    [64, "client alice ack news zz", 'ack: "zz" is not the id of a message'],
    [64, "client alice ack news 7", 'ack: message 7 of "news" was not delivered to "alice"'],
    [64, "client alice ack news 9007199254740991", "ack: message 9007199254740991 of"],
    [65, "client alice seek news 5", "message 5 does not exist"],
    [65, "client alice seek news 9007199254740991", "message 9007199254740991 does not exist"],
  ];
  for (const mistake of mistakes) await expectRefused(mistake);
});

test("a topic that nobody has made, and one that the client is not subscribed to", async () => {
  for (const operation of ["get", "peek", "pending", "info", "seek"]) {
    const words = `client alice ${operation} nwes${operation === "seek" ? " end" : ""}`;
    if (operation === "seek" || operation === "get") {
      await expectRefused([64, words, "to subscribe: baton pubsub client alice subscribe nwes"]);
    }
    await expectRefused([64, words, 'there is no topic "nwes"']);
  }
  await expectRefused([64, "client alice unsubscribe nwes", 'there is no topic "nwes"']);
  for (const operation of ["get", "peek", "pending"]) {
    await expectRefused([
      64,
      `client carol ${operation} news`,
      "this client is not subscribed to the topic; to subscribe: ",
    ]);
  }
  expect((await session.run('"$baton" pubsub client alice topics')).stdout).toBe("news\n");
});

test("a stdin that is closed is no empty message, and what goes to a closed stdout was not had", async () => {
  const pending = async () => (await session.run('"$baton" pubsub client alice pending news')).stdout;
  const before = await pending();
  for (
    const words of [
      "put news -",
      "put news --lines",
      "put news --null -",
      "put news --files file -",
      "put news - --resume",
    ]
  ) {
    const ended = await session.run(`"$baton" pubsub client bob ${words} <&-`);
    expect([words, ended.code, ended.stderr]).toEqual([words, 74, expect.stringContaining("it was closed when")]);
  }
  // Where stdin is not asked for, nobody minds; the file before a closed stdin was put as well.
  expect((await session.run('"$baton" pubsub client bob put news file <&-')).code).toBe(0);
  expect(Number(await pending())).toBe(Number(before) + 2);
  for (const words of ["get news", "get news -n 5 --json", "peek news"]) {
    const ended = await session.run(`"$baton" pubsub client alice ${words} >&-`);
    expect([words, ended.code, ended.stderr]).toEqual([words, 74, expect.stringContaining("it was closed when")]);
  }
  expect(Number(await pending())).toBe(Number(before) + 2);
  expect((await session.run('"$baton" pubsub client alice get news -n 9 --exec "cat >/dev/null" >&-')).code).toBe(0);
});

test("options that do not fit the operation, each other, or what they are given", async () => {
  const mistakes: Mistake[] = [
    [64, "client alice put news file --out-dir in", "put: --out-dir is only for get"],
    [64, "client alice peek news --follow", "peek: --follow is only for get"],
    [64, "client alice get news --msg-id x", "get: --msg-id is only for put"],
    [64, "client alice subscribe news --json", "subscribe: --json is only for put, get, peek"],
    [64, "client alice get news --exec ' '", "--exec has no command"],
    [64, "client alice get news --out-dir in --exec true", "only one of --out-dir, --exec and --ack manual"],
    [64, "client alice get news --follow --until-empty", "get: use only one of --follow and --until-empty"],
    [64, "client alice get news --ack manual --follow", "get: --ack manual takes one message"],
    [64, "client alice get news -n 0", '--count: "0" is not a whole number from 1'],
    [64, "client alice get news --wait 5min", '--wait: "5min" is not a duration'],
    [64, "client alice put news --lines --null file", "only one of --lines, --null and --files"],
    [64, "client alice put news file --msg-id ''", "--msg-id: the value is empty"],
    [64, "client alice put news --lines file --msg-id x", "--msg-id is for a single message"],
    [64, 'client bob put news file --msg-id "$(head -c 1025 /dev/zero | tr "\\0" a)"', "A token has 1025 bytes"],
    [
      64,
      "client alice get news --out-dir in --json",
      "--json formats printed messages, but --out-dir prints none",
    ],
    [64, "client alice get news --exec true --json", "--json formats printed messages, but --exec prints none"],
  ];
  for (const mistake of mistakes) await expectRefused(mistake);
});

test("what is to be put: missing, unreadable, too large", async () => {
  const mistakes: Mistake[] = [
    [64, "client bob put news", "put: missing PATH; - is stdin"],
    [64, "client bob put news file file", 'put: unexpected argument "file"; --files puts several files'],
    [64, "client bob put news --files", "put --files: missing PATH"],
    [74, "client bob put news nowhere", "Cannot read nowhere: no such file or directory"],
    [74, "client bob put news folder", "Cannot read folder: it is a folder"],
    [64, "client bob put news --files $(printf '\\377')", 'Cannot use "\\xff": it is not valid UTF-8'],
    [65, "client bob put news big", "big has 67108865 bytes; a message has at most 67108864"],
    [65, "client bob put news /dev/zero", "/dev/zero has more than 67108864 bytes"],
    [65, "client bob put news --lines big", "Message 1 is longer than 67108864 bytes, the limit"],
    [65, "client bob put news --files file big", "1 message of the input was put; --resume continues"],
  ];
  for (const mistake of mistakes) await expectRefused(mistake);
});

test("proxies: none, wrong ones, ones that are not there or let nobody in", async () => {
  const put = "client bob put news file --timeout 1s";
  const proxy = session.start('exec "$baton" pubsub proxy --id p2 --listen ipc://$dir/p2 --key k');
  await eventually(() => proxy.stderr().includes("takes requests"), { withinMs: 30_000 });
  const mistakes: Mistake[] = [
    [69, `${put} --proxies ipc://$dir/none`, "definitely not done: cannot connect to the proxy at ipc:///"],
    [69, `${put} --root /elsewhere`, "no proxy is running; to start the service on this machine: baton pubsub serve"],
    [
      69,
      `${put} --servers 127.0.0.1:1`,
      "no proxy could be looked up in the coordination service at 127.0.0.1:1 (127.0.0.1:1: connection refused) within",
    ],
    [64, `${put} --proxies foo`, 'Cannot use "foo" as an endpoint'],
    [78, `${put} --proxies-file nowhere`, "Cannot read the proxies' addresses in nowhere"],
    [78, `${put} --proxies-file /proc/sys/kernel/ostype`, '/proc/sys/kernel/ostype, line 1: Cannot use "Linux" as a'],
    [
      78,
      `${put} --proxies-file addresses`,
      'addresses, line 3: Cannot use "px2:port" as an endpoint: it is neither tcp://host:port nor ipc:///path',
    ],
    [78, `${put} --proxies-file null`, 'null, line 1: Cannot use "px1:0" as an endpoint: to connect, an endpoint'],
    [78, `${put} --proxies-file /dev/null`, "no proxy address in /dev/null"],
    [64, `${put} --key k`, "An encrypted connection needs both --key (your own key) and --service-key"],
    [78, `${put} --key nowhere --service-key k.pub`, "baton pubsub keygen nowhere makes one"],
    [78, `${put} --key k --service-key k`, "the public key is needed here; it is probably in k.pub"],
    [
      69,
      `${put} --proxies ipc://$dir/p2 --key k --service-key other.pub`,
      "so does a proxy whose key is not the --service-key that was given",
    ],
    [77, "client bob put news file --proxies ipc://$dir/p2", 'The peer wants the security mechanism "CURVE"'],
    [77, "client bob put news file --proxies ipc://$dir/p1 --key k --service-key k.pub", 'security mechanism "NULL"'],
  ];
  for (const mistake of mistakes) await expectRefused(mistake);
});

test("who waits for a proxy is told so after three seconds, and once", async () => {
  const put = (id: string) => `"$baton" pubsub client ${id} put news file --proxies ipc://$dir/none --timeout 5s`;
  const [said, quiet] = await Promise.all([session.run(put("loud")), session.run(`${put("quiet")} -q`)]);
  const cannot = "cannot connect to the proxy at ipc:///";
  expect([said.code, quiet.code]).toEqual([69, 69]);
  expect(said.stderr.split("still trying: ").length).toBe(2);
  expect(said.stderr).toStartWith(`baton: still trying: ${cannot}`);
  expect(quiet.stderr).not.toContain("still trying");
});

test("where state and messages go: what cannot be made, and what is somebody else's", async () => {
  const hashOf = (name: string) => createHash("sha256").update(name).digest("hex");
  const topic = hashOf("news").slice(0, 32);
  const state = `${topic}/${hashOf("bob")}.sqlite`;
  await session.run(`mkdir -p damaged/${topic} folders/${state}; head -c 9000 /dev/urandom >damaged/${state}`);
  await session.run('mkdir -p odd/.baton-pubsub; echo m | "$baton" pubsub client bob put news -');
  const mistakes: Mistake[] = [
    [73, "client bob put news file --state-dir file", "Cannot make the folder of client states"],
    [73, "client bob put news file --state-dir file/x", "Cannot make the folder of client states"],
    [73, "client alice get news --out-dir file", "Cannot make the folder"],
    [127, "client alice get news --exec ./nowhere", "is not acknowledged: the command exited with 127"],
    [74, "client alice get news --out-dir odd", "Cannot read whose folder it is in"],
    [
      74,
      "client bob put news file --state-dir damaged",
      "file is not a database; puts whose outcome is unknown are lost",
    ],
    [74, "client bob put news file --state-dir folders", "it is a folder"],
  ];
  for (const mistake of mistakes) await expectRefused(mistake);
  // Tries may be shorter than the wait for a message.
  await session.run('"$baton" pubsub client tom subscribe news');
  await expectRefused([
    1,
    "client tom get news --wait 700ms --retry-timeout 100ms --retries 0 --proxies ipc://$dir/p1",
    "",
  ]);
  // A disk that takes no more than so much of a file.
  await session.run("head -c 600000 /dev/zero >large");
  const full = await session.run(`trap '' XFSZ; ulimit -f 400; exec "$baton" pubsub client tiny put news large`);
  expect([full.code, full.stderr]).toEqual([74, expect.stringContaining('Cannot write the state of client "tiny" at')]);
  expect(full.stderr).not.toContain("rollback");
  expect((await session.run('"$baton" pubsub client alice get news --out-dir in')).code).toBe(0);
  await expectRefused([64, "client carol get news --out-dir in", 'belongs to {"client":"alice","topic":"news"}']);
  const follower = session.start('exec "$baton" pubsub client alice get news --follow');
  const busy = "is using it, and has not ended within 200 ms";
  await eventually(async () => {
    await expectRefused([75, "client alice get news --timeout 200ms", busy]);
    return true;
  }, { withinMs: 20_000 });
  follower.child.kill("SIGTERM");
  await follower.ended;
});

test("servers and proxies that cannot start, and operators' words", async () => {
  const mistakes: Mistake[] = [
    [64, "server", "baton pubsub server needs --id, as in:"],
    [64, "server --id s2", "baton pubsub server needs --data-dir or --store, as in:"],
    [75, "server --id s2 --data-dir s1", "Another server uses the topic store in"],
    [73, "server --id s2 --data-dir file", "Cannot create the data directory"],
    [
      64,
      "server --id s2 --data-dir s2 --listen tcp://0.0.0.0:0",
      "other machines cannot use: set the address that they can reach, as in --advertise",
    ],
    [
      64,
      "server --id s2 --data-dir s2 --listen tcp://0.0.0.0:0 --advertise tcp://0.0.0.0:7001",
      "--advertise: tcp://0.0.0.0:7001 is every address of a machine, which other machines cannot dial",
    ],
    [64, "server --id s2 --data-dir s2 --advertise tcp://[::]:7001", "--advertise: tcp://[::]:7001 is every address"],
    [64, "proxy --advertise tcp://[0:0::0]:5001", "--advertise: tcp://[0:0::0]:5001 is every address"],
    [
      64,
      "proxy --listen tcp://[::0]:0",
      "other machines cannot use: set the address that they can reach, as in --advertise",
    ],
    [64, "server drain", "takes a server's id, and none is given"],
    [64, "server lss", 'unknown operation "lss" of baton pubsub server'],
    [64, "server move news", "needs --to"],
    [64, "server verify", "needs --data-dir FOLDER"],
    [64, "server rebalance --to s2", "--to is not for rebalance, only for move, drain"],
    [64, "server drain s1 --to s2 --undo", "--undo takes topics again, and has no --to"],
    [
      64,
      "server --id s1 --data-dir s1 --accept-loss",
      "--accept-loss is not for a server that is started, only for forget, forget-client, restore",
    ],
    [
      64,
      'server --data-dir s2 --id "$(head -c 1025 /dev/zero | tr "\\0" a)"',
      "A token has 1025 bytes; 1024 are the limit",
    ],
    [1, "server forget s9 --accept-loss", 'Server "s9" does not exist and owns no topic'],
    [73, "server backup file --data-dir s1", "file exists and is not a folder"],
    [78, "server verify --data-dir folder", "There is no topic store in"],
    [64, 'proxy --id "$(head -c 1025 /dev/zero | tr "\\0" a)"', "A token has 1025 bytes; 1024 are the limit"],
    [64, "proxy more", 'unexpected argument "more"'],
    [64, "proxy --listen foo", 'Cannot use "foo" as an endpoint'],
    [78, "proxy --key k --clients file", "file, line 1: a line has four fields: KEY IDS TOPICS get,put,list"],
  ];
  for (const mistake of mistakes) await expectRefused(mistake);
});
