import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import process from "node:process";
import {
  type HolderReleaseResponse,
  isReleaseSocketUsable,
  listReleaseSockets,
  openReleaseSocket,
  parseReleaseSocketPath,
  type ReceivedReleaseRequest,
  requestRelease,
} from "../../../../src/coordination/hold/release_socket.ts";
import { readProcess } from "../../../../src/base/process/proc/process_table.ts";
import { eventually } from "../../../support/eventually.ts";

const script = { pid: 7, startTicks: 70 };
const holderId = "0123456789abcdef0123456789abcdef";
const request = { requester: { pid: 1, startTicks: 2 }, stopsProcesses: true };
const released: HolderReleaseResponse = { result: "released", running: [{ pid: 3, command: "sleep 60" }], more: 1 };
const itself = { pid: process.pid, startTicks: readProcess(process.pid)?.startTicks ?? 0 };

test.if(process.platform === "linux")("requests are heard in their order, each with its own response", async () => {
  const heard: ReceivedReleaseRequest[] = [];
  using socket = await openReleaseSocket({ holderId, script }, (one) => heard.push(one));
  expect(parseReleaseSocketPath(socket.path)).toEqual({ holder: itself, script, id: holderId });
  expect(listReleaseSockets()).toContain(socket.path);
  const first = requestRelease(socket.path, request, { waitMs: 10_000 });
  await eventually(() => heard.length === 1);
  const second = requestRelease(socket.path, { ...request, stopsProcesses: false }, { waitMs: 10_000 });
  await eventually(() => heard.length === 2);
  expect(heard).toMatchObject([request, { stopsProcesses: false }]);
  heard[1]?.respond({ ...released, result: "lost" });
  heard[0]?.respond(released);
  expect([await first, await second]).toEqual([released, { ...released, result: "lost" }]);
});

test.if(process.platform === "linux")(
  "a request without a response is late, or void when the holder ends",
  async () => {
    const heard: ReceivedReleaseRequest[] = [];
    const socket = await openReleaseSocket({ holderId, script }, (one) => heard.push(one));
    expect(await requestRelease(socket.path, request, { waitMs: 50 })).toBe("late");
    expect(isReleaseSocketUsable(socket.path)).toBe(true);
    socket[Symbol.dispose]();
    expect([existsSync(socket.path), isReleaseSocketUsable(socket.path)]).toEqual([false, false]);
    expect(await requestRelease(socket.path, request, { waitMs: 1000 })).toBeNull();
  },
);

test.if(process.platform === "linux")("a holder that is killed leaves a file, which the next one removes", async () => {
  const program = new URL("../../../../src/coordination/hold/release_socket.ts", import.meta.url).href;
  const source = `import { openReleaseSocket } from ${JSON.stringify(program)};
    const { path } = await openReleaseSocket(${
    JSON.stringify({ holderId, script })
  }, () => process.kill(process.pid, 9));
    console.log(path);`;
  const holder = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
  const { value } = await holder.stdout.getReader().read();
  const path = new TextDecoder().decode(value).trim();
  expect(await requestRelease(path, request, { waitMs: 10_000 })).toBe("killed");
  await holder.exited;
  expect([existsSync(path), isReleaseSocketUsable(path)]).toEqual([true, false]);
  expect(await requestRelease(path, request, { waitMs: 1000 })).toBeNull();
  using next = await openReleaseSocket({ holderId, script }, () => {});
  expect([existsSync(path), existsSync(next.path)]).toEqual([false, true]);
});

test("another path is no socket of a holder process", () => {
  for (const path of ["/tmp/x", "/proc/1/fd/9", "/tmp/baton-hold-0/1.2-3.4-xyz", "/tmp/baton-hold-0/1-3-ab"]) {
    expect(parseReleaseSocketPath(path)).toBeNull();
    expect(isReleaseSocketUsable(path)).toBe(false);
  }
});
