import { afterAll, afterEach, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-ipc-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let paths = 0;
const newPath = () => join(folder, `${++paths}.sock`);
const open: DealerSocket[] = [];
afterEach(async () => {
  for (const socket of open.splice(0)) await socket.close({ lingerMs: 0 });
});
const dealer = () => (open.push(new DealerSocket({ reconnect: { minMs: 5, maxMs: 20 } })), open.at(-1) as DealerSocket);

/** A socket's file as a process that was killed leaves it. */
function leaveStale(path: string): void {
  const main = `import { createServer } from "node:net";
    createServer().listen(process.argv.at(-1), () => process.kill(process.pid, "SIGKILL"));`;
  spawnSync(process.execPath, ["-e", main, path], { stdio: "ignore" });
  expect(statSync(path).isSocket()).toBe(true);
}

test("a socket that nobody answers at is replaced", async () => {
  const path = newPath();
  leaveStale(path);
  const [left, right] = [dealer(), dealer()];
  expect(await left.bind(`ipc://${path}`)).toBe(`ipc://${path}`);
  right.connect(`ipc://${path}`);
  await right.send([new Uint8Array([1])]);
  expect(await left.receive()).toEqual([new Uint8Array([1])]);
});

test("a socket that somebody answers at stays his, and a file that is no socket stays as it is", async () => {
  const path = newPath();
  const first = dealer();
  await first.bind(`ipc://${path}`);
  await expect(dealer().bind(`ipc://${path}`)).rejects.toMatchObject({
    code: "CANNOT_CREATE",
    message: `Cannot listen on ipc://${path}: another process already listens there`,
  });
  const file = newPath();
  writeFileSync(file, "precious");
  await expect(dealer().bind(`ipc://${file}`)).rejects.toThrow("the path is a file that is not a socket");
  await expect(dealer().bind(`ipc://${folder}/none/x.sock`)).rejects.toThrow("the folder does not exist");
  expect(existsSync(file)).toBe(true);
  const third = dealer();
  third.connect(`ipc://${path}`);
  await third.send([new Uint8Array(0)]);
  await first.receive();
});

test("the file goes with the socket, unless another one stands there by then", async () => {
  const path = newPath();
  const former = dealer();
  await former.bind(`ipc://${path}`);
  await former.close();
  expect(existsSync(path)).toBe(false);
  const first = dealer();
  await first.bind(`ipc://${path}`);
  rmSync(path);
  const second = dealer();
  await second.bind(`ipc://${path}`);
  await first.close();
  expect(existsSync(path)).toBe(true);
  const third = dealer();
  third.connect(`ipc://${path}`);
  await third.send([new Uint8Array(0)]);
  await second.receive();
  await second.close();
  expect(existsSync(path)).toBe(false);
});

test("a socket that another process puts in place of a stale one stays, even with the same inode", async () => {
  const path = newPath();
  leaveStale(path);
  const { ino } = statSync(path);
  const another = createServer();
  const listening = () => new Promise<void>((resolve) => another.listen(path, resolve));
  const dial = async () => {
    rmSync(path);
    await listening();
    throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  };
  const left = new DealerSocket({ dial });
  open.push(left);
  await expect(left.bind(`ipc://${path}`)).rejects.toThrow("another process already listens there");
  expect(existsSync(path)).toBe(true);
  // Most file systems give the number of a file that was removed to the next one; where not, this proves less.
  if (statSync(path).ino !== ino) console.error(`the inode was not used again: ${ino}`);
  await new Promise((resolve) => another.close(resolve));
});

test("a file that cannot be looked at any more does not keep the rest of the socket open", async () => {
  const parent = join(folder, `parent${++paths}`);
  mkdirSync(parent);
  const first = dealer();
  await first.bind(`ipc://${parent}/x.sock`);
  const tcp = await first.bind("tcp://127.0.0.1:0");
  renameSync(parent, `${parent}.away`);
  symlinkSync(parent, parent); // leads nowhere, for root as well
  expect(() => lstatSync(join(parent, "x.sock"))).toThrow("ELOOP");
  await first.close();
  const second = dealer();
  expect(await second.bind(tcp)).toBe(tcp);
});
