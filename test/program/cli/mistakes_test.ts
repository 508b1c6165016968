/** What people get wrong: each mistake has its code, a sentence that says what to do, and nothing on stdout. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

async function expectRefused(words: string, code: number, says: string): Promise<void> {
  const ended = await session.run(`"$baton" ${words}`);
  expect([words, ended.code, ended.stdout]).toEqual([words, code, ""]);
  expect(ended.stderr).toContain(says);
  expect(ended.stderr).not.toContain("internal error");
}

test("words in the wrong place, unknown or missing", async () => {
  const wrong: [words: string, says: string][] = [
    ["", "baton COMMAND [options]"],
    ["whoo x", 'There is no command "whoo", did you mean "who"?'],
    ["--all ls", "--all is an option of single commands, which follows the command, as in: baton ls --all"],
    ["nightly who", 'There is no command "nightly"; the command comes first, as in: baton who nightly'],
    ["who", "baton who needs the name of one lock, and none is given, as in: baton who NAME"],
    ["who a b", 'baton who needs the name of one lock, and "a", "b" are given'],
    ["who --jsn a", 'There is no option --jsn, did you mean "--json"?'],
    ["who --kind lokc a", '--kind: "lokc" is not one of lock, election, barrier, gate'],
    ["who --kind election", "needs the name of one election"],
    ["who a --servers foo:bar", '--servers: Cannot use "foo:bar" as the list of servers'],
    ["who a --root x", '--root: "x" is not a ZooKeeper path: it does not start with a slash'],
    ["ls x", "baton ls takes no names"],
    ["ls --all=yes", "The option --all takes no value"],
    ['break x --holder ""', "--holder: the value is empty; expected id"],
    ["break x --holder 3f2", "--holder 3f2: at least 4 characters of the id are needed, as baton who shows it"],
    ["break x --holder a --wait 5min", '--wait: "5min" is not a duration: write seconds, or a number with a unit'],
    ["leader", "needs the name of one election"],
    ["leader x --wait 5 --watch", "--watch and --wait cannot be used together"],
    ["forward x", "baton forward needs --listen, as in: baton forward NAME --listen :9000"],
    ["forward x --listen foo", 'Cannot listen on "foo"'],
    ["check x", "it checks the lock of the command that runs it"],
    ["check", "There is no lock to check"],
    ["doctor x", "baton doctor takes no names"],
    ["config", "baton config takes check, show, init or schema, but none was given"],
    ["config chek", 'not "chek", did you mean "check"?'],
    ["completion", "baton completion needs a shell: bash, zsh or fish"],
    ["completion sh", "takes bash, zsh or fish"],
    ["help whoo", 'There is no help on "whoo", did you mean "who"?'],
    ["keeper verfy", 'not "verfy", did you mean "verify"?'],
    ["keeper backup", "missing file; example: baton keeper backup"],
    ["keeper backup a b", 'or baton keeper backup FILE, not "backup a b"\n'],
    ["keeper --json", "--json is only for baton keeper verify"],
    ["keeper verify --listen :1", "--listen does not apply to baton keeper verify"],
    ["keeper backup copy --limit nodesMax=1", "--limit does not apply to baton keeper backup"],
    ["config check --origin", "--origin is for baton config show"],
    ["pool status c -j 2", "--jobs is for a call that runs items, not for baton pool status"],
    ["pool clear c --retries 1", "--retries is for a call that runs items, not for baton pool clear"],
    [
      "pool c --items a --items b -- true",
      '--items is given twice, with "a" and with "b": give only one of them',
    ],
    ["elect e --on-elected ./a --on-elected ./b --value v -- true", "--on-elected is given twice"],
    ["fence run --store a --store b --token 1 -- true", "--store is given twice"],
    ["barrier g --set --max-hold 1s", "--set and --max-hold cannot be used together"],
    ["fence", "baton fence takes run, but none was given"],
  ];
  for (const [words, says] of wrong) await expectRefused(words, 64, says);
});

test("a host that nobody knows cannot be listened at, and that is said", async () => {
  const why = ": the name nowhere.invalid cannot be resolved to an address; check /etc/hosts\n";
  const words = "--data-dir unknown --idle-exit 1ms --insecure";
  await expectRefused(`keeper ${words} --listen nowhere.invalid:1`, 73, `on nowhere.invalid:1${why}`);
  await expectRefused(`keeper ${words} --metrics-listen nowhere.invalid:1`, 73, `nowhere.invalid:1${why}`);
  await expectRefused("forward x --insecure --listen nowhere.invalid:1", 73, `on nowhere.invalid:1${why}`);
  await expectRefused("pubsub proxy --insecure --listen tcp://nowhere.invalid:1", 73, why);
});

test("a name that cannot be one is refused before anything is asked or started", async () => {
  await using fresh = new BatonSession();
  for (const command of ["who", "break --holder 3f2a", "leader", "resign", "forward --listen 127.0.0.1:0"]) {
    const ended = await fresh.run(`"$baton" ${command} "$(printf 'a\\nb')"`);
    expect([command, ended.code, ended.stdout]).toEqual([command, 64, ""]);
    expect(ended.stderr).toMatch(/^baton: "a\\nb" cannot be the name of an? \w+: it contains a control character\n/);
  }
  expect(existsSync(fresh.keeperFolder)).toBe(false);
});

test("names with blanks, slashes and dashes are names", async () => {
  for (const name of ["a b", "a/b", "-n", ".", "ü"]) {
    expect(await session.run(`"$baton" who --json -- '${name}'`)).toMatchObject({ code: 1, stderr: "" });
    const ended = await session.run(`"$baton" lock -q -- true; "$baton" who -- '${name}'`);
    expect(ended).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(`nothing has the name "${name}"`),
    });
  }
});

test("servers that are not there: what was tried, what happened, and who named them", async () => {
  await expectRefused("who a -z 127.0.0.1:1 --connect-timeout 200ms", 69, "127.0.0.1:1: connection refused\n");
  await expectRefused("who a -z nohost.invalid --connect-timeout 2s", 69, "nohost.invalid:2181: ");
  await expectRefused("who a -z unix:/none.sock --connect-timeout 200ms", 69, "unix:/none.sock: no such socket\n");
  const named = await session.run('"$baton" ls --connect-timeout 200ms', { BATON_SERVERS: "127.0.0.1:1" });
  expect(named).toMatchObject({ code: 69, stdout: "" });
  expect(named.stderr).toEndWith("127.0.0.1:1: connection refused; BATON_SERVERS names these servers\n");
  await session.run(`echo 'servers = "127.0.0.1:1"' >far.toml`);
  const filed = await session.run('env -u BATON_SERVERS "$baton" ls --config far.toml --connect-timeout 200ms');
  expect(filed.stderr).toEndWith("connection refused; far.toml names these servers\n");
});

test("what cannot be listened at says why", async () => {
  await expectRefused("forward x --listen unix:/none/x.sock", 73, "unix:/none/x.sock: the folder does not exist");
  await expectRefused("forward x --insecure --listen 192.0.2.1:0", 73, "this machine has no such address");
});

test("nothing to see is said on stderr, and not with -q", async () => {
  await using fresh = new BatonSession({ BATON_SERVERS: "embedded", BATON_RETRY_STORE: "/none" });
  expect(await fresh.run('"$baton" ls')).toMatchObject({
    code: 0,
    stdout: "",
    stderr: "baton: nothing is in use below /baton\n",
  });
  expect(await fresh.run('"$baton" ls -q')).toMatchObject({ code: 0, stdout: "", stderr: "" });
  await fresh.run('"$baton" lock -q used -- true');
  expect((await fresh.run('"$baton" ls --kind lock')).stderr).toBe(
    "baton: no lock is in use below /baton; --all shows 1 unused\n",
  );
});

test("a stdout that is full is 74, one that nobody reads ends by SIGPIPE, as with other programs", async () => {
  const printing = ["help", "who --help", "completion bash", "config show --json", "doctor --json", "who x --json"];
  for (const words of printing) {
    const full = await session.run(`"$baton" ${words} >/dev/full`);
    expect([words, full.code]).toEqual([words, 74]);
    expect(full.stderr).toContain("baton: Cannot write to stdout: no space left on device");
    // Whoever reads has closed its end before there is anything to read.
    const closed = await session.run(
      `rm -f gate; mkfifo gate; { read -r _ <gate; "$baton" ${words}; echo $? >code; } | { exec <&-; echo go >gate; }`,
    );
    expect([words, closed.stderr, session.read("code").trim()]).toEqual([words, "", "141"]);
  }
});

test("a backup is not written to stdout, nor into a file that is called -", async () => {
  await expectRefused("keeper backup -", 64, "a backup needs a file, and not stdout");
});

test("without HOME, with one that cannot be written, without any environment", async () => {
  expect(await session.run('env -u HOME "$baton" config check')).toMatchObject({ code: 0, stdout: "" });
  expect(await session.run('HOME=/nonexistent "$baton" who -q x')).toMatchObject({ code: 1, stdout: "", stderr: "" });
  await expectRefused("keeper --data-dir /proc/none -q", 73, "Cannot create the data directory /proc/none");
});

test("every command has a help with examples", async () => {
  const commands = (await session.run('"$baton" help')).stdout.split("\n").flatMap((line) =>
    /^ {2}([a-z][a-z -]*?) {2,}[^#\s]/.exec(line)?.slice(1) ?? []
  );
  expect(commands.length).toBeGreaterThan(15);
  for (const command of commands) {
    const help = await session.run(`"$baton" ${command} --help`);
    expect([command, help.code, help.stderr]).toEqual([command, 0, ""]);
    expect(help.stdout).toMatch(/\nExamples:\n {2}\S/);
    expect(help.stdout.split("\n").filter((line) => line.length > 110 && !line.startsWith("  "))).toEqual([]);
  }
});
