/** Our keeper as a process of its own: the source under Bun, or the binary that BATON_BINARY names. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type Address, formatAddress } from "../../src/base/sockets/connection.ts";
import { type BackendOptions, type RunningBackend, runningBackend } from "./backend.ts";
import { eventually } from "./eventually.ts";
import { fourLetterWord } from "./four_letter_word.ts";
import { freePorts } from "./free_ports.ts";
import { ProcessNode } from "./process_node.ts";
import { ServerProcess } from "./server_process.ts";

const startTriesMax = 3;
const startMsMax = 30_000;

/** The command that runs baton, without its words. */
export function batonCommand(): string[] {
  const binary = process.env["BATON_BINARY"];
  if (binary !== undefined) return [binary];
  return [process.execPath, join(import.meta.dir, "../../commands/main.ts")];
}

/** Starts one that listens on a unix socket and on a TCP port; `servers` names the one asked for. */
export async function startKeeperProcess(
  options: BackendOptions = {},
  { over = "tcp" }: { over?: "tcp" | "unix" } = {},
): Promise<RunningBackend> {
  for (let tries = 1;; tries++) {
    const folder = mkdtempSync(join(tmpdir(), "baton-keeper-"));
    const [port = 0] = await freePorts(1);
    const tcp: Address = { kind: "tcp", host: "127.0.0.1", port };
    const unix: Address = { kind: "unix", path: join(folder, "keeper.sock") };
    const node = new KeeperNodeView(over === "tcp" ? tcp : unix, { folder, tcp, unix }, options);
    const close = async () => {
      await node.kill();
      rmSync(folder, { recursive: true, force: true });
    };
    try {
      await node.restart();
    } catch (error) {
      await close();
      if (tries === startTriesMax || !/EADDRINUSE|in use/.test(String(error))) throw error;
      continue;
    }
    return runningBackend([node], {
      servers: over === "tcp" ? `127.0.0.1:${port}` : `unix:${unix.path}`,
      leader: () => Promise.resolve(node),
      close,
    });
  }
}

interface Place {
  readonly folder: string;
  readonly tcp: Address;
  /** In the folder. */
  readonly unix: Address;
}

class KeeperNodeView extends ProcessNode {
  override readonly address: Address;
  readonly #place: Place;
  readonly #options: BackendOptions;

  constructor(address: Address, place: Place, options: BackendOptions) {
    super();
    this.address = address;
    this.#place = place;
    this.#options = options;
  }

  override async restart(): Promise<void> {
    await this.kill();
    const { folder, unix } = this.#place;
    const server = this.process = new ServerProcess(this.#command(), {
      folder,
      env: { ...process.env, ...this.#options.env } as Record<string, string>,
    });
    // Where nobody else can answer, and where it listens last: it has its port by then.
    const serves = async () => !server.alive || await fourLetterWord(unix, "ruok", 500) === "imok";
    await eventually(serves, { withinMs: startMsMax, what: `the keeper to serve; it said: ${server.output}` });
    if (!server.alive) throw new Error(`The keeper ended at its start: ${server.output}`);
  }

  #command(): string[] {
    const { tickTimeMs, sessionTimeoutMinMs, sessionTimeoutMaxMs, containerCheckMs } = this.#options;
    const limits = Object.entries({ tickTimeMs, sessionTimeoutMinMs, containerCheckMs })
      .flatMap(([name, ms]) => ms === undefined ? [] : [`${name}=${ms}`]);
    return [
      ...batonCommand(),
      "keeper",
      "--data-dir",
      join(this.#place.folder, "data"),
      "--listen",
      [this.#place.tcp, this.#place.unix].map(formatAddress).join(","),
      ...(sessionTimeoutMaxMs === undefined ? [] : ["--session-timeout-max", `${sessionTimeoutMaxMs}ms`]),
      ...(limits.length === 0 ? [] : ["--limit", limits.join(",")]),
    ];
  }
}
