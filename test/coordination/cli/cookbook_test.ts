/** The pages of docs/cookbook: their commands run as a reader types them, and show what the pages show. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { currentEnsemble, describeBackend } from "../../support/backends.ts";
import { untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { blocksOfPage, commandsOf, type PageBlock } from "../../support/page_blocks.ts";
import { crontabLines, PageShell } from "../../support/page_shell.ts";
import { describeWithPeer, hasPeer } from "../../support/peers.ts";
import { Pooler } from "../../support/pooler.ts";

setDefaultTimeout(180_000);

const folder = "docs/cookbook";
const pages = readdirSync(join(import.meta.dir, "../../..", folder)).filter((name) => name !== "README.md").sort();
const page = (name: string) => `${folder}/${name}`;
const ensemblePlace = "zk1:2181,zk2:2181,zk3:2181";

/** The blocks before the second heading: the task itself. */
function taskOf(name: string): PageBlock[] {
  const blocks = blocksOfPage(page(name));
  const [first] = readFileSync(join(import.meta.dir, "../../..", page(name)), "utf8").split("\n");
  return blocks.filter(({ heading }) => `# ${heading}` === first);
}

const block = (name: string, language: string, index = 0): PageBlock => {
  const found = blocksOfPage(page(name)).filter((one) => one.language === language)[index];
  if (found === undefined) throw new Error(`${name} has no block ${index} of ${language}`);
  return found;
};

test.each(pages)("%s takes at most three commands, and is in the list", (name) => {
  expect(commandsOf(taskOf(name)).length).toBeLessThanOrEqual(3);
  expect(readFileSync(join(import.meta.dir, "../../..", folder, "README.md"), "utf8")).toContain(`(${name})`);
});

test("there are twelve tasks", () => expect(pages).toHaveLength(12));

test("cron.md: the line is silent, and a run that finds the lock busy is left out", async () => {
  const { command = "", path = "" } = crontabLines(block("cron.md", "crontab"))[0] ?? {};
  await using shell = new PageShell(page("cron.md"), {
    files: { "bin/sync.sh": `#!/bin/sh\necho runs >>"$HOME/runs"\n${untilMade('"$HOME/end"')}\n` },
  });
  const first = shell.cron(command, path);
  await shell.session.said("runs");
  expect(await shell.cron(command, path)).toMatchObject({ code: 0, stdout: "", stderr: "" });
  writeFileSync(shell.session.path("end"), "");
  expect(await first).toMatchObject({ code: 0, stdout: "", stderr: "" });
  expect(shell.session.read("runs")).toBe("runs\n");
  await shell.runAll(({ language }) => language === "crontab");
});

describeBackend(currentEnsemble, () => {
  test("tick.md: of three machines one runs the job for each tick, and the others are silent", async () => {
    const ensemble = await currentEnsemble.start({});
    try {
      const past = new Date(Date.now() - 20 * 60_000);
      await using shell = new PageShell(page("tick.md"), {
        replace: {
          "--tick '0 3 * * *' --timezone Europe/Berlin":
            `--tick '${past.getUTCMinutes()} ${past.getUTCHours()} * * *' --timezone UTC`,
          "baton lock report": `baton lock -z ${ensemble.servers} report`,
          "/usr/local/bin/report.sh": "$HOME/report.sh",
        },
        files: { "report.sh": '#!/bin/sh\necho "$BATON_TICK_ATTEMPT" >>"$HOME/runs"\n[ "$BATON_TICK_ATTEMPT" = 2 ]\n' },
      });
      const crontab = shell.blocks.find(({ language }) => language === "crontab");
      const [line] = crontab === undefined ? [] : crontabLines(crontab);
      const { command = "", path = "" } = line ?? {};
      expect(await shell.cron(command, path)).toMatchObject({ code: 1, stdout: "", stderr: "" });
      for (const _machine of [1, 2, 3]) {
        expect(await shell.cron(command, path)).toMatchObject({ code: 0, stdout: "", stderr: "" });
      }
      expect(shell.session.read("runs")).toBe("1\n2\n");
    } finally {
      await ensemble.close();
    }
  });

  test("cron_ensemble.md: of three machines one runs the job, and the others are silent", async () => {
    const ensemble = await currentEnsemble.start({});
    try {
      await using shell = new PageShell(page("cron_ensemble.md"), {
        replace: { [ensemblePlace]: ensemble.servers, "/usr/local/bin/backup.sh": "$HOME/backup.sh" },
        files: { "backup.sh": '#!/bin/sh\necho runs >>"$HOME/runs"\n' },
      });
      await shell.runAll(({ language }) => language === "crontab");
      const crontab = shell.blocks.find(({ language }) => language === "crontab");
      const [line] = crontab === undefined ? [] : crontabLines(crontab);
      expect(line?.user).toBe("root");
      const { command = "", path = "" } = line ?? {};
      const first = shell.session.start(shell.cronScript(command, path));
      await shell.session.said("runs");
      for (const _machine of [2, 3]) {
        expect(await shell.cron(command, path)).toMatchObject({ code: 0, stdout: "", stderr: "" });
      }
      expect(first.child.exitCode).toBeNull(); // --min-hold
      expect(shell.session.read("runs")).toBe("runs\n");
    } finally {
      await ensemble.close();
    }
  });
});

describe("systemd_leader.md", () => {
  test.skipIf(!hasPeer("systemd"))("systemd accepts the unit", async () => {
    await using shell = new PageShell(page("systemd_leader.md"));
    const file = shell.session.path("report.service");
    writeFileSync(file, block("systemd_leader.md", "ini").text.replaceAll(/\/usr\/local\/bin\/\S+/g, "/bin/true"));
    const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
    expect([stdout, stderr, status]).toEqual(["", "", 0]);
  });

  test("of two candidates one runs the server; after resign, and after kill -9, it is the other one", async () => {
    await using shell = new PageShell(page("systemd_leader.md"));
    const unit = block("systemd_leader.md", "ini").text;
    const words = /^ExecStart=(.*)$/m.exec(unit)?.[1]?.replace(/^\S+/, "exec baton").split(" -- ")[0] ?? "";
    const start = (name: string) =>
      shell.session.start(`PATH="$dir/bin:$PATH"; ${words} -- sh -c 'echo ${name} >>starts; exec sleep 1000'`);
    const candidates = [start("a"), start("b")];
    await shell.session.said("starts");
    await shell.runAll(({ language }) => language === "ini");
    const starts = () => shell.session.read("starts").trim().split("\n");
    await eventually(() => starts().length === 2, { withinMs: 30_000 });
    expect(starts().toSorted()).toEqual(["a", "b"]);
    expect((await shell.session.run('"$baton" leader report')).stdout).toBe(`${hostname()}\n`);
    candidates[starts().at(-1) === "a" ? 0 : 1]?.child.kill("SIGKILL");
    await eventually(() => starts().length === 3, { withinMs: 30_000 });
    expect(starts()[2]).toBe(starts()[0] ?? "");
  });
});

test("ci_rendezvous.md: three jobs go on together, and two do not", async () => {
  await using shell = new PageShell(page("ci_rendezvous.md"));
  await shell.runAll();
});

test("shared_list.md: two shells run 100 items, each once", async () => {
  const images = Array.from({ length: 100 }, (_, index) => `image${index}.png`);
  await using shell = new PageShell(page("shared_list.md"), {
    files: { "images.txt": `${images.join("\n")}\n`, "resize.sh": '#!/bin/sh\necho "$1" >>resized\n' },
  });
  await shell.runAll();
  const resized = () =>
    existsSync(shell.session.path("resized")) ? shell.session.read("resized").trim().split("\n") : [];
  await eventually(() => resized().length >= 100, { withinMs: 120_000 });
  expect(resized().toSorted()).toEqual(images.toSorted());
  const again = await shell.session.run(
    '"$baton" pool resize --items @images.txt -j 4 --done-ttl 1h -- ./resize.sh {}',
  );
  expect(again.code).toBe(0);
  expect(resized()).toHaveLength(100);
});

test("log_lines.md: each line reaches both subscribers once, also lines that are written later", async () => {
  await using shell = new PageShell(page("log_lines.md"), {
    // The files of the page come after the command that uses them.
    files: Object.fromEntries(
      blocksOfPage(page("log_lines.md")).flatMap(({ title, text }) => title === null ? [] : [[title, `${text}\n`]]),
    ),
  });
  await shell.runAll(async (block) => {
    if (!block.text.includes("tail ")) return false;
    const topic = async () => (await shell.session.run('"$baton" pubsub topic show logs --json')).stdout;
    await eventually(async () => /archive/.test(await topic()) && /alerts/.test(await topic()), { withinMs: 30_000 });
    return false;
  });
  writeFileSync(shell.session.path("app.log"), "one\nERROR two\n");
  await eventually(() => existsSync(shell.session.path("alerts.log")), { withinMs: 30_000 });
  spawnSync("sh", ["-c", "echo three >>app.log"], { cwd: shell.session.folder });
  const archive = () => existsSync(shell.session.path("archive.log")) ? shell.session.read("archive.log") : "";
  await eventually(() => archive().includes("three"), { withinMs: 30_000 });
  expect(archive()).toBe("one\nERROR two\nthree\n");
  expect(shell.session.read("alerts.log")).toBe("alert\n");
});

test("webhook.md: stored while the receiver is down, a dead letter after the last try, delivered after redrive", async () => {
  await using receiver = await new HttpBackend((_request, response) => void response.writeHead(503).end("down")).up();
  await using shell = new PageShell(page("webhook.md"), {
    replace: { "http://receiver:9000": receiver.url },
    env: { BATON_RETRY_MAX_RETRIES: "1", BATON_RETRY_INTERVAL: "100ms" },
    files: { "event.json": '{"event":1}\n' },
  });
  await shell.runAll(async (block) => {
    if (!block.text.includes("redrive")) return false;
    const letters = () => shell.session.run('"$baton" retry-processor dlq ls --json');
    await eventually(async () => (await letters()).stdout.includes('"dead"'), { withinMs: 30_000, everyMs: 200 });
    receiver.answer = (_request, response) => void response.end("ok");
    return false;
  });
  await eventually(() => receiver.received.length === 3, { withinMs: 30_000, what: "the redriven request" });
  expect(new Set(receiver.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
});

test("who_holds.md: the holder is shown, and is stopped when the lock is taken back", async () => {
  await using shell = new PageShell(page("who_holds.md"), {
    files: { "job.sh": '#!/bin/sh\necho runs >>"$dir/runs"\nexec sleep 1000\n' },
  });
  const holder = shell.session.start("exec \"$baton\" lock --reason 'full backup' nightly -- ./job.sh");
  await shell.session.said("runs");
  await shell.runAll();
  expect(await holder.ended).toMatchObject({ code: 80 });
});

describeWithPeer("pgbouncer", "migrations.md", () => {
  let pooler: Pooler;
  beforeAll(async () => pooler = await Pooler.start());
  afterAll(() => pooler[Symbol.asyncDispose]());

  test("five replicas behind PgBouncer migrate once, one after the other", async () => {
    await pooler.query("CREATE TABLE orders (id int); CREATE TABLE schema_version (version int)");
    await pooler.query("INSERT INTO schema_version VALUES (1)");
    await using shell = new PageShell(page("migrations.md"), { env: { DATABASE_URL: pooler.url } });
    await shell.runAll(({ title }) => title === null);
    const [command = ""] = commandsOf(shell.blocks);
    const replica = `PATH="$dir/bin:$PATH"; ${command}`;
    const ended = await Promise.all(Array.from({ length: 5 }, () => shell.session.run(replica)));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual(Array.from({ length: 5 }, () => [0, ""]));
    expect(await pooler.query("SELECT count(*) FROM schema_version WHERE version = 2")).toBe("1");
  });

  test("an advisory lock behind PgBouncer in transaction mode does not exclude", async () => {
    // Two clients, one after the other, get the same connection: the second holds the lock of the first.
    expect(await pooler.query("SELECT pg_try_advisory_lock(7)")).toBe("t");
    expect(await pooler.query("SELECT pg_try_advisory_lock(7)")).toBe("t");
  });
});

describe("kubernetes.md", () => {
  // The fields of Kubernetes that the page uses, with their types; a misspelled one is refused.
  const name = z.string().regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
  const labels = z.record(z.string(), z.string());
  const port = z.int().min(1).max(65_535);
  const container = z.strictObject({
    name,
    image: z.string(),
    command: z.array(z.string()),
    args: z.array(z.string()),
    env: z.array(z.strictObject({ name: z.string(), value: z.string() })),
    ports: z.array(z.strictObject({ containerPort: port })),
    readinessProbe: z.strictObject({ exec: z.strictObject({ command: z.array(z.string()) }), periodSeconds: z.int() }),
  });
  const pod = z.strictObject({ terminationGracePeriodSeconds: z.int(), containers: z.tuple([container]) });
  const template = z.strictObject({ metadata: z.strictObject({ labels }), spec: pod });
  const manifest = z.tuple([
    z.strictObject({
      apiVersion: z.literal("apps/v1"),
      kind: z.literal("Deployment"),
      metadata: z.strictObject({ name }),
      spec: z.strictObject({ replicas: z.int(), selector: z.strictObject({ matchLabels: labels }), template }),
    }),
    z.strictObject({
      apiVersion: z.literal("v1"),
      kind: z.literal("Service"),
      metadata: z.strictObject({ name }),
      spec: z.strictObject({ selector: labels, ports: z.array(z.strictObject({ port, targetPort: port })) }),
    }),
  ]);
  const [deployment, service] = manifest.parse(Bun.YAML.parse(block("kubernetes.md", "yaml").text));

  test("the manifest is a deployment and a service for the same pods and port", () => {
    const { selector, template, replicas } = deployment.spec;
    const { matchLabels } = selector;
    expect([replicas, template.metadata.labels, service.spec.selector]).toEqual([3, matchLabels, matchLabels]);
    const containerPorts = template.spec.containers[0].ports.map(({ containerPort }) => containerPort);
    expect(service.spec.ports.map(({ targetPort }) => targetPort)).toEqual(containerPorts);
  });

  test("of three pods one runs the server, and only it is ready", async () => {
    await using shell = new PageShell(page("kubernetes.md"));
    const [container] = deployment.spec.template.spec.containers;
    expect(container.env.map(({ name }) => name)).toEqual(["BATON_SERVERS"]);
    const words = [...container.command.slice(2), ...container.args].map((word) => `'${word}'`).join(" ");
    const pods = ["report-a", "report-b", "report-c"];
    for (const pod of pods) {
      // A pod has a host name, a folder and processes of its own; here the name is given.
      const command = words.replaceAll("/tmp/", `${shell.session.folder}/${pod}-`)
        .replace("'elect' 'report'", `'elect' 'report' '--value' '${pod}'`)
        .replace("'/usr/local/bin/report-server'", "sh -c 'echo started >>starts; exec sleep 1000'");
      shell.session.start(`PATH="$dir/bin:$PATH"; exec ${command}`);
    }
    const [program = "", flag = "", probe = ""] = container.readinessProbe.exec.command;
    const isReady = (pod: string) => {
      const line = probe.replaceAll("/tmp/", `${shell.session.folder}/${pod}-`).replace("$(hostname)", pod);
      return spawnSync(program, [flag, line]).status === 0;
    };
    await shell.session.said("starts");
    await eventually(() => pods.some(isReady), { withinMs: 30_000 });
    expect(pods.filter(isReady)).toHaveLength(1);
    expect(shell.session.read("starts")).toBe("started\n");
  });
});

test("fleet_crontab.md: the lines do what the page says, silently", async () => {
  const job = (name: string) => `#!/bin/sh\necho "${name} $1" >>"$HOME/runs"\nsleep 0.2\n`;
  await using shell = new PageShell(page("fleet_crontab.md"), {
    replace: { "/usr/local/bin/": "$HOME/", "--min-hold 5m": "--min-hold 1s" },
    files: {
      "billing.sh": job("billing"),
      "upgrade.sh": job("upgrade"),
      "export.sh": job("export"),
      "report.sh": job("report"),
      "customers.sh": "#!/bin/sh\nseq 3\n",
    },
  });
  const crontabs = shell.blocks.filter(({ language }) => language === "crontab");
  const lines = crontabs.flatMap(crontabLines);
  expect(lines).toHaveLength(4);
  for (const { command, path } of [...lines, ...lines]) {
    const machines = await Promise.all([shell.cron(command, path), shell.cron(command, path)]);
    expect([command, machines.map(({ stdout, stderr }) => stdout + stderr)]).toEqual([command, ["", ""]]);
  }
  const count = (line: string) => shell.session.read("runs").split("\n").filter((one) => one.startsWith(line)).length;
  const names = ["billing", "upgrade", "export 1", "export 2", "export 3", "report"];
  expect(names.map((name) => [name, count(name)])).toEqual([
    ["billing", 2],
    ["upgrade", 4],
    ...["export 1", "export 2", "export 3", "report"].map((name): [string, number] => [name, 1]),
  ]);
  await shell.runAll(({ language }) => language === "crontab");
});
