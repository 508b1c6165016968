import { expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import process from "node:process";
import { join } from "node:path";
import { zooKeeper, zooKeeperEnsemble } from "./backends.ts";
import { eventually } from "./eventually.ts";
import { fourLetterWord } from "./four_letter_word.ts";
import { describeWithPeer } from "./peers.ts";

describeWithPeer("zookeeper", "a real ZooKeeper", () => {
  test("serves, falls silent while it is paused, and serves again", async () => {
    const running = await zooKeeper.start();
    try {
      const [node] = running.nodes;
      if (node === undefined) throw new Error("no node");
      expect(await fourLetterWord(node.address, "ruok")).toBe("imok");
      node.pause();
      // The threads stop one after the other: the first request after SIGSTOP may still be answered.
      await eventually(() => fourLetterWord(node.address, "ruok", 200).then(() => false, String), {
        what: "no response",
      }).then((failure) => expect(failure).toContain("within 200 ms"));
      node.resume();
      expect(await fourLetterWord(node.address, "ruok")).toBe("imok");
      await node.kill();
      await expect(fourLetterWord(node.address, "ruok")).rejects.toThrow();
      await node.restart();
      expect(await fourLetterWord(node.address, "ruok")).toBe("imok");
    } finally {
      await running.close();
    }
  }, 30_000);

  test("three nodes choose another leader when theirs is killed", async () => {
    const running = await zooKeeperEnsemble.start();
    try {
      const first = await running.leader();
      await first.kill();
      const second = await running.leader();
      expect(second).not.toBe(first);
      await first.restart();
      expect(await running.leader()).toBe(second);
    } finally {
      await running.close();
    }
  }, 60_000);

  test("does not take another server at its port for itself", async () => {
    const running = await zooKeeper.start();
    const [node] = running.nodes;
    if (node?.address.kind !== "tcp") throw new Error("no node");
    const { port } = node.address;
    await node.kill();
    const other = createServer((socket) => socket.end("Mode: standalone\ndataDir=/elsewhere/version-2\n"));
    await new Promise<void>((resolve) => other.listen(port, "127.0.0.1", resolve));
    try {
      await expect(node.restart()).rejects.toThrow("ended at its start");
    } finally {
      other.close();
      await running.close();
    }
  }, 30_000);

  test("does not outlive a test process that is killed", async () => {
    const program = `
      import { zooKeeper } from ${JSON.stringify(join(import.meta.dir, "backends.ts"))};
      const running = await zooKeeper.start();
      console.log(running.nodes[0].pid);
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--eval", program], { stdio: ["ignore", "pipe", "inherit"] });
    const pid = await new Promise<string>((resolve) =>
      child.stdout.once("data", (chunk: Uint8Array) => resolve(chunk.toString().trim()))
    );
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    child.kill("SIGKILL");
    await eventually(() => !existsSync(`/proc/${pid}`), { what: `the end of server ${pid}` });
  }, 30_000);
});
