/** One round: messages, processors that are killed, a backend that misbehaves; then what became of it all. Seeded. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { verifyRetryStore } from "../../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { killKeeper } from "../../../support/baton_session.ts";
import { eventually } from "../../../support/eventually.ts";
import { seededRandom } from "../../../support/random.ts";
import { runtimes } from "../../../support/runtimes.ts";
import { judgeRound, type StoredEnd } from "./judge.ts";
import { HeartBeat } from "./heart_beat.ts";
import { Phases } from "./phases.ts";
import { type DatabasePlan, DisturbedDatabase } from "./disturbed_database.ts";
import { type Seen, settled } from "./settled.ts";
import { SmallDisk } from "../../../support/small_disk.ts";

/** What a store keeps for what it has accepted (store_limits.ts), and as much again for messages. */
const diskMebibytes = 32;

export interface RetryPlan {
  readonly number: number;
  readonly seed: number;
  readonly kind: "http" | "command";
  readonly messages: number;
  readonly processors: number;
  /** kill -9 of a processor. */
  readonly kills: number;
  /** SIGSTOP of one, for longer than its lease; commands only. */
  readonly stops: number;
  /**
   * How often the store's disk is full for a while; nobody is killed or stopped in such a round. By HTTP only; needs
   * root.
   */
  readonly fullDisks: number;
  /** The store is in a database that is disturbed, too; null: in a folder. */
  readonly database: DatabasePlan | null;
}

export interface RetryResult {
  readonly plan: RetryPlan;
  readonly failures: readonly string[];
  readonly tookMs: number;
  readonly stored: number;
  readonly tries: number;
  readonly crashes: number;
  readonly dead: number;
  /** How often each disturbance of the database had an effect. */
  readonly effects: readonly (readonly [string, number])[];
  readonly phases: Phases;
}

const leaseMs = 2000;
const intervalMs = 30;
const maxRetries = 4;
const attemptTimeoutMs = 400;
/** Submitted while the disk is full, and again when it is not. */
const fullDiskLines = 20;
/** STORE_FULL and UNREACHABLE, of exit_codes.ts. */
const storeFull = 85;
const unreachable = 69;
const binary = runtimes[0]?.command[0] ?? "";

export async function runRetryRound(plan: RetryPlan): Promise<RetryResult> {
  const startMs = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "baton-retry-fault-"));
  const random = seededRandom(plan.seed);
  const round = new Round(plan, folder, random);
  try {
    const failures = await round.run();
    const { stored, tries, crashes, dead, effects, phases } = round;
    return { plan, failures, tookMs: performance.now() - startMs, stored, tries, crashes, dead, effects, phases };
  } finally {
    await round.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns how many lines are stored, as `submit` says on stderr; 0 if it says nothing of it. */
function storedLines(said: string): number {
  return Number(/(\d+) (?:lines?|messages?) (?:is|are) stored/.exec(said)?.[1] ?? 0);
}

class Round {
  stored = 0;
  tries = 0;
  crashes = 0;
  dead = 0;
  readonly phases = new Phases(() => this.#look());
  readonly #plan: RetryPlan;
  readonly #folder: string;
  readonly #random: () => number;
  readonly #seen: Seen = new Map();
  readonly #running = new Set<ChildProcess>();
  readonly #keeper: string;
  readonly #beat = new HeartBeat();
  #server: Server | null = null;
  #disk: SmallDisk | null = null;
  readonly #database: DisturbedDatabase | null;
  /** Beyond what is submitted at the start. */
  #told = 0;
  readonly #problems: string[] = [];

  constructor(plan: RetryPlan, folder: string, random: () => number) {
    this.#plan = plan;
    this.#folder = folder;
    this.#keeper = join(folder, "keeper");
    this.#random = random;
    this.#database = plan.database === null ? null : new DisturbedDatabase(plan.database, random);
  }

  get effects(): [string, number][] {
    return [...this.#database?.effects ?? []];
  }

  async run(): Promise<string[]> {
    const { phases } = this;
    const { fullDisks } = this.#plan;
    await this.#database?.start();
    if (fullDisks > 0) this.#disk = new SmallDisk(join(this.#folder, "store"), diskMebibytes);
    const target = this.#plan.kind === "http" ? ["--url", await this.#backend()] : ["--exec", this.#command()];
    const told = fullDisks > 0 ? this.#submitLines(0, this.#plan.messages) : this.#submit();
    const processors = Array.from({ length: this.#plan.processors }, () => this.#processor(target));
    if (this.#disk === null) {
      await phases.run("chaos", () => Promise.all([this.#chaos(processors, target), this.#database?.disturb()]));
    }
    if (this.#disk !== null) this.#told = await phases.run("full", () => this.#fullDisks(processors));
    await phases.run("submit", () => told);
    for (const child of processors) child.kill("SIGTERM");
    await phases.run("drain", () => Promise.all(processors.map(ended)));
    await phases.run("empty", () => this.#empty(target));
    return await phases.run("judge", async () => this.#judge(await told + this.#told));
  }

  /**
   * In a database the role of a forwarder that was killed ends after 15 s; a run that ends before says so with 69, and
   * is repeated.
   */
  async #empty(target: readonly string[]): Promise<void> {
    for (let run = 0; run < 10; run++) {
      const child = this.#processor([...target, "--until-empty"]);
      await ended(child);
      if (this.#database === null || child.exitCode !== unreachable) return;
      await sleep(systemClock(), 2000);
    }
  }

  async close(): Promise<void> {
    this.#beat.stop();
    for (const child of this.#running) child.kill("SIGKILL");
    await Promise.all([...this.#running].map(ended));
    this.#server?.closeAllConnections();
    this.#server?.close();
    await killKeeper(this.#keeper);
    this.#disk?.[Symbol.dispose]();
    await this.#database?.[Symbol.asyncDispose]();
  }

  #baton(words: readonly string[], stdin?: string): ChildProcess {
    const child = spawn(binary, ["retry-processor", ...words, "--store", this.#database?.url ?? "store"], {
      cwd: this.#folder,
      env: { ...process.env, BATON_KEEPER_DIR: this.#keeper, BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" },
      stdio: ["pipe", "pipe", words[0] === "submit" ? "pipe" : "ignore"],
    });
    child.stdin?.on("error", () => {});
    child.stdin?.end(stdin ?? "");
    this.#running.add(child);
    child.once("exit", () => this.#running.delete(child));
    return child;
  }

  #processor(words: readonly string[]): ChildProcess {
    const policy = ["--interval", `${intervalMs}ms`, "--max-retries", String(maxRetries), "--max-crashes", "1000"];
    const limits = [
      "--lease",
      `${leaseMs}ms`,
      "--attempt-timeout",
      `${attemptTimeoutMs}ms`,
      "-j",
      this.#plan.kind === "http" ? "32" : "4",
    ];
    const child = this.#baton([
      "run",
      "--create",
      "-q",
      ...words,
      ...policy,
      ...limits,
      "--dead-letter",
      "file:letters",
    ]);
    child.stdout?.resume();
    return child;
  }

  /** Two at once, the second of them killed in the middle; what it was not told counts nothing. */
  async #submit(): Promise<number> {
    const half = Math.ceil(this.#plan.messages / 2);
    const killed = this.#submitJson(half, this.#plan.messages - half, (child) => {
      setTimeout(() => child.kill("SIGKILL"), 200 + this.#random() * 1000);
    });
    const [first, second] = await Promise.all([this.#submitWhenThereIsRoom(half), killed]);
    return first + second.stored;
  }

  /** Submits lines from the first on, and what is not stored once more. Returns how many are stored. */
  async #submitWhenThereIsRoom(count: number): Promise<number> {
    const deadlineMs = performance.now() + 60_000;
    for (let stored = 0;;) {
      const result = await this.#submitJson(stored, count - stored, () => {});
      stored += result.stored;
      if (result.exitCode === 0 || performance.now() > deadlineMs) return stored;
      await sleep(systemClock(), 500);
    }
  }

  /** Submits lines. Returns how many it says are stored: none if it ends before it can say so. */
  async #submitJson(from: number, count: number, began: (child: ChildProcess) => void) {
    const child = this.#baton(["submit", "--lines", "--json"], lines(from, count));
    began(child);
    let result = "";
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => said += chunk.toString());
    child.stdout?.on("data", (chunk: Buffer) => result += chunk.toString());
    await ended(child);
    const stored = result === "" ? storedLines(said) : (JSON.parse(result) as { stored: number }).stored;
    return { stored, exitCode: child.exitCode };
  }

  /** As many of its lines as it says are stored; the disk may be full. */
  async #submitLines(from: number, count: number): Promise<number> {
    const child = this.#baton(["submit", "--lines"], lines(from, count));
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => said += chunk.toString());
    await ended(child);
    const stored = storedLines(said);
    const isRight = child.exitCode === 0 ? stored === count : child.exitCode === storeFull && stored < count;
    if (!isRight) this.#problems.push(`submit ended with ${child.exitCode}, ${stored} of ${count} stored: ${said}`);
    return stored;
  }

  /** The same processes go on when there is room again. Returns how many messages more were stored. */
  async #fullDisks(processors: readonly ChildProcess[]): Promise<number> {
    let told = 0;
    let from = this.#plan.messages;
    const submit = async (): Promise<number> => {
      const stored = await this.#submitLines(from, fullDiskLines);
      from += fullDiskLines;
      told += stored;
      return stored;
    };
    for (let time = 0; time < this.#plan.fullDisks; time++) {
      await eventually(() => this.#seen.size > 0, { withinMs: 30_000, what: "the first try" });
      await sleep(systemClock(), this.#random() * 300);
      this.#disk?.fill();
      const wholeMs = performance.now() + this.#random() * 1.2 * leaseMs;
      if (await submit() > 0) this.#problems.push("a message was taken in by a disk that is full");
      await sleep(systemClock(), Math.max(0, wholeMs - performance.now()));
      this.#disk?.makeRoom();
      if (await submit() < fullDiskLines) this.#problems.push("messages were refused when there was room again");
      const before = this.#answers();
      await eventually(() => this.#answers() > before, { withinMs: 15_000, what: "tries when there is room again" });
    }
    for (const { pid, exitCode } of processors) {
      if (exitCode !== null) this.#problems.push(`processor ${pid} ended with ${exitCode} on a disk that was full`);
    }
    return told;
  }

  #answers(): number {
    return [...this.#seen.values()].flat().length;
  }

  async #chaos(processors: ChildProcess[], target: readonly string[]): Promise<void> {
    const { kills, stops } = this.#plan;
    // Who is killed before he has tried anything has lost nothing.
    const isAtWork = () => {
      // One that found no database when it started is started again, as a supervisor of services does.
      for (const [at, { exitCode }] of processors.entries()) {
        if (exitCode === unreachable) processors[at] = this.#processor(target);
      }
      return this.#seen.size > 0 || existsSync(join(this.#folder, "tries"));
    };
    await eventually(isAtWork, { withinMs: 90_000, what: "the first try" }).catch((thrown: unknown) => {
      const ends = processors.map(({ exitCode, signalCode }) => exitCode ?? signalCode ?? "runs").join(", ");
      throw new Error(`No first try; the processors: ${ends}`, { cause: thrown });
    });
    const pick = () => Math.floor(this.#random() * processors.length);
    for (let event = 0; event < kills + stops; event++) {
      await sleep(systemClock(), 200 + this.#random() * 1300);
      const at = pick();
      const child = processors[at];
      if (child === undefined) continue;
      if (event >= kills) {
        child.kill("SIGSTOP");
        await sleep(systemClock(), leaseMs * 2.5);
        child.kill("SIGCONT");
        continue;
      }
      child.kill("SIGKILL");
      await ended(child);
      processors[at] = this.#processor(target);
    }
  }

  async #backend(): Promise<string> {
    const server = this.#server = createServer((request, response) => {
      const id = String(request.headers["idempotency-key"]);
      const one = {
        startMs: performance.now(),
        endMs: null as number | null,
        answer: null as number | null,
        isLate: false,
      };
      const tries = this.#seen.get(id) ?? [];
      this.#seen.set(id, [...tries, one]);
      const end = (answer: number | null) => {
        if (one.endMs !== null) return;
        [one.endMs, one.answer] = [performance.now(), answer];
      };
      response.on("close", () => end(null));
      const answer = (status: number, delayMs = 0) =>
        setTimeout(() => {
          if (response.destroyed) return;
          end(status);
          response.writeHead(status).end();
        }, delayMs);
      request.resume();
      request.on("end", () => {
        const dice = this.#random();
        if (dice < 0.02) return; // hangs up to the timeout
        if (dice < 0.05) return void request.socket.destroy();
        const isSlow = dice >= 0.05 && dice < 0.07;
        one.isLate = isSlow || this.#beat.wasLate();
        if (isSlow) return void answer(200, attemptTimeoutMs * 1.2);
        if (dice < 0.10) return void answer(404);
        if (dice < 0.30) return void answer(503);
        answer(200, dice < 0.4 ? 20 : 0);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  /** Its lock goes with its last process: who finds it taken has found two tries at once. */
  #command(): string {
    writeFileSync(
      join(this.#folder, "try.sh"),
      [
        "#!/bin/sh",
        'exec 9>"lock.$BATON_MESSAGE_ID"',
        'flock -n 9 || echo "$BATON_MESSAGE_ID" >>overlaps',
        "start=$(date +%s%3N); read -r word number; dice=$(( (number * 7919 + BATON_MESSAGE_TRY * 104729) % 100 ))",
        "code=0; [ $dice -ge 60 ] && code=1; [ $dice -ge 90 ] && code=64",
        "if [ $dice -ge 50 ]; then sleep 0.1; fi",
        'echo "$BATON_MESSAGE_ID $start $(date +%s%3N) $code" >>tries',
        "exit $code",
        "",
      ].join("\n"),
      { mode: 0o755 },
    );
    return "./try.sh";
  }

  async #judge(told: number): Promise<string[]> {
    const store = join(this.#folder, "store");
    const listed = this.#baton(["ls", "--json", "--limit", "100000"]);
    let text = "";
    listed.stdout?.on("data", (chunk: Buffer) => text += chunk.toString());
    await ended(listed);
    const { messages } = JSON.parse(text) as { messages: StoredEnd[] };
    this.stored = messages.length;
    for (const { tries, crashes, state } of messages) {
      this.tries += tries;
      this.crashes += crashes;
      if (state === "dead") this.dead++;
    }
    const isHttp = this.#plan.kind === "http";
    const linesOf = (name: string) => this.#lines(name);
    if (!isHttp) { for (const line of linesOf("tries")) this.#addTry(line); }
    else await eventually(() => [...this.#seen.values()].flat().every(({ endMs }) => endMs !== null));
    const overlaps = linesOf("overlaps").map((id) => `${id} was tried twice at once`);
    return judgeRound({
      maxRetries,
      // The end of a command is written before it ends; what a late answer's connection does is the backend's own time.
      intervalMs,
      isDone: (answer) => (isHttp ? answer === 200 : answer === 0),
      isFinal: (answer) => (isHttp ? answer === 404 : answer === 64),
      told,
      isExact: this.#disk !== null,
      stored: messages,
      seen: isHttp ? settled(this.#seen, intervalMs) : this.#seen,
      letters: linesOf("letters").map((line) => (JSON.parse(line) as { id: string }).id),
      problems: [
        ...await this.#database?.problems() ?? verifyRetryStore(store).problems,
        ...overlaps,
        ...this.#problems,
      ],
    });
  }

  #lines(name: string): string[] {
    const path = join(this.#folder, name);
    return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter((line) => line !== "") : [];
  }

  /** For a round that takes too long: what waits for what. */
  #look(): string {
    const names = [...this.#running].map(({ pid, spawnargs }) => `${pid} ${spawnargs.slice(2, 5).join(" ")}`);
    if (this.#database !== null) return names.join("; ");
    const database = new DatabaseSync(join(this.#folder, "store/messages.sqlite"), { readOnly: true });
    try {
      const rows = (sql: string) => JSON.stringify(database.prepare(sql).all());
      return [
        names.join("; "),
        rows("SELECT state, count(*) AS n, min(next_ms) AS next, max(next_ms) AS last FROM messages GROUP BY state"),
        rows("SELECT * FROM processors"),
      ].join(" | ");
    } finally {
      database.close();
    }
  }

  #addTry(line: string): void {
    const [id = "", startMs, endMs, answer] = line.split(" ");
    const one = { startMs: Number(startMs), endMs: Number(endMs), answer: Number(answer) };
    this.#seen.set(id, [...this.#seen.get(id) ?? [], one]);
  }
}

/** A line for each message. */
function lines(from: number, count: number): string {
  return Array.from({ length: count }, (_, at) => `message ${from + at}`).join("\n");
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once("close", () => resolve()));
}
