/** Services do not listen where other machines can connect without TLS or keys, unless they are told to. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { CertificateAuthority, type Issued } from "../../support/certificate_authority.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let issued: Issued;
beforeAll(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  issued = await (await CertificateAuthority.start(session.folder, "tests")).issue("keeper");
  expect((await session.run('"$baton" pubsub keygen service.key')).code).toBe(0);
});
afterAll(() => session[Symbol.asyncDispose]());

const keeper = "keeper --data-dir keeper-data";
const server = "pubsub server --id s1 --data-dir s1";
const url = "--url http://127.0.0.1:9/";

/** Calls of services that open a socket for other machines, and what the error says about protection. */
const openCalls: readonly (readonly [call: string, advice: string])[] = [
  [`${keeper} --listen 0.0.0.0:0`, "protect it with --tls-cert and --tls-key"],
  [`${keeper} --listen unix:$dir/k.sock,[::]:0`, "protect it with --tls-cert and --tls-key"],
  [`${keeper} --listen unix:$dir/k.sock --metrics-listen 0.0.0.0:0`, "Either listen on 127.0.0.1"],
  [`${server} --listen tcp://0.0.0.0:0 --advertise tcp://db1:7001`, "protect it with --key"],
  [`${server} --key service.key --metrics-listen 0.0.0.0:0`, "Either listen on 127.0.0.1"],
  ["pubsub proxy --listen tcp://0.0.0.0:0 --advertise tcp://px1:5001", "protect it with --key"],
  ["pubsub proxy --listen tcp://127.0.0.1:0,tcp://*:0", "protect it with --key"],
  [`retry-processor serve --store calls --listen 0.0.0.0:0 ${url}`, "Either listen on 127.0.0.1"],
  [`retry-processor run --create --store tries --metrics-listen 0.0.0.0:0 ${url}`, "Either listen on 127.0.0.1"],
  ["metrics --listen 0.0.0.0:0", "Either listen on 127.0.0.1"],
  ["forward leader --listen 0.0.0.0:0", "Either listen on 127.0.0.1"],
];

describe.each(openCalls)("baton %s", (call, advice) => {
  test("is refused with 78, and says how to protect or to allow it", async () => {
    const { code, stdout, stderr } = await session.run(`"$baton" ${call}`);
    expect([code, stdout]).toEqual([78, ""]);
    expect(stderr).toMatch(/Cannot listen on \S+:0: other machines can connect there, and nothing keeps them out\./);
    expect(stderr).toContain(advice);
    expect(stderr).toContain("or allow it with --insecure");
  });

  test("serves with --insecure, and says at its start who can connect", async () => {
    const running = session.start(`exec "$baton" ${call} --insecure`);
    await eventually(() => running.stderr().includes("for other machines, too, WITHOUT TLS OR KEYS"), {
      what: `${call} to say who can connect`,
      withinMs: 20_000,
    });
    running.child.kill("SIGTERM");
    await running.ended;
  });
});

describe.each([
  () => `${keeper} --listen 0.0.0.0:0 --tls-cert ${issued.cert} --tls-key ${issued.key}`,
  () => `${server} --listen tcp://0.0.0.0:0 --advertise tcp://db1:7001 --key service.key`,
  () => "pubsub proxy --listen tcp://0.0.0.0:0 --advertise tcp://px1:5001 --key service.key",
])("with TLS or keys", (call) => {
  test("a service listens for other machines without --insecure", async () => {
    const running = session.start(`exec "$baton" ${call()}`);
    await eventually(() => running.stderr().includes("for other machines, too"), { withinMs: 20_000 });
    expect(running.stderr()).not.toContain("WITHOUT");
    running.child.kill("SIGTERM");
    await running.ended;
  });
});

test("a key in the configuration file allows it, too", async () => {
  const running = session.start(`exec "$baton" ${keeper} --listen 0.0.0.0:0`, { BATON_KEEPER_INSECURE: "true" });
  await eventually(() => running.stderr().includes("WITHOUT TLS OR KEYS"), { withinMs: 20_000 });
  running.child.kill("SIGTERM");
  await running.ended;
});
