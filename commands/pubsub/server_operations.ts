/**
 * Defines the operations on servers: `baton pubsub server
 * ls|move|drain|rebalance|forget|forget-client|verify|backup|restore`.
 */
import { resolve } from "node:path";
import { BlockingWorkProgress, ProgressLine } from "../../src/base/terminal/progress.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { printTable, tableHeadCells } from "../../src/base/terminal/table.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../src/base/errors.ts";
import {
  drainServer,
  moveTopics,
  type RequestedTopicMove,
  type TopicMoveResult,
  topicsByServer,
} from "../../src/pubsub/admin/move_topics.ts";
import { readServerOverview } from "../../src/pubsub/admin/server_overview.ts";
import { planTopicRebalance } from "../../src/pubsub/admin/plan_moves.ts";
import { setServerDraining } from "../../src/pubsub/ownership/announcements.ts";
import { forgetServer } from "../../src/pubsub/ownership/forget_server.ts";
import { readRecordedStoreGenerations } from "../../src/pubsub/ownership/store_generation.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { TopicNodes } from "../../src/pubsub/ownership/topic_nodes.ts";
import { claimServerDataDir, markStoreAsBackup } from "../../src/pubsub/server/server_identity.ts";
import { backupTopicStore } from "../../src/pubsub/store/sqlite/backup_topic_store.ts";
import { type TopicStoreReport, verifyTopicStore } from "../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { StoppedBySignal, StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { rejectOnAbort, throwIfAborted } from "../../src/base/support/abort.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { countWithNoun, printable } from "../../src/base/support/text.ts";
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type {
  PubsubClientForgottenJson,
  PubsubForgottenJson,
  PubsubMovesJson,
  PubsubRestoredJson,
  PubsubServersJson,
  PubsubVerifyJson,
} from "../json_shapes/pubsub_shapes.ts";
import { serversTable, topicsTable } from "../../src/base/terminal/row_tables.ts";
import { makeServerDetails, makeServerRow, makeTopicListRows } from "../../src/pubsub/view/overview_rows.ts";
import { checkPubsubServerFlags, type PubsubServerCall } from "./server_options.ts";
import { readPubsubServiceSecurity } from "./service_security.ts";
import { readTopicStoreLocation, type TopicStoreDatabase } from "./topic_store_location.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { restoreServer, type RestoreServerResult } from "../../src/pubsub/ownership/restore_server.ts";
import { TopicStore } from "../../src/pubsub/store/topic_store.ts";
import { sendManageTopicRequest } from "./topic.ts";

interface ServerOperation {
  readonly takes: string;
  readonly names: number;
  run(call: PubsubServerCall, names: readonly string[]): Promise<ExitCode>;
}

const operations: Readonly<Record<string, ServerOperation>> = {
  ls: { takes: "no name", names: 0, run: listServers },
  move: { takes: "a topic, and --to ID", names: 1, run: move },
  drain: { takes: "a server's id", names: 1, run: drain },
  rebalance: { takes: "no name", names: 0, run: rebalance },
  forget: { takes: "a server's id", names: 1, run: forget },
  "forget-client": { takes: "a topic and a client's id", names: 2, run: forgetClient },
  verify: { takes: "no name, and --data-dir", names: 0, run: verify },
  backup: { takes: "a folder to be made, and --data-dir", names: 1, run: backup },
  restore: { takes: "no name; it needs --id, --data-dir and --accept-loss", names: 0, run: restore },
};

const serverOperationNames: readonly string[] = Object.keys(operations);

export async function runPubsubServerOperation(call: PubsubServerCall): Promise<ExitCode> {
  const [word = "", ...names] = call.names;
  const operation = Object.hasOwn(operations, word) ? operations[word] : undefined;
  if (operation === undefined) {
    const known = serverOperationNames.join(", ");
    throw new BatonError(
      "USAGE",
      `unknown operation "${word}" of baton pubsub server; use none, or one of ${known}${
        didYouMean(word, serverOperationNames)
      }`,
    );
  }
  if (names.length !== operation.names) {
    const given = names.length === 0 ? "and none is given" : `not "${names.join(" ")}"`;
    throw new BatonError("USAGE", `baton pubsub server ${word} takes ${operation.takes}, ${given}`);
  }
  checkPubsubServerFlags(word, call.sources.flags);
  return await operation.run(call, names);
}

async function listServers(call: PubsubServerCall): Promise<ExitCode> {
  const { values, io } = call;
  const problems: string[] = [];
  const path = new PubsubPath(values.root);
  const servers = await runInCoordinationSession(call, (zk) => readServerOverview(zk, path, problems));
  for (const problem of problems) io.err(`baton: ${printable(problem)}\n`);
  if (values.json) {
    printJson<PubsubServersJson>(io, { version: 1, servers: servers.map(makeServerDetails) });
    return exitCodes.SUCCESS;
  }
  if (servers.length > 0) printTable(io, serversTable(servers.map(makeServerRow)));
  else if (!values.quiet && problems.length === 0) {
    io.err(`baton: no publish/subscribe servers are registered below ${values.root}\n`);
  }
  const topics = values.topics ? makeTopicListRows(servers) : [];
  if (topics.length > 0) printTable(io, [[""], ...topicsTable(topics)]);
  return exitCodes.SUCCESS;
}

async function move(call: PubsubServerCall, [topic = ""]: readonly string[]): Promise<ExitCode> {
  const { to } = call.values;
  if (to === undefined) {
    throw new BatonError("USAGE", `baton pubsub server move needs --to SERVER-ID`);
  }
  return await runMoves(call, async (zk, path, move) => {
    const known = await new TopicNodes(zk, path).read(topic);
    await move([{ topic, from: known?.node.owner ?? null, to }]);
  });
}

async function drain(call: PubsubServerCall, [id = ""]: readonly string[]): Promise<ExitCode> {
  const { values, io } = call;
  const say = (sentence: string) => values.quiet || io.err(`baton: ${sentence}\n`);
  if (values.undo && values.to !== undefined) {
    throw new BatonError("USAGE", "baton pubsub server drain: --undo takes topics again, and has no --to");
  }
  if (values.undo) {
    const isThere = await runInCoordinationSession(
      call,
      (zk) => setServerDraining(zk, new PubsubPath(values.root), id, false),
    );
    if (!isThere) throw new BatonError("NOT_FOUND", `there is no server "${id}" that could take topics again`);
    say(`"${id}" takes new topics again`);
    return exitCodes.SUCCESS;
  }
  return await runMoves(call, async (zk, path, move) => {
    await drainServer(zk, path, id, {
      to: values.to,
      isDryRun: values.dryRun,
      move,
      onDraining: () => {
        say(
          `"${id}" is given no new topics until it is started again, or: baton pubsub server drain ${
            shellQuoteIfNeeded(id)
          } --undo`,
        );
      },
    });
  });
}

async function rebalance(call: PubsubServerCall): Promise<ExitCode> {
  return await runMoves(call, async (zk, path, move) => {
    const servers = await readServerOverview(zk, path);
    // A topic moves to another store only if the operator names the server, because the topic may become less available
    // there.
    const groups = Map.groupBy(servers, ({ store }) => store);
    await move([...groups.values()].flatMap((group) => planTopicRebalance(topicsByServer(group))));
  });
}

/**
 * Runs `work`, which moves topics with its parameter `move`. Prints the results, and returns the exit code. If a signal
 * arrives, prints what was moved and what may still move, and rejects with StoppedBySignal.
 */
async function runMoves(
  call: PubsubServerCall,
  work: (
    zk: ZooKeeper,
    path: PubsubPath,
    move: (moves: readonly RequestedTopicMove[]) => Promise<number>,
  ) => Promise<void>,
): Promise<ExitCode> {
  const { values } = call;
  using stop = new StopRequestListener();
  const { signal } = stop;
  const outcomes = new Map<string, TopicMoveResult>();
  const setOutcome = (one: TopicMoveResult) => void outcomes.set(one.topic, one);
  try {
    await runInCoordinationSession(call, async (zk) => {
      using progress = new ProgressLine(call, { noun: "topic", verb: "moved", total: 0, isWanted: !values.dryRun });
      const path = new PubsubPath(values.root);
      let total = 0;
      const moving = work(zk, path, async (moves) => {
        throwIfAborted(signal);
        total += moves.length;
        progress.set({ total });
        if (values.dryRun) {
          for (const one of moves) setOutcome(plannedMove(one));
          return 0;
        }
        const done = await moveTopics(zk, path, moves, {
          clock: systemClock(),
          socket: readPubsubServiceSecurity(values)?.internalDialOptions,
          signal,
          onStart: (one) => setOutcome(interruptedMove(one)),
          onDone: (result) => {
            setOutcome(result);
            progress.add(1);
          },
        });
        return done.filter(({ outcome }) => outcome === "moved").length;
      });
      await rejectOnAbort(moving, signal);
    }, { signal });
  } catch (thrown) {
    if (thrown instanceof StoppedBySignal && outcomes.size > 0) printMoves(call, [...outcomes.values()]);
    throw thrown;
  }
  const done = [...outcomes.values()];
  printMoves(call, done);
  return exitCodeOfMoves(done);
}

function plannedMove({ topic, from, to }: RequestedTopicMove): TopicMoveResult {
  const outcome = from === null ? "no topic" : from === to ? "there" : "planned";
  return { topic, from, to, outcome, why: null };
}

/**
 * Returns the result to print if the command ends before the server has responded. The move goes on, because no request
 * can cancel it.
 */
function interruptedMove({ topic, from, to }: RequestedTopicMove): TopicMoveResult {
  const undo = `move ${shellQuoteIfNeeded(topic)} --to ${shellQuoteIfNeeded(from ?? "")}`;
  const why =
    `server "${printable(from ?? "")}" goes on with the handoff. baton pubsub server ls --topics shows the owner, ` +
    `and this undoes the move: baton pubsub server ${undo}`;
  return { topic, from, to, outcome: "unknown", why };
}

function printMoves({ values, io }: PubsubServerCall, done: readonly TopicMoveResult[]): void {
  if (values.json) {
    printJson<PubsubMovesJson>(io, { version: 1, moves: [...done] });
  } else {
    const rows = done.map(({ topic, from, to, outcome, why }) => [topic, from ?? "", to, outcome, why ?? ""]);
    if (rows.length > 0) printTable(io, [tableHeadCells(["TOPIC", "FROM", "TO", "OUTCOME", ""]), ...rows]);
    else if (!values.quiet) io.err("baton: there is nothing to move\n");
  }
  for (const one of done) {
    const sentence = failureOf(one);
    if (sentence !== null) io.err(`baton: ${sentence}\n`);
  }
}

/** Returns why this move causes a nonzero exit code; null if it does not. */
function failureOf({ topic, to, outcome, why }: TopicMoveResult): string | null {
  const what = `move topic "${printable(topic)}" to "${printable(to)}"`;
  if (outcome === "kept") return `Cannot ${what}: ${why}`;
  if (outcome === "no topic") return `Cannot ${what}: there is no such topic`;
  return outcome === "unknown"
    ? `It is unknown whether topic "${printable(topic)}" was moved to "${printable(to)}": ${why}`
    : null;
}

function exitCodeOfMoves(done: readonly TopicMoveResult[]): ExitCode {
  const has = (outcome: TopicMoveResult["outcome"]) => done.some((one) => one.outcome === outcome);
  if (has("unknown")) return exitCodes.OUTCOME_UNKNOWN;
  if (has("kept")) return exitCodes.UNREACHABLE;
  return has("no topic") ? exitCodes.FALSE : exitCodes.SUCCESS;
}

async function forget(call: PubsubServerCall, [id = ""]: readonly string[]): Promise<ExitCode> {
  const { values, io } = call;
  const { lost, returned, takenOver } = await runInCoordinationSession(call, async (zk) => {
    const path = new PubsubPath(values.root);
    // A server that keeps its topics in a database loses nothing.
    const forgotten = (await readServerOverview(zk, path)).find((server) => server.id === id);
    const isKept = forgotten !== undefined && forgotten.store !== null && forgotten.isAvailable &&
      forgotten.topics.every(({ node }) => node.store !== undefined);
    if (!values.acceptLoss && !isKept) throw lossNotAccepted(id);
    return await forgetServer(zk, path, id);
  });
  if (values.json) {
    const topics = { lost: [...lost], returned: [...returned], taken_over: [...takenOver] };
    printJson<PubsubForgottenJson>(io, { version: 1, server: id, ...topics });
  } else {
    for (const topic of lost) io.out(`lost ${printable(topic)}\n`);
    for (const topic of returned) io.out(`returned ${printable(topic)}\n`);
    for (const topic of takenOver) io.out(`taken over ${printable(topic)}\n`);
    if (!values.quiet && lost.length + returned.length + takenOver.length > 0) {
      io.err(
        `baton: topics that begin again, empty: ${lost.length}; ` +
          `that are back where they came from: ${returned.length}; ` +
          `that another server has taken over: ${takenOver.length}\n`,
      );
    }
  }
  if (lost.length + returned.length + takenOver.length > 0) return exitCodes.SUCCESS;
  throw new BatonError("NOT_FOUND", `Server "${id}" does not exist and owns no topic: nothing was changed`);
}

function lossNotAccepted(id: string): BatonError {
  return new BatonError(
    "USAGE",
    `baton pubsub server forget deletes everything that "${id}" owns: messages and the positions of subscribers. Add ` +
      "--accept-loss if the data of this server cannot be recovered",
  );
}

// deno-lint-ignore require-await -- an operation is asynchronous, this one reads a disk
async function verify(call: PubsubServerCall): Promise<ExitCode> {
  const { values, io } = call;
  const folder = requireDataDir(call, "verify");
  const { topics, messages, clients, problems } = verifyWithProgress(call, folder);
  if (values.json) {
    printJson<PubsubVerifyJson>(io, { version: 1, folder, topics, messages, clients, problems: [...problems] });
  } else if (problems.length === 0) {
    io.out(
      `${folder} is whole: ${countWithNoun(topics, "topic")}, ${countWithNoun(messages, "message")}, ${
        countWithNoun(clients, "client")
      }\n`,
    );
  } else for (const problem of problems) io.out(`${printable(problem)}\n`);
  return problems.length === 0 ? exitCodes.SUCCESS : exitCodes.IO;
}

// deno-lint-ignore require-await -- an operation is asynchronous, this one reads a disk
async function backup(call: PubsubServerCall, [target = ""]: readonly string[]): Promise<ExitCode> {
  const dataDir = requireDataDir(call, "backup");
  const folder = resolve(target);
  using progress = new BlockingWorkProgress(call);
  backupTopicStore(dataDir, folder, () => markStoreAsBackup(dataDir, folder), progress);
  return exitCodes.SUCCESS;
}

function verifyWithProgress(call: PubsubServerCall, dataDir: string): TopicStoreReport {
  using progress = new BlockingWorkProgress(call);
  return verifyTopicStore(dataDir, progress);
}

function requireDataDir({ values, sources }: PubsubServerCall, word: "verify" | "backup" | "restore"): string {
  const store = readTopicStoreLocation(values, sources);
  if (store?.dataDir) return store.dataDir;
  if (store !== null) {
    const how = word === "verify" ? "amcheck, and the log of the servers" : "pg_basebackup and its log";
    throw new BatonError(
      "USAGE",
      `baton pubsub server ${word} is for a --data-dir: use the database's own means (${how})`,
    );
  }
  throw new BatonError("USAGE", `baton pubsub server ${word} needs --data-dir FOLDER`);
}

async function restore(call: PubsubServerCall): Promise<ExitCode> {
  const { values, io } = call;
  const { pubsubServerId: id } = values;
  const database = readTopicStoreLocation(values, call.sources)?.database;
  if (database) return await acceptDatabase(call, database);
  const dataDir = requireDataDir(call, "restore");
  if (id === undefined) {
    throw new BatonError("USAGE", "baton pubsub server restore needs --id ID and --data-dir FOLDER");
  }
  if (!values.acceptLoss) {
    throw new BatonError(
      "USAGE",
      `baton pubsub server restore loses everything that "${id}" has stored since the copy in ${dataDir} was made. ` +
        "Add --accept-loss if there is no newer copy",
    );
  }
  const done = await restoreFrom(call, id, dataDir);
  const { restored, lost, returned, left } = done;
  if (values.json) {
    const topics = { restored: [...restored], lost: [...lost], returned: [...returned], left: [...left] };
    printJson<PubsubRestoredJson>(io, { version: 1, server: id, ...topics });
  } else {
    for (const [what, topics] of Object.entries(done)) {
      for (const topic of topics) io.out(`${what} ${printable(topic)}\n`);
    }
    if (!values.quiet) {
      io.err(
        `baton: topics restored from the copy: ${restored.length}; topics that begin again, empty: ${lost.length}; ` +
          `topics returned to their previous server: ${returned.length}; ` +
          `topics that stay unavailable: ${left.length}\n`,
      );
    }
  }
  return exitCodes.SUCCESS;
}

/** Lets the topics of a database that has lost commits continue with the messages that are left. */
async function acceptDatabase(call: PubsubServerCall, { address }: TopicStoreDatabase): Promise<ExitCode> {
  const { values, io } = call;
  if (!values.acceptLoss) {
    throw new BatonError(
      "USAGE",
      "baton pubsub server restore goes on without the commits that the database has lost. Add --accept-loss if no " +
        "newer copy of it exists",
    );
  }
  const { AcceptedTopicDatabase } = await import("../../src/pubsub/store/postgres/accept_database.ts");
  await using database = await AcceptedTopicDatabase.open(address);
  const path = new PubsubPath(values.root);
  const topics = await runInCoordinationSession(call, async (zk) => {
    const marks = await readRecordedStoreGenerations(zk, path.store(database.storeId));
    const generations = await Promise.all(marks.map(({ server }) => database.generation(server)));
    const isBehind = marks.some(({ generation }, index) => (generations[index] ?? 0) < generation);
    const accepted = await database.acceptLoss({ ofAll: isBehind });
    for (const [index, { server, generation }] of marks.entries()) {
      if ((generations[index] ?? 0) < generation) await database.setGeneration(server, generation);
    }
    return accepted;
  });
  if (values.json) {
    printJson<PubsubRestoredJson>(io, { version: 1, server: null, restored: topics, lost: [], returned: [], left: [] });
    return exitCodes.SUCCESS;
  }
  for (const topic of topics) io.out(`restored ${printable(topic)}\n`);
  if (!values.quiet) {
    io.err(`baton: topics that go on without messages that may be lost: ${topics.length}\n`);
  }
  return exitCodes.SUCCESS;
}

/** Restores a data directory. Keeps the store open until the end, so that no server can use it before. */
async function restoreFrom(call: PubsubServerCall, id: string, dataDir: string): Promise<RestoreServerResult> {
  const { problems } = verifyWithProgress(call, dataDir); // if there is no store, nothing is created
  // A server refuses damaged data later anyway, so the rest is restored.
  for (const problem of problems) call.io.err(`baton: damaged in ${dataDir}: ${problem}\n`);
  let broken: BatonError | null = null;
  const hooks = { onResponses: () => {}, onBroken: (error: BatonError) => void (broken = error) };
  await using store = await TopicStore.open(dataDir, hooks, { acceptDamagedLog: true });
  claimServerDataDir(dataDir, id, { wasMoved: true });
  using progress = new ProgressLine(call, { noun: "topic", verb: "checked", total: null });
  const onTopic = () => progress.add(1);
  const path = new PubsubPath(call.values.root);
  const done = await runInCoordinationSession(call, (zk) => restoreServer(zk, path, { id, store, onTopic }));
  if (broken !== null) throw broken;
  return done;
}

async function forgetClient(call: PubsubServerCall, [topic = "", client = ""]: readonly string[]): Promise<ExitCode> {
  const { values, io } = call;
  const { owner } = await sendManageTopicRequest(call, {
    topic,
    action: "forget-client",
    client,
    acceptsLoss: values.acceptLoss,
  });
  if (values.json) printJson<PubsubClientForgottenJson>(io, { version: 1, topic, server: owner, client });
  else if (!values.quiet) io.err(`baton: topic "${printable(topic)}" has forgotten client "${printable(client)}"\n`);
  return exitCodes.SUCCESS;
}
