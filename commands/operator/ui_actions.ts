/**
 * Runs the actions that users request on the page. A request names its target and what the page showed of it; baton
 * rejects it if the target has changed since. Owns the running actions and the last results.
 */
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { resign } from "../../src/coordination/election/campaign.ts";
import { breakLock, type BrokenLock } from "../../src/coordination/lock/break_lock.ts";
import { nameOfHolder } from "../../src/coordination/nodes/holder_info.ts";
import { electionPath, lockPath } from "../../src/coordination/nodes/node_paths.ts";
import { lockStatus } from "../../src/coordination/lock/lock_status.ts";
import { HttpError } from "../../src/base/http/http_error.ts";
import { drainServer, moveTopics, type RequestedTopicMove } from "../../src/pubsub/admin/move_topics.ts";
import { readAnnouncement, setServerDraining } from "../../src/pubsub/ownership/announcements.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { CommandStore } from "../../src/retry/queue/store_methods.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { resultWithin } from "../../src/base/support/deadline.ts";
import { isJsonObject, type JsonFields } from "../../src/base/support/json_fields.ts";
import type { Log } from "../../src/base/support/log.ts";
import { countWithNoun, printable } from "../../src/base/support/text.ts";
import { ownUserName } from "../../src/base/support/user_name.ts";
import { shownText } from "../../src/operator/ui/shown_text.ts";
import type { ActionRow } from "../../src/operator/ui/ui_rows.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";

interface UiActionsOptions {
  /** Null while no coordination server responds. */
  readonly zk: () => ZooKeeper | null;
  readonly root: string;
  /** An open message store of the page, by its folder. */
  readonly storeAt: (folder: string) => { readonly name: string; readonly store: CommandStore } | null;
  readonly socket: () => ZeroMqSocketOptions | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the actions in progress. */
  readonly signal: AbortSignal;
  readonly onChange: (actions: readonly ActionRow[]) => void;
}

/** How many actions may run at the same time, and how many results the page lists. */
const runningMax = 4;
const keptMax = 20;
/** The most dead letters that one action may change. */
export const uiActionLettersMax = 100;
/**
 * How long a response may take, in milliseconds. A longer action continues, and the list of actions shows its result.
 */
const responseMsMax = 8000;
/** How long to wait for a holder's release, in milliseconds. */
const releaseMsMax = 10_000;

interface Action {
  /** Action and target: `break lock "nightly"`. */
  readonly what: string;
  /** Resolves with the result as a sentence. */
  readonly run: () => Promise<string>;
}

export class UiActions {
  readonly #options: UiActionsOptions;
  readonly #by = `${ownUserName()} via baton ui`;
  #rows: readonly ActionRow[] = [];
  #running = 0;
  #number = 0;

  constructor(options: UiActionsOptions) {
    this.#options = options;
  }

  /**
   * Runs an action and resolves with an HTTP status and a sentence. Rejects with an HttpError for an invalid request,
   * or if too many actions are running.
   */
  async run(verb: string, body: Uint8Array): Promise<{ readonly status: number; readonly text: string }> {
    const parse = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
    if (parse === undefined) throw new HttpError(404, `There is no action "${printable(verb)}"\n`);
    const { what, run } = parse({ ...this.#options, by: this.#by }, fieldsOf(body));
    if (this.#running >= runningMax) {
      throw new HttpError(503, `${runningMax} actions are in progress: try again later\n`);
    }
    const row: ActionRow = { number: ++this.#number, atMs: Date.now(), what, state: "running", result: "" };
    this.#show(row);
    this.#options.log("info", "action", `${what}: requested in the page`, { action: verb });
    this.#running++;
    const running = this.#finish(row, verb, run);
    const ended = await resultWithin(this.#options.clock, responseMsMax, running);
    return ended ?? { status: 202, text: `${what}: this takes longer; the result will be in the overview` };
  }

  /** Runs the action and records its result. Never rejects. */
  async #finish(row: ActionRow, verb: string, run: Action["run"]): Promise<{ status: number; text: string }> {
    const { log } = this.#options;
    try {
      const text = await run();
      this.#show({ ...row, state: "done", result: text });
      log("info", "action", `${row.what}: ${text}`, { action: verb });
      return { status: 200, text };
    } catch (thrown) {
      const text = errorMessage(thrown);
      this.#show({ ...row, state: "failed", result: printable(text) });
      log("warning", "action", `${row.what}: ${printable(text)}`, { action: verb });
      return { status: statusOf(thrown), text };
    } finally {
      this.#running--;
    }
  }

  #show(row: ActionRow): void {
    const others = this.#rows.filter(({ number }) => number !== row.number);
    this.#rows = [row, ...others].sort((a, b) => b.number - a.number).slice(0, keptMax);
    this.#options.onChange(this.#rows);
  }
}

/** Returns the HTTP status of a failure. 409 means that the page showed an old state. */
function statusOf(thrown: unknown): number {
  if (thrown instanceof HttpError) return thrown.status;
  if (!(thrown instanceof BatonError)) return 500;
  if (thrown.code === "NOT_FOUND") return 409;
  return thrown.code === "USAGE" ? 400 : thrown.code === "UNREACHABLE" ? 503 : 500;
}

interface ActionContext extends UiActionsOptions {
  /** The requester, as the holder sees it. */
  readonly by: string;
}

type ActionParser = (context: ActionContext, body: JsonFields) => Action;

const verbs: Readonly<Record<string, ActionParser>> = {
  break: breakAction,
  resign: resignAction,
  redrive: (context, body) => letterAction(context, body, "redrive"),
  drop: (context, body) => letterAction(context, body, "purge"),
  drain: drainAction,
  move: moveAction,
};

function breakAction(context: ActionContext, body: JsonFields): Action {
  const name = textIn(body, "name");
  const holder = holderIn(body);
  const token = textIn(body, "token");
  const force = body["force"] === true;
  if (force) demandTyped(body, name);
  const what = `${force ? "take" : "break"} lock "${printable(name)}"`;
  const path = lockPath(name, context.root);
  const run = async () => {
    const zk = demandSession(context);
    await demandHolder(zk, name, { path, holder, token });
    const options = { ...breakOptions(context, body), path, force };
    return brokenText(await breakLock(zk, name, holder, options), "it");
  };
  return { what, run };
}

function resignAction(context: ActionContext, body: JsonFields): Action {
  const name = textIn(body, "name");
  const leader = holderIn(body);
  const token = textIn(body, "token");
  const path = electionPath(name, context.root);
  const run = async () => {
    const zk = demandSession(context);
    await demandHolder(zk, name, { path, holder: leader, token });
    return brokenText(
      await resign(zk, name, { ...breakOptions(context, body), root: context.root, leader }),
      "leadership",
    );
  };
  return { what: `ask the leader of "${printable(name)}" to step down`, run };
}

function breakOptions({ by, clock, signal }: ActionContext, body: JsonFields) {
  const reason = body["reason"] === undefined ? "" : textIn(body, "reason", 0);
  return { clock, signal, waitMs: releaseMsMax, revocation: { by, reason } };
}

/** Throws NOT_FOUND if the lock was granted to another holder since the page was drawn. */
async function demandHolder(
  zk: ZooKeeper,
  name: string,
  { path, holder, token }: {
    readonly path: ReturnType<typeof lockPath>;
    readonly holder: string;
    readonly token: string;
  },
): Promise<void> {
  const { holders } = await lockStatus(zk, name, { path });
  if (holders.some(({ holderId, fencingToken }) => holderId === holder && String(fencingToken) === token)) return;
  const now = holders.map(nameOfHolder).join(", ") || "no process";
  throw new BatonError(
    "NOT_FOUND",
    `The page is old: "${printable(name)}" is held by ${printable(now)} now; nothing was done`,
  );
}

function brokenText({ holder, outcome }: BrokenLock, what: string): string {
  const who = printable(nameOfHolder(holder));
  if (outcome === "released") return `${who} has released ${what}`;
  if (outcome === "deleted") return `taken from ${who}, which did not release it; its command may still run`;
  return `${who} was asked, and has not released ${what} yet`;
}

/** Redrives or drops dead letters, except those that were tried again since the page was drawn. */
function letterAction(context: ActionContext, body: JsonFields, change: "redrive" | "purge"): Action {
  const folder = textIn(body, "store");
  const letters = lettersIn(body);
  const found = context.storeAt(folder);
  if (found === null) throw new HttpError(409, "The page is old: there is no such store now; nothing was done\n");
  const { name, store } = found;
  if (change === "purge") demandTyped(body, name);
  const run = async () => {
    let changed = 0;
    for (const { id, lastMs } of letters) {
      const now = await store.read("show", id);
      if (now?.state !== "dead" || now.lastMs !== lastMs) continue;
      if (await store.call("change", id, change, Date.now()) === null) changed++;
    }
    const rest = letters.length - changed;
    if (changed === 0) {
      throw new BatonError("NOT_FOUND", "The page is old: these dead letters have changed; nothing was done");
    }
    const done = `${countWithNoun(changed, "dead letter")} ${change === "redrive" ? "redriven" : "dropped"}`;
    return rest === 0 ? done : `${done}; ${rest} had changed meanwhile`;
  };
  const word = change === "redrive" ? "redrive" : "drop";
  return { what: `${word} ${countWithNoun(letters.length, "dead letter")} of store "${printable(name)}"`, run };
}

function lettersIn(body: JsonFields): { readonly id: string; readonly lastMs: number | null }[] {
  const letters = body["letters"];
  if (!Array.isArray(letters) || letters.length === 0 || letters.length > uiActionLettersMax) {
    throw new HttpError(400, `"letters" must be a list of 1 to ${uiActionLettersMax} dead letters\n`);
  }
  return letters.map((letter: unknown) => {
    const { lastMs = null, ...fields } = isJsonObject(letter) ? letter : {};
    if (lastMs !== null && typeof lastMs !== "number") throw new HttpError(400, `"lastMs" must be a number or null\n`);
    return { id: textIn(fields, "id"), lastMs };
  });
}

function drainAction(context: ActionContext, body: JsonFields): Action {
  const server = textIn(body, "server");
  const endpoint = textIn(body, "endpoint");
  const isUndone = body["undo"] === true;
  const path = new PubsubPath(context.root);
  const run = async () => {
    const zk = demandSession(context);
    if ((await readAnnouncement(zk, path.server(server)))?.endpoint !== endpoint) {
      throw new BatonError(
        "NOT_FOUND",
        `The page is old: server "${printable(server)}" is not at ${endpoint} now; nothing was done`,
      );
    }
    if (isUndone) {
      await setServerDraining(zk, path, server, false);
      return "it takes new topics again";
    }
    let moved = 0;
    const move = async (moves: readonly RequestedTopicMove[]) => {
      const done = await runMoves(context, zk, moves);
      moved += done.length;
      return done.length;
    };
    await drainServer(zk, path, server, { move });
    return `${countWithNoun(moved, "topic")} moved to other servers; it gets no new ones`;
  };
  const what = isUndone ? `end the drain of server "${printable(server)}"` : `drain server "${printable(server)}"`;
  return { what, run };
}

function moveAction(context: ActionContext, body: JsonFields): Action {
  const topic = textIn(body, "topic");
  const to = textIn(body, "to");
  const owner = textIn(body, "owner");
  const { epoch } = body;
  if (typeof epoch !== "number") throw new HttpError(400, `"epoch" must be a number\n`);
  const run = async () => {
    const moved = await runMoves(context, demandSession(context), [{ topic, from: owner, to, seen: { owner, epoch } }]);
    return moved.length === 1 ? `it is at "${printable(to)}"` : `it was at "${printable(to)}" already`;
  };
  return { what: `move topic "${printable(topic)}" to "${printable(to)}"`, run };
}

/** Moves topics and returns those that were moved. Throws if one could not be moved. */
async function runMoves(
  { root, clock, socket, signal }: ActionContext,
  zk: ZooKeeper,
  moves: readonly RequestedTopicMove[],
) {
  const done = await moveTopics(zk, new PubsubPath(root), moves, { clock, signal, socket: socket() });
  const bad = done.find(({ outcome }) => outcome !== "moved" && outcome !== "there");
  if (bad === undefined) return done.filter(({ outcome }) => outcome === "moved");
  const why = bad.why ?? "there is no such topic";
  if (bad.outcome === "unknown") {
    throw new BatonError("OUTCOME_UNKNOWN", `It is unknown whether "${bad.topic}" was moved: ${why}`);
  }
  throw new BatonError("NOT_FOUND", `Cannot move "${bad.topic}": ${why}`);
}

function demandSession({ zk }: ActionContext): ZooKeeper {
  const session = zk();
  if (session === null) {
    throw new BatonError(
      "UNREACHABLE",
      "there is no session with the coordination servers: no page is open, or they do not respond; nothing was done",
    );
  }
  return session;
}

/** Throws an HttpError unless the user has typed the name of the target to confirm the action. */
function demandTyped(body: JsonFields, name: string): void {
  if (body["typed"] !== name && body["typed"] !== shownText(name)) {
    throw new HttpError(400, `"typed" must be the name of the target\n`);
  }
}

const textLengthMax = 4096;

function textIn(fields: JsonFields, key: string, lengthMin = 1): string {
  const value = fields[key];
  if (typeof value === "string" && value.length >= lengthMin && value.length <= textLengthMax) return value;
  throw new HttpError(400, `"${key}" must be a text of ${lengthMin} to ${textLengthMax} characters\n`);
}

/** Reads the holder's full id. A prefix could also match a later holder. */
function holderIn(body: JsonFields): string {
  const id = textIn(body, "holder");
  if (/^[0-9a-z]{32}$/.test(id)) return id;
  throw new HttpError(400, `"holder" must be the whole id of a holder\n`);
}

function fieldsOf(body: Uint8Array): JsonFields {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (isJsonObject(value)) return value;
  } catch {
    // reported below
  }
  throw new HttpError(400, "The body must be a JSON object\n");
}
