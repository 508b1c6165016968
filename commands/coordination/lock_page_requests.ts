/**
 * Handles the requests of the page about locks and elections. The request of an action names the holder that the page
 * showed.
 */
import type { JsonFields } from "../../src/base/support/json_fields.ts";
import { BatonError } from "../../src/base/errors.ts";
import { requireTextField } from "../../src/base/http/body_fields.ts";
import { HttpError } from "../../src/base/http/http_error.ts";
import { printable } from "../../src/base/support/text.ts";
import { readHistoryReport } from "../../src/coordination/history/history_report.ts";
import { scheduleRunRow } from "../../src/coordination/view/schedule_rows.ts";
import { resign } from "../../src/coordination/election/campaign.ts";
import { breakLock, type BrokenLock } from "../../src/coordination/lock/break_lock.ts";
import { lockStatus } from "../../src/coordination/lock/lock_status.ts";
import { nameOfHolder } from "../../src/coordination/nodes/holder_info.ts";
import { electionPath, type LockPath, lockPath } from "../../src/coordination/nodes/node_paths.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { PageAnswer, PageContext, ReadUiActionRequest, UiPageRequests } from "../product.ts";

/** How long to wait until a holder has released its lock, in milliseconds. */
const releaseMsMax = 10_000;
const recordsMax = 100;

export function coordinationPageRequests(root: string): UiPageRequests {
  return {
    answers: { "/history": historyAnswer(root) },
    actions: { break: breakAction(root), resign: resignAction(root) },
  };
}

/** Answers with the newest records of a history. */
const historyAnswer = (root: string): PageAnswer => async (query, { zk }) => {
  const kind = query.get("kind");
  const name = query.get("name") ?? "";
  if ((kind !== "lock" && kind !== "election") || name === "") {
    throw new HttpError(400, `"kind" must be lock or election, and "name" a name\n`);
  }
  const { records } = await readHistoryReport(zk(), name, { kind, root });
  return records.slice(-recordsMax).map(scheduleRunRow);
};

const breakAction = (root: string): ReadUiActionRequest => (body, context) => {
  const name = requireTextField(body, "name");
  const holder = holderIn(body);
  const token = requireTextField(body, "token");
  const force = body["force"] === true;
  const path = lockPath(name, root);
  return {
    what: `${force ? "take" : "break"} lock "${printable(name)}"`,
    ...(force ? { mustType: name } : {}),
    async run() {
      const zk = context.zk();
      await demandHolder(zk, name, { path, holder, token });
      return brokenText(await breakLock(zk, name, holder, { ...breakOptions(body, context), path, force }), "it");
    },
  };
};

const resignAction = (root: string): ReadUiActionRequest => (body, context) => {
  const name = requireTextField(body, "name");
  const leader = holderIn(body);
  const token = requireTextField(body, "token");
  const path = electionPath(name, root);
  return {
    what: `ask the leader of "${printable(name)}" to step down`,
    async run() {
      const zk = context.zk();
      await demandHolder(zk, name, { path, holder: leader, token });
      return brokenText(await resign(zk, name, { ...breakOptions(body, context), root, leader }), "leadership");
    },
  };
};

function breakOptions(body: JsonFields, { by, clock, signal }: PageContext & { readonly by: string }) {
  const reason = body["reason"] === undefined ? "" : requireTextField(body, "reason", 0);
  return { clock, signal, waitMs: releaseMsMax, revocation: { by, reason } };
}

/** Throws NOT_FOUND if the lock was granted to another holder after the page was drawn. */
async function demandHolder(
  zk: ZooKeeper,
  name: string,
  { path, holder, token }: { readonly path: LockPath; readonly holder: string; readonly token: string },
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

/**
 * Returns the whole ID of the holder in a request. A prefix is not enough, because it could also match a later holder.
 */
function holderIn(body: JsonFields): string {
  const id = requireTextField(body, "holder");
  if (/^[0-9a-z]{32}$/.test(id)) return id;
  throw new HttpError(400, `"holder" must be the whole id of a holder\n`);
}
