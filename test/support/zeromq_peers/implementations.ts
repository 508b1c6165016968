/** Every implementation of the sockets that the conformance tests know, and how its driver is started. */
import { afterAll } from "bun:test";
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { oldLibzmqFolder, type PeerName } from "../peers.ts";
import { bundleForNode } from "./bundle_for_node.ts";
import { compiled } from "./compiled.ts";
import { removeAllMade } from "./made_once.ts";
import { PeerProcess } from "./peer_process.ts";

afterAll(removeAllMade);

const project = join(import.meta.dirname, "../../..");
const ownDriver = join(import.meta.dirname, "own_driver.ts");
const libzmqDriver = join(import.meta.dirname, "libzmq_driver.ts");

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
  start: () => started([realpathSync(join(project, "node_modules/.bin/bun")), ownDriver]),
};

export const ownUnderDeno: Implementation = {
  name: "baton under Deno",
  peer: null,
  zmtp: "3.1",
  start: () => started([join(project, "node_modules/.bin/deno"), "run", "-A", "--quiet", ownDriver]),
};

/** As dist/baton is compiled. */
export const ownCompiled: Implementation = {
  name: "baton, compiled",
  peer: null,
  zmtp: "3.1",
  start: () => started([compiled(ownDriver)]),
};

export const libzmqInNode: Implementation = {
  name: "libzmq in Node",
  peer: "zeromq",
  zmtp: "3.1",
  start: async () => started(["node", await bundleForNode(libzmqDriver), project]),
};

/** libzmq before 4.3.3 greets with 3.0. */
export const oldLibzmqInNode: Implementation = {
  name: "libzmq 4.3.2 in Node",
  peer: "zeromq",
  zmtp: "3.0",
  start: async () => started(["node", await bundleForNode(libzmqDriver), oldLibzmqFolder]),
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
