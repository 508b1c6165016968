/**
 * Completion in the shells themselves: bash, zsh and fish complete a line as if somebody had pressed the tabulator key.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let holder: Running;
beforeAll(async () => {
  session = new BatonSession();
  mkdirSync(session.path("bin"));
  writeFileSync(session.path("bin/baton"), '#!/bin/sh\nexec "$baton" "$@"\n');
  chmodSync(session.path("bin/baton"), 0o755);
  writeFileSync(session.path("backup.toml"), "");
  holder = session.start('exec "$baton" lock -q app:nightly "two words" -- sh -c "touch held; exec sleep 600"');
  await session.made("held");
});
afterAll(async () => {
  holder.child.kill("SIGTERM");
  await session[Symbol.asyncDispose]();
});

const path = () => ({ PATH: `${session.path("bin")}:${session.env["PATH"]}` });

/** What the shell offers for a line, the cursor at its end; sorted. */
type Offer = (line: string) => Promise<string[]>;

/** What `__complete` printed, without descriptions. */
const wordsOf = (printed: string) => printed.replaceAll(/\t.*/g, "");

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

/** `type`: what readline asks for, 63 for a list, 9 for a word to insert. */
const inBash = async (line: string, type = 9): Promise<string[]> => {
  // As readline does: words cut at blanks, : and =, each of the latter a word of its own.
  const words = line.match(/[:=]|(?:\\.|'[^']*'?|"[^"]*"?|[^\s:='"\\])+|(?<=\s)$/g) ?? [];
  const script = `source <(baton completion bash)
COMP_WORDS=(${words.map(quoted).join(" ")}); COMP_CWORD=${words.length - 1}; COMP_TYPE=${type}
_baton; printf '%s\\n' "\${COMPREPLY[@]}"`;
  writeFileSync(session.path("complete.bash"), script);
  const { stdout, stderr } = await session.run("bash --norc complete.bash", path());
  expect(stderr).toBe("");
  return [...new Set(stdout.split("\n").filter(Boolean))].sort();
};

const inFish: Offer = async (line) => {
  const script = `baton completion fish | source\ncomplete -C '${line.replaceAll(/['\\]/g, "\\$&")}'`;
  writeFileSync(session.path("complete.fish"), script);
  const { stdout } = await session.run("fish --no-config complete.fish", path());
  return stdout.split("\n").map((row) => row.split("\t")[0] ?? "").filter(Boolean).sort();
};

/** zsh completes on a terminal only: what its function adds to the list is printed instead. */
const inZsh: Offer = async (line) => {
  const words = line.match(/(?:\\.|'[^']*'?|"[^"]*"?|[^\s'"\\])+|(?<=\s)$/g) ?? [];
  const prefix = (words.at(-1) ?? "").replace(/^['"]/, ""); // an open quotation mark is zsh's
  const script = `compdef() { : }
source <(baton completion zsh)
compadd() { shift; print -rl -- "$@" }
_describe() { local one; for one in "\${(@P)4}"; do print -r -- "\${one%%:*}"; done }
words=(${words.map(quoted).join(" ")}); CURRENT=${words.length}; PREFIX=${quoted(prefix)}
_baton`;
  writeFileSync(session.path("complete.zsh"), script);
  const { stdout, stderr } = await session.run("zsh -f complete.zsh", path());
  expect(stderr).toBe("");
  return stdout.split("\n").filter(Boolean).sort();
};

const shells: [name: string, offer: Offer][] = [["bash", inBash], ["fish", inFish], ["zsh", inZsh]];
for (const [name, offer] of shells) {
  const there = Bun.which(name) !== null;
  if (!there) console.error(`MISSING PEER: ${name}: its completion is not tried`);
  describe.if(there)(name, () => {
    test("offers commands by their beginning", async () => {
      expect(await offer("baton com")).toEqual(["completion"]);
      expect(await offer("baton w")).toEqual(["who"]);
      expect(await offer("~/bin/baton w")).toEqual(["who"]);
    });

    test("offers options, and the values of those that have a list", async () => {
      expect(await offer("baton lock --on-")).toEqual(["--on-busy-for", "--on-doubt", "--on-failure"]);
      expect(await offer("baton lock --on-doubt ")).toEqual(["freeze", "ignore"]);
    });

    test("offers the locks that exist, each as one word", async () => {
      const names = await offer("baton who ");
      expect(names.map((one) => one.replaceAll("\\", ""))).toEqual(["app:nightly", "two words"]);
    });

    test("goes on with a word that was begun in quotation marks, or with some of them", async () => {
      for (const begun of ["two\\ w", "'two w", '"two w', "tw'o'"]) {
        const names = await offer(`baton who ${begun}`);
        expect([begun, ...names.map((one) => one.replaceAll(/[\\'"]/g, ""))]).toEqual([begun, "two words"]);
      }
    });
  });
}

describe.if(Bun.which("bash") !== null)("bash", () => {
  test("shows descriptions where it lists what is possible, and inserts none", async () => {
    expect(await inBash("baton lock --on-", 9)).toEqual(["--on-busy-for", "--on-doubt", "--on-failure"]);
    const listed = await inBash("baton lock --on-", 63);
    expect(listed).toEqual([
      expect.stringMatching(/^--on-busy-for {2}\(when the lock has been held this long/),
      expect.stringMatching(/^--on-doubt {5}\(while no server responds/),
      expect.stringMatching(/^--on-failure {3}\(when the command has failed for good/),
    ]);
    for (const line of listed) expect(line.length).toBeLessThan(80);
    expect(await inBash("baton lock --on-d", 63)).toEqual(["--on-doubt"]);
  });

  test("offers what follows the colon that it has cut the word at", async () => {
    expect(await inBash("baton who app:")).toEqual(["nightly"]);
    expect(await inBash("baton who app:ni")).toEqual(["nightly"]);
    expect(await inBash("baton lock --on-doubt=f")).toEqual(["freeze"]);
  });

  test("writes what it offers as the quotation mark wants it that is open", async () => {
    const odd = session.start(`exec "$baton" lock -q 'q\\"$(touch ran)' "q'x" -- sh -c "touch odd; exec sleep 600"`);
    await session.made("odd");
    expect(await inBash("baton who q")).toEqual(["q\\'x", 'q\\\\\\"\\$\\(touch\\ ran\\)']);
    expect(await inBash('baton who "q')).toEqual(["q'x", 'q\\\\\\"\\$(touch ran)']);
    expect(await inBash("baton who 'q")).toEqual(["q'\\''x", 'q\\"$(touch ran)']);
    odd.child.kill("SIGTERM");
    await odd.ended;
    expect((await session.run("ls ran")).code).not.toBe(0);
  });

  test("leaves files and commands to the shell", async () => {
    expect(await inBash("baton lock --config back")).toEqual(["backup.toml"]);
    expect(await inBash("baton lock x -- printen")).toEqual(["printenv"]);
    expect(await inBash("baton lock -w 5 x printen")).toEqual(["printenv"]);
    expect(await inBash("baton -q lock --timeout 5 x cat back")).toEqual(["backup.toml"]);
    expect(await inBash("baton lock x -- cat back")).toEqual(["backup.toml"]);
  });
});

test("options and commands have descriptions, which fit into a line", async () => {
  const lines = async (line: string) => (await session.run(`"$baton" __complete ${line}`)).stdout.split("\n");
  expect(await lines("loc")).toEqual(["words", "lock\trun a command while holding a lock", ""]);
  expect(await lines("pubs")).toEqual(["words", expect.stringMatching(/^pubsub\t.*\bclient\b/), ""]);
  expect(await lines("pubsub cli")).toEqual(["words", expect.stringMatching(/^client\t\w/), ""]);
  const options = (await lines("lock -")).slice(1, -1).filter((line) => line !== "--");
  for (const line of options) expect(line).toMatch(/^-\S+\t.{1,72}$/);
  expect(options).toContain("--shared\tshared (read) lock: any number of -s holders at a time");
});

test("each kind of name is offered where it belongs", async () => {
  await session.run('"$baton" elect -q --value v echo -- true');
  const words = async (line: string) => wordsOf((await session.run(`"$baton" __complete ${line}`)).stdout);
  expect(await words("leader ''")).toBe("words\necho\n");
  await session.run('"$baton" pool -q inbox --items a,b --done-ttl 1h -- true');
  expect(await words("pool ''")).toBe("words\nstatus\nclear\ninbox\n");
  expect(await words("pool -j 2 st")).toBe("words\nstatus\n");
  expect(await words("pool clear i")).toBe("words\ninbox\n");
  expect(await words("pool inbox --joblog ''")).toBe("files\n");
  expect(await words("pool clear ''")).toBe("words\ninbox\n");
  expect(await words("fence ''")).toBe("words\nrun\n");
  expect(await words("fence run ''")).toBe("commands\n");
  expect(await words("who t")).toBe("words\ntwo words\n");
  expect(await words("who --kind election ''")).toBe("words\necho\n");
});

test("behind a word that chooses what a command does, only the options are offered that this takes", async () => {
  const words = async (line: string) => wordsOf((await session.run(`"$baton" __complete ${line}`)).stdout).split("\n");
  const refused: [line: string, flag: string][] = [
    ["pool status", "--jobs"],
    ["pool status", "--status-file"],
    ["pool status", "--kill-after"],
    ["pool clear", "--json"],
    ["pool clear", "--loop"],
    ["config check", "--origin"],
    ["keeper backup", "--json"],
    ["keeper verify", "--listen"],
  ];
  for (const [line, flag] of refused) {
    expect([line, await words(`${line} --`)]).not.toEqual([line, expect.arrayContaining([flag])]);
  }
  expect(await words("pool status c --")).not.toContain("--");
  expect(await words("pool status c --")).toEqual(expect.arrayContaining(["--json", "--items", "--query", "--root"]));
  expect(await words("pool clear c --items a --")).toEqual(expect.arrayContaining(["--query-timeout", "--quiet"]));
  expect(await words("pool c --")).toEqual(expect.arrayContaining(["--jobs", "--items", "--"]));
  expect(await words("pool -j 3 --")).toEqual(expect.arrayContaining(["--loop", "--"]));
  expect(await words("config show --")).toContain("--origin");
});

test("what cannot be asked is answered with nothing, soon, and starts no keeper", async () => {
  const nobody = { BATON_KEEPER_DIR: session.path("nobody") };
  expect(await session.run('"$baton" __complete who ""', nobody)).toMatchObject({
    code: 0,
    stdout: "words\n",
    stderr: "",
  });
  await eventually(async () => (await session.run("test ! -e nobody || ls nobody")).stdout === "");
  expect(await session.run('"$baton" __complete no-such-command ""')).toMatchObject({ code: 0, stdout: "words\n" });
});

test("another word than a shell's name is a matter of usage", async () => {
  const ended = await session.run('"$baton" completion bsh');
  expect(ended).toMatchObject({ code: 64, stdout: "" });
  expect(ended.stderr).toContain('takes bash, zsh or fish, not "bsh", did you mean "bash"?');
});

test("components of a configuration file are offered to pool, also where no server answers", async () => {
  writeFileSync(
    session.path("components.toml"),
    "[pool.component.import]\njobs = 2\n[pool.component.inbox]\ntotal = 3\n",
  );
  const ended = await session.run('"$baton" __complete pool --config components.toml i', {
    BATON_KEEPER_DIR: session.path("nobody"),
  });
  expect(ended).toMatchObject({ code: 0, stdout: "words\nimport\ninbox\n" });
});
