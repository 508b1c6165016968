/** Every setting that a file or a variable can give, each declared once. Flags of a single command live with the command. */
import { barrierSettings, electSettings, keeperSettings } from "./command_settings.ts";
import { pubsubSettings } from "./pubsub_settings.ts";
import { retrySettings } from "./retry_settings.ts";
import { setting, type SettingTable } from "./setting.ts";
import {
  absolutePath,
  choice,
  commandLine,
  duration,
  integer,
  list,
  priority,
  sessionTimeout,
  signalName,
  size,
  text,
  toggle,
} from "./value_types.ts";

/** More is a mistake: each is a process, and a lock. */
const poolJobsMax = 1000;

export const scopes = ["user", "machine", "cluster"] as const;
/** How far a lock reaches: the processes of this user, of this machine, or of everything that knows the servers. */
export type Scope = (typeof scopes)[number];

/** For every command that talks to a coordination server. */
export const connectionSettings = {
  servers: setting(text("host:port,…[/chroot]"), {
    flag: "-z, --servers",
    key: "servers",
    help: "the ZooKeeper servers, or unix:PATH, or `embedded` for this machine's own keeper",
    unset: "the embedded keeper, and a line on stderr says so",
  }),
  root: setting(text("path"), {
    flag: "--root",
    key: "root",
    help: "the node under which everything of baton lives",
    default: "/baton",
  }),
  sessionTimeout: setting(sessionTimeout({ minMs: 2000 }), {
    flag: "--session-timeout",
    key: "session.timeout",
    help: "how long the servers wait for a silent client before they give its locks to others",
    default: 10_000,
  }),
  connectTimeout: setting(duration({ minMs: 1 }), {
    flag: "--connect-timeout",
    key: "connect.timeout",
    help: "how long to look for a server that answers",
    unset: "what -w says, else 10s; without limit when connect.retries is given",
  }),
  connectRetries: setting(integer("count", { min: 0, max: 1_000_000 }), {
    key: "connect.retries",
    help: "how many times to go through the list of servers again",
    unset: "as often as connect.timeout leaves time for",
  }),
  connectDelay: setting(duration(), {
    key: "connect.delay",
    help: "the wait before the servers are tried again",
    unset: "a random wait that grows from try to try",
  }),
  connectMaxRequestSize: setting(size(), {
    key: "connect.max_request_size",
    help: "no request is longer: what jute.maxbuffer is on the servers",
    default: 0xfffff,
  }),
  tls: setting(toggle(), {
    flag: "--tls",
    key: "tls.enabled",
    help: "talk TLS to the servers, but never to a unix socket; any other tls setting turns it on too",
    default: false,
  }),
  tlsCa: setting(text("file"), {
    flag: "--tls-ca",
    key: "tls.ca",
    help: "PEM file with the authorities to trust",
    unset: "the system's",
  }),
  tlsCert: setting(text("file"), {
    flag: "--tls-cert",
    key: "tls.cert",
    help: "PEM file with this client's certificate",
  }),
  tlsKey: setting(text("file"), { flag: "--tls-key", key: "tls.key", help: "PEM file with this client's private key" }),
  tlsPassphrase: setting(text("text"), {
    key: "tls.passphrase",
    help: "what opens the private key",
    secret: true,
  }),
  tlsServerName: setting(text("name"), {
    flag: "--tls-server-name",
    key: "tls.server_name",
    help: "the name the server's certificate must carry",
    unset: "the host name",
  }),
  authCredentials: setting(text("scheme:credentials"), {
    key: "auth.credentials",
    help: "who this client is, such as digest:USER:PASSWORD",
    secret: true,
  }),
  authFile: setting(text("file"), {
    flag: "--auth-file",
    key: "auth.file",
    help: "file with one scheme:credentials in each line, which nobody else may read",
  }),
  acl: setting(list("open|creator|scheme:id:perms,…"), {
    flag: "--acl",
    key: "acl",
    help: "who may use the nodes baton makes: everybody, the authenticated creator, or a list",
    default: ["open"],
  }),
  keeperDir: setting(absolutePath("folder"), {
    key: "keeper.dir",
    help: "where the embedded keeper keeps its data and its socket",
    unset: "a folder of the user's, the same from cron and from a login shell",
  }),
} satisfies SettingTable;

/** For `baton lock`. */
export const lockSettings = {
  scope: setting(choice(scopes), {
    flag: "--scope",
    key: "scope",
    help: "how far the lock has to reach at least; exit 78 when it would not",
  }),
  priority: setting(priority(), {
    flag: "--priority",
    key: "lock.priority",
    help: "the place in the queue, lowest number first: foreground is 100, background 200",
    default: 100,
  }),
  foregroundWait: setting(duration(), {
    key: "lock.foreground.wait",
    help: "how long a foreground call waits for the lock when -w does not say",
    unset: "for ever",
  }),
  backgroundWait: setting(duration(), {
    key: "lock.background.wait",
    help: "how long a background call (priority 200 and up) waits for the lock when -w does not say",
    unset: "for ever",
  }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    key: "lock.kill_after",
    help: "how long a child that baton stops has before it is killed; a signal to baton is only passed on",
    default: 5000,
  }),
  onDoubt: setting(choice(["ignore", "freeze"]), {
    flag: "--on-doubt",
    key: "lock.on_doubt",
    help: "what happens to the child while the servers are silent, before the lock is lost: run on, or be stopped",
    default: "ignore",
  }),
  signal: setting(signalName(), {
    flag: "--signal",
    key: "lock.signal",
    help: "the signal that tells the child to stop",
    default: "SIGTERM",
  }),
  publishCommand: setting(toggle(), {
    flag: "--publish-command",
    key: "lock.publish_command",
    help: "let others read the whole command line of the holder, not only its first word",
    default: false,
  }),
} satisfies SettingTable;

/** For `baton pool`. */
export const poolSettings = {
  poolComponentPath: setting(text("template"), {
    key: "pool.component_path",
    help: "the node of a pool's own lock, made of {root} and {component}; the same in all calls, else 78",
    default: "{root}/locks/{component}",
  }),
  poolItemPath: setting(text("template"), {
    key: "pool.item_path",
    help:
      "the node of an item's lock, made of {root}, {component}, {item}, and {1} to {9} for the item's words; the same in all calls, else 78",
    default: "{root}/locks/{component}%2F{item}",
  }),
} satisfies SettingTable;

/** Of one component of `baton pool`: a section for each, and flags of the command. */
export const poolComponentSettings = {
  query: setting(text("command"), {
    flag: "--query",
    key: "pool.component.NAME.query",
    once: true,
    help: "a line of shell that prints the items, one to a line; it runs under the component's lock",
  }),
  jobs: setting(integer("count", { min: 1, max: poolJobsMax }), {
    flag: "-j, --jobs",
    key: "pool.component.NAME.jobs",
    help: "how many items run at once in this call",
    default: 1,
  }),
  total: setting(integer("count", { min: 1, max: 1_000_000 }), {
    flag: "--total",
    key: "pool.component.NAME.total",
    help:
      "how many items of the component run at once in all calls, on all machines; the same number in all of them, else 78",
  }),
  doneTtl: setting(duration({ minMs: 1 }), {
    flag: "--done-ttl",
    key: "pool.component.NAME.done_ttl",
    help: "remember for so long how items have ended, and skip those that ended with 0",
  }),
  retries: setting(integer("count", { min: 0, max: 1000 }), {
    flag: "--retries",
    key: "pool.component.NAME.retries",
    help: "run an item that failed again, up to so many times",
    default: 0,
  }),
  componentCommand: setting(commandLine(), {
    key: "pool.component.NAME.command",
    help:
      "what is run for each item where nothing stands after --: a list is the command's words; a text is a line for " +
      "/bin/sh -c, in which {} and {item} become the item as one quoted word",
  }),
} satisfies SettingTable;

/** What the command line of `baton config` and variables can give. */
export const allSettings = {
  // First: a flag that others have, too, is theirs in `baton config show`.
  ...keeperSettings,
  ...electSettings,
  ...barrierSettings,
  ...connectionSettings,
  ...lockSettings,
  ...poolSettings,
  ...pubsubSettings,
  ...retrySettings,
} satisfies SettingTable;

/** What a file may contain. */
export const fileSettings = { ...allSettings, ...poolComponentSettings } satisfies SettingTable;
