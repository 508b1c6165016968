/**
 * Commands whose stderr or stdout is a pipe that is full, because its reader has stopped: they go on, and lose messages
 * only.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, constants, openSync, readdirSync, readlinkSync, readSync, writeFileSync, writeSync } from "node:fs";
import { BatonSession, type Running, untilMade } from "../../support/baton_session.ts";
import { leaveTick } from "../../support/left_tick.ts";
import { eventually } from "../../support/eventually.ts";
import { canBeOthers } from "../../support/other_user.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let pipe: number;
beforeAll(async () => {
  session = new BatonSession();
  expect((await session.run('mkfifo "$dir/full"; chmod 755 "$dir"')).code).toBe(0);
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

describe("a service whose stderr is full serves:", () => {
  /** Starts a service with messages about everything, and repeats a call until it succeeds. */
  async function serves(service: string, call: string): Promise<void> {
    const running = session.start(`exec "$baton" ${service} -v 2>"$dir/full"`);
    const hasServed = async () => (await session.run(call)).code === 0;
    await eventually(hasServed, { what: `${service} to serve`, withinMs: 15_000 });
    running.child.kill("SIGTERM");
    const { code, signal } = await running.ended;
    expect(code ?? signal).toBe(code === null ? "SIGTERM" : 0);
  }

  test("a keeper", async () => {
    await serves(
      'keeper --data-dir "$dir/k" --listen "unix:$dir/k.sock"',
      '"$baton" lock -z "unix:$dir/k.sock" a true',
    );
  });

  test("a server and a proxy of publish/subscribe", async () => {
    await serves("pubsub serve", '"$baton" publish news hello --timeout 2s');
  });

  test("a retry processor", async () => {
    expect((await session.run('echo hi | "$baton" retry-processor submit --store "$dir/q"')).code).toBe(0);
    await serves('retry-processor run --store "$dir/q" --exec \'touch "$dir/tried"\'', 'test -e "$dir/tried"');
  });

  test("a crontab", async () => {
    const job = `CRON_TZ=UTC\n#baton name=job catch-up=1h retry=1 retry-delay=0\n* * * * * touch ${
      session.path("ticked")
    }\n`;
    writeFileSync(session.path("jobs.cron"), job);
    await leaveTick(session, "job"); // so that no minute passes
    await serves('cron "$dir/jobs.cron" --splay 0', 'test -e "$dir/ticked"');
  });
});

// Each prints messages while it holds or wants something, and again before it ends.
const commands: readonly (readonly [what: string, script: string])[] = [
  ["lock", '"$baton" lock -v a -- touch a-had 2>full && [ -e a-had ]'],
  [
    "a lock that waits",
    `"$baton" lock -q b -- sh -c 'touch b-held; ${untilMade("b-go")}' & ${
      untilMade("b-held")
    }; "$baton" lock -v b true 2>full & ` +
    `last=$!; until "$baton" who b --json | grep -q '"waiters":.{'; do sleep 0.05; done; touch b-go; wait $last`,
  ],
  ["elect", '"$baton" elect -v e --restart never -- true 2>full'],
  ["barrier", '"$baton" barrier -v r -N 2 -- true 2>full & "$baton" barrier -v r -N 2 -- true 2>full && wait $!'],
  ["pool", '"$baton" pool -v p --items 1,2,3 -j 1 -- touch p-{} 2>full && [ -e p-3 ]'],
  [
    "hold and release",
    'held=$("$baton" hold -v h --pid $$ 2>full) && eval "$held" && "$baton" release -v h 2>full && [ -n "$BATON_FENCING_TOKEN" ]',
  ],
  [
    "forward",
    `"$baton" forward -v e --listen "unix:$dir/f.sock" 2>full & ${untilMade("f.sock")}; kill $!; wait $!; [ $? = 143 ]`,
  ],
  ["call", '"$baton" retry-processor call -v --store "$dir/s" --max-retries 0 -- sh -c "exit 65" 2>full; [ $? = 65 ]'],
];

test.concurrent.each(commands)("a command whose stderr is full goes on and ends: %s", async (_what, script) => {
  expect(await session.run(script)).toMatchObject({ code: 0 });
});

test.skipIf(!canBeOthers("a full pipe of another user is not tried"))(
  "also where the pipe is another user's",
  async () => {
    await session.run('mkdir -m 1777 open; chmod 600 full; cp "$baton" baton; chmod 755 baton');
    const other = "BATON_KEEPER_DIR=$dir/open/keeper setpriv --reuid=64871 --regid=64871 --clear-groups";
    const ended = await session.run(`cd open; ${other} ../baton pool -v p --items 1,2,3 -j 1 -- touch p-{} 2>../full`);
    expect([ended.code, (await session.run("ls open")).stdout]).toEqual([0, expect.stringContaining("p-3\n")]);
  },
);

/** The text that a non-blocking pipe has now. */
function readPipe(reader: number): string {
  const bytes = new Uint8Array(1 << 20);
  try {
    return new TextDecoder().decode(bytes.subarray(0, readSync(reader, bytes)));
  } catch (thrown) {
    expect((thrown as NodeJS.ErrnoException).code).toBe("EAGAIN");
    return "";
  }
}

/** A socket that is full as stdout and stderr of the program of argv; exits with its code. */
const onSocket = `
import socket, subprocess, sys
reader, writer = socket.socketpair()
writer.setblocking(False)
try:
    while True: writer.send(b"x" * 4096)
except BlockingIOError: pass
writer.setblocking(True)
sys.exit(subprocess.run(sys.argv[1:], stdout=writer, stderr=writer).returncode)
`;

test("also where stderr is a socket, as under systemd", async () => {
  writeFileSync(session.path("on_socket.py"), onSocket);
  const words = "pool -v sockets --items 1,2,3 -j 1 -- touch s-{}";
  expect((await session.run(`python3 on_socket.py "$baton" ${words} && [ -e s-3 ]`)).code).toBe(0);
});

test("a pool whose job log is a full pipe runs its items, and at its end waits for the reader", async () => {
  const script = `exec "$baton" pool -q j --items 1,2 -j 1 --joblog full -- touch "$dir/j-{}"`;
  const running = session.start(script);
  await session.made("j-2");
  const isOver = async () => (await session.run('"$baton" who -q j')).code === 1;
  await eventually(isOver, { what: "the pool to release its component", withinMs: 15_000 });
  running.child.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: null, signal: "SIGTERM" });
});

describe("a command whose stdout is full", () => {
  /** Resolves when the command has printed to the pipe, which it then has open a second time. */
  async function printsTo(name: string, { child: { pid } }: Running): Promise<void> {
    const target = session.path(name);
    const isOpenTwice = () => {
      try {
        const links = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
        return links.filter((link) => link === target).length > 1;
      } catch {
        return false; // not started yet
      }
    };
    await eventually(isOpenTwice, { what: `process ${pid} to print to ${name}`, withinMs: 15_000 });
  }

  function linkOf(path: string): string {
    try {
      return readlinkSync(path);
    } catch {
      return ""; // closed meanwhile
    }
  }

  test.concurrent.each([
    "who w --watch",
    "who w --watch --json",
    "ls --watch --json",
    "leader e --watch",
    "retry-processor dlq export --store $dir/letters",
  ])("ends by a signal: %s", async (words) => {
    await session.run('echo x | "$baton" retry-processor call -q --store "$dir/letters" --max-retries 0 -- false');
    const running = session.start(`exec "$baton" ${words} >"$dir/full"`);
    await printsTo("full", running);
    running.child.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: null, signal: "SIGTERM" });
  });

  test("has printed everything at its end, when the reader reads again", async () => {
    const letter =
      `head -c 100000 /dev/zero | "$baton" retry-processor call -q --store "$dir/large" --max-retries 0 -- false`;
    await session.run(`mkfifo slow; ${letter}; ${letter}`);
    const reader = openSync(session.path("slow"), constants.O_RDONLY | constants.O_NONBLOCK);
    const running = session.start('exec "$baton" retry-processor dlq export --store "$dir/large" >slow');
    await printsTo("slow", running);
    const base64Length = 133_336; // of 100,000 bytes
    let text = "";
    let isOver = false;
    void running.ended.then(() => isOver = true);
    await eventually(() => {
      text += readPipe(reader);
      return isOver;
    }, { what: "the export to end", withinMs: 15_000 });
    text += readPipe(reader);
    closeSync(reader);
    expect((await running.ended).code).toBe(0);
    expect(text.trimEnd().split("\n").map((line) => JSON.parse(line).body.length)).toEqual([
      base64Length,
      base64Length,
    ]);
  });

  test("a message that was not printed comes again", async () => {
    const service = session.start('exec "$baton" pubsub serve -q');
    const isServed = async () =>
      (await session.run('"$baton" pubsub client alice subscribe big --timeout 2s')).code === 0;
    await eventually(isServed, { what: "the service to serve", withinMs: 15_000 });
    expect((await session.run('head -c 300000 /dev/zero | "$baton" publish big -')).code).toBe(0);
    const running = session.start('exec "$baton" pubsub client alice get big >"$dir/full"');
    await printsTo("full", running);
    running.child.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ signal: "SIGTERM" });
    const again = await session.run('"$baton" pubsub client alice get big | wc -c');
    expect(Number(again.stdout)).toBe(300_000);
    service.child.kill("SIGTERM");
    await service.ended;
  });
});
