import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  HolderReleaseClient,
  HolderReleaseMailbox,
  type HolderReleaseResponse,
  readMailboxOwner,
} from "../../../../src/coordination/hold/release_mailbox.ts";

const request = { id: "r1", requester: { pid: 1, startTicks: 2 }, stopsProcesses: false };
const response: HolderReleaseResponse = {
  id: "r1",
  result: "not_stopped",
  running: [{ pid: 3, command: "sleep 60" }],
  more: 0,
};

const script = { pid: 7, startTicks: 70 };

test("a request is read once, and its response is read", () => {
  using mailbox = HolderReleaseMailbox.open("abc", script);
  using client = HolderReleaseClient.open(mailbox.path, "abc");
  expect(mailbox.nextRequest()).toBeNull();
  expect(client?.readResponse()).toBeNull();
  client?.send({ ...request, id: "a longer one, that is written over" });
  client?.send(request);
  expect(mailbox.nextRequest()).toEqual(request);
  expect(mailbox.nextRequest()).toBeNull();
  mailbox.respond(response);
  expect(client?.readResponse()).toEqual(response);
  client?.send({ ...request, id: "r2" });
  expect(mailbox.nextRequest()?.id).toBe("r2");
});

test("a process that looks through the files of others recognizes a mailbox, its owner and its script", () => {
  const mailbox = HolderReleaseMailbox.open("abc", script);
  expect(readMailboxOwner(mailbox.path)).toEqual({ id: "abc", script });
  using file = openFile();
  expect(readMailboxOwner(`/proc/${process.pid}/fd/${file.fd}`)).toBeNull();
  mailbox[Symbol.dispose]();
  expect(readMailboxOwner(mailbox.path)).toBeNull();
});

function openFile(): Disposable & { readonly fd: number } {
  const fd = openSync(import.meta.filename, "r");
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

test("the response can be read when the holder has ended", () => {
  const mailbox = HolderReleaseMailbox.open("abc", script);
  using client = HolderReleaseClient.open(mailbox.path, "abc");
  mailbox.respond({ ...response, result: "released" });
  mailbox[Symbol.dispose]();
  expect(client?.readResponse()?.result).toBe("released");
  mailbox.respond({ ...response, result: "lost" }); // the number of its descriptor may be another file's by now
  expect([mailbox.nextRequest(), client?.readResponse()?.result]).toEqual([null, "released"]);
});

test("a client opens no holder that has ended, no other holder, and none that has released", () => {
  const mailbox = HolderReleaseMailbox.open("abc", script);
  const { path } = mailbox;
  expect(HolderReleaseClient.open(path, "abd")).toBeNull();
  mailbox.respond({ ...response, result: "released" });
  expect(HolderReleaseClient.open(path, "abc")).toBeNull();
  mailbox[Symbol.dispose]();
  expect(HolderReleaseClient.open(path, "abc")).toBeNull();
});

test("nor a pipe, a device or a folder that has the number of its descriptor by now", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-mailbox-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  expect(HolderReleaseClient.open(pipe, "abc")).toBeNull();
  expect(HolderReleaseClient.open("/dev/zero", "abc")).toBeNull();
  expect(HolderReleaseClient.open(folder, "abc")).toBeNull();
  // A file that fails when it is read.
  if (process.platform === "linux") expect(HolderReleaseClient.open("/proc/self/mem", "abc")).toBeNull();
  rmSync(folder, { recursive: true });
});
