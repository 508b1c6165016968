/**
 * Benchmark: the memory of a keeper when idle, with sessions and with nodes, and how soon it serves again after a kill.
 */
import { readFileSync } from "node:fs";
import { startKeeperProcess } from "../../test/support/keeper_server.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { ServerNode } from "../../test/support/backend.ts";
import { createFrame, requestDataBytes, RequestLoad } from "./request_load.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

const sessions = 1_000;
const nodes = 200_000;
const nodesPerFolder = 1_000;
const inFlight = 1_000;
/** Memory is read after it has not grown for this many checks, because freed memory is returned a little later. */
const quietLooks = 20;

/** Returns a table about one keeper, which is filled once and killed and restarted in each round. */
export async function keeperSize(rounds: number): Promise<string> {
  await using keeper = await startedKeeper();
  const { node } = keeper;
  const rows = [["keeper", "MiB resident", "more, each"]];
  const idle = await settledMib(node.pid);
  rows.push(["idle, no session", formatFigure(idle), ""]);

  const open: RequestLoad[] = [];
  while (open.length < sessions) {
    open.push(...await Promise.all(Array.from({ length: 100 }, () => RequestLoad.open(node.address))));
  }
  const crowded = await settledMib(node.pid);
  rows.push([
    `${sessions} sessions, connected`,
    formatFigure(crowded),
    `${formatFigure((crowded - idle) * 1024 / sessions)} KiB`,
  ]);
  for (const load of open) load.close();

  await fill(await RequestLoad.open(node.address));
  const filled = await settledMib(node.pid);
  const perNode = (mib: number) => `${((mib - idle) * 2 ** 20 / nodes).toFixed(0)} B`;
  rows.push([`${nodes} nodes of ${requestDataBytes} B, just made`, formatFigure(filled), perNode(filled)]);

  const startMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await node.kill();
    const beganMs = performance.now();
    await node.restart();
    startMs.push(performance.now() - beganMs);
  }
  const restarted = await settledMib(node.pid);
  rows.push([`the same after a start`, formatFigure(restarted), perNode(restarted)]);
  const { min, p50, max } = summarizeMeasurements(startMs);
  return `${alignedTable(rows)}\nfrom the start of a killed keeper with ${nodes} nodes to its first answer: ${
    formatFigure(p50)
  } ms (${formatFigure(min)} to ${formatFigure(max)})`;
}

async function startedKeeper(): Promise<AsyncDisposable & { node: ServerNode }> {
  const keeper = await startKeeperProcess();
  const [node] = keeper.nodes;
  if (node === undefined) throw new Error("The keeper has no node");
  return { node, [Symbol.asyncDispose]: () => keeper.close() };
}

async function fill(load: RequestLoad): Promise<void> {
  await load.run([createFrame("/fill")], 1);
  for (let first = 0; first < nodes; first += nodesPerFolder) {
    const folder = `/fill/f${first / nodesPerFolder}`;
    const children = Array.from({ length: nodesPerFolder - 1 }, (_, index) => createFrame(`${folder}/node-${index}`));
    await load.run([createFrame(folder)], 1);
    await load.run(children, inFlight);
  }
  load.close();
}

async function settledMib(pid: number): Promise<number> {
  let least = Infinity;
  let quiet = 0;
  return await eventually(() => {
    const now = residentMib(pid);
    quiet = now < least * 0.995 ? 0 : quiet + 1;
    least = Math.min(least, now);
    return quiet >= quietLooks ? now : undefined;
  }, { withinMs: 30_000, everyMs: 100, what: "a keeper's memory to settle" });
}

function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
  return Number(kib ?? 0) / 1024;
}
