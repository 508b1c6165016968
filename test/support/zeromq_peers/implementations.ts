/** Every implementation of the sockets that the conformance tests know, and how its driver is started. */
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { PeerName } from "../peers.ts";
import { PeerProcess } from "./peer_process.ts";

const project = join(import.meta.dirname, "../../..");

/** Debian's, where its packages are: another one may stand before it in PATH. */
const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

export interface Implementation {
  readonly name: string;
  /** What has to be installed; null for baton's own. */
  readonly peer: PeerName | null;
  /** The highest version of the protocol that it speaks. */
  readonly zmtp: "3.0" | "3.1";
  start(): Promise<PeerProcess>;
}

export const own: Implementation = {
  name: "baton",
  peer: null,
  zmtp: "3.1",
  start: () =>
    started([realpathSync(join(project, "node_modules/.bin/bun")), join(import.meta.dirname, "own_driver.ts")]),
};

export const libzmqInNode: Implementation = {
  name: "libzmq in Node",
  peer: "zeromq",
  zmtp: "3.1",
  start: async () => started(["node", await bundle(), project, "zeromq"]),
};

/** libzmq before 4.3.3 greets with 3.0. */
export const oldLibzmqInNode: Implementation = {
  name: "libzmq 4.3.2 in Node",
  peer: "zeromq",
  zmtp: "3.0",
  start: async () => started(["node", await bundle(), project, "zeromq-zmtp30"]),
};

export const libzmqInPython: Implementation = {
  name: "libzmq in Python",
  peer: "pyzmq",
  zmtp: "3.1",
  start: () => started([python, join(import.meta.dirname, "libzmq_driver.py")]),
};

/** Once it answers. */
async function started(command: readonly string[]): Promise<PeerProcess> {
  const peer = new PeerProcess(command);
  await peer.version();
  return peer;
}

let bundled: Promise<string> | undefined;

/** The driver for Node in one file of JavaScript, made once. */
function bundle(): Promise<string> {
  return bundled ??= (async () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-zeromq-driver-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const entrypoints = [join(import.meta.dirname, "libzmq_driver.ts")];
    await Bun.build({ entrypoints, outdir: folder, target: "node", format: "cjs", naming: "driver.cjs" });
    return join(folder, "driver.cjs");
  })();
}
