/** Runs the calls whose ways are listed, and says which part of which program counts. */
import { writeFileSync } from "node:fs";
import type { BatonSession, Running } from "../../test/support/baton_session.ts";
import { eventually } from "../../test/support/eventually.ts";

export interface ObservedPart {
  readonly name: string;
  /** How the program's command line begins. */
  readonly words: string;
  /** When the part begins, in milliseconds since 1970; the start of the program by default. */
  readonly fromMs?: number;
  readonly toMs?: number;
  /** The function that ends the part. Then only functions count that had never run before. */
  readonly until?: string;
}

type ObservedCall = (session: BatonSession) => Promise<readonly ObservedPart[]>;

/** Each call ends the programs that it starts, because a program writes its record when it ends. */
export const observedCalls: Readonly<Record<string, ObservedCall>> = {
  lock: observeLock,
  wait: observeWait,
  elect: observeElect,
  call: observeCall,
  put: (session) => observePubsub(session, "put", "pubsub client bob put news message"),
  get: (session) => observePubsub(session, "get", "pubsub client alice get news --wait 10s"),
};

async function observeLock(session: BatonSession): Promise<ObservedPart[]> {
  await run(session, "lock first -- true"); // starts the keeper
  await run(session, "lock a -- true");
  return [{ name: "lock", words: "lock a" }];
}

async function observeWait(session: BatonSession): Promise<ObservedPart[]> {
  const holder = session.start(`exec "$baton" lock w -- sh -c '${untilFile("stop")}'`);
  await eventuallyCount(session, "who w", "holders", 1);
  const waiter = session.start('exec "$baton" lock w -- true');
  await eventuallyCount(session, "who w", "waiters", 1);
  const fromMs = now();
  writeFileSync(session.path("stop"), "");
  await Promise.all([holder, waiter].map(succeeded));
  return [{ name: "wait", words: "lock w -- true", fromMs, until: "checkFirstThreadHasChild" }];
}

async function observeElect(session: BatonSession): Promise<ObservedPart[]> {
  const candidate = (id: string) =>
    session.start(`exec "$baton" elect e --value ${id} --restart never -- sh -c 'touch led-${id}; ${untilFile(id)}'`);
  const first = candidate("one");
  await session.made("led-one");
  const second = candidate("two");
  await eventuallyCount(session, "who e --kind election", "waiters", 1);
  const fromMs = now();
  const resigning = run(session, "resign e");
  await session.made("led-two");
  await resigning;
  writeFileSync(session.path("two"), "");
  await Promise.all([first.ended, succeeded(second)]);
  return [{ name: "elect", words: "elect e --value two", fromMs, until: "checkFirstThreadHasChild" }];
}

async function observeCall(session: BatonSession): Promise<ObservedPart[]> {
  await run(session, "retry-processor call --store store -- true");
  return [{ name: "call", words: "retry-processor call" }];
}

async function observePubsub(session: BatonSession, name: string, words: string): Promise<ObservedPart[]> {
  const service = session.start('exec "$baton" pubsub serve --data-dir topics');
  await eventually(() => service.stderr() !== "", { what: "the service to start", withinMs: 15_000 });
  await run(session, "pubsub client alice subscribe news");
  writeFileSync(session.path("message"), "hello");
  await run(session, "pubsub client bob put news message");
  const fromMs = now();
  await run(session, words);
  const toMs = now();
  service.child.kill("SIGTERM");
  await service.ended;
  return [
    { name, words, fromMs },
    { name: `${name}, proxy and server`, words: "pubsub serve", fromMs, toMs },
  ];
}

async function run(session: BatonSession, words: string): Promise<void> {
  await succeeded(session.start(`exec "$baton" ${words}`));
}

async function succeeded(running: Running): Promise<void> {
  const { code, stderr } = await running.ended;
  if (code !== 0) throw new Error(`A program ended with ${code}: ${stderr}`);
}

/** Waits until `--json` of a command shows this many entries, twice: what follows their arrival is then done, too. */
async function eventuallyCount(session: BatonSession, words: string, field: string, count: number): Promise<void> {
  for (let times = 0; times < 2; times++) {
    await eventually(async () => {
      const { stdout } = await session.run(`"$baton" ${words} --json -q`);
      return (JSON.parse(stdout) as Record<string, unknown[]>)[field]?.length === count;
    }, { what: `${count} ${field}`, withinMs: 15_000 });
  }
}

function untilFile(name: string): string {
  return `until [ -e ${name} ]; do sleep 0.02; done`;
}

function now(): number {
  return performance.timeOrigin + performance.now();
}
