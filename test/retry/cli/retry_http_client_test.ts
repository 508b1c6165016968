/**
 * Requests of `call`, `run` and `serve` from the compiled binary: redirections, cut responses, TLS files, proxies,
 * mistakes.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:tls";
import { BatonSession } from "../../support/baton_session.ts";
import { CertificateAuthority } from "../../support/certificate_authority.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { RawBackend, rawResponse } from "../../support/raw_backend.ts";
import { RetryShell } from "../../support/retry_shell.ts";
import { tlsFixture } from "../../support/tls_fixture.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

const states = async (store: RetryShell) => {
  const { states } = await store.json("stats") as { states: Record<string, { count: number }> };
  return Object.fromEntries(Object.entries(states).flatMap(([name, { count }]) => count > 0 ? [[name, count]] : []));
};

test("call prints a response that is cut off as far as it came; its status decides about the request", async () => {
  await using backend = await new RawBackend((request) => {
    const status = Number(/^POST \/(\d+)/.exec(request)?.[1]);
    return { parts: [rawResponse(status, "half", ["Content-Length: 100"])] };
  }).up();
  for (
    const [status, code, after] of [[200, 74, {}], [404, 65, { dead: 1 }], [401, 77, { dead: 1 }], [503, 75, {
      waiting: 1,
    }]] as const
  ) {
    const store = new RetryShell(session);
    const ended = await store.run(`echo order | @retry call --url ${backend.url}/${status}`);
    expect([status, ended.code, ended.stdout]).toEqual([status, code, status === 503 ? "" : "half"]);
    if (status !== 503) {
      expect(ended.stderr).toContain(`got status ${status}, but its response was cut off: the connection was closed`);
    }
    expect([status, await states(store)]).toEqual([status, after]);
  }
  const ended = await new RetryShell(session).run(`echo order | @retry call --url ${backend.url}/200 >/dev/full`);
  expect([ended.code, ended.stderr]).toEqual([
    74,
    expect.stringContaining("its response cannot be printed: Cannot write to stdout: no space left on device"),
  ]);
});

test("308 is followed, other 3xx are dead letters with their Location, unless an option says otherwise", async () => {
  await using backend = await new HttpBackend(({ url }, response) => {
    if (url === "/new") return void response.end("there");
    response.writeHead(Number(url.slice(1)), { location: "/new" }).end();
  }).up();
  const cases = [
    ["308", "", 0, {}],
    ["301", "", 65, { dead: 1 }],
    ["301", "--follow", 0, {}],
    ["303", "--follow", 0, {}],
    ["301", "--retry-on 3xx", 75, { waiting: 1 }],
    ["308", "--retry-on 308", 75, { waiting: 1 }],
    ["307", "--no-retry-on 3xx", 65, { dead: 1 }],
  ] as const;
  for (const [path, options, code, after] of cases) {
    const store = new RetryShell(session);
    const ended = await store.run(`printf order | @retry call --url ${backend.url}/${path} ${options}`);
    expect([path, options, ended.code, await states(store)]).toEqual([path, options, code, after]);
    if (code === 0) expect([ended.stdout, ended.stderr]).toEqual(["there", ""]);
    else expect(ended.stderr).toContain(`got status ${path} with Location: /new`);
  }
  expect(backend.received.filter(({ url }) => url === "/new").map(({ method, body }) => `${method} ${body}`)).toEqual([
    ...["POST order", "POST order", "GET "],
  ]);
  const store = new RetryShell(session);
  const ruled = await store.run(`echo | @retry call --url ${backend.url}/302 --follow --no-retry-on 302`);
  expect(ruled.stderr).toContain("with Location: /new, which is not followed: --retry-on or --no-retry-on names it");
  await store.run("@retry dlq purge --all");
  await store.run("printf order | @retry submit");
  await store.run(`@retry run --once --url ${backend.url}/302`);
  expect((await store.json("show 2")).last_error).toBe(
    "got status 302 with Location: /new, which is not followed: that needs --follow",
  );
});

/** A server with the certificate of the fixtures. `seen`: whether each client has shown one that is trusted. */
async function tlsBackend(seen: boolean[]) {
  const [key, cert, ca] = ["server_key", "server", "ca"].map((name) => readFileSync(tlsFixture(name, session.folder)));
  const settings = { key: key as Buffer, cert: cert as Buffer, ca: ca as Buffer };
  const server = createServer({ ...settings, requestCert: true, rejectUnauthorized: false }, (socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      seen.push(socket.authorized);
      socket.end(rawResponse(200, "ok"));
    });
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

test("https: no variable changes whom is trusted; --url-ca does, and --url-cert shows a certificate", async () => {
  const seen: boolean[] = [];
  await using backend = await tlsBackend(seen);
  const ca = tlsFixture("ca", session.folder);
  const variables = { NODE_TLS_REJECT_UNAUTHORIZED: "0", NODE_EXTRA_CA_CERTS: ca, SSL_CERT_FILE: ca };
  for (const [name, value] of [["A", "1"], ...Object.entries(variables)]) {
    const store = new RetryShell(session, { [name as string]: value as string });
    const ended = await store.run(`echo a | @retry call --url ${backend.url}/`);
    expect([name, ended.code]).toEqual([name, 75]);
    expect(ended.stderr).toMatch(
      /^baton: POST \S+ could not be sent: the certificate is refused: .*--url-ca FILE names the authorities to trust; stored in/,
    );
  }
  expect(seen).toEqual([]);
  const [cert, key] = ["client", "client_key"].map((name) => tlsFixture(name, session.folder));
  const store = new RetryShell(session);
  expect((await store.run(`echo a | @retry call --url ${backend.url}/ --url-ca ${ca}`)).code).toBe(0);
  const named = await store.run(
    `echo a | @retry call --url ${backend.url}/ --url-ca ${ca} --url-cert ${cert} --url-key ${key}`,
  );
  expect([named.code, named.stdout, seen]).toEqual([0, "ok", [false, true]]);
});

test("https: the connections to servers of locks obey none of the variables either", async () => {
  const seen: boolean[] = [];
  await using backend = await tlsBackend(seen);
  const ca = tlsFixture("ca", session.folder);
  const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0", NODE_EXTRA_CA_CERTS: ca, SSL_CERT_FILE: ca };
  const ended = await session.run(`"$baton" ls --servers ${new URL(backend.url).host} --tls --connect-timeout 5s`, env);
  expect(ended.code).not.toBe(0);
  expect(ended.stderr).toMatch(/certificate/);
  expect(ended.stderr).not.toMatch(/Warning/);
});

test("run reads --url-ca for each new connection", async () => {
  const seen: boolean[] = [];
  await using backend = await tlsBackend(seen);
  const store = new RetryShell(session);
  const other = await CertificateAuthority.start(session.folder, "other");
  copyFileSync(other.ca, session.path("trusted.pem"));
  await store.run("echo a | @retry submit");
  const running = store.start(
    `exec @retry run --url ${backend.url}/ --url-ca trusted.pem --interval 50ms --max-retries 1000`,
  );
  await eventually(async () => (await store.json("show 1")).tries > 0, { withinMs: 15_000 });
  copyFileSync(tlsFixture("ca", session.folder), session.path("trusted.pem"));
  await eventually(async () => (await states(store))["done"] === 1, { withinMs: 15_000 });
  running.child.kill("SIGTERM");
  expect((await running.ended).code).toBe(0);
});

test("a proxy of the environment is named in the error, and not used for this machine", async () => {
  await using backend = await new HttpBackend().up();
  const env = { http_proxy: "http://me:s3cret@127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" };
  const store = new RetryShell(session, env);
  expect((await store.run(`echo a | @retry call --url ${backend.url}/`)).code).toBe(0);
  const { code, stderr } = await store.run("echo a | @retry call --url http://backend.invalid/");
  expect([code, stderr]).toEqual([
    75,
    expect.stringContaining("through the proxy http://127.0.0.1:9 (http_proxy): connection refused"),
  ]);
  expect(stderr).not.toContain("s3cret");
  const wrong = await new RetryShell(session, { HTTP_PROXY: "socks5://p:1" }).run(
    "echo a | @retry call --url http://backend.invalid/",
  );
  expect([wrong.code, wrong.stderr]).toEqual([
    78,
    expect.stringContaining("HTTP_PROXY is not the URL of an HTTP proxy"),
  ]);
});

test("the value of a header is sent as it was written, with its commas; each --header is one", async () => {
  await using backend = await new HttpBackend().up();
  const headers = `-H 'X-Signature: t=1,v1=a:b,c:d' --header 'X-A: 1' -H 'X-B: 2,,3'`;
  const ended = await new RetryShell(session).run(`echo | @retry call --url ${backend.url} ${headers}`);
  expect([ended.code, ended.stderr]).toEqual([0, ""]);
  expect(backend.received[0]?.headers).toMatchObject({ "x-signature": "t=1,v1=a:b,c:d", "x-a": "1", "x-b": "2,,3" });
});

test("mistakes", async () => {
  const cases: readonly [words: string, says: string][] = [
    ["call --url http://x/ --retry-on 2xx", '--retry-on: "2xx" can never match'],
    ["call --url http://x/ --retry-on 75", '--retry-on: "75" can never match: failures of HTTP are 300 to 599'],
    ["call --no-retry-on 404 -- true", '--no-retry-on: "404" can never match: exit codes are 1 to 255'],
    ["run --exec true --retry-on 5xx", "can never match"],
    ["run --url http://x/ --retry-on 65", "can never match"],
    ["serve --url http://x/ --no-retry-on 1-255", "can never match"],
    ["call --follow -- true", "call: --follow needs --url"],
    ["run --exec true --url-ca x", "run: --url-ca needs --url"],
    ["call --url https://x/ --url-cert x", "--url-cert: a certificate and its private key must be given together"],
    ["call --url https://x/ --url-ca /nothing", "--url-ca: Cannot read /nothing"],
    ["call --url http://x/ -H 'Proxy-Authorization: Basic s3cret'", "The header Proxy-Authorization is not allowed"],
  ];
  for (const [words, says] of cases) {
    const ended = await new RetryShell(session).run(`@retry ${words} </dev/null`);
    expect([words, ended.code, ended.stderr]).toEqual([words, 64, expect.stringContaining(says)]);
    expect(ended.stderr).not.toContain("s3cret");
  }
  const store = new RetryShell(session);
  await store.run("echo a | @retry submit -- true");
  expect((await store.run("@retry run --once --retry-on 65,5xx")).code).toBe(0);
});
