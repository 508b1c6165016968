/**
 * Variables and files that mean something to the runtime in the binary, or to other programs built on it: they have no
 * effect on baton.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";
import { HttpBackend } from "../../support/http_backend.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let backend: HttpBackend;
beforeAll(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  backend = await new HttpBackend((_, response) => void response.writeHead(200).end("ok\n")).up();
  mkdirSync(session.path("here"));
  writeFileSync(session.path("here/preload.js"), 'process.stderr.write("PRELOADED\\n");');
});
afterAll(async () => {
  await backend[Symbol.asyncDispose]();
  await session[Symbol.asyncDispose]();
});

const script = () =>
  `cd here && "$baton" lock -q l -- sh -c 'echo "$NAME=$(printenv "$NAME")"' && "$baton" version >/dev/null && ` +
  `"$baton" retry-processor call -q --store ../store --no-stdin --url ${backend.url}/`;

test.each([
  ["BUN_OPTIONS", "--preload ./preload.js"],
  ["BUN_OPTIONS", "--version"],
  ["BUN_OPTIONS", "--cpu-prof"],
  ["BUN_BE_BUN", "1"],
  ["BUN_INSPECT", "ws://127.0.0.1:1/?wait=1"],
  ["BUN_INSPECT_PRELOAD", "./preload.js"],
  ["BUN_BYTECODE_ORDER_OUT", "./order"],
  ["BUN_CONFIG_VERBOSE_FETCH", "curl"],
  ["NODE_OPTIONS", "--require ./preload.js"],
  ["NODE_DEBUG", "http,https,net,tls"],
  ["NODE_V8_COVERAGE", "./coverage"],
  ["NODE_COMPILE_CACHE", "./cache"],
])("%s=%s is for the command only", async (name, value) => {
  const ended = await session.run(script(), { NAME: name, [name]: value });
  expect(ended).toMatchObject({ code: 0, stdout: `${name}=${value}\nok\n`, stderr: "" });
  expect(readdirSync(session.path("here"))).toEqual(["preload.js"]);
});

test("files of the working folder and of the home that the runtime reads have no effect", async () => {
  const preload = `preload = [${JSON.stringify(session.path("here/preload.js"))}]\n`;
  const variables = "BATON_SERVERS=127.0.0.1:1\nBATON_CONNECT_TIMEOUT=1s\nNAME=BATON_CONNECT_TIMEOUT\n";
  const files = {
    ".env": variables,
    ".env.local": variables,
    ".env.production": variables,
    "bunfig.toml": preload,
    "package.json": "{",
    "tsconfig.json": "{",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(session.path(`here/${name}`), text);
  writeFileSync(session.path(".bunfig.toml"), preload);
  expect(await session.run(script(), { NAME: "FOO", FOO: "bar" })).toMatchObject({
    code: 0,
    stdout: "FOO=bar\nok\n",
    stderr: "",
  });
});
