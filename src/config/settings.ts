/** All settings that files and variables can set; each is declared once. Settings that are flags only are declared with their command. */
import { barrierSettings, electSettings, keeperSettings } from "./command_settings.ts";
import { pubsubSettings } from "./pubsub_settings.ts";
import { retrySettings } from "./retry_settings.ts";
import { inGroup, inSection, setting, type SettingTable, variableOf } from "./setting.ts";
import {
  absolutePathType,
  choiceType,
  commandLineType,
  durationType,
  integerType,
  listType,
  priorityType,
  sessionTimeoutType,
  signalNameType,
  sizeType,
  textType,
  toggleType,
} from "./value_types.ts";

/** The maximum of --jobs: each job is a process and a lock. */
const poolJobsMax = 1000;

export const scopes = ["user", "machine", "cluster"] as const;
/** The processes that share a lock: those of this user, of this machine, or of all machines that use the same servers. */
export type Scope = (typeof scopes)[number];

const topLevel = inSection("");
const lock = inSection("lock.");
const component = inSection("pool.component.NAME.");

/** Settings of all commands that use a coordination server. */
export const connectionSettings = inGroup("connection", {
  servers: topLevel("servers", textType("host:port,…[/chroot]"), {
    flag: "-z, --servers",
    basic: true,
    help: "ZooKeeper servers; unix:PATH for a Unix socket, or `embedded` for the keeper of this machine",
    unset: "the embedded keeper; a message says so on a terminal, and with -v",
  }),
  root: topLevel("root", textType("path"), {
    help: "ZooKeeper node below which baton keeps all of its nodes",
    default: "/baton",
  }),
  sessionTimeout: topLevel("session.timeout", sessionTimeoutType({ minMs: 2000 }), {
    help:
      "time after which the servers end the session of a client that they no longer hear from; its locks then go to other clients",
    default: 10_000,
  }),
  connectTimeout: topLevel("connect.timeout", durationType({ minMs: 1 }), {
    help: "maximum time to connect to a server; then exit 69",
    unset: "the value of -w, else 10s; no limit if connect.retries is set",
  }),
  connectRetries: setting(integerType("count", { min: 0, max: 1_000_000 }), {
    key: "connect.retries",
    help: "number of additional passes over the list of servers",
    unset: "no limit within connect.timeout",
  }),
  connectDelay: setting(durationType(), {
    key: "connect.delay",
    help: "pause between two passes over the list of servers",
    unset: "random, longer after each pass",
  }),
  connectMaxRequestSize: setting(sizeType(), {
    key: "connect.max_request_size",
    help: "maximum size of a request; use the value of jute.maxbuffer of the servers",
    default: 0xfffff,
  }),
  tls: setting(toggleType(), {
    flag: "--tls",
    key: "tls.enabled",
    help: "use TLS for TCP connections to the servers (never for Unix sockets); any other tls setting turns it on, too",
    default: false,
  }),
  tlsCa: topLevel("tls.ca", textType("file"), {
    help: "PEM file with the trusted certificate authorities",
    unset: "the system's",
  }),
  tlsCert: topLevel("tls.cert", textType("file"), { help: "PEM file with the client certificate" }),
  tlsKey: topLevel("tls.key", textType("file"), { help: "PEM file with the private key of the client certificate" }),
  tlsPassphrase: setting(textType("text"), {
    key: "tls.passphrase",
    help: "passphrase of the private key",
    secret: true,
  }),
  tlsServerName: topLevel("tls.server_name", textType("name"), {
    help: "name that the server certificate must contain",
    unset: "the host name of the server",
  }),
  authCredentials: setting(textType("scheme:credentials"), {
    key: "auth.credentials",
    help: "ZooKeeper credentials of this client, for example digest:USER:PASSWORD",
    secret: true,
  }),
  authFile: topLevel("auth.file", textType("file"), {
    help: "file with one scheme:credentials per line; no other user may have read access to it",
  }),
  acl: topLevel("acl", listType("open|creator|scheme:id:perms,…"), {
    help:
      "access to the nodes that baton creates: open (all clients), creator (the authenticated creator), or a list of ACL entries",
    default: ["open"],
  }),
  keeperDir: setting(absolutePathType("folder"), {
    key: "keeper.dir",
    help: "folder for the data and the socket of the embedded keeper",
    unset: "a folder of this user, the same from cron and from a login shell",
  }),
}) satisfies SettingTable;

/** Settings of `baton lock`. */
export const lockSettings = {
  scope: topLevel("scope", choiceType(scopes), {
    help: "minimum scope of the lock; exit 78 if the servers do not provide it",
    unset: "any scope",
  }),
  priority: lock("priority", priorityType(), {
    group: "waiting",
    help: "position in the queue: the lowest number is served first; foreground is 100, background is 200",
    default: 100,
  }),
  foregroundWait: setting(durationType(), {
    key: "lock.foreground.wait",
    help: "maximum wait for the lock with a priority below 200, if -w is not given",
    unset: "no limit",
  }),
  backgroundWait: setting(durationType(), {
    key: "lock.background.wait",
    help: "maximum wait for the lock with priority 200 and up, if -w is not given",
    unset: "no limit",
  }),
  killAfter: lock("kill_after", durationType(), {
    group: "command",
    help: "time between --signal and SIGKILL when baton stops the command; a signal sent to baton is only forwarded",
    default: 5000,
  }),
  onDoubt: lock("on_doubt", choiceType(["ignore", "freeze"]), {
    group: "command",
    help:
      "what happens to the command while no server responds and the lock is not lost yet: it continues (ignore) or is suspended (freeze)",
    default: "ignore",
  }),
  signal: lock("signal", signalNameType(), {
    group: "command",
    help: "signal with which baton asks the command to stop",
    default: "SIGTERM",
  }),
  publishCommand: lock("publish_command", toggleType(), {
    group: "command",
    help: "publish the full command line of the holder; otherwise other clients see the program name only",
    default: false,
  }),
} satisfies SettingTable;

/** Settings of `baton pool`. */
export const poolSettings = {
  poolComponentPath: setting(textType("template"), {
    key: "pool.component_path",
    help:
      "template of the path of a pool's own lock, with {root} and {component}; must be the same in all calls, else exit 78",
    default: "{root}/locks/{component}",
  }),
  poolItemPath: setting(textType("template"), {
    key: "pool.item_path",
    help:
      "template of the path of an item's lock, with {root}, {component}, {item}, and {1} to {9} for the words of the item; must be the same in all calls, else exit 78",
    default: "{root}/locks/{component}%2F{item}",
  }),
} satisfies SettingTable;

/** Settings of one component of `baton pool`: a section of a file for each component, and flags of the command. */
export const poolComponentSettings = {
  query: component("query", textType("command"), {
    once: true,
    help: "shell command that prints the items, one per line; it runs while this call holds the component's lock",
  }),
  jobs: component("jobs", integerType("count", { min: 1, max: poolJobsMax }), {
    flag: "-j, --jobs",
    help: "number of items that this call runs at the same time",
    default: 1,
  }),
  total: component("total", integerType("count", { min: 1, max: 1_000_000 }), {
    help:
      "number of items of the component that run at the same time in all calls on all machines; must be the same in all calls, else exit 78",
    unset: "no limit",
  }),
  doneTtl: component("done_ttl", durationType({ minMs: 1 }), {
    help: "how long the result of an item is kept; an item that exited with 0 is not run again during this time",
    unset: "results are not kept",
  }),
  retries: component("retries", integerType("count", { min: 0, max: 1000 }), {
    help: "how many times a failed item is run again",
    default: 0,
  }),
  componentCommand: setting(commandLineType(), {
    key: "pool.component.NAME.command",
    help:
      "command to run for each item if the call has none after --: an array is a program with its arguments; a string is run by /bin/sh -c, with {} and {item} replaced by the quoted item, which is also $1",
  }),
} satisfies SettingTable;

/** Settings that variables and the command line of `baton config` can set. */
export const allSettings = {
  // These come first: where two settings share a flag, the later one takes it in `baton config show`.
  ...keeperSettings,
  ...electSettings,
  ...barrierSettings,
  ...connectionSettings,
  ...lockSettings,
  ...poolSettings,
  ...pubsubSettings,
  ...retrySettings,
} satisfies SettingTable;

/** Settings that a file may contain. */
export const fileSettings = { ...allSettings, ...poolComponentSettings } satisfies SettingTable;

let secrets: readonly string[] | undefined;

/** Returns the variables with secrets, which a command does not inherit without --pass-auth. */
export function secretVariables(): readonly string[] {
  return secrets ??= Object.values<SettingTable[string]>(allSettings).flatMap(({ key, secret }) =>
    key !== undefined && secret === true ? [variableOf(key)] : []
  );
}
