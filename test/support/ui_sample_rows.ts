/** Rows of a sample for pictures of the page of `baton ui`: a night with problems, and states without rows. */
import type { FollowedCoordinationRow, HolderRow, WaiterRow } from "../../src/base/rows/object_row.ts";
import type { FollowedPoolRow, PoolItemRow } from "../../src/base/rows/pool_row.ts";
import type { FollowedScheduleRow, RecordedRunRow } from "../../src/base/rows/schedule_row.ts";
import type { DeadLetterGroups, ListedMessageRow, MessageListPage } from "../../src/base/rows/store_row.ts";
import type { AnsweredTopicRow } from "../../src/operator/ui/topic_reading.ts";
import type { ActivityEvent, RecordedHour, Totals } from "../../src/operator/ui/row_recorder.ts";
import packageFile from "../../package.json" with { type: "json" };
import { asJudgedRows, FindingRecord } from "../../src/operator/ui/finding_record.ts";
import type {
  AboutRow,
  RatedStoreRow,
  RecordedFindingRow,
  TimedLockRow,
  UiTableName,
  UiTablePatch,
  UiTables,
} from "../../src/operator/ui/ui_rows.ts";

export interface SamplePage {
  readonly tables: UiTablePatch;
  readonly hour: RecordedHour;
  /** The answers to requests for details, by path. */
  readonly answers?: Readonly<Record<string, unknown>>;
}

/** The time of the sample: with a fixed time, its pictures stay the same. */
export const sampleNowMs = Date.UTC(2026, 10, 29, 3, 12, 41);

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const timeText = (ms: number) => new Date(ms).toISOString();

const about: AboutRow = {
  servers: "zk1:2181,zk2:2181,zk3:2181",
  root: "/baton",
  version: packageFile.version,
  isConnected: true,
  responseMs: 3.2,
  problems: [],
  isComplete: true,
  actions: [],
};

const byKey = <Row>(rows: readonly Row[], key: (row: Row) => string) =>
  Object.fromEntries(rows.map((row) => [key(row), row]));

interface SamplePerson {
  readonly who: string;
  readonly since: number;
  readonly asked?: boolean;
  readonly value?: string;
}

/** `who` is such as `backup@db1:812 backup.sh`. */
function holderRow({ who, since, asked = false, value }: SamplePerson): HolderRow {
  const [, user = "", host = "", pid = "0", command = ""] = /^(\w+)@(\w+):(\d+) (.*)$/.exec(who) ?? [];
  return {
    id: `${pid}c5162`,
    mode: "exclusive",
    host,
    pid: Number(pid),
    user,
    command,
    reason: "",
    value: value ?? null,
    since: timeText(since),
    session_id: null,
    session_timeout_ms: 10_000,
    revoke: asked ? { by: "ops@job1", reason: "upgrade" } : null,
    warning: null,
    slot: null,
    rank: null,
    fencing_token: `30127395${pid}`,
  };
}

const waiterRow = (person: SamplePerson, place: number): WaiterRow => {
  const { slot: _slot, rank: _rank, fencing_token: _token, ...shared } = holderRow(person);
  return { ...shared, place, priority: 100 };
};

function objectRow(
  kind: FollowedCoordinationRow["kind"],
  name: string,
  { holders = [], waiters = [], limit = null }: {
    readonly holders?: readonly SamplePerson[];
    readonly waiters?: readonly SamplePerson[];
    readonly limit?: number | null;
  },
): FollowedCoordinationRow {
  return {
    kind,
    name,
    limit,
    holders: holders.length,
    waiters: waiters.length,
    first_holders: holders.map(holderRow),
    first_waiters: waiters.map((person, index) => waiterRow(person, index + 1)),
    problem: null,
  };
}

/** How long locks without a schedule are usually held. */
const usualHoldMinutes: Readonly<Record<string, number>> = {
  "search-index": 21,
  gpu: 18,
  "report/monthly": 6,
  "schema-migration": 3,
  "deploy/web": 2,
};

const withUsual = (row: FollowedCoordinationRow, minutes: number | undefined): TimedLockRow => {
  return { ...row, usual_ms: minutes === undefined ? null : minutes * minuteMs };
};

function lockRows(nowMs: number): TimedLockRow[] {
  const ago = (minutes: number) => nowMs - minutes * minuteMs;
  const lock = (name: string, who: string, minutes: number, waiters: readonly SamplePerson[] = []) =>
    objectRow("lock", name, { holders: [{ who, since: ago(minutes) }], waiters });
  return [
    lock("nightly-backup", "backup@db1:812 backup.sh", 130, [
      { who: "backup@db2:4410 backup.sh", since: ago(124) },
      { who: "ops@job1:991 snapshot", since: ago(41) },
      { who: "ops@job2:1204 snapshot", since: ago(3) },
    ]),
    objectRow("lock", "ledger-close", {
      holders: [{ who: "app@web3:812 close", since: ago(14), asked: true }],
      waiters: [{ who: "app@web1:77 close", since: ago(9) }],
    }),
    lock("search-index", "app@job2:3121 reindex", 19, [{ who: "app@job1:99 reindex", since: ago(2) }]),
    lock("gpu", "ml@gpu1:52 train.py", 22),
    lock("report/monthly", "report@web2:611 report", 8),
    lock("schema-migration", "deploy@web1:71 migrate", 4),
    lock("deploy/web", "deploy@job1:5120 deploy.sh", 1),
    lock("cache-warm", "app@web3:4001 warm", 0.6),
  ].map((row) => (withUsual(row, usualHoldMinutes[row.name])));
}

interface SampleSchedule {
  readonly name: string;
  readonly schedule: string;
  readonly everyMinutes: number;
  /** When the first tick of a day is, in minutes after midnight. */
  readonly firstMinute?: number;
  readonly takesMinutes: number;
  readonly host: string;
  /** The results of the last runs, the newest first; `done` for older ones. */
  readonly last?: readonly RecordedRunRow["result"][];
  readonly runsSinceMinutes?: number;
}

function runRow(id: string, host: string, tickMs: number, tookMs: number, result: RecordedRunRow["result"]) {
  const hasRun = result !== "missed" && result !== "skipped";
  const run: RecordedRunRow = {
    result,
    schedule_id: id,
    tick: timeText(tickMs),
    until: timeText(tickMs),
    count: 1,
    attempt: hasRun ? 1 : 0,
    host: hasRun ? host : "",
    pid: hasRun ? 4000 : 0,
    user: "root",
    token: null,
    waited_ms: 0,
    began: hasRun ? timeText(tickMs + 1000) : null,
    ended: hasRun ? timeText(tickMs + 1000 + tookMs) : null,
    late_ms: hasRun ? 1000 : null,
    exit_code: result === "failed" ? 3 : result === "done" ? 0 : null,
    signal: null,
    why: result === "failed" ? "exited with 3" : null,
  };
  return run;
}

function scheduleRow(nowMs: number, sample: SampleSchedule): FollowedScheduleRow {
  const { name, schedule, everyMinutes, firstMinute = 0, takesMinutes, host, last = [], runsSinceMinutes } = sample;
  const everyMs = everyMinutes * minuteMs;
  const lastTick = nowMs - (nowMs - firstMinute * minuteMs) % everyMs;
  const runs: RecordedRunRow[] = [];
  for (let back = runsSinceMinutes === undefined ? 0 : 1; back < 60; back++) {
    const tickMs = lastTick - back * everyMs;
    if (tickMs + 1.6 * takesMinutes * minuteMs > nowMs) continue;
    const noise = 0.8 + (back * 7 % 10) / 25;
    runs.unshift(runRow(name, host, tickMs, takesMinutes * minuteMs * noise, last[back] ?? "done"));
  }
  const began = runsSinceMinutes === undefined ? null : timeText(nowMs - runsSinceMinutes * minuteMs);
  return {
    name,
    schedule_id: name,
    schedule,
    time_zone: "UTC",
    settled_until: timeText(lastTick),
    next: timeText(lastTick + everyMs),
    overdue: false,
    running: began === null ? null : { tick: timeText(lastTick), attempt: 1, host, pid: 812, began, lost: false },
    retry: null,
    runs,
  };
}

const schedules: readonly SampleSchedule[] = [
  {
    name: "invoice-export",
    schedule: "*/30 * * * *",
    everyMinutes: 30,
    takesMinutes: 3,
    host: "web2",
    last: ["failed", "failed", "failed"],
  },
  {
    name: "cert-renewal",
    schedule: "0 2 * * *",
    everyMinutes: 1440,
    firstMinute: 120,
    takesMinutes: 1,
    host: "web1",
    last: ["missed"],
  },
  {
    name: "geo-sync",
    schedule: "20 */2 * * *",
    everyMinutes: 120,
    firstMinute: 20,
    takesMinutes: 30,
    host: "job1",
    last: ["done", "done", "lost"],
  },
  {
    name: "nightly-backup",
    schedule: "0 1 * * *",
    everyMinutes: 1440,
    firstMinute: 60,
    takesMinutes: 12,
    host: "db1",
    runsSinceMinutes: 130,
  },
  {
    name: "metrics-rollup",
    schedule: "*/15 * * * *",
    everyMinutes: 15,
    takesMinutes: 1,
    host: "db3",
    last: ["done", "done", "done", "skipped"],
  },
  { name: "search-reindex", schedule: "0 */6 * * *", everyMinutes: 360, takesMinutes: 70, host: "job2" },
  {
    name: "db-snapshot",
    schedule: "5 */3 * * *",
    everyMinutes: 180,
    firstMinute: 5,
    takesMinutes: 24,
    host: "db2",
    runsSinceMinutes: 7,
  },
  { name: "log-rotate", schedule: "5 * * * *", everyMinutes: 60, firstMinute: 5, takesMinutes: 2, host: "web1" },
  { name: "cache-warm", schedule: "*/20 * * * *", everyMinutes: 20, takesMinutes: 1, host: "web3" },
  { name: "quota-check", schedule: "45 */3 * * *", everyMinutes: 180, firstMinute: 45, takesMinutes: 4, host: "job1" },
  {
    name: "mail-digest",
    schedule: "0 7 * * *",
    everyMinutes: 1440,
    firstMinute: 420,
    takesMinutes: 6,
    host: "web2",
  },
];

/** Since how many minutes the sample has its findings. */
const findingMinutes: Readonly<Record<string, number>> = {
  "schedule-failing": 69.8,
  "schedule-missed": 72,
  "store-unattended": 23,
  "dead-letters": 120,
  "pool-items-failed": 21,
  "topics-without-server": 14,
  "subscriber-behind": 50,
  "broken-but-held": 13,
};

/** Judges the rows of a sample as `baton ui` does. */
function judgedFindings(
  tables: UiTablePatch,
  topic: AnsweredTopicRow,
  nowMs: number,
): NonNullable<UiTablePatch["findings"]> {
  const record = new FindingRecord();
  const rows = (Object.keys(tables) as UiTableName[]).flatMap((table) =>
    Object.entries(tables[table] ?? {}).flatMap(([key, row]) =>
      record.judge({ table, key }, asJudgedRows(table, row as never), nowMs)
    )
  );
  const served = Map.groupBy(Object.values(tables.topics ?? {}).flatMap((row) => row ?? []), ({ server }) => server);
  const changes = [
    ...rows,
    ...[...served].flatMap(([key, topics]) => record.judge({ table: "servers", key }, { topic: topics }, nowMs)),
    ...record.judge({ table: "topics", key: topic.topic }, { topicDetails: [topic] }, nowMs),
  ];
  const timed = (row: RecordedFindingRow): RecordedFindingRow => {
    const since = timeText(nowMs - (findingMinutes[row.id] ?? 0) * minuteMs);
    return { ...row, since, isOlder: row.id === "dead-letters" };
  };
  return Object.fromEntries(changes.flatMap(({ key, row }) => row === null ? [] : [[key, timed(row)]]));
}

function storeRow(nowMs: number, name: string, counts: {
  readonly waiting?: number;
  readonly oldestMinutes?: number;
  readonly dueMinutes?: number;
  readonly dead?: number;
  readonly done?: number;
  readonly processors?: number;
  readonly rate?: number;
}) {
  const { waiting = 0, oldestMinutes, dueMinutes, dead = 0, done = 0, processors = 1, rate = 0 } = counts;
  const ago = (minutes: number | undefined) => minutes === undefined ? null : timeText(nowMs - minutes * minuteMs);
  const amount = (count: number) => ({ count, bytes: count * 2100 });
  const row: RatedStoreRow = {
    name,
    folder: `/var/lib/baton/${name}`,
    paused: false,
    states: {
      waiting: amount(waiting),
      in_flight: amount(0),
      done: amount(done),
      dead: amount(dead),
      dropped: amount(0),
      cancelled: amount(0),
    },
    oldest: ago(oldestMinutes),
    next: ago(dueMinutes),
    processors,
    dead_letters: { pending: 0, forwarded: 0, error: null },
    disk: { used_bytes: 412 << 20, free_bytes: 38 * 2 ** 30 },
    rate,
  };
  return row;
}

function poolRow(nowMs: number): FollowedPoolRow {
  const items: PoolItemRow[] = Array.from({ length: 6 }, (_, index) => ({
    item: `img_${3120 + index}.jpg`,
    state: "failed",
    holder: null,
    last_result: {
      result: "failed",
      what: "exited with 1",
      by: "app@web2",
      at: timeText(nowMs - (21 - index) * minuteMs),
      until: timeText(nowMs + 24 * hourMs),
    },
  }));
  return { name: "thumbnails", holders: 0, waiters: 0, done: 394, failed: 6, items };
}

/** A wave without chance, so that each picture is the same. */
const wave = (index: number, base: number, height: number) =>
  Math.round(base + height * (Math.sin(index / 23) + Math.sin(index / 7) / 2 + Math.sin(index / 3) / 5));

const topicNames = ["orders", "invoices", "prices", "audit", "mail", "metrics", "search", "sessions"];
/** The other topics belong to a server that is offline. */
const servedCount = 6;
/** Messages per second of a topic, and how far its slowest subscriber is behind, a number of minutes ago. */
const topicRate = (topic: number, minutes: number) =>
  Math.max(0, wave(300 - minutes * 3 + topic * 9, 210 - topic * 24, 18));
const topicBehind = (topic: number, minutes: number) =>
  topic === 0 ? Math.max(0, Math.round(41_200 - minutes * 620)) : topic * 3;

/** The stores of the sample: since 23 minutes no processor of the first one runs, and its messages become more. */
const unattendedCount = 128;
const webhooksWaiting = 1112;
const webhooksRate = 14;
const deadCount = 137;
const lastSample = 359;

/** A wave that ends at a value: the newest total is the sum of the rows. */
const waveTo = (index: number, end: number, height: number) =>
  end + wave(index, 0, height) - wave(lastSample, 0, height);

function sampledHour(nowMs: number): RecordedHour {
  const sumOfTopics = (one: typeof topicRate, minutes: number) =>
    topicNames.slice(0, servedCount).reduce((sum, _, topic) => sum + one(topic, minutes), 0);
  const totals = (index: number): Totals => {
    const minutes = (lastSample - index) / 6;
    const unattended = Math.max(0, 1 - minutes / 23);
    return {
      held: waveTo(index, 10, 2),
      waiting: waveTo(index, 8, 1),
      handovers: index % 12 === 11 ? 0.1 : 0,
      published: sumOfTopics(topicRate, minutes),
      behind: sumOfTopics(topicBehind, minutes),
      pending: webhooksWaiting + Math.round(unattendedCount * unattended),
      responseMs: index === lastSample ? about.responseMs : 3 + Math.max(0, wave(index, 1, 2)),
      dead: deadCount - Math.floor(minutes / 2),
      delivered: waveTo(index, webhooksRate, 2) + (minutes > 23 ? 3 : 0),
    };
  };
  const event = (number: number, minutes: number, kind: ActivityEvent["kind"], name: string, what: string) =>
    ({ number, atMs: nowMs - minutes * minuteMs, kind, name, what }) as const;
  return {
    sinceMs: nowMs - 2 * hourMs,
    nowMs,
    samples: Array.from({ length: lastSample + 1 }, (_, index) => ({
      atMs: nowMs - (lastSample - index) * 10_000,
      totals: totals(index),
    })),
    topics: Object.fromEntries(
      topicNames.slice(0, servedCount).map((topic, index) => {
        const point = (_: unknown, minute: number) =>
          [nowMs - (59 - minute) * minuteMs, topicRate(index, 59 - minute), topicBehind(index, 59 - minute)] as const;
        return [topic, Array.from({ length: 60 }, point)];
      }),
    ),
    activity: [
      event(1, 50, "warn", 'topic "orders"', 'subscriber "billing" has 10,200 undelivered messages'),
      event(2, 43, "idle", "metrics-rollup", "skipped"),
      event(3, 39, "bad", "invoice-export", "failed on web2"),
      event(4, 23, "bad", 'message store "default"', "messages are due, and no processor is running"),
      event(5, 22, "busy", "gpu", "ml@gpu1 holds it"),
      event(6, 21, "bad", 'pool "thumbnails"', "6 items failed"),
      event(7, 17, "busy", "report-writer", "app@db3 leads"),
      event(8, 14, "bad", 'server "ps2"', "it is offline, and no other server has its store"),
      event(9, 10, "bad", "invoice-export", "failed on web2"),
      event(10, 6, "good", "log-rotate", "done on web1"),
      event(11, 4, "busy", "schema-migration", "deploy@web1 holds it"),
      event(12, 1, "busy", "deploy/web", "deploy@job1 holds it"),
      event(13, 0.6, "busy", "cache-warm", "app@web3 holds it"),
    ],
  };
}

const emptyHour: RecordedHour = { sinceMs: 0, nowMs: 1, samples: [], topics: {}, activity: [] };

const ordersTopic = (nowMs: number): AnsweredTopicRow => ({
  topic: "orders",
  server: "ps1",
  epoch: 12,
  first: "8120004",
  end: "8961377",
  bytes: 412 << 20,
  clients: 5,
  plain_clients: 0,
  max_clients: 1000,
  subscriber_count: 4,
  subscribers: [41_200, 118, 0, 0].map((pending, index) => ({
    client: ["billing", "search", "mail-out", "archive"][index] ?? "",
    position: String(8_961_377 - pending),
    pending,
  })),
  oldest: timeText(nowMs - 3 * minuteMs),
  damage: null,
  at: timeText(nowMs),
});

function answersOf(nowMs: number): Readonly<Record<string, unknown>> {
  const ago = (minutes: number) => timeText(nowMs - minutes * minuteMs);
  const group = (count: number, last_error: string, destination: string, newest: number, oldest: number) =>
    ({ reason: "exhausted", last_error, count, destination, newest: ago(newest), oldest: ago(oldest) }) as const;
  const groups: DeadLetterGroups = {
    counted: deadCount,
    groups: [
      group(96, "410 Gone", "POST https://hooks.example.com/v1/events", 4, 120),
      group(28, "503 Service Unavailable", "PUT https://search.example.com/index/docs", 1440, 2880),
      group(13, "no response within 30 s", "POST https://billing.example.com/v1/invoices", 300, 4320),
    ],
  };
  const letters = Array.from({ length: 8 }, (_, index): ListedMessageRow => ({
    id: `wh-${4120 + index}`,
    name: "webhooks",
    state: "dead",
    key: `customer-${17 + index * 3}`,
    tries: 12,
    crashes: 0,
    reason: "exhausted",
    last_error: "410 Gone",
    first_at: ago(120 - index),
    last_at: ago(4 + index),
    next_at: null,
    bytes: 2100 + index,
    forwarding: "none",
    forwarding_error: null,
  }));
  const holds = Array.from(
    { length: 9 },
    (_, index) => {
      const tickMs = nowMs - nowMs % (24 * hourMs) + hourMs - (9 - index) * 24 * hourMs;
      return runRow("", "db1", tickMs, (10 + index % 4) * minuteMs, index === 5 ? "failed" : "done");
    },
  );
  return {
    "/topic": ordersTopic(nowMs),
    "/groups": groups,
    "/dead": { messages: letters, next: null } satisfies MessageListPage,
    "/history": holds,
  };
}

/** A night with problems of each kind. */
export function samplePage(nowMs: number): SamplePage {
  const election = (name: string, who: string, value: string, candidates: number) =>
    objectRow("election", name, {
      holders: [{ who, since: nowMs - 17 * minuteMs, value }],
      waiters: Array.from({ length: candidates }, (_, index) => ({
        who: `app@db${index + 1}:${700 + index} serve`,
        since: nowMs - 90 * minuteMs,
        value: `db${index + 1}:8080`,
      })),
    });

  const topics: UiTables["topics"][] = topicNames.map((topic, index) => ({
    topic,
    epoch: 12,
    state: "stored",
    server: index >= servedCount ? "ps2" : index % 2 === 0 ? "ps1" : "ps3",
    there: index < servedCount,
    served: index < servedCount,
    reading: index >= servedCount ? null : {
      at: timeText(nowMs - 4000),
      rate: topicRate(index, 0),
      behind: topicBehind(index, 0),
      slowest: ["billing", "ledger", "shop", "siem", "smtp", "grafana"][index] ?? null,
      subscribers: 4 - index % 3,
    },
  }));
  const servers: UiTables["servers"][] = [
    { server: "ps1", endpoint: "tcp://db1:7001", store: null, draining: false, topic_count: 3 },
    { server: "ps2", endpoint: null, store: null, draining: false, topic_count: 2 },
    { server: "ps3", endpoint: "tcp://db3:7001", store: null, draining: true, topic_count: 3 },
  ];
  const tables: UiTablePatch = {
    about: { about },
    locks: byKey(lockRows(nowMs), ({ name }) => name),
    elections: byKey(
      [
        election("report-writer", "app@db3:812 serve", "db3:8080", 2),
        election("scheduler", "app@job1:2201 serve", "job1:9000", 1),
      ],
      ({ name }) => name,
    ),
    barriers: {
      "import-start": objectRow("barrier", "import-start", {
        limit: 5,
        waiters: [1, 2, 3].map((host) => ({ who: `etl@job${host}:88 import`, since: nowMs - host * minuteMs })),
      }),
    },
    pools: { thumbnails: poolRow(nowMs) },
    ticks: byKey(schedules.map((one) => scheduleRow(nowMs, one)), ({ name }) => name),
    topics: byKey(topics, ({ topic }) => topic),
    servers: byKey(servers, ({ server }) => server),
    stores: byKey(
      [
        storeRow(nowMs, "default", {
          waiting: unattendedCount,
          oldestMinutes: 23,
          dueMinutes: 23,
          done: 91_400,
          processors: 0,
        }),
        storeRow(nowMs, "webhooks", {
          waiting: webhooksWaiting,
          oldestMinutes: 118,
          dueMinutes: 0.05,
          dead: deadCount,
          done: 204_110,
          rate: webhooksRate,
        }),
        storeRow(nowMs, "mail", { done: 12_031 }),
      ],
      ({ folder }) => folder,
    ),
    processes: {
      "db1:9181": {
        address: "db1:9181",
        process: "keeper",
        error: null,
        gauges: { connections: 94, sessions: 121, nodes: 41_203 },
        disk_free_bytes: 38 * 2 ** 30,
        rates: { requests: 812 },
      },
    },
  };
  return {
    tables: { ...tables, findings: judgedFindings(tables, ordersTopic(nowMs), nowMs) },
    hour: sampledHour(nowMs),
    answers: answersOf(nowMs),
  };
}

export const emptyPage = (_nowMs: number): SamplePage => ({ tables: { about: { about } }, hour: emptyHour });

export const lostPage = (nowMs: number): SamplePage => ({
  tables: {
    ...samplePage(nowMs).tables,
    about: {
      about: { ...about, isConnected: false, problems: ["no coordination server responds: connection refused"] },
    },
  },
  hour: emptyHour,
});

export const loadingPage = (_nowMs: number): SamplePage => ({
  tables: { about: { about: { ...about, isConnected: false, isComplete: false } } },
  hour: emptyHour,
});

/** 5,000 locks, 1,000 topics and 500 schedules. */
export function fullPage(nowMs: number): SamplePage {
  const { tables, hour } = samplePage(nowMs);
  const many = <Row>(count: number, row: (name: string, index: number) => Row) =>
    Array.from({ length: count }, (_, index) => row(`job/${String(index).padStart(4, "0")}`, index));
  const locks = many(
    5000,
    (name, index) =>
      withUsual(
        objectRow("lock", name, { holders: [{ who: `app@web${index % 9}:812 run`, since: nowMs - index * 1000 }] }),
        9,
      ),
  );
  const ticks = many(500, (name, index) =>
    scheduleRow(nowMs, {
      name,
      schedule: "0 * * * *",
      everyMinutes: 60,
      takesMinutes: 4,
      host: "job1",
      last: index % 50 === 0 ? ["failed"] : [],
    }));
  const topics = many(
    1000,
    (topic) => ({ topic, epoch: 1, state: "stored", server: "ps1", there: true, served: true, reading: null }) as const,
  );
  const full: UiTablePatch = {
    ...tables,
    locks: byKey(locks, ({ name }) => name),
    ticks: byKey(ticks, ({ name }) => name),
    topics: byKey(topics, ({ topic }) => topic),
  };
  return { tables: { ...full, findings: judgedFindings(full, ordersTopic(nowMs), nowMs) }, hour };
}
