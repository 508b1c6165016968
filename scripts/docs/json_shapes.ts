/**
 * Lists all JSON objects that baton prints, with their commands, schemas and golden files (test/fixtures/json). Tests
 * and docs/json.md use this list. Commands import only the types, so that no command loads a schema when it starts.
 */
import type * as z from "zod";
import * as cron from "../../commands/json_shapes/cron_shapes.ts";
import * as election from "../../commands/json_shapes/election_shapes.ts";
import * as job from "../../commands/json_shapes/job_shapes.ts";
import * as lock from "../../commands/json_shapes/lock_shapes.ts";
import * as machine from "../../commands/json_shapes/machine_shapes.ts";
import * as pubsub from "../../commands/json_shapes/pubsub_shapes.ts";
import * as retry from "../../commands/json_shapes/retry_shapes.ts";

export interface JsonShape {
  readonly from: string;
  readonly shape: z.ZodType;
  /** The names of golden files without extension. The documentation shows the first file. */
  readonly goldens: readonly string[];
}

const rows: readonly [from: string, shape: z.ZodType, ...goldens: [string, ...string[]]][] = [
  [
    "baton who NAME --json; with --watch one line per change",
    lock.whoJsonShape,
    "who",
    "who_free",
    "who_election",
    "who_barrier",
    "who_gate",
  ],
  ["baton ls --json; with --watch one line per change", lock.lsJsonShape, "ls", "ls_long"],
  ["baton history NAME --json", lock.historyJsonShape, "history"],
  ["baton explain NAME --json", lock.explainJsonShape, "explain"],
  ["baton cron check FILE --json", cron.cronCheckJsonShape, "cron_check"],
  ["baton cron next FILE --json", cron.cronNextJsonShape, "cron_next"],
  ["baton cron reset NAME --json", cron.cronResetJsonShape, "cron_reset"],
  ["baton cron forget NAME --json", cron.cronForgetJsonShape, "cron_forget"],
  ["baton break NAME --holder ID --json", lock.breakJsonShape, "break"],
  ["baton leader NAME --json", election.leaderJsonShape, "leader", "leader_none"],
  ["baton leader NAME --watch", election.leaderLineJsonShape, "leader_watch_leads", "leader_watch_vacant"],
  ["baton resign NAME --json", election.resignJsonShape, "resign"],
  ["baton barrier NAME --set|--lift|--wait --json", election.gateJsonShape, "gate", "gate_closed"],
  ["baton pool status COMPONENT --json", lock.poolStatusJsonShape, "pool_status"],
  ["baton check --json", job.checkJsonShape, "check", "check_lost"],
  ["--status-fd N, --status-file FILE", job.statusJsonShape, "status", "status_busy", "status_pool"],
  ["baton doctor --json", machine.doctorJsonShape, "doctor"],
  ["baton config show --json", machine.configJsonShape, "config_show"],
  ["baton version --json", machine.versionJsonShape, "version"],
  ["baton keeper verify --json", machine.keeperVerifyJsonShape, "keeper_verify"],
  ["baton pubsub server ls --json", pubsub.pubsubServersJsonShape, "pubsub_servers"],
  ["baton pubsub server move|drain|rebalance --json", pubsub.pubsubMovesJsonShape, "pubsub_moves", "pubsub_moves_kept"],
  ["baton pubsub server forget ID --accept-loss --json", pubsub.pubsubForgottenJsonShape, "pubsub_forgotten"],
  [
    "baton pubsub server restore --id ID --data-dir FOLDER --accept-loss --json",
    pubsub.pubsubRestoredJsonShape,
    "pubsub_restored",
  ],
  [
    "baton pubsub server forget-client TOPIC CLIENT --json",
    pubsub.pubsubClientForgottenJsonShape,
    "pubsub_client_forgotten",
  ],
  ["baton pubsub topic ls --json", pubsub.pubsubTopicListJsonShape, "pubsub_topic_list"],
  ["baton pubsub topic show TOPIC --json", pubsub.pubsubTopicShowJsonShape, "pubsub_topic_show"],
  ["baton pubsub topic delete TOPIC --json", pubsub.pubsubTopicDeletedJsonShape, "pubsub_topic_deleted"],
  [
    "baton pubsub topic repair TOPIC --accept-loss --json",
    pubsub.pubsubTopicRepairedJsonShape,
    "pubsub_topic_repaired",
  ],
  ["baton pubsub server verify --json", pubsub.pubsubVerifyJsonShape, "pubsub_verify"],
  ["baton publish TOPIC --json, baton pubsub client ID put TOPIC --json", pubsub.pubsubPutJsonShape, "pubsub_put"],
  [
    "baton subscribe TOPIC --json, baton pubsub client ID get|peek TOPIC --json, one line per message",
    pubsub.pubsubMessageJsonShape,
    "pubsub_message",
    "pubsub_message_bytes",
  ],
  ["baton pubsub client ID pending TOPIC --json", pubsub.pubsubPendingJsonShape, "pubsub_pending"],
  ["baton pubsub client ID info TOPIC --json", pubsub.pubsubInfoJsonShape, "pubsub_info"],
  ["baton pubsub client ID topics --json", pubsub.pubsubTopicsJsonShape, "pubsub_topics"],
  ["baton pubsub keygen [FILE] --json", machine.keygenJsonShape, "keygen", "keygen_printed"],
  ["baton retry-processor submit --json", retry.retrySubmitJsonShape, "retry_submit"],
  ["baton retry-processor ls --json, dlq ls --json", retry.retryListJsonShape, "retry_ls", "retry_dlq_ls"],
  ["baton retry-processor show ID --json", retry.retryShowJsonShape, "retry_show"],
  [
    "baton retry-processor retry|cancel|pause|resume --json, dlq redrive|purge --json",
    retry.retryChangesJsonShape,
    "retry_changes",
    "retry_changes_refused",
  ],
  ["baton retry-processor stats --json", retry.retryStatsJsonShape, "retry_stats"],
  ["baton retry-processor verify --json", retry.retryVerifyJsonShape, "retry_verify"],
  ["baton retry-processor explain --json", retry.retryExplainJsonShape, "retry_explain"],
  [
    "baton retry-processor dlq export, one line per message; --dead-letter file:PATH",
    retry.retryDeadLetterJsonShape,
    "retry_dead_letter",
  ],
];
export const allJsonShapes: readonly JsonShape[] = rows.map(([from, shape, ...goldens]) => ({ from, shape, goldens }));
