/**
 * `baton pubsub client` of the binary under test, run again and again and killed now and then; the history is written
 * around it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { onAbort } from "../../../../src/base/support/abort.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { batonCommand } from "../../../support/keeper_server.ts";
import type { Got } from "./history.ts";
import { gotOf, hashOf, markedBody, nameIn } from "./marked_body.ts";
import type { PlainOptions } from "./plain_clients.ts";

/** `over`: what runs is killed, and no matter what it had. */
export interface CliOptions extends PlainOptions {
  readonly folder: string;
  /** Whether it may be killed now. */
  readonly mayKill: () => boolean;
  readonly killed: (client: string) => void;
}

const clock = systemClock();
const killShare = 0.3;
const lookMs = 20;
const linesMax = 60;

interface Ended {
  readonly code: number | null;
  readonly stderr: string;
}

/** A line for each message of a file that grows: `put --lines FILE --resume` until it ends with 0. */
export async function cliPublish(client: string, options: CliOptions): Promise<number> {
  const { folder, topic, writer, random, phase, over, troubled } = options;
  const file = join(folder, "lines");
  let count = 0;
  for (let session = 1; phase() === "work"; session++) {
    const bodies = Array.from({ length: 1 + Math.floor(random() * linesMax) }, () => {
      return markedBody(`${client}.${++count}`, 20 + Math.floor(random() * 200));
    });
    for (const body of bodies) appendFileSync(file, Buffer.concat([body, Buffer.from("\n")]));
    const puts = bodies.map((body) => [nameIn(body), hashOf(body)] as const);
    for (let attempt = 0;; attempt++) {
      const more = attempt === 0 ? {} : { resumed: true };
      const n = writer.invoke({ client, session, do: "put", topic, counter: 1, puts, ...more });
      const { code, stderr } = await run([client, "put", topic, "--lines", file, "--resume"], options, client).ended;
      writer.return(n, { outcome: code === 0 ? "ok" : "unknown", status: `exit ${code}` });
      if (code === 0) break;
      if (over.aborted) return count;
      if (code !== null && ![69, 70, 76, 85].includes(code)) troubled(`${client}: put ended with ${code}: ${stderr}`);
      await sleep(clock, lookMs);
    }
    await sleep(clock, random() * 200);
  }
  return count;
}

/** To stdout, as JSON: a message that was printed is had when the next one is. */
export async function cliPrint(client: string, options: CliOptions): Promise<void> {
  const { writer, topic } = options;
  await untilDrained(client, options, ["--json"], (n) => {
    let rest = "";
    let before = -1;
    return {
      heard(chunk) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          const { id: text, body, redelivered } = JSON.parse(line) as {
            id: string;
            body: string;
            redelivered: boolean;
          };
          const id = Number(text);
          if (before >= 0) writer.had(n, before);
          writer.saw(n, { upTo: id, got: [gotOf(id, Buffer.from(body))], ...(redelivered ? { again: [id] } : {}) });
          before = id;
        }
      },
      ended(code) {
        if (code === 0 && before >= 0) writer.had(n, before);
      },
    };
  }, { topic });
}

/** Into files, which are taken away as soon as they are there. */
export async function cliFiles(client: string, options: CliOptions): Promise<void> {
  const { writer, topic } = options;
  const inbox = join(options.folder, "inbox");
  const take = (n: number) => {
    if (!existsSync(inbox)) return;
    const ids = readdirSync(inbox).filter((name) => /^\d+$/.test(name)).map(Number).sort((a, b) => a - b);
    for (const id of ids) {
      const body = readFileSync(join(inbox, String(id)));
      rmSync(join(inbox, String(id)));
      writer.saw(n, { upTo: id, got: [gotOf(id, body)] });
      writer.had(n, id);
    }
  };
  await untilDrained(client, options, ["--out-dir", inbox], (n) => ({ look: () => take(n), ended: () => take(n) }), {
    topic,
    isUnordered: true,
  });
}

/** To a line of shell, which leaves a file for each time that it was run to its end. */
export async function cliExec(client: string, options: CliOptions): Promise<void> {
  const { writer, topic } = options;
  const spool = join(options.folder, "spool");
  const done = join(options.folder, "done");
  mkdirSync(spool);
  mkdirSync(done);
  const line = `cat > "${spool}/$$" && mv "${spool}/$$" "${done}/$BATON_MESSAGE_ID.$BATON_REDELIVERED.$$"`;
  const take = (n: number) => {
    const found = readdirSync(done).map((name) => ({ name, parts: name.split(".").map(Number) }));
    found.sort((a, b) => (a.parts[0] ?? 0) - (b.parts[0] ?? 0) || (a.parts[1] ?? 0) - (b.parts[1] ?? 0));
    let last = -1;
    for (const { name, parts: [id = 0, redelivered] } of found) {
      const body = readFileSync(join(done, name));
      renameSync(join(done, name), join(spool, name));
      if (last >= 0 && last < id) writer.had(n, last);
      const got: Got[] = [gotOf(id, body)];
      writer.saw(n, { upTo: id, got, ...(redelivered === 1 ? { again: [id] } : {}) });
      last = id;
    }
    return last;
  };
  await untilDrained(client, options, ["--exec", line], (n) => {
    return {
      ended(code) {
        const last = take(n);
        if (code === 0 && last >= 0) writer.had(n, last);
      },
    };
  }, { topic, isUnordered: true });
}

interface Listener {
  readonly heard?: (chunk: string) => void;
  readonly look?: () => void;
  readonly ended: (code: number | null) => void;
}

async function untilDrained(
  client: string,
  options: CliOptions,
  words: readonly string[],
  listen: (n: number) => Listener,
  { topic, isUnordered = false }: { readonly topic: string; readonly isUnordered?: boolean },
): Promise<void> {
  const { writer, phase, over, troubled } = options;
  while (!over.aborted) {
    const isDraining = phase() === "drain";
    const wait = isDraining ? [] : ["--wait", "500ms"];
    const more = isUnordered ? { unordered: true } : {};
    const n = writer.invoke({ client, session: 0, do: "get", topic, ...more });
    const listener = listen(n);
    const { child, ended } = run([client, "get", topic, "--until-empty", ...wait, ...words], options, client);
    child.stdout?.on("data", (chunk: Uint8Array) => listener.heard?.(chunk.toString()));
    const looking = listener.look === undefined ? null : setInterval(listener.look, lookMs);
    const { code, stderr } = await ended;
    if (looking !== null) clearInterval(looking);
    listener.ended(code);
    const isOk = code === 0 || code === 1;
    writer.return(n, { outcome: isOk ? "ok" : "unknown", status: `exit ${code}` });
    if (isDraining && isOk) return;
    if (code !== null && !isOk && ![69, 70, 76, 85].includes(code)) {
      troubled(`${client}: get ended with ${code}: ${stderr}`);
    }
    await sleep(clock, lookMs);
  }
}

export async function cliSubscribe(client: string, options: CliOptions): Promise<void> {
  const { writer, topic, over } = options;
  while (!over.aborted) {
    const n = writer.invoke({ client, session: 0, do: "subscribe", topic });
    const { code } = await run([client, "subscribe", topic], options, null).ended;
    writer.return(n, { outcome: code === 0 ? "ok" : "unknown", status: `exit ${code}` });
    if (code === 0) return;
  }
}

/** `victim`: may be killed in the middle. */
function run(
  words: readonly string[],
  { folder, proxies, random, over, mayKill, killed }: CliOptions,
  victim: string | null,
): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
  const [program = "", ...rest] = batonCommand();
  const where = ["--proxies", proxies.join(","), "--state-dir", join(folder, "state")];
  const times = ["--timeout", "10s", "--retry-timeout", "1500ms"];
  const child = spawn(program, [...rest, "pubsub", "client", ...words, ...where, ...times], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: folder,
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Uint8Array) => stderr = (stderr + chunk.toString()).slice(-500));
  const isDoomed = victim !== null && mayKill() && random() < killShare;
  const cancel = isDoomed
    ? clock.startTimer(random() * 800, () => {
      if (mayKill() && child.kill("SIGKILL")) killed(victim);
    })
    : () => {};
  const offOver = onAbort(over, () => child.kill("SIGKILL"));
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code) => {
      cancel();
      offOver();
      resolve({ code, stderr });
    });
  });
  return { child, ended };
}
