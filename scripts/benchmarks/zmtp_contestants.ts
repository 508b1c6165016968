/** The contestants of the ZMTP benchmark, each a program with the roles of zmtp_roles.ts. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { bundleForNode } from "../../test/support/zeromq_peers/bundle_for_node.ts";
import { compiled } from "../../test/support/zeromq_peers/compiled.ts";

const root = join(import.meta.dirname, "../..");
const here = (name: string) => join(import.meta.dirname, name);

export interface ZmtpContestant {
  /** Name and version, as the tables show it. */
  readonly name: string;
  readonly kind: "own" | "c" | "node";
  /** The command line, to which the words of a role are appended. */
  readonly command: readonly string[];
}

/**
 * Returns the contestants that are installed or can be built; builds programs in the folder. Names missing ones on
 * stderr.
 */
export async function zmtpContestants(folder: string): Promise<ZmtpContestant[]> {
  const all = [
    ownContestant(),
    cContestant(folder),
    await nodeContestant(),
  ];
  return all.filter((contestant) => contestant !== null);
}

function ownContestant(): ZmtpContestant {
  return {
    name: `baton under Bun ${process.versions["bun"]}`,
    kind: "own",
    command: [compiled(here("zmtp_peer_own.ts"))],
  };
}

function cContestant(folder: string): ZmtpContestant | null {
  const program = join(folder, "c");
  const built = spawnSync("cc", ["-O2", "-o", program, here("zmtp_peer.c"), "-lzmq"], { encoding: "utf8" });
  if (built.status !== 0) {
    console.error("MISSING PEER: libzmq in C (Debian: gcc libc6-dev libzmq3-dev)");
    return null;
  }
  return { name: `libzmq ${mustRun([program, "version"])} in C`, kind: "c", command: [program] };
}

async function nodeContestant(): Promise<ZmtpContestant | null> {
  const hasNode = spawnSync("node", ["--version"]).status === 0;
  if (!hasNode || !existsSync(join(root, "node_modules/zeromq"))) {
    console.error("MISSING PEER: npm's zeromq (it comes with scripts/build, where Node is)");
    return null;
  }
  const command = ["node", await bundleForNode(here("zmtp_peer_node.ts")), root];
  const [libzmq, node] = mustRun([...command, "version"]).split(" ");
  return { name: `zeromq (libzmq ${libzmq}) under Node ${node}`, kind: "node", command };
}

/** Runs a program and returns its stdout. Throws if it fails. */
function mustRun([program = "", ...args]: readonly string[]): string {
  const run = spawnSync(program, args, { encoding: "utf8", timeout: 20_000 });
  if (run.status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${run.error ?? run.stderr}`);
  return run.stdout.trim();
}
