/** Services whose stderr is a pipe that is full, because its reader has stopped: they serve, and lose messages only. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, constants, openSync, writeFileSync, writeSync } from "node:fs";
import { BatonSession } from "../support/baton_session.ts";
import { eventually } from "../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let pipe: number;
beforeAll(async () => {
  session = new BatonSession();
  expect((await session.run('mkfifo "$dir/full"')).code).toBe(0);
  pipe = openSync(session.path("full"), constants.O_RDWR | constants.O_NONBLOCK);
  try {
    for (;;) writeSync(pipe, "x".repeat(4096));
  } catch (thrown) {
    expect((thrown as NodeJS.ErrnoException).code).toBe("EAGAIN");
  }
});
afterAll(async () => {
  closeSync(pipe);
  await session[Symbol.asyncDispose]();
});

/** Starts a service with messages about everything, and repeats a call until it succeeds. */
async function serves(service: string, call: string): Promise<void> {
  const running = session.start(`exec "$baton" ${service} -v 2>"$dir/full"`);
  await eventually(async () => (await session.run(call)).code === 0, { what: `${service} to serve`, withinMs: 15_000 });
  running.child.kill("SIGTERM");
  const { code, signal } = await running.ended;
  expect(code ?? signal).toBe(code === null ? "SIGTERM" : 0);
}

test("a keeper", async () => {
  await serves('keeper --data-dir "$dir/k" --listen "unix:$dir/k.sock"', '"$baton" lock -z "unix:$dir/k.sock" a true');
});

test("a server and a proxy of publish/subscribe", async () => {
  await serves("pubsub serve", '"$baton" publish news hello --timeout 2s');
});

test("a retry processor", async () => {
  expect((await session.run('echo hi | "$baton" retry-processor submit --store "$dir/q"')).code).toBe(0);
  await serves('retry-processor run --store "$dir/q" --exec \'touch "$dir/tried"\'', 'test -e "$dir/tried"');
});

test("a crontab", async () => {
  const job = `#baton name=job catch-up=1h retry=1\n* * * * * touch ${session.path("ticked")}\n`;
  writeFileSync(session.path("jobs.cron"), job);
  await session.run(`"$baton" lock job --tick '* * * * *' --catch-up 1h --retry 1 -- false`); // so that no minute passes
  await serves('cron "$dir/jobs.cron" --splay 0', 'test -e "$dir/ticked"');
});
