/** docs/examples/redelivery, as its comments say; and processors of which one leads. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { runtimes } from "../../support/runtimes.ts";

setDefaultTimeout(60_000);

const folder = join(import.meta.dir, "../../../docs/examples/redelivery");

function example(): { session: BatonSession; env: Record<string, string> } {
  const session = new BatonSession({
    BATON_SERVERS: "embedded",
    BATON_SESSION_TIMEOUT: "2s",
    BATON_RETRY_INTERVAL: "50ms",
  });
  const [, bun] = runtimes;
  return { session, env: { example: folder, BATON: session.env["baton"] ?? "", bun: bun?.command[0] ?? "" } };
}

test("a service that is down causes a fault; the order arrives once, although the proxy is killed", async () => {
  const { session, env } = example();
  await using _session = session;
  const [proxyPort = 0, port = 0] = await freePorts(2);
  const proxy = () =>
    session.start(`exec sh "$example/proxy.sh" ${proxyPort} http://127.0.0.1:${port}/ store 1000 50ms`, env);
  const first = proxy();
  await eventually(() => first.stderr().includes("serves"), { withinMs: 15_000 });
  const response = await fetch(`http://127.0.0.1:${proxyPort}/`, {
    method: "POST",
    body: '<order id="7"/>',
    headers: { SOAPAction: "urn:order" },
  });
  expect([response.status, await response.text()]).toEqual([502, expect.stringContaining("soapenv:Fault")]);
  first.child.kill("SIGKILL");
  await first.ended;
  const second = proxy();
  session.start(`exec "$bun" "$example/stock_service.mjs" ${port} orders`, env);
  await session.said("orders"); // the service makes the file a moment before it writes
  expect(session.read("orders")).toMatch(/^[0-9a-f]{32} <order id="7"\/>\n$/);
  second.child.kill("SIGTERM");
  expect((await second.ended).code).toBe(0);
});

test("a background operation without its lock is stored, then delivered, or a dead letter in the end", async () => {
  const { session, env } = example();
  await using _session = session;
  const job = "touch held; while [ ! -e free ]; do sleep 0.02; done";
  // A busy machine may keep a session of two seconds from being renewed.
  const hold = (name: string) => session.start(`exec "$baton" lock -q --session-timeout 20s ${name} -- sh -c '${job}'`);
  const background = (article: number, wait = "500ms") =>
    session.run(
      `echo body ${article} | sh "$example/background.sh" store articles/${article} ${wait} sh -c 'cat >>propagated'`,
      env,
    );
  const run = (words: string) =>
    session.start(`exec "$baton" retry-processor run --store store -q --until-empty ${words}`);
  const letters = "--dead-letter file:MdmDeadLetterQueue.jsonl";
  const holder = hold("articles/7");
  await session.made("held");
  const refused = await background(7);
  expect([refused.code, refused.stderr]).toEqual([75, expect.stringContaining("exited with 75; stored in")]);
  expect((await background(8, "20s")).code).toBe(0);
  expect(session.read("propagated")).toBe("body 8\n");

  // Never free: dead after the redeliveries that were asked for, with the body, in the queue of dead letters.
  expect((await run(`--max-retries 3 ${letters}`).ended).code).toBe(0);
  expect([session.read("propagated"), holder.stderr()]).toEqual(["body 8\n", ""]);
  const letter = JSON.parse(session.read("MdmDeadLetterQueue.jsonl")) as {
    tries: number;
    reason: string;
    body: string;
  };
  expect([letter.tries, letter.reason, atob(letter.body)]).toEqual([4, "exhausted", "body 7\n"]);

  // Free again: delivered.
  expect((await background(7)).code).toBe(75);
  const running = run(`--max-retries 1000 ${letters}`);
  await session.run("touch free");
  expect((await running.ended).code).toBe(0);
  expect(session.read("propagated")).toBe("body 8\nbody 7\n");
  await holder.ended;
});

test("under baton elect one processor works at a time, another continues, and nothing runs twice", async () => {
  const { session } = example();
  await using _session = session;
  const section = "me=$(cat); exec 9>lock$me; flock -n 9 || touch broken; echo $me >>tried; [ -e quick ] || sleep 30";
  await session.run('seq 3 | "$baton" retry-processor submit --lines --store store');
  const run = `"$baton" retry-processor run --store store --lease 2s --interval 10ms -j 3 --exec '${section}'`;
  const elect = () =>
    session.start(`exec "$baton" elect -q retry-stock --value a -- sh -c 'echo up >>ups; exec "$@"' sh ${run}`);
  const [one, two] = [elect(), elect()];
  await eventually(() => existsSync(session.path("tried")) && session.read("tried").trim().split("\n").length === 3, {
    withinMs: 20_000,
  });
  expect(session.read("ups")).toBe("up\n");
  await session.run("touch quick");
  const who = (await session.run('"$baton" who --kind election retry-stock --json')).stdout;
  const pid = (JSON.parse(who) as { holders: { pid: number }[] }).holders[0]?.pid;
  expect([one.child.pid, two.child.pid]).toContain(pid);
  const [killed, other] = pid === two.child.pid ? [two, one] : [one, two];
  killed.child.kill("SIGKILL");
  await eventually(async () => {
    const { stdout } = await session.run('"$baton" retry-processor stats --json --store store');
    return (JSON.parse(stdout) as { states: { done: { count: number } } }).states.done.count === 3;
  }, { withinMs: 30_000 });
  expect(session.read("ups")).toBe("up\nup\n");
  expect(existsSync(session.path("broken"))).toBe(false);
  other.child.kill("SIGTERM");
  await other.ended;
});
