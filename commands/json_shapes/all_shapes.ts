/**
 * All JSON objects that baton prints: the schema, the command, and the golden files in test/fixtures/json. Tests and
 * docs/json.md use this table. Commands import the types only, so that no start loads a schema.
 */
import type * as z from "zod";
import * as cron from "./cron_shapes.ts";
import * as election from "./election_shapes.ts";
import * as job from "./job_shapes.ts";
import * as lock from "./lock_shapes.ts";
import * as machine from "./machine_shapes.ts";
import * as pubsub from "./pubsub_shapes.ts";
import * as retry from "./retry_shapes.ts";
import * as top from "./top_shapes.ts";

export interface JsonShape {
  /** The command line. */
  readonly from: string;
  readonly shape: z.ZodType;
  /** Names of golden files without extension; the documentation shows the first one. */
  readonly goldens: readonly string[];
}

const rows: readonly [from: string, shape: z.ZodType, ...goldens: [string, ...string[]]][] = [
  [
    "baton who NAME --json; with --watch one line per change",
    lock.whoShape,
    "who",
    "who_free",
    "who_election",
    "who_barrier",
    "who_gate",
  ],
  ["baton ls --json; with --watch one line per change", lock.lsShape, "ls", "ls_long"],
  ["baton history NAME --json", lock.historyShape, "history"],
  ["baton explain NAME --json", lock.explainShape, "explain"],
  ["baton cron check FILE --json", cron.cronCheckShape, "cron_check"],
  ["baton cron next FILE --json", cron.cronNextShape, "cron_next"],
  ["baton cron reset NAME --json", cron.cronResetShape, "cron_reset"],
  ["baton cron forget NAME --json", cron.cronForgetShape, "cron_forget"],
  ["baton top --json", top.topShape, "top"],
  ["baton break NAME --holder ID --json", lock.breakShape, "break"],
  ["baton leader NAME --json", election.leaderShape, "leader", "leader_none"],
  ["baton leader NAME --watch", election.leaderLineShape, "leader_watch_leads", "leader_watch_vacant"],
  ["baton resign NAME --json", election.resignShape, "resign"],
  ["baton barrier NAME --set|--lift|--wait --json", election.gateShape, "gate", "gate_closed"],
  ["baton pool status COMPONENT --json", lock.poolStatusShape, "pool_status"],
  ["baton check --json", job.checkShape, "check", "check_lost"],
  ["baton fence zk set|create|delete PATH --json", job.fenceShape, "fence_zk"],
  ["--status-fd N, --status-file FILE", job.statusShape, "status", "status_busy", "status_pool"],
  ["baton doctor --json", machine.doctorShape, "doctor"],
  ["baton config show --json", machine.configShape, "config_show"],
  ["baton version --json", machine.versionShape, "version"],
  ["baton keeper verify --json", machine.keeperVerifyShape, "keeper_verify"],
  ["baton pubsub server ls --json", pubsub.pubsubServersShape, "pubsub_servers"],
  ["baton pubsub server move|drain|rebalance --json", pubsub.pubsubMovesShape, "pubsub_moves", "pubsub_moves_kept"],
  ["baton pubsub server forget ID --accept-loss --json", pubsub.pubsubForgottenShape, "pubsub_forgotten"],
  [
    "baton pubsub server restore --id ID --data-dir FOLDER --accept-loss --json",
    pubsub.pubsubRestoredShape,
    "pubsub_restored",
  ],
  [
    "baton pubsub server forget-client TOPIC CLIENT --json",
    pubsub.pubsubClientForgottenShape,
    "pubsub_client_forgotten",
  ],
  ["baton pubsub topic ls --json", pubsub.pubsubTopicListShape, "pubsub_topic_list"],
  ["baton pubsub topic show TOPIC --json", pubsub.pubsubTopicShowShape, "pubsub_topic_show"],
  ["baton pubsub topic delete TOPIC --json", pubsub.pubsubTopicDeletedShape, "pubsub_topic_deleted"],
  ["baton pubsub topic repair TOPIC --accept-loss --json", pubsub.pubsubTopicRepairedShape, "pubsub_topic_repaired"],
  ["baton pubsub server verify --json", pubsub.pubsubVerifyShape, "pubsub_verify"],
  ["baton publish TOPIC --json, baton pubsub client ID put TOPIC --json", pubsub.pubsubPutShape, "pubsub_put"],
  [
    "baton subscribe TOPIC --json, baton pubsub client ID get|peek TOPIC --json, one line per message",
    pubsub.pubsubMessageShape,
    "pubsub_message",
    "pubsub_message_bytes",
  ],
  ["baton pubsub client ID pending TOPIC --json", pubsub.pubsubPendingShape, "pubsub_pending"],
  ["baton pubsub client ID info TOPIC --json", pubsub.pubsubInfoShape, "pubsub_info"],
  ["baton pubsub client ID topics --json", pubsub.pubsubTopicsShape, "pubsub_topics"],
  ["baton pubsub client ID bench TOPIC --json", pubsub.pubsubBenchShape, "pubsub_bench"],
  ["baton pubsub keygen [FILE] --json", machine.keygenShape, "keygen", "keygen_printed"],
  ["baton retry-processor submit --json", retry.retrySubmitShape, "retry_submit"],
  ["baton retry-processor ls --json, dlq ls --json", retry.retryListShape, "retry_ls", "retry_dlq_ls"],
  ["baton retry-processor show ID --json", retry.retryShowShape, "retry_show"],
  [
    "baton retry-processor retry|cancel|pause|resume --json, dlq redrive|purge --json",
    retry.retryChangesShape,
    "retry_changes",
    "retry_changes_refused",
  ],
  ["baton retry-processor stats --json", retry.retryStatsShape, "retry_stats"],
  ["baton retry-processor verify --json", retry.retryVerifyShape, "retry_verify"],
  ["baton retry-processor explain --json", retry.retryExplainShape, "retry_explain"],
  [
    "baton retry-processor dlq export, one line per message; --dead-letter file:PATH",
    retry.retryDeadLetterShape,
    "retry_dead_letter",
  ],
];
export const allShapes: readonly JsonShape[] = rows.map(([from, shape, ...goldens]) => ({ from, shape, goldens }));
