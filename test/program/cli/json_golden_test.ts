/**
 * What the binary prints for programs, beside its declared shapes and the golden files. BATON_WRITE_GOLDEN=1 writes
 * them.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { allJsonShapes } from "../../../scripts/docs/json_shapes.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { expectGolden } from "../../support/golden_json.ts";
import { sessionTalker, startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

/** Names of golden files that a test has compared. */
const seen = new Set<string>();

function compare(golden: string, line: string): void {
  const row = allJsonShapes.find(({ goldens }) => goldens.includes(golden));
  const value: unknown = JSON.parse(line);
  expect([golden, row?.shape.safeParse(value).error?.issues ?? []]).toEqual([golden, []]);
  expectGolden(golden, value, { [session.folder]: "/srv/example" });
  seen.add(golden);
}

/** The last line of stdout: what runs in the script may have said something of its own before. */
async function printed(script: string, golden: string): Promise<void> {
  const ended = await session.run(script);
  const line = ended.stdout.trimEnd().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`${script} printed "${ended.stdout}", and said "${ended.stderr}"`);
  compare(golden, line);
}

const hold = (name: string) => `sh -c 'touch ${name}; while [ ! -e ${name}.end ]; do sleep 0.05; done'`;

test("who and ls, of every kind", async () => {
  await printed('"$baton" who nightly --json', "who_free");
  const running = [
    session.start(`exec "$baton" lock -N 2 nightly --reason backup -- ${hold("permit")}`),
    session.start(`exec "$baton" elect echo --value db1:7000 -- ${hold("leads")}`),
    session.start(`exec "$baton" barrier agents -N 1 -- ${hold("runs")}`),
    session.start(`printf 'a\\n' | "$baton" pool papers --items - --total 2 -- ${hold("works")}`),
  ];
  for (const file of ["permit", "leads", "runs", "works"]) await session.made(file);
  const waiting = [
    session.start('exec "$baton" lock nightly -N 2 -- true'),
    session.start('exec "$baton" lock nightly -N 2 --priority background -- true'),
    session.start('exec "$baton" elect echo --value db2:7000 -- true'),
    session.start('exec "$baton" barrier agents -N 2 -w 60s -- true'),
  ];
  // The first of the two takes the second permit.
  const waiters = async (kind: string, name: string) =>
    JSON.parse((await session.run(`"$baton" who --kind ${kind} ${name} --json`)).stdout).waiters.length;
  await session.run('"$baton" barrier maintenance --set --reason "disk swap"');
  await eventually(async () => await waiters("election", "echo") === 1);
  await eventually(async () => await waiters("barrier", "agents") === 1);
  await Promise.all(waiting.slice(0, 2).map((one) => one.ended));
  const third = session.start(`exec "$baton" lock -N 2 nightly -- ${hold("second")}`);
  await session.made("second");
  const fourth = session.start('exec "$baton" lock -N 2 nightly --publish-command -- true');
  await eventually(async () => await waiters("lock", "nightly") === 1);

  await printed('"$baton" who nightly --json', "who");
  await printed('"$baton" who --kind election echo --json', "who_election");
  await printed('"$baton" who --kind barrier agents --json', "who_barrier");
  await printed('"$baton" who --kind gate maintenance --json', "who_gate");
  await session.run('echo body | "$baton" retry-processor submit --store "$dir/orders" --name orders -- false');
  await printed('"$baton" ls --json --store "$dir/orders" --name orders', "ls");
  await printed('"$baton" ls --long --json --kind election', "ls_long");
  await printed('"$baton" doctor --json -q', "doctor");
  await printed('"$baton" leader echo --json', "leader");
  await session.run("touch permit.end leads.end runs.end works.end second.end");
  waiting[3]?.child.kill("SIGTERM");
  await Promise.all([...running, ...waiting, third, fourth].map((one) => one.ended));
  await session.run('"$baton" barrier maintenance --lift');
});

test("history", async () => {
  const daily = `"$baton" lock ticked --tick "0 0 * * *" --timezone UTC --catch-up 1d -- sh -c "exit 3"`;
  expect((await session.run(daily)).code).toBe(3);
  await printed('"$baton" history ticked --json', "history");
  await printed('"$baton" explain ticked --json', "explain");
});

test("crontab files", async () => {
  await session.run(`printf '#baton name=nightly\\n0 3 * * * ./backup.sh\\nMAILTO=ops\\n0 25 * * * x\\n' >bad.cron`);
  await printed('"$baton" cron check bad.cron --timezone UTC --json', "cron_check");
  await session.run(`printf '#baton name=nightly\\n0 3 * * * ./backup.sh\\n' >good.cron`);
  await printed('"$baton" cron next good.cron --timezone Europe/Berlin --from 2026-01-01T00:00Z --json', "cron_next");
  await session.run(`"$baton" lock set-back --tick "0 0 * * *" --timezone UTC --catch-up 1d -- true`);
  await printed('"$baton" cron reset set-back --json', "cron_reset");
  await printed('"$baton" cron forget set-back --json', "cron_forget");
});

test("version", async () => {
  await printed('"$baton" version --json', "version");
});

test("break and resign", async () => {
  const holder = session.start(`exec "$baton" lock -q taken -- ${hold("taken")}`);
  const leader = session.start(`exec "$baton" elect -q chair --value a:1 --restart never -- ${hold("chair")}`);
  await session.made("taken");
  await session.made("chair");
  const { holders } = JSON.parse((await session.run('"$baton" who taken --json')).stdout);
  await printed(`"$baton" break taken --holder ${holders[0].id} --json`, "break");
  await printed('"$baton" resign chair --json', "resign");
  expect([(await holder.ended).code, (await leader.ended).code]).toEqual([80, 80]);
});

test("leader, and its lines", async () => {
  await printed('"$baton" leader nobody --json', "leader_none");
  const watching = session.start('exec "$baton" leader watched --watch');
  await eventually(() => watching.stdout().includes("\n"));
  compare("leader_watch_vacant", watching.stdout());
  await session.run('"$baton" elect -q watched --value a:1 -- true');
  await eventually(() => watching.stdout().includes('"a:1"'));
  compare("leader_watch_leads", watching.stdout().split("\n").find((line) => line.includes('"a:1"')) ?? "");
  watching.child.kill("SIGTERM");
  await watching.ended;
});

test("a gate, a pool", async () => {
  await printed('"$baton" barrier door --set --json', "gate_closed");
  await printed('"$baton" barrier door --lift --json', "gate");
  const script = `"$baton" pool -q batches --items - --done-ttl 1h --total 9 -j 9 --status-fd 3 3>items -- sh -c`;
  const jobs =
    `'[ {} != bad ] || exit 3; [ {} != slow ] || { touch slow; while [ ! -e slow.end ]; do sleep 0.05; done; }'`;
  const pool = session.start(`printf 'bad\\ngood\\nslow\\n' | ${script} ${jobs}`);
  await session.made("slow");
  const status = `printf 'bad\\ngood\\nslow\\nnew\\n' | "$baton" pool status batches --items - --json`;
  await eventually(async () => {
    const { counts } = JSON.parse((await session.run(status)).stdout);
    return counts.done === 1 && counts.failed === 1;
  });
  await printed(status, "pool_status");
  await session.run("touch slow.end");
  await pool.ended;
  compare("status_pool", session.read("items"));
});

test("inside a job", async () => {
  await printed('"$baton" lock -q job -- "$baton" check --json', "check");
  await printed(`"$baton" lock -q job -- "$baton" check --at-least 1h --json`, "check_lost");
  await session.run('"$baton" lock -q job --status-file status -- sh -c "exit 3"');
  compare("status", session.read("status"));
  const other = session.start(`exec "$baton" lock -q job -- ${hold("job")}`);
  await session.made("job");
  await session.run('"$baton" lock -qn job --status-file busy -- true');
  compare("status_busy", session.read("busy"));
  await session.run("touch job.end");
  await other.ended;
});

test("settings, and a keeper's data", async () => {
  await session.run(`printf '[lock]\\nkill_after = "7s"\\n' >baton.toml`);
  const env = "env BATON_AUTH_CREDENTIALS=digest:a:b";
  const shown = await session.run(`${env} "$baton" config show --config baton.toml --root /app --json`);
  // All settings would make a page that every new one changes.
  const some = ["root", "session.timeout", "auth.credentials", "auth.file", "lock.kill_after"];
  const { settings, ...rest } = JSON.parse(shown.stdout);
  const kept = settings.filter(({ key }: { key: string }) => some.includes(key));
  compare("config_show", JSON.stringify({ ...rest, settings: kept }));
  await session.run('"$baton" keeper --data-dir "$dir/fresh" --idle-exit 10ms -q');
  await printed('"$baton" keeper verify --data-dir "$dir/fresh" --json', "keeper_verify");
  await printed('"$baton" pubsub keygen "$dir/server.key" -q --json', "keygen");
  await printed('"$baton" pubsub keygen --json', "keygen_printed");
});

test("publish/subscribe servers", async () => {
  const serve = async (id: string) => {
    const running = session.start(`exec "$baton" pubsub server --id ${id} --data-dir ${id} --session-timeout 2s`);
    await eventually(() => running.stderr().includes("serves"), { withinMs: 15_000 });
    return running;
  };
  const [one, two] = [await serve("s1"), await serve("s2")];
  await using talker = await sessionTalker(session);
  for (const topic of ["news", "sport"]) await talker.say.ask({ name: "SUBSCRIBE", sender: "alice", topic });
  await printed('"$baton" pubsub server ls --json', "pubsub_servers");
  await printed('"$baton" pubsub topic ls --json', "pubsub_topic_list");
  await talker.say.ask({ name: "PUT", sender: "bob", topic: "news", counter: 1, body: new Uint8Array(3) });
  await printed('"$baton" pubsub topic show news --json', "pubsub_topic_show");
  await printed('"$baton" pubsub topic repair news --accept-loss --json', "pubsub_topic_repaired");
  await printed('"$baton" pubsub server forget-client news bob --accept-loss --json', "pubsub_client_forgotten");
  await talker.say.ask({ name: "SUBSCRIBE", sender: "alice", topic: "gone" });
  await printed('"$baton" pubsub topic delete gone --accept-loss --json', "pubsub_topic_deleted");
  await printed('"$baton" pubsub server move news --to s2 --json', "pubsub_moves");
  await printed('"$baton" pubsub server move news --to s9 --json', "pubsub_moves_kept");
  two.child.kill("SIGTERM");
  await two.ended;
  await printed('"$baton" pubsub server verify --data-dir "$dir/s2" --json', "pubsub_verify");
  await printed('"$baton" pubsub server restore --id s2 --data-dir "$dir/s2" --accept-loss --json', "pubsub_restored");
  await printed('"$baton" pubsub server forget s2 --accept-loss --json', "pubsub_forgotten");
  one.child.kill("SIGTERM");
  await one.ended;
});

test("the retry processor", async () => {
  const retry = (words: string) => `BATON_RETRY_STORE=$dir/messages "$baton" retry-processor ${words}`;
  await printed(`printf 'a\\nb\\n' | ${retry("submit --lines --key order-7 --json -- ./send.sh x")}`, "retry_submit");
  await session.run(
    `echo bad | ${retry("call -- sh -c 'exit 64'")}; echo late | ${retry("call -q -- sh -c 'exit 3'")}`,
  );
  await printed(retry("ls --json"), "retry_ls");
  await printed(retry("dlq ls --json"), "retry_dlq_ls");
  await printed(retry("dlq export"), "retry_dead_letter");
  await printed(retry("show 1 --json"), "retry_show");
  await printed(retry("cancel 3 99 --json"), "retry_changes_refused");
  await printed(retry("pause --json"), "retry_changes");
  await printed(retry("stats --json"), "retry_stats");
  await printed(retry("verify --json"), "retry_verify");
  await printed(
    retry("explain --interval 3s --max-retries 2 --backoff exponential --jitter equal --json"),
    "retry_explain",
  );
});

test("publish/subscribe clients", async () => {
  const start = (role: string) => startRole(session, role);
  // Topics of its own: what the servers of the test before had is nobody's any more.
  const running = [await start("server --id c1 --data-dir c1 --root /c"), await start("proxy --id c1 --root /c")];
  const client = '"$baton" pubsub client --root /c --state-dir "$dir/clients"';
  const put = (body: string, more = "") => session.run(`printf '${body}' | ${client} bob put news - ${more}`);
  await session.run(`${client} alice subscribe news`);
  await put("hello", "--msg-id order-4711");
  await put("\\377\\001");
  await printed(`${client} alice pending news --json`, "pubsub_pending");
  await printed(`${client} alice info news --json`, "pubsub_info");
  await printed(`${client} alice topics --json`, "pubsub_topics");
  await printed(`printf x | ${client} bob put unheard - --json`, "pubsub_put");
  await printed(`${client} alice get news --json`, "pubsub_message");
  await printed(`${client} alice get news --json`, "pubsub_message_bytes");
  for (const { child, ended } of running.reverse()) {
    child.kill("SIGTERM");
    await ended;
  }
});

test("every golden file is of a shape, and every one was compared", () => {
  const files = readdirSync(join(import.meta.dir, "../../fixtures/json")).map((name) => name.replace(/\.json$/, ""));
  expect(files.sort()).toEqual(allJsonShapes.flatMap(({ goldens }) => goldens).sort());
  expect([...seen].sort()).toEqual(files);
});
