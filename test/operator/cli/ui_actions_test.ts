/**
 * Actions of `baton ui` over HTTP: who may act, stale pages, and what they do. The dialogs are in ui_browser_test.ts.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { request } from "node:http";
import { DirectStore } from "../../../src/retry/queue/sqlite/direct_store.ts";
import { readOnlyRules } from "../../../src/retry/queue/store_rules.ts";
import type { DeadLetterGroups, MessageListPage } from "../../../src/base/rows/store_row.ts";
import { BatonSession, untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { type ServedPage, servePage } from "../../support/ui_page.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let served: ServedPage;
let acting: Readonly<Record<string, string>>;
beforeAll(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  const rules = { ...readOnlyRules, maxBytes: 1 << 30, maxMessages: 1_000_000 };
  await using store = new DirectStore(session.path("store"), rules, { mustExist: false });
  const head = { kind: "command", argv: null, cwd: null } as const;
  for (const error of ["exited with 64", "<b>timeout</b>"]) {
    const tried = { outcome: "final", retryAfterMs: null, error } as const;
    const message = { head, body: new TextEncoder().encode("secret body"), key: null, tried };
    await store.call("accept", Array.from({ length: 125 }, () => message), Date.now());
  }
  served = await servePage(session, "--allow-actions");
  acting = bearer(served.actLink);
});
afterAll(() => session[Symbol.asyncDispose]());

const bearer = (link: string) => ({ authorization: `Bearer ${new URL(link).hash.slice("#token=".length)}` });

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
}

/** node:http sends any Host and Origin, which fetch does not. */
function send(
  path: string,
  headers: Readonly<Record<string, string>>,
  { method = "POST", body = "{}", link = served.link }: { method?: string; body?: string; link?: string } = {},
): Promise<Answer> {
  const { hostname, port } = new URL(link);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => text += chunk);
      response.on("end", () => resolve({ status: response.statusCode, text })).on("error", reject);
    });
    sent.on("error", reject);
    sent.end(method === "GET" ? undefined : body);
  });
}

const json = { "content-type": "application/json" };
const act = (verb: string, body: object) =>
  send(`/actions/${verb}`, { ...acting, ...json }, { body: JSON.stringify(body) });
const read = (path: string) => send(path, bearer(served.link), { method: "GET" });

async function holderOf(kind: "who" | "leader", name: string): Promise<{ holder: string; token: string }> {
  return await eventually(async () => {
    const { stdout, code } = await session.run(
      `"$baton" ${kind === "who" ? "who" : "who --kind election"} ${name} --json`,
    );
    if (code !== 0) return null;
    const [first] = (JSON.parse(stdout) as { holders: { id: string; fencing_token: string }[] }).holders;
    return first === undefined ? null : { holder: first.id, token: String(first.fencing_token) };
  }, { what: `a holder of ${name}`, withinMs: 15_000 });
}

describe("who may act", () => {
  test("the link for reading does not act, and without --allow-actions no link does", async () => {
    const other = await servePage(session);
    expect(served.actLink).not.toBe(served.link);
    const { status, text } = await send("/actions/break", { ...bearer(served.link), ...json });
    expect([status, text]).toEqual([403, "This link is for reading; actions need the other one\n"]);
    const off = await send("/actions/break", { ...bearer(other.link), ...json }, { link: other.link });
    expect([off.status, off.text]).toEqual([403, "baton ui was started without --allow-actions\n"]);
    expect((await send("/stream", acting, { method: "HEAD" })).status).toBe(405);
    other.running.child.kill("SIGTERM");
    await other.running.ended;
  });

  test("attacks: another name, origin or site, a form, a GET, a wrong token", async () => {
    const good = { ...acting, ...json };
    const states = async (...all: Readonly<Record<string, string>>[]) =>
      (await Promise.all(all.map((headers) => send("/actions/break", headers)))).map(({ status }) => status);
    expect(await states({ ...good, host: "evil.example" })).toEqual([421]);
    expect(await states({ ...good, origin: "https://evil.example" }, { ...good, origin: "null" })).toEqual([403, 403]);
    expect(await states({ ...good, "sec-fetch-site": "cross-site" }, { ...good, "sec-fetch-site": "same-site" }))
      .toEqual([403, 403]);
    const forms = ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=a"];
    expect(await states(...forms.map((type) => ({ ...good, "content-type": type })))).toEqual([415, 415, 415]);
    expect((await send("/actions/break", acting, { method: "GET" })).status).toBe(405);
    expect(await states({ ...json, authorization: "Bearer wrong" })).toEqual([401]);
  });

  test("a body that is not understood is refused, whatever it is, and nothing is done", async () => {
    const id = "0".repeat(32);
    const bad = [
      ...["", "[]", "null", "{", '"break"', "\u0000", '{"__proto__":{"name":"a"}}'],
      ...[{}, { name: "a" }, { name: "a", holder: "x", token: "1" }, { name: 1, holder: id, token: "1" }]
        .map((one) => JSON.stringify(one)),
      JSON.stringify({ name: "a".repeat(5000), holder: id, token: "1" }),
      JSON.stringify({ name: "a", holder: id, token: "1", force: true, typed: "b" }),
    ];
    for (const body of bad) {
      const { status } = await send("/actions/break", { ...acting, ...json }, { body });
      expect([body, status]).toEqual([body, 400]);
    }
    expect((await act("constructor", {})).status).toBe(404);
    expect((await act("../stream", {})).status).toBe(404);
    expect((await act("redrive", { store: "/nowhere", letters: [{ id: "1" }] })).status).toBe(409);
    const large = { name: "a", holder: id, token: "1", reason: "x".repeat(70_000) };
    expect((await act("break", large)).status).toBe(413);
  });
});

/** The program reads only while a page is open. */
async function withPage(work: () => Promise<void>): Promise<string> {
  const end = new AbortController();
  const { origin } = new URL(served.link);
  const response = await fetch(`${origin}/stream`, { headers: bearer(served.link), signal: end.signal });
  let text = "";
  const reading = (async () => {
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += piece;
  })().catch(() => {});
  await eventually(() => text.includes('"isComplete":true'), { what: "all rows", withinMs: 20_000 });
  await work();
  end.abort();
  await reading;
  return text;
}

describe("what they do", () => {
  test("break asks exactly the holder that the page showed, and not the next one", async () => {
    const job = session.start(`exec "$baton" lock nightly -- sh -c '${untilMade("never")}'`);
    const first = await holderOf("who", "nightly");
    const rows = await withPage(async () => {
      const stale = await act("break", { name: "nightly", ...first, token: "1" });
      expect(stale.status).toBe(409);
      expect(stale.text).toContain("The page is old");
      const done = await act("break", { name: "nightly", ...first, reason: "update" });
      expect([done.status, done.text]).toEqual([200, expect.stringContaining("has released it")]);
      const { code, stderr } = await job.ended;
      expect(code).toBe(80);
      expect(stderr).toContain("via baton ui");
      const next = session.start(`exec "$baton" lock nightly -- sh -c '${untilMade("end")}'`);
      await holderOf("who", "nightly");
      expect((await act("break", { name: "nightly", ...first })).status).toBe(409);
      expect((await act("break", { name: "nightly", ...first, force: true, typed: "nightly" })).status).toBe(409);
      expect(JSON.parse((await read("/history?kind=lock&name=nightly")).text)).toEqual([]);
      expect((await read("/history?kind=topic&name=nightly")).status).toBe(400);
      await session.run(": >end");
      expect((await next.ended).code).toBe(0);
    });
    expect(rows).toMatch(/"what":"break lock \\"nightly\\"","state":"done"/);
    expect(served.running.stderr()).toContain('break lock "nightly": requested in the page');
    expect(served.running.stderr()).not.toContain(acting["authorization"]?.slice(7) ?? "?");
  });

  test("resign asks the leader that the page showed", async () => {
    const job = session.start(`exec "$baton" elect echo --value a --restart never -- sh -c '${untilMade("never")}'`);
    const leader = await holderOf("leader", "echo");
    await withPage(async () => {
      expect((await act("resign", { name: "echo", ...leader, token: "1" })).status).toBe(409);
      expect((await act("resign", { name: "echo", ...leader })).status).toBe(200);
    });
    expect((await job.ended).code).toBe(80);
  });

  test("dead letters come by pages of 100 and by filter, without bodies; actions change only those shown", async () => {
    await withPage(async () => {
      const store = encodeURIComponent(session.path("store"));
      const page = async (query: string) =>
        JSON.parse((await read(`/dead?store=${store}&${query}`)).text) as MessageListPage;
      const one = await page("");
      expect([one.messages.length, typeof one.next]).toEqual([100, "number"]);
      const two = await page(`after=${one.next}`);
      const three = await page(`after=${two.next}`);
      expect([two.messages.length, typeof two.next, three.messages.length, three.next]).toEqual([
        100,
        "number",
        50,
        null,
      ]);
      expect(JSON.stringify(one)).not.toContain("secret body");
      expect((await read(`/body?store=${store}&id=${one.messages[0]?.id}`)).status).toBe(404);
      const timeouts = await page("error=timeout");
      expect(timeouts.messages.every(({ last_error }) => last_error === "<b>timeout</b>")).toBe(true);
      expect((await page("reason=none")).messages).toEqual([]);
      expect((await read(`/dead?store=${store}&after=-1`)).status).toBe(400);
      expect((await read("/dead?store=/etc")).status).toBe(404);
      const { groups, counted } = JSON.parse((await read(`/groups?store=${store}`)).text) as DeadLetterGroups;
      expect(counted).toBe(groups.reduce((sum, { count }) => sum + count, 0));
      expect(groups.find(({ last_error }) => last_error === "<b>timeout</b>")?.count).toBe(125);
      expect((await read("/groups?store=/etc")).status).toBe(404);

      const folder = session.path("store");
      const letters = one.messages.map(({ id, last_at }) => ({ id, last_at }));
      expect(
        (await act("redrive", {
          store: folder,
          letters: [{ id: letters[0]?.id, last_at: "1970-01-01T00:00:00.001Z" }],
        })).status,
      ).toBe(409);
      expect((await act("drop", { store: folder, letters })).status).toBe(400);
      const redriven = await act("redrive", { store: folder, letters });
      expect([redriven.status, redriven.text]).toEqual([200, "100 dead letters redriven\n"]);
      expect((await act("redrive", { store: folder, letters })).status).toBe(409);
      const rest = (await page("")).messages.slice(0, 3).map(({ id, last_at }) => ({ id, last_at }));
      const dropped = await act("drop", { store: folder, letters: rest, typed: "default" });
      expect([dropped.status, dropped.text]).toEqual([200, "3 dead letters dropped\n"]);
      expect((await act("redrive", { store: folder, letters: [...letters, ...letters] })).status).toBe(400);
    });
    const { stdout } = await session.run('"$baton" retry-processor stats --store "$dir/store" --json');
    const { states } = JSON.parse(stdout) as { states: Record<string, { count: number }> };
    expect([states["dead"]?.count, states["waiting"]?.count, states["dropped"]?.count]).toEqual([147, 100, 3]);
  });

  test("a topic shows who is behind, and moves, drains and stays where the page is old", async () => {
    for (const id of ["s1", "s2"]) {
      session.start(`exec "$baton" pubsub server --id ${id} --data-dir "$dir/${id}" --listen tcp://127.0.0.1:0`);
    }
    const proxy = session.start('exec "$baton" pubsub proxy --id p --listen tcp://127.0.0.1:0 >"$dir/proxy" 2>&1');
    const ls = async () => {
      const { stdout } = await session.run('"$baton" pubsub server ls --json');
      return (JSON.parse(stdout || '{"servers":[]}') as {
        servers: { server: string; endpoint: string; topics: { topic: string; epoch: number }[] }[];
      }).servers;
    };
    await eventually(async () => (await ls()).length === 2, { what: "two servers", withinMs: 20_000 });
    const put = '"$baton" pubsub client reader subscribe news && echo hello | "$baton" pubsub client writer put news -';
    await eventually(async () => (await session.run(put)).code === 0, { what: "a put", withinMs: 20_000 });
    const owner = async () => (await ls()).find(({ topics }) => topics.length > 0);
    await withPage(async () => {
      const shown = JSON.parse((await read("/topic?topic=news")).text) as {
        subscribers: { client: string; pending: number }[];
      };
      expect(shown.subscribers).toMatchObject([{ client: "reader", pending: 1 }]);
      expect((await read("/topic?topic=other")).status).toBe(404);
      const from = await owner();
      const to = from?.server === "s1" ? "s2" : "s1";
      const seen = { topic: "news", to, owner: from?.server, epoch: from?.topics[0]?.epoch };
      expect((await act("move", { ...seen, epoch: 99 })).status).toBe(409);
      expect(await act("move", seen)).toEqual({ status: 200, text: `it is at "${to}"\n` });
      expect((await act("move", { ...seen, to: "s3" })).status).toBe(409);
      const full = await owner();
      expect((await act("drain", { server: to, endpoint: "tcp://127.0.0.1:1" })).status).toBe(409);
      const drained = await act("drain", { server: to, endpoint: full?.endpoint });
      expect(drained).toEqual({ status: 200, text: "1 topic moved to other servers; it gets no new ones\n" });
      expect((await owner())?.server).toBe(from?.server);
      expect((await act("drain", { server: to, endpoint: full?.endpoint, undo: true })).status).toBe(200);
    });
    proxy.child.kill("SIGTERM");
  });
});
