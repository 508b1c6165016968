/**
 * Settings of all commands that use a coordination server, and of `baton lock`. In a separate file, because `baton
 * lock` loads only this table.
 */
import {
  flagSetting,
  putSettingsIntoGroup,
  sectionSettingDeclarer,
  setting,
  type SettingTable,
  settingVariableName,
} from "../../base/config/setting.ts";
import {
  absolutePathType,
  choiceType,
  durationType,
  integerType,
  listType,
  priorityType,
  sessionTimeoutType,
  signalNameType,
  sizeType,
  textType,
  toggleType,
} from "../../base/config/value_types.ts";

export const lockScopes = ["user", "machine", "cluster"] as const;
/**
 * The processes that share a lock: the processes of this user, of this machine, or of all machines with the same
 * servers.
 */
export type LockScope = (typeof lockScopes)[number];

const topLevel = sectionSettingDeclarer("");
const lock = sectionSettingDeclarer("lock.");

export const connectionSettings = putSettingsIntoGroup("connection", {
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
    help: "the servers end a session that they have not heard of for this long; " +
      "its locks then go to other clients",
    default: 10_000,
  }),
  connectTimeout: topLevel("connect.timeout", durationType({ minMs: 1 }), {
    help: "maximum time to connect to a server; then exit 69",
    unset: "the value of -w, else 10s; no limit if connect.retries is set",
  }),
  connectRetries: setting(integerType("count", { min: 0, max: 1_000_000 }), {
    key: "connect.retries",
    help: "additional passes over the list of servers",
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
    help: "use TLS for TCP connections to the servers; any other tls setting turns it on, too",
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
    help: "access to the nodes that baton creates: open (all clients), creator (the authenticated creator), " +
      "or a list of ACL entries",
    default: ["open"],
  }),
  keeperDir: setting(absolutePathType(), {
    key: "keeper.dir",
    help: "folder for the data and the socket of the embedded keeper, and for the topics of baton pubsub serve",
    unset: "a folder in BATON_STATE_DIR or of this user, the same from cron and from a login shell",
  }),
}) satisfies SettingTable;

export const lockSettings = {
  scope: topLevel("scope", choiceType(lockScopes), {
    basic: false,
    help: "minimum scope of the lock; exit 78 if the servers do not provide it",
    unset: "any scope",
  }),
  priority: flagSetting("--priority", priorityType(), {
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
    help: "grace period between --signal and SIGKILL when baton stops the command; signals sent to baton are " +
      "only forwarded",
    default: 5000,
  }),
  onDoubt: flagSetting("--on-doubt", choiceType(["ignore", "freeze"]), {
    group: "command",
    help: "while no server responds but the lock is not yet lost: let the command run (ignore) or suspend it " +
      "(freeze)",
    default: "ignore",
  }),
  signal: flagSetting("--signal", signalNameType(), {
    group: "command",
    help: "signal with which baton asks the command to stop",
    default: "SIGTERM",
  }),
  publishCommand: lock("publish_command", toggleType(), {
    group: "command",
    help: "publish the holder's full command line, not only the name of its program",
    default: false,
  }),
} satisfies SettingTable;

const dayMs = 24 * 3_600_000;

/** Settings of the records that `baton history` shows. */
export const historySettings = putSettingsIntoGroup("output", {
  history: setting(toggleType(), {
    flag: "--history",
    key: "history.enabled",
    help: "record the result for baton history (ticks always are)",
    default: false,
  }),
  historyKeep: setting(integerType("count", { min: 8, max: 1024 }), {
    key: "history.keep",
    help: "number of records that the servers keep of one name, rounded up to a multiple of 8",
    default: 128,
  }),
  historyMaxAge: setting(durationType({ minMs: dayMs, maxMs: 366 * dayMs }), {
    key: "history.max_age",
    help: "age at which the servers' records may be cleared; at least 1d",
    default: 30 * dayMs,
  }),
}) satisfies SettingTable;

let secrets: readonly string[] | undefined;

/** Returns the names of variables that contain secrets. A command inherits them only with --pass-auth. */
export function connectionSecretVariables(): readonly string[] {
  return secrets ??= Object.values<SettingTable[string]>(connectionSettings).flatMap(({ key, secret }) =>
    key !== undefined && secret === true ? [settingVariableName(key)] : []
  );
}
