/**
 * Which real peers this machine has. What is missing is said loudly, in a line of its own that scripts/test counts, and
 * its tests are registered as skipped under a name that says why; with BATON_REQUIRE_PEERS=1 they fail instead.
 */
import { describe, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, join } from "node:path";
import process from "node:process";
import { canMakeLinuxPackages } from "../../scripts/packages/linux_packages.ts";

const project = join(import.meta.dirname, "../..");
export const zooKeeperJar = "/usr/share/java/zookeeper.jar";
/** Where scripts/install_peers puts the jars of test/support/zookeeper_jars.sha256. */
const fetchedFolder = process.env["BATON_PEERS_DIR"] ?? join(homedir(), ".cache/baton-peers");
/** A folder whose zeromq has libzmq 4.3.2. */
export const oldLibzmqFolder = join(fetchedFolder, "zmtp30");
/** The wheel of test/support/python_wheels.sha256, as an entry of PYTHONPATH. */
export const currentKazoo = join(fetchedFolder, "python/kazoo-2.11.0-py2.py3-none-any.whl");
/** A current release of ZooKeeper, or Debian's. */
export type ZooKeeperRelease = "debian" | "3.8.7" | "3.9.6";
/** Debian's TLS needs them, and its manifest of zookeeper.jar does not name them. */
const debianNetty = ["codec", "resolver", "transport-native-unix-common"].map((part) =>
  `/usr/share/java/netty-${part}.jar`
);

/** Returns the class path of a server. */
export function zooKeeperJars(release: ZooKeeperRelease): string[] {
  if (release === "debian") return [zooKeeperJar, ...debianNetty];
  return fetchedJars("zookeeper", (path) => !path.includes("/zookeeper/") || path.includes(`/${release}/`));
}

/** A PostgreSQL of another release than Debian's. */
export type PostgresRelease = "13.23.0" | "18.6.0";

export function postgresJar(release: PostgresRelease): string {
  return fetchedJars("postgres", (path) => path.includes(`/${release}/`))[0] ?? "";
}

const hasPostgres = (release: PostgresRelease) =>
  existsSync(postgresJar(release)) && ["psql", "unzip", "xz"].every((program) => inPath(program));

/** The jars of a list that scripts/install_peers fetches, by their path in Maven Central. */
function fetchedJars(
  name: "zookeeper" | "curator" | "postgres",
  isWanted: (path: string) => boolean = () => true,
): string[] {
  const list = readFileSync(join(import.meta.dirname, `${name}_jars.sha256`), "utf8").split("\n");
  const paths = list.filter((line) => line !== "" && !line.startsWith("#")).map((line) => line.split("  ")[1] ?? "");
  return paths.filter(isWanted).map((path) => join(fetchedFolder, name, basename(path)));
}

const hasRelease = (release: ZooKeeperRelease) =>
  inPath("java") && zooKeeperJars(release).every((jar) => existsSync(jar));

export const zkCli = "/usr/share/zookeeper/bin/zkCli.sh";
const curatorParts = ["recipes", "framework", "client"].map((part) => `curator-${part}`);
export const curatorJars = [...curatorParts, "guava", "slf4j-api", "slf4j-nop", "zookeeper", "zookeeper-jute"]
  .map((name) => `/usr/share/java/${name}.jar`);

/** Curator 5.9.0 on the client of ZooKeeper 3.9.6. */
export const currentCuratorJars = [...fetchedJars("curator"), ...zooKeeperJars("3.9.6")];

/** The program of go-zookeeper that scripts/install_peers builds: its name has the hash of its sources. */
export const goContender = join(
  fetchedFolder,
  "go",
  `contender-${hashOf("go_zookeeper", "go.mod", "go.sum", "contender.go")}`,
);

function hashOf(folder: string, ...files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(join(project, "test/fixtures/interop", folder, file)));
  return hash.digest("hex").slice(0, 16);
}

const fakeTimeFile = "faketime/libfaketimeMT.so.1";
/** For LD_PRELOAD; the loader puts in the folder of this machine. */
export const fakeTimeLibrary = `/usr/$LIB/${fakeTimeFile}`;

/** What has to be there, and the Debian packages that bring it. */
const peers = {
  zookeeper: {
    title: "Apache ZooKeeper",
    packages: "zookeeper default-jre-headless",
    installed: () => existsSync(zooKeeperJar) && existsSync(zkCli) && inPath("java"),
  },
  zookeeper38: {
    title: "Apache ZooKeeper 3.8.7",
    packages: "default-jre-headless, then sh scripts/install_peers for its jars",
    installed: () => hasRelease("3.8.7"),
  },
  zookeeper39: {
    title: "Apache ZooKeeper 3.9.6",
    packages: "default-jre-headless, then sh scripts/install_peers for its jars",
    installed: () => hasRelease("3.9.6"),
  },
  jdk: {
    title: "a Java compiler",
    packages: "zookeeper default-jdk-headless",
    installed: () => existsSync(zooKeeperJar) && inPath("javac"),
  },
  curator: {
    title: "Apache Curator",
    packages: "libcurator-recipes-java default-jdk-headless",
    installed: () => curatorJars.every((jar) => existsSync(jar)) && inPath("javac"),
  },
  curator59: {
    title: "Apache Curator 5.9.0",
    packages: "default-jdk-headless, then sh scripts/install_peers for its jars",
    installed: () => currentCuratorJars.every((jar) => existsSync(jar)) && inPath("javac"),
  },
  goZookeeper: {
    title: "go-zookeeper 1.0.4",
    packages: "golang-go, then sh scripts/install_peers, which builds its program",
    installed: () => existsSync(goContender),
  },
  etcd: {
    title: "etcd",
    packages: "etcd-server etcd-client",
    installed: () => inPath("etcd") && inPath("etcdctl"),
  },
  kazoo: {
    title: "kazoo",
    packages: "python3-kazoo",
    installed: () => inPath("python3") && existsSync("/usr/lib/python3/dist-packages/kazoo"),
  },
  kazoo211: {
    title: "kazoo 2.11.0",
    packages: "python3-kazoo, then sh scripts/install_peers for its wheel",
    installed: () => inPath("python3") && existsSync(currentKazoo),
  },
  zeromq: {
    title: "libzmq in Node.js",
    packages: "nodejs, then sh scripts/install_peers; npm's zeromq has its addon for the platforms it was built for",
    installed: () => loadsZeroMq(project) && loadsZeroMq(oldLibzmqFolder),
  },
  pyzmq: {
    title: "libzmq in Python",
    packages: "python3-zmq",
    installed: () => inPath("python3") && existsSync("/usr/lib/python3/dist-packages/zmq"),
  },
  cc: {
    title: "a C compiler on Linux",
    packages: "gcc libc6-dev",
    installed: () => process.platform === "linux" && inPath("cc") && existsSync("/usr/include/linux/seccomp.h"),
  },
  kcat: {
    title: "kcat, librdkafka's client and mock cluster for Kafka's protocol",
    packages: "kcat",
    installed: () => inPath("kcat"),
  },
  systemd: { title: "systemd-analyze", packages: "systemd", installed: () => inPath("systemd-analyze") },
  groff: { title: "groff", packages: "groff-base", installed: () => inPath("groff") },
  man: { title: "man", packages: "man-db", installed: () => inPath("man") },
  mandoc: { title: "mandoc", packages: "mandoc", installed: () => inPath("mandoc") },
  bash: { title: "bash", packages: "bash", installed: () => inPath("bash") },
  zsh: { title: "zsh", packages: "zsh", installed: () => inPath("zsh") },
  fish: { title: "fish", packages: "fish", installed: () => inPath("fish") },
  go: {
    title: "Go, which builds nfpm",
    packages: "golang-go, from a Debian with Go 1.25 or later",
    installed: () => process.platform === "linux" && canMakeLinuxPackages(project),
  },
  rpm: { title: "rpm", packages: "rpm", installed: () => inPath("rpm") },
  postgres: {
    title: "PostgreSQL",
    packages: "postgresql",
    installed: () => existsSync("/usr/lib/postgresql") && inPath("psql"),
  },
  postgres13: {
    title: "PostgreSQL 13.23",
    packages: "postgresql unzip xz-utils, then sh scripts/install_peers for its jar",
    installed: () => hasPostgres("13.23.0"),
  },
  postgres18: {
    title: "PostgreSQL 18.6",
    packages: "postgresql unzip xz-utils, then sh scripts/install_peers for its jar",
    installed: () => hasPostgres("18.6.0"),
  },
  pgbouncer: {
    title: "PgBouncer with PostgreSQL",
    packages: "pgbouncer postgresql",
    installed: () => existsSync("/usr/lib/postgresql") && inPath("pgbouncer") && inPath("psql"),
  },
  faketime: {
    title: "libfaketime",
    packages: "libfaketime",
    installed: () => readdirIfThere("/usr/lib").some((folder) => existsSync(`/usr/lib/${folder}/${fakeTimeFile}`)),
  },
  chromium: {
    title: "Chromium",
    packages: "chromium",
    installed: () => existsSync("/usr/bin/chromium"),
  },
  firefox: {
    title: "Firefox",
    packages: "firefox-esr",
    installed: () => existsSync("/usr/bin/firefox-esr"),
  },
  promtool: {
    title: "promtool",
    packages: "prometheus",
    // 100 MB for one check: scripts/install_peers does not install it.
    isOptional: true,
    installed: () => inPath("promtool"),
  },
  flock: { title: "flock", packages: "util-linux", installed: () => inPath("flock") },
} as const;

export type PeerName = keyof typeof peers;

/** Whether the peer can be started here. */
export function hasPeer(name: PeerName): boolean {
  return peers[name].installed();
}

/** `describe`, for tests that need a peer. */
export function describeWithPeer(name: PeerName, title: string, body: () => void): void {
  if (hasPeer(name)) {
    describe(title, body);
    return;
  }
  const peer = peers[name];
  const sentence = `MISSING PEER: ${peer.title} (apt-get install ${peer.packages})`;
  sayOnce(sentence);
  if (process.env["BATON_REQUIRE_PEERS"] === "1" && !("isOptional" in peer)) {
    describe(title, () => {
      test(sentence, () => {
        throw new Error(`${sentence}, and BATON_REQUIRE_PEERS=1 demands it`);
      });
    });
  } else {
    describe.skip(`${title} [skipped, ${sentence}]`, body);
  }
}

/** Test files may be loaded apart from each other, so what was said is remembered outside the module. */
const said = Symbol.for("baton.test.missingPeersSaid");

function sayOnce(sentence: string): void {
  const holder = globalThis as { [said]?: Set<string> };
  const sentences = holder[said] ??= new Set<string>();
  if (sentences.has(sentence)) return;
  sentences.add(sentence);
  process.stderr.write(`${sentence}\n`);
}

/** An addon is there for some machines, and loads on fewer. */
function loadsZeroMq(folder: string): boolean {
  return inPath("node") && existsSync(folder) &&
    spawnSync("node", ["-e", 'require("zeromq")'], { cwd: folder }).status === 0;
}

function readdirIfThere(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function inPath(program: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
}
