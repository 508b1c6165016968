/**
 * The library as an installed package in an empty project, under each runtime: the programs of docs/library.md run as
 * they are written, one runtime after the other, with the same keeper and folder.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { killKeeper } from "../../support/baton_session.ts";
import { denoCheck, LibraryProject, libraryRuntimes } from "../../support/library_project.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { makeCurveKeyFiles } from "../../../src/protocols/zeromq/make_key_files.ts";

setDefaultTimeout(180_000);

const root = join(import.meta.dirname, "../../..");
const page = readFileSync(join(root, "docs/library.md"), "utf8");

interface PageProgram {
  /** The heading above it. */
  readonly name: string;
  readonly text: string;
  /** What its comments say that it prints. */
  readonly prints: readonly string[];
}

const programs: readonly PageProgram[] = page.split(/^##? /m).slice(1).flatMap((section) => {
  const name = section.split("\n", 1)[0] ?? "";
  return [...section.matchAll(/```js\n(.*?)```/gs)].map(([, text = ""]) => {
    const prints = [...text.matchAll(/\/\/ prints: (.*?)(?= \/\/ prints:|$)/gm)].map((match) => match[1] ?? "");
    return { name, text, prints };
  });
});
const fileOf = (name: string, ending: string) => `${name.toLowerCase().replaceAll(/\W+/g, "_")}.${ending}`;
const runtimes = libraryRuntimes();

let project: LibraryProject;
let cluster: PubsubCluster;
/** A service with a key. */
let encrypted: PubsubCluster;
let complaints = "";

beforeAll(async () => {
  project = new LibraryProject();
  cluster = await PubsubCluster.start({ as: "processes", root: "/baton" });
  for (const name of ["service.key", "client.key"]) makeCurveKeyFiles(project.path(name), { replaces: false });
  const words = ["--key", project.path("service.key")];
  const { backend } = cluster;
  encrypted = await PubsubCluster.start({ as: "processes", backend, serverWords: words, proxyWords: words });
  for (const { name, text } of programs) {
    project.write(fileOf(name, "mjs"), text);
    project.write(fileOf(name, "ts"), text); // TypeScript checks the declarations with it
  }
  complaints = project.checkTypes();
});
afterAll(async () => {
  killKeeper(project.keeperFolder);
  await encrypted?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
  project?.[Symbol.dispose]();
});

test("the page has a program for each kind of object", () => {
  const calls = ["lock", "openSession", "acquireLock", "campaign", "watchLeader", "enterBarrier", "runPool"];
  for (const call of [...calls, "new PubsubClient", "new MessageStore"]) {
    expect(programs.filter(({ text }) => text.includes(`${call}(`)).length).toBeGreaterThan(0);
  }
  for (const { prints } of programs) expect(prints.length).toBeGreaterThan(0);
});

test("the programs compile strictly against the declarations of the package, and Deno finds them, too", () => {
  expect(complaints).toBe("");
  const files = programs.map(({ name }) => fileOf(name, "ts"));
  const { code, err } = project.run([...denoCheck, ...files]);
  expect([code, err]).toEqual([0, ""]);
});

for (const { name: runtime, command } of runtimes) {
  describe(runtime, () => {
    for (const { name, text, prints } of programs) {
      test(`the program of "${name}" prints what the page says`, () => {
        const service = text.includes("PubsubClient") ? { BATON_SERVERS: cluster.backend.servers } : {};
        const expected = { code: 0, out: prints.map((line) => `${line}\n`).join(""), err: "" };
        expect(project.run([...command, fileOf(name, "mjs")], service)).toEqual(expected);
      });
    }

    const runText = (text: string, own = command) => {
      const file = fileOf(`${runtime} text`, "js");
      project.write(file, text);
      return project.run([...own, file]);
    };

    test("three lines hold a lock at the keeper that they start; the program ends by itself", () => {
      const text = `
        import { lock, openSession, watchLeader } from "@baton-locks/baton";
        const done = await lock("nightly", (held) => held.isHeld() && held.token > 0n);
        const session = openSession(); // a program may forget to close it
        await watchLeader("nobody", { session }).next();
        console.log(done);
      `;
      expect(runText(text)).toEqual({ code: 0, out: "true\n", err: "" });
    });

    test("a misspelled variable is reported, because the lock is local without it", () => {
      const text = `
        import process from "node:process";
        import { lock } from "@baton-locks/baton";
        process.env.BATON_SERVER = "zk1:2181";
        await lock("nightly", () => console.log("local"));
        await lock("nightly", () => {});
      `;
      const { out, err } = runText(text);
      expect(out).toBe("local\n");
      expect(err.match(/BATON_SERVER: baton has no such variable, did you mean "BATON_SERVERS"/g)).toHaveLength(1);
    });

    test("an import of any entry prints nothing", () => {
      const text = ["", "/pubsub", "/retry"].map((entry) => `import "@baton-locks/baton${entry}";`).join("\n");
      const plain = command.filter((word) => !word.startsWith("--disable-warning"));
      expect(runText(text, plain)).toEqual({ code: 0, out: "", err: "" });
    });

    test.skipIf(runtime !== "Node.js")("an older Node.js is refused with one sentence", () => {
      const text = `
        import process from "node:process";
        Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.19.0" } });
        await import("@baton-locks/baton").catch(({ code, message }) => console.log(code, message));
      `;
      const out = expect.stringContaining("CONFIG baton needs Node.js 22 or later, and this is v");
      expect(runText(text)).toEqual({ code: 0, out, err: "" });
    });

    test("a mistake, and an error of the work, end the program with their own message", () => {
      const text = `
        import { lock } from "@baton-locks/baton";
        await lock("", () => {}).catch((error) => console.log(error.code));
        await lock("nightly", () => { throw new TypeError("of the work"); });
      `;
      const { code, out, err } = runText(text);
      expect([code, out]).toEqual([1, "USAGE\n"]);
      expect(err).toContain("TypeError: of the work");
    });

    test("a program that cannot reach a server gets the documented error in the time of `wait`", () => {
      const text = `
        import { lock } from "@baton-locks/baton";
        import { PubsubClient } from "@baton-locks/baton/pubsub";
        const servers = "127.0.0.1:1";
        const codes = [];
        await lock("nightly", () => {}, { servers, wait: 500 }).catch((error) => codes.push(error.code));
        const client = new PubsubClient("bob", { servers, stateDir: "state", wait: 500 });
        await client.publisher("orders").put("order").catch((error) => codes.push(error.code));
        await client.close();
        console.log(codes.join(" "));
      `;
      expect(runText(text)).toEqual({ code: 0, out: "UNREACHABLE UNREACHABLE\n", err: "" });
    });

    test("an encrypted service is used with keys, and refuses a client without them; an empty message arrives", () => {
      const text = `
        import { PubsubClient } from "@baton-locks/baton/pubsub";
        const place = { proxies: ["${encrypted.proxy().endpoint}"], stateDir: "state-${runtime}" };
        const keys = { keyFile: "client.key", serviceKeyFile: "service.key.pub" };
        const topic = "encrypted-${runtime}";
        const client = new PubsubClient("alice", { ...place, ...keys });
        await client.subscriber(topic).subscribe();
        await client.publisher(topic).putAll(["secret", ""]);
        for (const message of await client.subscriber(topic).fetch()) console.log(JSON.stringify(message.text()));
        const stranger = new PubsubClient("bob", place);
        await stranger.topics().catch((error) => console.log(error.code));
        await stranger.close();
        await client.close();
      `;
      expect(runText(text)).toEqual({ code: 0, out: '"secret"\n""\nREFUSED\n', err: "" });
    });
  });
}
