/**
 * Records the session that the README's picture shows, with the compiled binary in two real terminals: a lock, a
 * refusal that names the holder, kill -9 of the holder, the next process that gets the lock, and the dead job of the
 * first one.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ownUserName } from "../../src/base/support/user_name.ts";
import { drawPicture } from "./draw_picture.ts";
import { RecordedTerminal } from "./record_terminal.ts";
import { TerminalScreen } from "./terminal_screen.ts";

const columns = 96;
/** How long the last change is shown at least, and how long the final state. */
const pauseMs = 700;
const restMs = 4_000;
/** A job that runs until the recording ends. */
const backup = '#!/bin/sh\necho "backup $$ starts"\nwhile [ ! -e "$HOME/ended" ]; do sleep 0.1; done\n';
const shapes = [{ title: "terminal 1", rows: 7 }, { title: "terminal 2", rows: 4 }] as const;

export interface RecordedSession {
  readonly svg: string;
  /** The final text of the terminals. */
  readonly transcript: string;
}

/** Runs the session, which takes about eight seconds. */
export async function recordLockSession(binary: string): Promise<RecordedSession> {
  const folder = mkdtempSync(join(tmpdir(), "baton-picture-"));
  symlinkSync(binary, join(folder, "baton"));
  writeFileSync(join(folder, "backup.sh"), backup, { mode: 0o755 });
  const env = {
    PATH: `${folder}:${process.env["PATH"] ?? "/usr/bin:/bin"}`,
    HOME: folder,
    PS1: "\x1b[32m$\x1b[39m ",
    BATON_KEEPER_DIR: join(folder, "keeper"),
    BATON_SERVERS: "embedded", // hides the message about the scope
  };
  try {
    const startMs = performance.now();
    const open = ({ rows }: { rows: number }) => new RecordedTerminal({ columns, rows, env, folder, startMs });
    await using first = open(shapes[0]);
    await using second = open(shapes[1]);
    try {
      await playSession(first, second);
      return draw([first, second], performance.now() - startMs);
    } finally {
      writeFileSync(join(folder, "ended"), "");
    }
  } finally {
    endKeeper(join(folder, "keeper"));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function playSession(first: RecordedTerminal, second: RecordedTerminal): Promise<void> {
  await first.shows(/\$\S* /);
  await second.shows(/\$\S* /);
  await first.type("baton lock nightly ./backup.sh");
  const [, job] = await first.shows(/backup (\d+) starts/);
  await Bun.sleep(pauseMs);
  await second.type("baton lock -n nightly ./backup.sh");
  const [, holder] = await second.shows(/\(pid (\d+)[^$]*\$\S* /);
  await Bun.sleep(pauseMs);
  await second.type(`kill -9 ${holder}; baton lock nightly ./backup.sh`);
  await first.shows(/Killed[^$]*\$\S* /);
  await second.shows(/backup \d+ starts/);
  await Bun.sleep(pauseMs);
  // Process 1 may take a moment to reap the job.
  while (existsSync(`/proc/${job}`)) await Bun.sleep(20);
  await first.type(`kill -0 ${job}`);
  await first.shows(/No such process[^$]*\$\S* /);
  await Bun.sleep(pauseMs);
}

function draw(recorded: readonly RecordedTerminal[], lengthMs: number): RecordedSession {
  const terminals = recorded.map(({ output }, index) => {
    const { title, rows } = shapes[index] ?? shapes[0];
    const screen = new TerminalScreen(columns, rows);
    for (const { atMs, text } of output) screen.write({ atMs, text: withoutOwnNames(text) });
    return { title, rows, runs: screen.runs(), text: `${title}:\n${screen.lines().join("\n")}` };
  });
  const transcript = terminals.map(({ text }) => text).join("\n");
  const svg = drawPicture({
    title: "A lock in two terminals: kill -9 of its holder ends the holder's job, and the next process gets the lock",
    description: transcript,
    columns,
    terminals,
    lengthMs,
    restMs,
  });
  return { svg, transcript };
}

/** Replaces the user and the machine of the recording by those of the picture. */
function withoutOwnNames(text: string): string {
  return text.replaceAll(`${ownUserName()}@${hostname()}`, "ops@db1");
}

/** Ends the keeper of the session, which would wait for further clients. */
function endKeeper(folder: string): void {
  try {
    const pid = /process (\d+) serves/.exec(readFileSync(join(folder, "keeper.log"), "utf8"))?.[1];
    if (pid !== undefined) process.kill(Number(pid), "SIGTERM");
  } catch {
    // it did not start, or has ended
  }
}

/** Returns the description of a picture, which is the final text of its terminals. */
export function readTranscript(svg: string): string {
  const text = /<desc>([^]*?)<\/desc>/.exec(svg)?.[1] ?? "";
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** Removes from a transcript what differs between recordings. */
export function comparableTranscript(transcript: string): string {
  return transcript.replace(/\bfor \d+(\.\d+)? (ms|s)\b/g, "for TIME").replace(/\b\d{2,}\b/g, "PID");
}
