/** The checks of `baton doctor` for locks, elections, schedules and sessions. */
import { flagSetting, type SettingTable } from "../../src/base/config/setting.ts";
import { choiceType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { type Finding, makeFinding } from "../../src/base/rows/finding.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { diagnoseLockQueues } from "../../src/coordination/admin/diagnose.ts";
import { diagnoseInteropLocks } from "../../src/coordination/admin/list_interop.ts";
import { longSessionTimeoutWarning } from "../../src/coordination/connect/command_session.ts";
import { interopRecipes } from "../../src/coordination/nodes/interop_node_names.ts";
import { sessionTimeoutMsMin } from "../../src/coordination/nodes/session_waits.ts";
import { diagnoseTickSchedules } from "../../src/coordination/tick/diagnose_schedules.ts";
import { keeperSettings } from "../../src/coordination/settings/command_settings.ts";
import { isSessionResumable } from "../../src/protocols/zookeeper/handshake.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { requireOneInteropPath } from "../name_arguments.ts";
import { defineDoctor, withoutFlag } from "../product.ts";
import { certificateFindings, ownKeeperFindings } from "./machine_findings.ts";

const settings = {
  recipe: flagSetting("--recipe", choiceType(interopRecipes), {
    help: "check the locks of Curator or kazoo programs below the node PATH, or the lock PATH itself, instead of " +
      "baton's locks",
  }),
  keeperTlsCert: withoutFlag(keeperSettings.keeperTlsCert),
  keeperTlsCa: withoutFlag(keeperSettings.keeperTlsCa),
} satisfies SettingTable;

export const coordinationDoctor = defineDoctor({
  settings,
  inspection(names, { recipe, root, sessionTimeout, tlsCa, tlsCert, keeperTlsCert, keeperTlsCa }) {
    const path = recipe === undefined ? null : requireOneInteropPath("doctor", names, recipe);
    if (path === null && names.length > 0) {
      throw new BatonError("USAGE", `baton doctor takes no names, not "${names.join(" ")}"`);
    }
    return async (zk, place) => {
      const own = [
        ...timeoutFindings(zk.session.timeoutMs, sessionTimeout, place.servers.startsWith("unix:")),
        ...resumeFindings(zk),
        ...certificateFindings([tlsCa, tlsCert, keeperTlsCert, keeperTlsCa], Date.now()),
        ...ownKeeperFindings(place),
        ...(path === null ? await diagnoseTickSchedules(zk, { root }) : []),
      ];
      const diagnosis = path === null || recipe === undefined
        ? await diagnoseLockQueues(zk, { root })
        : await diagnoseInteropLocks(zk, path, recipe);
      if (diagnosis === null) throw new BatonError("NOT_FOUND", `Node "${path}" does not exist`);
      const { locks, elections, findings } = diagnosis;
      return { counts: path === null ? { locks, elections } : { locks }, findings: [...own, ...findings] };
    };
  },
});

function timeoutFindings(grantedMs: number, askedMs: number, isStandalone: boolean): Finding[] {
  if (grantedMs < sessionTimeoutMsMin) {
    const what = `the servers grant a session timeout of ${formatDuration(grantedMs)}, but a lock needs at least ` +
      `${formatDuration(sessionTimeoutMsMin)}: baton lock fails (78)`;
    const action = "let the servers grant more: maxSessionTimeout";
    return [makeFinding("session-timeout-too-short", { where: "session", what, action })];
  }
  const warning = longSessionTimeoutWarning({ askedMs, grantedMs, isStandalone });
  if (warning === null) return [];
  const what = warning.replace(/^baton: /, "").trimEnd();
  return [
    makeFinding("session-timeout", { where: "session", what, action: "set --session-timeout as the servers do" }),
  ];
}

function resumeFindings({ session }: ZooKeeper): Finding[] {
  if (isSessionResumable(session)) return [];
  const what =
    "the servers cannot resume a session, as ClickHouse Keeper (issue 116690): a lock is lost with the connection, " +
    "the command is stopped, and the lock is free when the session has expired";
  const action = "use ZooKeeper or baton keeper";
  return [makeFinding("session-not-resumable", { where: "session", what, action })];
}
