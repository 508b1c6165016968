/**
 * Benchmark: baton's ZeroMQ sockets compared with libzmq in C and under Node, over loopback TCP. Both ends of a
 * connection are of one implementation.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { client, server } from "../../test/fixtures/zeromq_keys.ts";
import { probeLine } from "./machine.ts";
import { measureInTurn, tryPeer } from "./peers.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";
import { type ZmtpContestant, zmtpContestants } from "./zmtp_contestants.ts";
import { curveKeyVariables } from "./zmtp_roles.ts";

interface Figure {
  readonly title: string;
  /** The role that measures. */
  readonly role: string;
  /** Starts the serving roles, and returns the endpoint to measure at. */
  start(peers: Peers): Promise<string>;
}

const anyPort = "tcp://127.0.0.1:*";

const figures: readonly Figure[] = [
  {
    title: "REQ/REP round trip, p50 µs",
    role: "req",
    start: async (peers) => (await peers.serve("rep", anyPort))[0] ?? "",
  },
  {
    title: "DEALER/ROUTER round trip, p50 µs",
    role: "ask",
    start: async (peers) => (await peers.serve("echo", anyPort))[0] ?? "",
  },
  {
    title: "256 outstanding, acked/s",
    role: "window",
    start: async (peers) => (await peers.serve("ack", anyPort))[0] ?? "",
  },
  {
    title: "256 outstanding through a proxy, acked/s",
    role: "window",
    async start(peers) {
      const [front = "", back = ""] = await peers.serve("proxy", anyPort, anyPort);
      await peers.serve("worker", back);
      return front;
    },
  },
  {
    title: "one way, messages/s",
    role: "source",
    start: async (peers) => (await peers.serve("sink", anyPort))[0] ?? "",
  },
];

export interface ZmtpSpeedOptions {
  readonly rounds: number;
  readonly mechanism: "NULL" | "CURVE";
}

const sizesBytes = [100, 1024];

/**
 * Length of one measurement without the warm-up, in milliseconds. It must be much longer than a time slice of the
 * scheduler.
 */
const measureMs = 600;

/** Returns a table for each figure and message size. */
export async function zmtpSpeed({ rounds, mechanism }: ZmtpSpeedOptions): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));
  try {
    const contestants = await zmtpContestants(folder);
    const tables: string[] = [];
    for (const figure of figures) {
      for (const bytes of sizesBytes) {
        const probe = await probeLine();
        const title = `${figure.title}, ${bytes} B, ${mechanism}`;
        tables.push(`${await measured(contestants, figure, { rounds, mechanism, bytes, title })}\n(${probe})`);
      }
    }
    return tables.join("\n\n");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Run extends ZmtpSpeedOptions {
  readonly bytes: number;
  readonly title: string;
}

/** Measures the contestants in turn, A B C A B C …; ratios are of medians. */
async function measured(contestants: readonly ZmtpContestant[], figure: Figure, run: Run): Promise<string> {
  await using stack = new AsyncDisposableStack();
  const lines = [];
  for (const contestant of contestants) {
    const peers = new Peers(contestant, run.mechanism);
    stack.defer(() => peers.stop());
    const { name, kind } = contestant;
    const isOwn = kind === "own";
    const endpoint = await tryPeer(name, run.title, () => figure.start(peers));
    if (endpoint === null) continue;
    lines.push({ name, isOwn, peers, role: figure.role, endpoint });
    if (!isOwn || run.mechanism === "NULL" || figure.role !== "source") continue;
    lines.push({ name: "its cipher alone", isOwn: false, peers, role: "cipher", endpoint: "none" });
  }
  const results = await measureInTurn(
    lines,
    { task: run.title, rounds: run.rounds },
    ({ peers, role, endpoint }) => peers.measure(role, endpoint, String(run.bytes), String(measureMs)),
  );
  const own = [...results].find(([{ isOwn }]) => isOwn);
  const rows = [...results].map(([{ name }, all]) => {
    const { min, p50, max } = summarizeMeasurements(all);
    const ratio = own === undefined ? "–" : formatFigure(summarizeMeasurements(own[1]).p50 / p50);
    return [name, ...[min, p50, max].map(formatFigure), ratio];
  });
  return alignedTable([[run.title, "min", "median", "max", "baton ÷ it"], ...rows]);
}

/** How long a program may take to start, and how much longer than it measures it may run, in milliseconds. */
const patienceMs = 20_000;

/** The processes of one contestant for one figure. */
class Peers {
  readonly #contestant: ZmtpContestant;
  readonly #isEncrypted: boolean;
  readonly #serving: ChildProcess[] = [];

  constructor(contestant: ZmtpContestant, mechanism: "NULL" | "CURVE") {
    this.#contestant = contestant;
    this.#isEncrypted = mechanism === "CURVE";
  }

  /** Starts a role that serves. Resolves with its endpoints when all are bound. */
  async serve(role: string, ...words: string[]): Promise<string[]> {
    const child = this.#start([role, ...words], server);
    this.#serving.push(child);
    if (role === "worker") return [];
    return await this.#lines(child, words.length);
  }

  /** Runs a role that measures, and returns its result. */
  async measure(role: string, ...words: string[]): Promise<number> {
    const child = this.#start([role, ...words], client);
    try {
      const [line] = await this.#lines(child, 1);
      return Number(line);
    } finally {
      child.kill("SIGKILL");
    }
  }

  stop(): void {
    for (const child of this.#serving) child.kill("SIGKILL");
  }

  #start(words: readonly string[], keys: { publicKey: string; secretKey: string }): ChildProcess {
    const [program = "", ...args] = [...this.#contestant.command, ...words];
    const curve = {
      [curveKeyVariables.server]: server.publicKey,
      [curveKeyVariables.publicKey]: keys.publicKey,
      [curveKeyVariables.secretKey]: keys.secretKey,
    };
    const env = { ...process.env, ...(this.#isEncrypted ? curve : {}) };
    return spawn(program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  }

  #lines(child: ChildProcess, count: number): Promise<string[]> {
    const lines: string[] = [];
    return new Promise((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`${this.#contestant.name} ${why} after ${lines.length} lines`));
      const timer = setTimeout(() => fail("said nothing more"), patienceMs);
      const failed = (error: Error) => fail(`failed (${error.message})`);
      child.once("error", failed);
      if (child.stdout === null) return;
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (lines.push(line) === count) resolve(lines);
      }).once("close", () => {
        clearTimeout(timer);
        fail("ended");
      });
      child.once("exit", () => clearTimeout(timer));
    });
  }
}
