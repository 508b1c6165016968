/** Describes the machine of a benchmark, and probes how busy it is. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { connect, createServer } from "node:net";
import { cpus, platform, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { formatFigure, summarizeMeasurements } from "./statistics.ts";

/** Returns one line about the machine. */
export function machineLine(): string {
  const model = cpus()[0]?.model.trim() || "unknown processor";
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${model}, ${memoryGib} GiB, ${platform()} ${release()}, Bun ${
    process.versions["bun"] ?? "?"
  }`;
}

/** Returns a line with the median time of an fdatasync of 4 KiB and of a TCP round trip on loopback, and the load. */
export async function probeLine(): Promise<string> {
  const load = platform() === "linux" ? readFileSync("/proc/loadavg", "latin1").split(" ")[0] : "?";
  return `flush p50 ${formatFigure(flushMs())} ms, tcp round trip p50 ${
    formatFigure(await roundTripMs())
  } ms, load ${load}`;
}

function flushMs(): number {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));
  const file = openSync(join(folder, "flush"), "w");
  const block = new Uint8Array(4096);
  try {
    const times = Array.from({ length: 40 }, () => {
      const start = performance.now();
      writeSync(file, block);
      fdatasyncSync(file);
      return performance.now() - start;
    });
    return summarizeMeasurements(times).p50;
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}

async function roundTripMs(): Promise<number> {
  const server = createServer((socket) => socket.setNoDelay(true).pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The probe's server has no port");
  const socket = connect(address.port, "127.0.0.1").setNoDelay(true);
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  const times: number[] = [];
  for (let round = 0; round < 200; round++) {
    const start = performance.now();
    const answered = new Promise((resolve) => socket.once("data", resolve));
    socket.write("x");
    await answered;
    times.push(performance.now() - start);
  }
  socket.destroy();
  server.close();
  return summarizeMeasurements(times).p50;
}
