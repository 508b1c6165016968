/** Keys and lists of clients, with the compiled binary and a client of ours that has a key. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { readCurvePublicKey, readCurveSecretKey } from "../../../src/protocols/zeromq/curve_key_file.ts";
import { curveDialOptions } from "../../../src/protocols/zeromq/curve_security.ts";
import { RequestSocket } from "../../support/request_socket.ts";
import { decodePubsubMessage } from "../../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../../src/pubsub/wire/encode_message.ts";
import type { PubsubMessage } from "../../../src/pubsub/wire/pubsub_messages.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

async function serve(words: string): Promise<string> {
  const running = session.start(`exec "$baton" pubsub ${words}`);
  const endpoint = () => / at (tcp:\/\/[\d.]+:\d+)/.exec(running.stderr())?.[1];
  return await eventually(endpoint, { what: `${words} to serve: ${running.stderr()}`, withinMs: 15_000 });
}

/** One request on a connection of its own; null when nothing comes back. */
async function ask(
  endpoint: string,
  key: string | null,
  message: PubsubMessage,
  withinMs = 5000,
): Promise<string | null> {
  const security = key === null
    ? {}
    : curveDialOptions(readCurveSecretKey(session.path(key)), readCurvePublicKey(session.path("service.pub")));
  await using socket = new RequestSocket(security);
  socket.connect(endpoint);
  const signal = AbortSignal.timeout(withinMs);
  try {
    await socket.send(encodePubsubMessage(message), { signal });
    const answer = decodePubsubMessage(await socket.receive({ signal }));
    return answer.name === "STATUS" ? answer.status : answer.name;
  } catch (thrown) {
    if (signal.aborted) return null;
    throw thrown;
  }
}

test("with a key only its holders reach a server, and clients do what their line says", async () => {
  for (const name of ["service", "alice", "mallory"]) await session.run(`"$baton" pubsub keygen -q ${name}`);
  const alice = (await session.run('"$baton" pubsub keygen --public alice')).stdout.trim();
  writeFileSync(session.path("clients"), `# key ids topics may\n${alice} alice news get,put\n`);
  const server = await serve("server --id s1 --data-dir s1 --key service");
  const proxy = await serve("proxy --listen tcp://127.0.0.1:0 --key service --clients clients");

  const subscribe = (sender: string, topic: string) => ({ name: "SUBSCRIBE", sender, topic }) as const;
  expect(await ask(proxy, "alice", subscribe("alice", "news"), 15_000)).toBe("OK");
  expect(await ask(proxy, "alice", { name: "PUT", sender: "alice", topic: "news", counter: 1 })).toBe("OK");
  expect(await ask(proxy, "alice", subscribe("bob", "news"))).toBe("DENIED");
  expect(await ask(proxy, "alice", subscribe("alice", "sport"))).toBe("DENIED");
  expect(await ask(proxy, "alice", { name: "MERGE", sender: "alice", topic: "news", address: "s2" })).not.toBe("OK");
  expect(await ask(proxy, "mallory", subscribe("alice", "news"), 1500)).toBeNull();
  expect(await ask(proxy, null, subscribe("alice", "news"), 1500)).toBeNull();
  // The server itself is for proxies, servers and operators.
  expect(await ask(server, "alice", subscribe("alice", "news"), 1500)).toBeNull();
  expect(await ask(server, null, { name: "HELLO", sender: "x" }, 1500)).toBeNull();
  expect(await ask(server, "service", { name: "HELLO", sender: "x" })).toBe("OK");

  const client = async (key: string, words: string) => {
    const flags = `--key ${key} --service-key service.pub --state-dir $dir/state --proxies ${proxy} --timeout 20s`;
    const ended = await session.run(`"$baton" pubsub client ${words} ${flags}`);
    return [ended.code, ended.stdout] as const;
  };
  expect(await client("alice", "alice subscribe news")).toEqual([0, ""]);
  expect((await client("alice", "alice subscribe sport"))[0]).toBe(77);
  expect((await client("mallory", "alice get news"))[0]).toBe(77);

  const second = await serve("server --id s2 --data-dir s2 --key service");
  expect(second).not.toBe(server);
  const moved = await session.run('"$baton" pubsub server move news --to s2 --key service');
  expect([moved.code, moved.stdout]).toEqual([0, expect.stringContaining("moved")]);
  expect(await ask(proxy, "alice", { name: "GET", sender: "alice", topic: "news", last: -1 })).toBe("OK");
});

test("SIGHUP has the list of clients read again; one with a mistake is told, and the old one stays", async () => {
  await session.run('"$baton" pubsub keygen -q carol');
  const keys = await Promise.all(
    ["alice", "carol"].map((name) => session.run(`"$baton" pubsub keygen --public ${name}`)),
  );
  const [alice = "", carol = ""] = keys.map(({ stdout }) => stdout.trim());
  const list = (text: string) => writeFileSync(session.path("list"), text);
  list(`${alice} alice news,quiet get\n`);
  const running = session.start(
    'exec "$baton" pubsub proxy --id p9 --key service --clients list --metrics-listen unix:$dir/p9',
  );
  const says = (words: string) => eventually(() => running.stderr().includes(words), { what: words, withinMs: 15_000 });
  await says("takes requests");
  const proxy = / at (tcp:\/\/[\d.]+:\d+)/.exec(running.stderr())?.[1] ?? "";
  const info = (sender: string) => ({ name: "GET", sender, topic: "news", last: -1 }) as const;
  const hello = { name: "HELLO", sender: "x" } as const;
  expect(await ask(proxy, "carol", hello, 1000)).toBeNull();

  list(`${carol} carol news gte\n`);
  running.child.kill("SIGHUP");
  await says('list, line 1: "gte" is none of get, put, list; the old list stays in use');
  expect(await ask(proxy, "alice", hello)).toBe("OK");
  expect(await ask(proxy, "carol", hello, 1000)).toBeNull();

  await using stays = new RequestSocket(
    curveDialOptions(readCurveSecretKey(session.path("alice")), readCurvePublicKey(session.path("service.pub"))),
  );
  stays.connect(proxy);
  const statusOf = async (message: PubsubMessage) => {
    const signal = AbortSignal.timeout(10_000);
    await stays.send(encodePubsubMessage(message), { signal });
    const answer = decodePubsubMessage(await stays.receive({ signal }));
    return answer.name === "STATUS" && answer.status;
  };
  expect(await statusOf(info("alice"))).not.toBe("DENIED");
  // Nor is anything given any more to who waits for a message at that moment.
  const quiet = (words: string) =>
    `"$baton" pubsub client alice ${words} quiet --key alice --service-key service.pub --state-dir waits --proxies ${proxy}`;
  expect(await session.run(quiet("subscribe"))).toMatchObject({ code: 0 });
  const waits = session.start(`exec ${quiet("get --wait 50s")}`);
  const waiting = "sed -n 's/^baton_pubsub_proxy_requests_in_flight //p'";
  await eventually(async () =>
    (await session.run(`curl -s --unix-socket "$dir/p9" http://localhost/metrics | ${waiting}`)).stdout === "1\n"
  );
  list(`${carol} carol news,quiet get,put\n`);
  running.child.kill("SIGHUP");
  await says("read list again: 1 key accepted");
  const put = { name: "PUT", sender: "carol", topic: "quiet", counter: 1 } as const;
  expect(await ask(proxy, "carol", put, 15_000)).toBe("OK");
  expect(await waits.ended).toMatchObject({ code: 77, stdout: "" });
  expect(await statusOf(info("alice"))).toBe("DENIED");
  expect(await ask(proxy, "alice", hello, 1000)).toBeNull();
  expect(await ask(proxy, "carol", hello)).toBe("OK");
  running.child.kill("SIGTERM");
  expect((await running.ended).code).toBe(0);
});

test("keys that cannot be used are told before anything is served", async () => {
  const code = async (words: string) => (await session.run(`"$baton" pubsub ${words}`)).code;
  expect(await code("server --id s3 --data-dir s3 --key nowhere")).toBe(78);
  expect(await code("server --id s3 --data-dir s3 --key service.pub")).toBe(78);
  expect(await code("proxy --clients clients")).toBe(64);
  expect(await code("proxy --key service --clients nowhere")).toBe(78);
});
