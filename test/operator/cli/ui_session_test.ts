/**
 * `baton ui` as a process: its link, who it refuses, its options, and its end. The page itself is in
 * ui_browser_test.ts.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { wrongTokensMax } from "../../../src/operator/ui/request_guard.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { type ServedPage, servePage } from "../../support/ui_page.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let served: ServedPage;
beforeAll(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  served = await servePage(session);
});
afterAll(() => session[Symbol.asyncDispose]());

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The body; of a stream its beginning. */
  readonly text: string;
}

/** node:http sends any Host, which fetch does not. */
function ask(path: string, headers: Readonly<Record<string, string>> = {}, method = "GET", body = ""): Promise<Answer> {
  const { hostname, port } = new URL(served.link);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      let text = "";
      const answer = () => resolve({ status: response.statusCode, headers: response.headers, text });
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (!text.includes("event: tables") || !text.endsWith("\n\n")) return;
        answer();
        sent.destroy();
      });
      response.on("end", answer).on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const token = () => new URL(served.link).hash.slice("#token=".length);
const bearer = (text: string) => ({ authorization: `Bearer ${text}` });

describe("requests", () => {
  test("the page needs no token and has a strict policy; the rows need the token of the link", async () => {
    expect(token()).toMatch(/^[\w-]{43}$/);
    const page = await ask("/");
    expect(page.status).toBe(200);
    expect(page.headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self'; .*trusted-types/);
    expect(page.headers).not.toHaveProperty("set-cookie");
    expect(page.headers).not.toHaveProperty("access-control-allow-origin");
    const stream = await ask("/stream", bearer(token()));
    expect(stream.status).toBe(200);
    expect(stream.text).toContain('event: hello\ndata: {"nowMs":');
    expect(stream.text).toMatch(/event: tables\nid: [0-9a-f]+-\d+\ndata: \{"locks":\{/);
    expect((await ask("/stream")).status).toBe(401);
    expect((await ask(`/stream?token=${token()}`)).status).toBe(401);
    expect((await ask("/other")).status).toBe(404);
    expect((await ask("/series")).status).toBe(401);
    expect((await ask("/series?after=yesterday", bearer(token()))).status).toBe(400);
    expect(JSON.parse((await ask("/series", bearer(token()))).text)).toMatchObject({ topics: {}, activity: [] });
  });

  test("attacks: a rebound name, another origin, a form of another site", async () => {
    const good = bearer(token());
    expect((await ask("/", { host: "evil.example" })).status).toBe(421);
    expect((await ask("/stream", { ...good, host: "evil.example" })).status).toBe(421);
    expect((await ask("/stream", { ...good, origin: "https://evil.example" })).status).toBe(403);
    expect((await ask("/stream", { ...good, "sec-fetch-site": "cross-site" })).status).toBe(403);
    const form = { "content-type": "application/x-www-form-urlencoded", origin: "https://evil.example" };
    expect((await ask("/stream", { ...good, ...form }, "POST", "a=b")).status).toBe(405);
  });

  test("guessing: wrong tokens get 429 after ten, and the right one still works", async () => {
    const states = [];
    for (let count = 0; count < wrongTokensMax + 1; count++) {
      states.push((await ask("/stream", bearer("wrong"))).status);
    }
    expect(states.at(-1)).toBe(429);
    expect((await ask("/stream", bearer(token()))).status).toBe(200);
  });

  test("a stream shows a lock that is taken and released while it is read", async () => {
    const { origin } = new URL(served.link);
    const end = new AbortController();
    const response = await fetch(`${origin}/stream`, { headers: bearer(token()), signal: end.signal });
    const job = session.start(
      'exec "$baton" lock nightly --reason backup -- sh -c "while [ ! -e end ]; do sleep 0.05; done"',
    );
    let text = "";
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let isReleased = false; !text.includes('{"locks":{"nightly":null}');) {
      text += (await reader?.read())?.value ?? "";
      if (isReleased || !/"locks":\{"nightly":\{.*"reason":"backup"/.test(text)) continue;
      isReleased = true;
      writeFileSync(session.path("end"), "");
    }
    end.abort();
    expect((await job.ended).code).toBe(0);
    // The arguments of the command may have secrets.
    expect(text).toContain('"command":"sh"');
    expect(text).not.toContain("sleep");
  });
});

describe("options", () => {
  const run = async (options: string) => {
    const { code, stderr } = await session.run(`"$baton" ui ${options}`);
    return { code, stderr };
  };

  test("another address than loopback without TLS and a token file is refused", async () => {
    const { code, stderr } = await run("--listen 0.0.0.0:0");
    expect(code).toBe(78);
    expect(stderr).toContain("give --listen-cert, --listen-key and --token-file");
    expect((await run("--listen 0.0.0.0:0 --token-file x")).code).toBe(78);
    expect((await run("--listen unix:/tmp/ui.sock")).code).toBe(64);
    expect((await run("nightly")).code).toBe(64);
  });

  test("a token file is this user's alone, and its token is long and never printed", async () => {
    const file = session.path("ui.token");
    const secret = "0123456789abcdef".repeat(4);
    writeFileSync(file, `${secret}\n`, { mode: 0o644 });
    expect((await run(`--listen :0 --token-file "${file}"`)).stderr).toContain("mode 644");
    chmodSync(file, 0o600);
    const other = await servePage(session, `--token-file "${file}"`);
    expect(other.link).not.toContain("#");
    const response = await fetch(`${other.link}stream`, { headers: bearer(secret) });
    expect(response.status).toBe(200);
    await response.body?.cancel();
    other.running.child.kill("SIGTERM");
    const { stdout, stderr } = await other.running.ended;
    expect(stdout + stderr).not.toContain(secret);
    const missing = await run(`--listen :0 --allow-actions --token-file "${file}"`);
    expect([missing.code, missing.stderr]).toEqual([
      78,
      expect.stringContaining("its second line, the token for actions,"),
    ]);
    writeFileSync(file, `${secret}\n${secret}\n`);
    const same = await run(`--listen :0 --allow-actions --token-file "${file}"`);
    expect([same.code, same.stderr]).toEqual([78, expect.stringContaining("must differ")]);
    writeFileSync(file, "short\n");
    const { code, stderr: why } = await run(`--listen :0 --token-file "${file}"`);
    expect(code).toBe(78);
    expect(why).toContain("at least 32");
    expect(why).not.toContain("short");
  });

  test("SIGTERM ends it, with an open stream too", async () => {
    const other = await servePage(session);
    const { origin, hash } = new URL(other.link);
    const response = await fetch(`${origin}/stream`, { headers: bearer(hash.slice("#token=".length)) });
    other.running.child.kill("SIGTERM");
    expect((await other.running.ended).signal).toBe("SIGTERM");
    await response.body?.cancel().catch(() => {});
  });
});
