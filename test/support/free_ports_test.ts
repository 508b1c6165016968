import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { freePorts } from "./free_ports.ts";

test("no port is given twice, and none is one that the system gives away by itself", async () => {
  const ports = (await Promise.all(Array.from({ length: 100 }, () => freePorts(3)))).flat();
  expect(new Set(ports).size).toBe(300);
  expect(Math.max(...ports)).toBeLessThan(32_768);
});

test("a port can be listened at, though it is claimed", async () => {
  const [port] = await freePorts(1);
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  await new Promise((resolve) => server.close(resolve));
});

test("a process is not given the ports of another one that lives", async () => {
  // Both choose by chance: with the same dice they want the same ports.
  const program = `
    let dice = 0;
    Math.random = () => (dice++ % 50) / 50;
    const { freePorts } = await import(${JSON.stringify(join(import.meta.dir, "free_ports.ts"))});
    console.log(JSON.stringify(await freePorts(20)));
    process.stdin.resume().on("end", () => process.exit());`;
  const others = [1, 2].map(() => spawn(process.execPath, ["--eval", program], { stdio: ["pipe", "pipe", "inherit"] }));
  const given = await Promise.all(
    others.map((other) =>
      new Promise<number[]>((resolve) =>
        other.stdout.once("data", (chunk: Uint8Array) => resolve(JSON.parse(chunk.toString())))
      )
    ),
  );
  others.forEach((other) => other.stdin.end());
  expect(given.map((ports) => ports.length)).toEqual([20, 20]);
  expect(new Set(given.flat()).size).toBe(40);
});
