/**
 * Every exit code that docs/message_semantics.md gives to a role is reached, by the binary, and no other code is
 * promised.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { RouterSocket } from "../../../src/protocols/zeromq/router_socket.ts";
import { encodePubsubMessage } from "../../../src/pubsub/wire/encode_message.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { documentedExitCodes } from "../../support/documented_codes.ts";
import { eventually } from "../../support/eventually.ts";
import { frozenPut } from "../../support/frozen_put.ts";
import { messagesOf } from "../../support/messages_of.ts";
import { describeWithPeer, hasPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(120_000);

const documented = ["a client", "a server", "a proxy", "an operator command"] as const;
type Role = (typeof documented)[number];

/** Reached so far. */
const reached = new Map<Role, Set<number>>(documented.map((role) => [role, new Set()]));

/** Needs to be root. */
const isRoot = process.getuid?.() === 0;

let session: BatonSession;
let server: Running;
beforeAll(async () => {
  session = new BatonSession({
    ...{ BATON_PUBSUB_STATE_DIR: "state", BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" },
  });
  for (const name of ["service", "alice", "mallory"]) await session.run(`"$baton" pubsub keygen -q ${name}`);
  await session.run('echo "$("$baton" pubsub keygen --public alice) alice news get" >list; echo x >file');
  server = await serving("server --id s1 --data-dir s1 --max-pending 1 --key service");
  await serving("proxy --id p1 --listen ipc://$dir/p1 --key service");
  await serving("proxy --id p2 --listen ipc://$dir/p2 --key service --clients list");
}, 60_000);
afterAll(() => session[Symbol.asyncDispose]());

const serving = (words: string) => startRole(session, words);

async function expectCode(role: Role, code: number, script: string): Promise<void> {
  const ended = await session.run(script);
  expect([script, ended.code, ended.stderr]).toEqual([script, code, expect.anything()]);
  reached.get(role)?.add(code);
}

async function told(role: Role, running: Running): Promise<void> {
  running.child.kill("SIGTERM");
  expect((await running.ended).code).toBe(0);
  reached.get(role)?.add(0);
}

const through = (proxy: string, key: string) => `--proxies ipc://$dir/${proxy} --key ${key} --service-key service.pub`;
const client = (words: string, key = "mallory") => `"$baton" pubsub client ${words} ${through("p1", key)}`;
const operator = (words: string) => `"$baton" pubsub server ${words} --key service`;

test("of a client", async () => {
  const role = "a client";
  const codes: [number, string][] = [
    [0, client("alice subscribe news")],
    [1, client("alice get news")],
    [64, client("alice gte news")],
    [64, client("carol get news")],
    [73, client("alice get news --out-dir file")],
    [74, client("bob put news nowhere")],
    [77, `"$baton" pubsub client bob put news file ${through("p2", "mallory")}`],
    [77, `"$baton" pubsub client alice put news file ${through("p2", "alice")}`],
    [0, client("bob put news file --msg-id k")],
    [65, client("bob put news list --msg-id k")],
    [85, client("bob put news file")],
    // Its file is none to be run any more once it reads its configuration: nobody can start it a second time, as a
    // guard.
    [
      125,
      `cp "$baton" b; mkfifo conf; ./b pubsub client alice get news --exec true --config conf ${
        through("p1", "alice")
      } & exec 3>conf; chmod -x b; exec 3>&-; wait $!`,
    ],
    [9, client("alice get news --exec 'exit 9'")],
    [0, client("alice get news")],
    [69, client("bob put news file --timeout 500ms").replace("$dir/p1", "$dir/none")],
  ];
  for (const [code, script] of codes) await expectCode(role, code, script);

  const follower = session.start(`exec ${client("alice get news --follow")}`);
  await eventually(async () => (await session.run(client("alice get news --timeout 100ms"))).code === 75);
  reached.get(role)?.add(75);
  follower.child.kill("SIGTERM");
  await follower.ended;

  for (let time = 0; time < 3; time++) await session.run(client("dave put other file"));
  await expectCode(role, 84, `rm -r state; ${client("dave put other file")}`);

  await session.run(client("alice subscribe third"));
  const put = client("bob put third - --lines --timeout 1s");
  const get = client("alice get third --wait 20s");
  await expectCode(role, 76, frozenPut({ put, get, pid: server.child.pid }));
  server.child.kill("SIGCONT");
});

test("of an operator command", async () => {
  const role = "an operator command";
  const codes: [number, string][] = [
    [0, operator("ls")],
    [1, operator("move nosuch --to s1")],
    [1, operator("drain s9")],
    [64, operator("forget s1")],
    [69, operator("move news --to s9")],
    [69, operator("drain s1")],
    [69, operator("ls --servers 127.0.0.1:1 --connect-timeout 200ms")],
    [75, operator("forget s1 --accept-loss")],
    [0, operator("backup copy --data-dir s1")],
    [73, operator("backup copy --data-dir s1")],
    [78, operator("verify --data-dir nowhere")],
    [
      74,
      `printf damaged | dd of=copy/topics.sqlite bs=1 seek=4096 conv=notrunc 2>dd.log; ${
        operator("verify --data-dir copy")
      }`,
    ],
  ];
  for (const [code, script] of codes) await expectCode(role, code, script);

  // It takes the word, and then nothing is heard of it any more.
  server.child.kill("SIGSTOP");
  await expectCode(role, 76, operator("move news --to s9"));
  server.child.kill("SIGCONT");
  await eventually(async () => (await session.run(operator("ls --json"))).stdout.includes('"s1"'), {
    withinMs: 20_000,
  });
});

test("of a proxy", async () => {
  const role = "a proxy";
  const proxy = '"$baton" pubsub proxy --listen ipc://$dir/p9';
  await told(role, await serving("proxy --id p9 --listen ipc://$dir/p9"));
  const codes: [number, string][] = [
    [64, `${proxy} more`],
    [69, `${proxy} --servers 127.0.0.1:1 --connect-timeout 200ms`],
    [73, '"$baton" pubsub proxy --listen ipc://$dir/nowhere/p9'],
    [78, `${proxy} --key nowhere`],
    [78, `${proxy} --id p1`],
  ];
  for (const [code, script] of codes) await expectCode(role, code, script);
});

test("of a server", async () => {
  const role = "a server";
  const start = '"$baton" pubsub server --id s2 --data-dir s2';
  const codes: [number, string][] = [
    [64, '"$baton" pubsub server --id s2'],
    [69, `${start} --servers 127.0.0.1:1 --connect-timeout 200ms`],
    [73, '"$baton" pubsub server --id s2 --data-dir file'],
    [75, '"$baton" pubsub server --id s1 --data-dir s1'],
    [78, '"$baton" pubsub server --id s1 --data-dir other'],
  ];
  for (const [code, script] of codes) await expectCode(role, code, script);
  await told(role, server);
  await expectCode(role, 78, '"$baton" pubsub server --id s2 --data-dir s1');

  // The same id, and nothing of what belongs to it: what came next would be lost with the right folder back.
  const without = await session.run('"$baton" pubsub server --id s1 --data-dir empty --key service');
  expect([without.code, without.stderr]).toEqual([
    78,
    expect.stringContaining("it is empty, but"),
  ]);

  // A disk that takes no more than so much of a file.
  const small = session.start(
    `mkdir small; trap '' XFSZ; ulimit -f 400; exec "$baton" pubsub server --id s3 --data-dir small --key service`,
  );
  await eventually(() => small.stderr().includes("serves"), { withinMs: 30_000 });
  await session.run(
    `head -c 600000 /dev/urandom >random; ${client("eve subscribe large")}; ${
      client("eve put large random --timeout 1s")
    }`,
  );
  expect((await small.ended).code).toBe(74);
  reached.get(role)?.add(74);
});

describeWithPeer("postgres", "of a server whose database", () => {
  test("asks for a password", async () => {
    await using database = await PostgresServer.start({ password: "open sesame" });
    const store = `postgres://baton@127.0.0.1:${database.port}/postgres`;
    await expectCode("a server", 77, `PGPASSFILE=/nowhere "$baton" pubsub server --id s4 --store ${store}`);
  });
});

test("of a client whose server fails", async () => {
  await using failing = new RouterSocket();
  const endpoint = await failing.bind("tcp://127.0.0.1:0");
  void (async () => {
    const answer = encodePubsubMessage({ name: "STATUS", sender: "s1", status: "ERROR" });
    for await (const frames of messagesOf(failing)) {
      failing.trySend([...frames.slice(0, frames.findIndex((frame) => frame.byteLength === 0) + 1), ...answer]);
    }
  })();
  await expectCode("a client", 70, `"$baton" pubsub client alice get news --timeout 300ms --proxies ${endpoint}`);
});

const needsRoot = test.skipIf(!isRoot);

needsRoot("a line of --exec that cannot be killed, where there are several users", async () => {
  await using own = new BatonSession({ BATON_PUBSUB_STATE_DIR: "state", BATON_SERVERS: "embedded" });
  for (const words of ["server --id s1 --data-dir s1", "proxy --id p1 --listen ipc://$dir/p1"]) {
    await startRole(own, words);
  }
  const get = '"$baton" pubsub client alice get news --proxies ipc://$dir/p1 --timeout 1s --exec ';
  await own.run('"$baton" pubsub client alice subscribe news; echo x | "$baton" pubsub client bob put news -');
  // Another user's process; root without the right to kill others leaves it alone.
  const line = "setpriv --reuid 65534 --clear-groups sleep 60 & echo $! >sleeper; wait";
  const first = own.start(`exec setpriv --bounding-set=-kill --inh-caps=-kill ${get} '${line}'`);
  const sleeper = Number(await own.said("sleeper"));
  await eventually(() => statSync(`/proc/${sleeper}`).uid === 65534);
  first.child.kill("SIGKILL");
  const second = await own.run(`exec setpriv --bounding-set=-kill --inh-caps=-kill ${get} true`);
  process.kill(sleeper, "SIGKILL");
  expect([second.code, second.stderr]).toEqual([83, expect.stringContaining("cannot be killed")]);
  reached.get("a client")?.add(83);
});

test("the documentation promises what was reached, and nothing else", () => {
  const page = readFileSync(join(import.meta.dir, "../../../docs/message_semantics.md"), "utf8");
  for (const role of documented) {
    const codes = documentedExitCodes(page, new RegExp(`Exit codes of ${role}`));
    expect(codes).not.toEqual([]);
    const isReachable = (code: number) =>
      code === 83 ? isRoot : role !== "a server" || code !== 77 || hasPeer("postgres");
    const found = [...reached.get(role) ?? []].filter((code) => code !== 9); // the line's own
    const common = role === "a client" ? [] : [64]; // the page says so once for all
    expect([role, found.filter((code) => !codes.includes(code) && !common.includes(code))]).toEqual([role, []]);
    expect([role, codes.filter((code) => isReachable(code) && !found.includes(code))]).toEqual([role, []]);
  }
});
