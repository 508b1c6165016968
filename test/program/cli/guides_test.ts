/** The pages of docs/guides, and the README: their commands run as a reader types them, and show what pages show. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { z } from "zod";
import { untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";
import { blocksOfPage, commandsOf, type PageBlock } from "../../support/page_blocks.ts";
import { crontabLines, type PageOptions, PageShell } from "../../support/page_shell.ts";
import { describeWithPeer, hasPeer } from "../../support/peers.ts";
import { Pooler } from "../../support/pooler.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import type { RunningBackend } from "../../support/backend.ts";

setDefaultTimeout(180_000);

const folder = "docs/guides";
const guide = (name: string) => `${folder}/${name}.md`;
/** The guides that a test of this file has run completely. */
const covered = new Set<string>();

/** The servers that the guides name, and a keeper over TCP in their place. */
const namedServers = "zk1:2181,zk2:2181,zk3:2181";
let keeper: RunningBackend;
beforeAll(async () => void (keeper = await startKeeperProcess()));
afterAll(() => keeper.close());

type OtherBlocks = (block: PageBlock, shell: PageShell) => boolean | Promise<boolean>;

/** Runs a guide from its first to its last block. */
async function runGuide(name: string, options: PageOptions = {}, others: OtherBlocks = () => false): Promise<void> {
  const replace = { ...options.replace, [namedServers]: keeper.servers };
  await using shell = new PageShell(guide(name), { ...options, replace });
  await shell.runAll((block) => others(block, shell));
  covered.add(`${name}.md`);
}

/** Runs each line of a crontab `times` times; cron would send no mail. */
async function runSilently(shell: PageShell, block: PageBlock, times = 1): Promise<void> {
  for (const { command, path } of crontabLines(block)) {
    for (let time = 0; time < times; time++) {
      const ended = await shell.cron(command, path);
      expect({ command, ...ended }).toMatchObject({ command, code: 0, stdout: "", stderr: "" });
    }
  }
}

const writesRuns = '#!/bin/sh\necho "$0 $1" >>"$HOME/runs"\n';

test("locks.md: a lock is shown and broken, a script holds one over its steps", () => runGuide("locks"));

describe("scheduled_jobs.md", () => {
  test("the crontabs do what the page says, silently", async () => {
    const past = new Date(Date.now() - 20 * 60_000);
    const everyDay = `${past.getUTCMinutes()} ${past.getUTCHours()} * * *`;
    await runGuide("scheduled_jobs", {
      replace: {
        "--tick '0 3 * * *' --timezone Europe/Berlin": `--tick '${everyDay}' --timezone UTC`,
        "/usr/local/bin/report.sh": "$HOME/report.sh",
        "/usr/local/bin/upgrade.sh": "$HOME/upgrade.sh",
        "|| notify": "|| $HOME/notify",
      },
      files: {
        "bin/sync.sh": writesRuns,
        "upgrade.sh": writesRuns,
        "notify": '#!/bin/sh\necho "$1" >>"$HOME/notified"\n',
        "report.sh": '#!/bin/sh\necho "$BATON_TICK_ATTEMPT" >>"$HOME/attempts"\n',
      },
    }, async (block, shell) => {
      if (block.language !== "crontab" || block.title === "fleet.cron") return false;
      await runSilently(shell, block, 3);
      if (block.title === "/etc/cron.d/report") expect(shell.session.read("attempts")).toBe("1\n");
      if (block.title === "/etc/cron.d/report-watch") expect(existsSync(shell.session.path("notified"))).toBe(false);
      return true;
    });
  });

  test("a run that finds the lock busy is skipped silently", async () => {
    await using shell = new PageShell(guide("scheduled_jobs"), {
      files: { "bin/sync.sh": `#!/bin/sh\necho runs >>"$HOME/runs"\n${untilMade('"$HOME/end"')}\n` },
    });
    const [block] = shell.blocks.filter(({ language }) => language === "crontab");
    const [{ command, path } = { command: "", path: "" }] = block === undefined ? [] : crontabLines(block);
    const first = shell.cron(command, path);
    await shell.session.said("runs");
    expect(await shell.cron(command, path)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    writeFileSync(shell.session.path("end"), "");
    expect(await first).toMatchObject({ code: 0 });
    expect(shell.session.read("runs")).toBe("runs\n");
  });

  test("a job that did not succeed is reported", async () => {
    await using shell = new PageShell(guide("scheduled_jobs"), {
      replace: { "|| notify": "|| $HOME/notify", "history report": "history other" },
      files: { notify: '#!/bin/sh\necho "$1" >>"$HOME/notified"\n' },
    });
    const watch = shell.blocks.find(({ title }) => title === "/etc/cron.d/report-watch");
    const [line] = watch === undefined ? [] : crontabLines(watch);
    await shell.cron(line?.command ?? "", line?.path ?? "");
    expect(shell.session.read("notified")).toBe("report: no success in 26 hours\n");
  });
});

test("work_lists.md: items run once, failed ones are named, the crontab is silent", () =>
  runGuide("work_lists", {
    replace: { "/usr/local/bin/": "$HOME/" },
    files: {
      "images.txt": "a.png\nb.png\nc.png\n",
      "new-batches": "#!/bin/sh\nseq 3\n",
      "import-batch": writesRuns,
    },
  }, async (block, shell) => {
    if (block.language !== "crontab") return false;
    await runSilently(shell, block);
    expect(shell.session.read("runs").trim().split("\n")).toHaveLength(3);
    return true;
  }));

test("work_lists.md: two shells share 100 items, each runs once", async () => {
  const images = Array.from({ length: 100 }, (_, index) => `image${index}.png`);
  await using shell = new PageShell(guide("work_lists"), {
    files: { "images.txt": `${images.join("\n")}\n`, "resize.sh": '#!/bin/sh\necho "$1" >>resized\n' },
  });
  const line = commandsOf(shell.blocks).find((command) => command.startsWith("baton pool resize")) ?? "";
  const call = () => shell.session.run(`PATH="$dir/bin:$PATH"; ${line}`);
  expect((await Promise.all([call(), call()])).map(({ code }) => code)).toEqual([0, 0]);
  expect(await call()).toMatchObject({ code: 0 });
  expect(shell.session.read("resized").trim().split("\n").toSorted()).toEqual(images.toSorted());
});

test("starting_together.md: three jobs continue together, and two do not", () => runGuide("starting_together"));

describe("leaders.md", () => {
  test("of two candidates one runs the server; after resign, and after kill -9, it is the other one", async () => {
    await using shell = new PageShell(guide("leaders"), { replace: { ":9001": ":0" } });
    const unit = shell.blocks.find(({ language }) => language === "ini")?.text ?? "";
    const words = /^ExecStart=(.*)$/m.exec(unit)?.[1]?.replace(/^\S+/, "exec baton").split(" -- ")[0] ?? "";
    const start = (name: string) =>
      shell.session.start(
        `PATH="$dir/bin:$PATH"; ${words.replace("%H", name)} -- sh -c 'echo ${name} >>starts; exec sleep 1000'`,
      );
    const candidates = [start("a"), start("b")];
    await shell.session.said("starts");
    await shell.runAll(({ language }) => language === "ini" || language === "yaml");
    covered.add("leaders.md");
    const starts = () => shell.session.read("starts").trim().split("\n");
    await eventually(() => starts().length === 2, { withinMs: 30_000 });
    expect(starts().toSorted()).toEqual(["a", "b"]);
    expect((await shell.session.run('"$baton" leader report')).stdout).toBe(`${starts().at(-1)}:9000\n`);
    candidates[starts().at(-1) === "a" ? 0 : 1]?.child.kill("SIGKILL");
    await eventually(() => starts().length === 3, { withinMs: 30_000 });
    expect(starts()[2]).toBe(starts()[0] ?? "");
  });

  // The fields of Kubernetes that the page uses, with their types; a misspelled one is rejected.
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
  const manifest = z.tuple([
    z.strictObject({
      apiVersion: z.literal("apps/v1"),
      kind: z.literal("Deployment"),
      metadata: z.strictObject({ name }),
      spec: z.strictObject({
        replicas: z.int(),
        // A rolling update would wait for a new pod to be ready, which only the leader is.
        strategy: z.strictObject({ type: z.literal("Recreate") }),
        selector: z.strictObject({ matchLabels: labels }),
        template: z.strictObject({ metadata: z.strictObject({ labels }), spec: pod }),
      }),
    }),
    z.strictObject({
      apiVersion: z.literal("v1"),
      kind: z.literal("Service"),
      metadata: z.strictObject({ name }),
      spec: z.strictObject({ selector: labels, ports: z.array(z.strictObject({ port, targetPort: port })) }),
    }),
  ]);
  const yaml = blocksOfPage(guide("leaders")).find(({ language }) => language === "yaml")?.text ?? "";
  const [deployment, service] = manifest.parse(Bun.YAML.parse(yaml));

  test("the manifest is a deployment and a service for the same pods and port", () => {
    const { selector, template, replicas } = deployment.spec;
    const { matchLabels } = selector;
    expect([replicas, template.metadata.labels, service.spec.selector]).toEqual([3, matchLabels, matchLabels]);
    const containerPorts = template.spec.containers[0].ports.map(({ containerPort }) => containerPort);
    expect(service.spec.ports.map(({ targetPort }) => targetPort)).toEqual(containerPorts);
  });

  test("of three pods one runs the server, and only it is ready", async () => {
    await using shell = new PageShell(guide("leaders"));
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

describe("messages.md", () => {
  test("messages are delivered; a log reaches both subscribers", () =>
    runGuide("messages", {}, async (block, shell) => {
      if (block.heading !== "Lines of a log for two subscribers" || !block.text.includes("publish")) return false;
      const topic = async () => (await shell.session.run('"$baton" pubsub topic show logs --json')).stdout;
      await eventually(async () => /archive/.test(await topic()) && /alerts/.test(await topic()), { withinMs: 30_000 });
      expect(await shell.session.run(`PATH="$dir/bin:$PATH"; ${block.text}`)).toMatchObject({ code: 0 });
      const written = (name: string) => existsSync(shell.session.path(name)) ? shell.session.read(name) : "";
      await eventually(() => written("archive.log").includes("four") && written("alerts.log") !== "", {
        withinMs: 30_000,
      });
      expect([written("archive.log"), written("alerts.log")]).toEqual(["three\nERROR four\n", "alert\n"]);
      expect(written("orders.log")).toContain('{"id": 17}');
      return true;
    }));

  test("messages_in_production.md: keys, the list of clients, the topics and a backup", () =>
    runGuide("messages_in_production", {
      replace: { "127.0.0.1:7001": "127.0.0.1:0", "127.0.0.1:5001": "127.0.0.1:0" },
    }));
});

test("retries.md: stored while the receiver is down, then a dead letter, delivered after redrive", async () => {
  await using receiver = await new HttpBackend((_request, response) => void response.writeHead(503).end("down")).up();
  const redelivered = () =>
    eventually(() => receiver.received.length === 3, { withinMs: 30_000, what: "the redriven request" });
  let isRedriven = false;
  await runGuide("retries", {
    replace: { "http://receiver:9000": receiver.url, "127.0.0.1:8280": "127.0.0.1:0" },
    env: { BATON_RETRY_MAX_RETRIES: "1", BATON_RETRY_INTERVAL: "100ms" },
    files: { "event.json": '{"event":1}\n' },
  }, async (block, shell) => {
    if (isRedriven) await redelivered(); // while the guide's processor runs
    if (!block.text.includes("dlq redrive")) return false;
    const letters = () => shell.session.run('"$baton" retry-processor dlq ls --json');
    const both = /("state":"dead"[^]*){2}/; // the request, and the command
    await eventually(async () => both.test((await letters()).stdout), { withinMs: 30_000, everyMs: 200 });
    receiver.answer = (_request, response) => void response.end("ok");
    isRedriven = true;
    return false;
  });
  await redelivered();
  expect(new Set(receiver.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
});

test("several_machines.md: the configuration is valid, and reaches the servers", () => runGuide("several_machines"));

test("keeper_over_tls.md: a keeper serves machines with a certificate, and no others", async () => {
  const [port = 0] = await freePorts(1);
  await runGuide("keeper_over_tls", {
    replace: {
      "keeper.example.org:2281": `localhost:${port}`,
      "keeper.example.org": "localhost",
      "0.0.0.0:2281": `127.0.0.1:${port}`,
      '"/etc/baton/': '"',
    },
  }, async (block, shell) => {
    if (!block.text.includes("baton doctor")) return false;
    const stranger = await shell.session.run(
      `"$baton" lock -z localhost:${port} --tls-ca ca.pem --config /dev/null x true`,
    );
    expect(stranger).toMatchObject({ code: 77 });
    return false;
  });
});

describeWithPeer("postgres", "postgresql.md", () => {
  let server: PostgresServer;
  beforeAll(async () => void (server = await PostgresServer.start({ password: "open sesame" })));
  afterAll(() => server[Symbol.asyncDispose]());

  test("a store in a database is made, checked and used", () =>
    runGuide("postgresql", {
      replace: {
        "postgres://baton@pg1,pg2/baton": `postgres://baton@127.0.0.1:9,127.0.0.1:${server.port}/postgres`,
        "pg1:5432": `127.0.0.1:${server.port}`,
      },
      env: { BATON_RETRY_STORE: "" },
    }));
});

test("alerts.md: what is shown is there; a processor that is down is reported", () =>
  runGuide("alerts", {
    replace: {
      ":9183": ":0",
      "baton ui": "baton ui --listen 127.0.0.1:0",
      "127.0.0.1:9103": "127.0.0.1:9",
      "|| notify": "|| $HOME/notify",
      "https://chat.example.org": "http://127.0.0.1:9",
    },
    files: {
      "notify": '#!/bin/sh\necho "$1" >>"$HOME/notified"\n',
      "backup.sh": "#!/bin/sh\nexit 3\n",
      "bin/mail": '#!/bin/sh\n{ echo "$@"; head -n 1; } >>"$HOME/told"\n',
      "bin/systemctl": '#!/bin/sh\necho "$@" >>"$HOME/told"\n',
    },
  }, async (block, shell) => {
    if (block.language !== "crontab") return false;
    expect(shell.session.read("told")).toBe(
      "-s nightly failed ops@example.org\nname: nightly\nstart notify@nightly\n",
    );
    expect((await shell.session.run('"$baton" retry-processor ls')).stdout).toContain(" waiting ");
    const [line] = crontabLines(block);
    await shell.cron(line?.command ?? "", line?.path ?? "");
    expect(shell.session.read("notified")).toContain(`retries on ${hostname()}`);
    return true;
  }));

test("troubleshooting.md", () => runGuide("troubleshooting"));
test("upgrade.md", () => runGuide("upgrade"));
test("coming_from.md", () => runGuide("coming_from"));

describeWithPeer("pgbouncer", "migrations, in locks.md", () => {
  let pooler: Pooler;
  beforeAll(async () => void (pooler = await Pooler.start()));
  afterAll(() => pooler[Symbol.asyncDispose]());

  test("five replicas behind PgBouncer migrate once, one after the other", async () => {
    await pooler.query("CREATE TABLE orders (id int); CREATE TABLE schema_version (version int)");
    await pooler.query("INSERT INTO schema_version VALUES (1)");
    const blocks = blocksOfPage(guide("locks"));
    const script = blocks.find(({ title }) => title === "migrate.sh")?.text ?? "";
    await using shell = new PageShell(guide("locks"), {
      env: { DATABASE_URL: pooler.url },
      files: { "migrate.sh": `${script}\n` },
    });
    const command = commandsOf(blocks).find((line) => line.includes("./migrate.sh")) ?? "";
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

test("README.md: each command does what it says, and each crontab line is silent", async () => {
  await using receiver = await new HttpBackend((_request, response) => void response.end("ok")).up();
  await using shell = new PageShell("README.md", {
    replace: {
      "http://receiver:9000": receiver.url,
      "/usr/local/bin/report-server": "sh -c 'echo leads >>starts; exec sleep 1000'",
    },
    files: {
      "bin/sync.sh": writesRuns,
      "bin/report.sh": writesRuns,
      "resize.sh": writesRuns,
      "images.txt": "a.png\nb.png\n",
      "handle-order": "#!/bin/sh\ncat >order\n",
      "event.json": "{}\n",
    },
  });
  for (const block of shell.blocks) if (block.language === "crontab") await runSilently(shell, block, 2);
  const lines = commandsOf(shell.blocks).map((line) => `PATH="$dir/bin:$PATH"; exec ${line}`);
  const services = lines.filter((line) => / elect | serve | subscribe | run$/.test(line));
  expect([lines.length, services.length]).toEqual([7, 4]);
  for (const line of lines) {
    if (line.includes(" publish ")) {
      const topic = async () => (await shell.session.run('"$baton" pubsub topic show orders --json')).code;
      await eventually(async () => await topic() === 0, { withinMs: 30_000, everyMs: 200 });
    }
    if (services.includes(line)) shell.session.start(line);
    else expect({ line, ...await shell.session.run(line) }).toMatchObject({ line, code: 0 });
  }
  expect(await shell.session.said("starts")).toBe("leads");
  await eventually(() => existsSync(shell.session.path("order")), { withinMs: 30_000 });
  await eventually(() => shell.session.read("order") === '{"id": 17}', { withinMs: 30_000 });
  expect(receiver.received).toHaveLength(1);
});

describe("all guides", () => {
  const names = readdirSync(join(import.meta.dir, "../../..", folder)).sort();

  test("each guide was run, from its first to its last block", () => {
    const missing = names.filter((name) => !covered.has(name));
    expect(missing).toEqual(hasPeer("postgres") ? [] : ["postgresql.md"]);
  });

  test("each unit is one that systemd accepts", async () => {
    if (!hasPeer("systemd")) return;
    for (const name of names) {
      const units = blocksOfPage(`${folder}/${name}`).filter(({ title }) => /\.(service|timer)$/.test(title ?? ""));
      await using shell = new PageShell(`${folder}/${name}`);
      for (const { title, text } of units) {
        const file = shell.session.path(basename(title ?? ""));
        writeFileSync(file, text.replaceAll(/\/usr\/local\/bin\/\S+/g, "/bin/true"));
        const { status, stderr } = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
        expect([title, stderr, status]).toEqual([title, "", 0]);
      }
    }
  });
});
