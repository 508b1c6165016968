/**
 * All JSON objects that baton prints: the schema, the command, and the golden files in test/fixtures/json. Tests and docs/json.md use
 * this table. Commands import the types only, so that no start loads a schema.
 */
import type * as z from "zod";
import { gateShape, leaderLineShape, leaderShape, resignShape } from "./election_shapes.ts";
import { checkShape, fenceShape, statusShape } from "./job_shapes.ts";
import { breakShape, lsShape, whoShape } from "./lock_shapes.ts";
import { configShape, doctorShape, keeperVerifyShape, keygenShape } from "./machine_shapes.ts";
import { poolStatusShape } from "./pool_shapes.ts";
import {
  pubsubBenchShape,
  pubsubInfoShape,
  pubsubMessageShape,
  pubsubPendingShape,
  pubsubTopicsShape,
} from "./pubsub_client_shapes.ts";
import {
  pubsubForgottenShape,
  pubsubMovesShape,
  pubsubRestoredShape,
  pubsubServersShape,
  pubsubVerifyShape,
} from "./pubsub_server_shapes.ts";
import {
  pubsubClientForgottenShape,
  pubsubTopicDeletedShape,
  pubsubTopicListShape,
  pubsubTopicRepairedShape,
  pubsubTopicShowShape,
} from "./pubsub_topic_shapes.ts";
import {
  retryChangesShape,
  retryDeadLetterShape,
  retryExplainShape,
  retryListShape,
  retryShowShape,
  retryStatsShape,
  retrySubmitShape,
  retryVerifyShape,
} from "./retry_shapes.ts";

export interface JsonShape {
  /** The command line. */
  readonly from: string;
  readonly shape: z.ZodType;
  /** Names of golden files without extension; the documentation shows the first one. */
  readonly goldens: readonly [string, ...string[]];
}

export const allShapes: readonly JsonShape[] = [
  {
    from: "baton who NAME --json",
    shape: whoShape,
    goldens: ["who", "who_free", "who_election", "who_barrier", "who_gate"],
  },
  { from: "baton ls --json", shape: lsShape, goldens: ["ls"] },
  { from: "baton break NAME --holder ID --json", shape: breakShape, goldens: ["break"] },
  { from: "baton leader NAME --json", shape: leaderShape, goldens: ["leader", "leader_none"] },
  {
    from: "baton leader NAME --watch",
    shape: leaderLineShape,
    goldens: ["leader_watch_leads", "leader_watch_vacant"],
  },
  { from: "baton resign NAME --json", shape: resignShape, goldens: ["resign"] },
  { from: "baton barrier NAME --set|--lift|--wait --json", shape: gateShape, goldens: ["gate", "gate_closed"] },
  { from: "baton pool status COMPONENT --json", shape: poolStatusShape, goldens: ["pool_status"] },
  { from: "baton check --json", shape: checkShape, goldens: ["check", "check_lost"] },
  { from: "baton fence zk set|create|delete PATH --json", shape: fenceShape, goldens: ["fence_zk"] },
  {
    from: "--status-fd N, --status-file FILE",
    shape: statusShape,
    goldens: ["status", "status_busy", "status_pool"],
  },
  { from: "baton doctor --json", shape: doctorShape, goldens: ["doctor"] },
  { from: "baton config show --json", shape: configShape, goldens: ["config_show"] },
  { from: "baton keeper verify --json", shape: keeperVerifyShape, goldens: ["keeper_verify"] },
  { from: "baton pubsub server ls --json", shape: pubsubServersShape, goldens: ["pubsub_servers"] },
  {
    from: "baton pubsub server move|drain|rebalance --json",
    shape: pubsubMovesShape,
    goldens: ["pubsub_moves", "pubsub_moves_kept"],
  },
  {
    from: "baton pubsub server forget ID --accept-loss --json",
    shape: pubsubForgottenShape,
    goldens: ["pubsub_forgotten"],
  },
  {
    from: "baton pubsub server restore --id ID --data-dir FOLDER --accept-loss --json",
    shape: pubsubRestoredShape,
    goldens: ["pubsub_restored"],
  },
  {
    from: "baton pubsub server forget-client TOPIC CLIENT --json",
    shape: pubsubClientForgottenShape,
    goldens: ["pubsub_client_forgotten"],
  },
  { from: "baton pubsub topic ls --json", shape: pubsubTopicListShape, goldens: ["pubsub_topic_list"] },
  { from: "baton pubsub topic show TOPIC --json", shape: pubsubTopicShowShape, goldens: ["pubsub_topic_show"] },
  { from: "baton pubsub topic delete TOPIC --json", shape: pubsubTopicDeletedShape, goldens: ["pubsub_topic_deleted"] },
  {
    from: "baton pubsub topic repair TOPIC --accept-loss --json",
    shape: pubsubTopicRepairedShape,
    goldens: ["pubsub_topic_repaired"],
  },
  { from: "baton pubsub server verify --json", shape: pubsubVerifyShape, goldens: ["pubsub_verify"] },
  {
    from: "baton pubsub client ID get|peek TOPIC --json, one line per message",
    shape: pubsubMessageShape,
    goldens: ["pubsub_message", "pubsub_message_bytes"],
  },
  { from: "baton pubsub client ID pending TOPIC --json", shape: pubsubPendingShape, goldens: ["pubsub_pending"] },
  { from: "baton pubsub client ID info TOPIC --json", shape: pubsubInfoShape, goldens: ["pubsub_info"] },
  { from: "baton pubsub client ID topics --json", shape: pubsubTopicsShape, goldens: ["pubsub_topics"] },
  { from: "baton pubsub client ID bench TOPIC --json", shape: pubsubBenchShape, goldens: ["pubsub_bench"] },
  { from: "baton pubsub keygen [FILE] --json", shape: keygenShape, goldens: ["keygen", "keygen_printed"] },
  { from: "baton retry-processor submit --json", shape: retrySubmitShape, goldens: ["retry_submit"] },
  {
    from: "baton retry-processor ls --json, dlq ls --json",
    shape: retryListShape,
    goldens: ["retry_ls", "retry_dlq_ls"],
  },
  { from: "baton retry-processor show ID --json", shape: retryShowShape, goldens: ["retry_show"] },
  {
    from: "baton retry-processor retry|cancel|pause|resume --json, dlq redrive|purge --json",
    shape: retryChangesShape,
    goldens: ["retry_changes", "retry_changes_refused"],
  },
  { from: "baton retry-processor stats --json", shape: retryStatsShape, goldens: ["retry_stats"] },
  { from: "baton retry-processor verify --json", shape: retryVerifyShape, goldens: ["retry_verify"] },
  { from: "baton retry-processor explain --json", shape: retryExplainShape, goldens: ["retry_explain"] },
  {
    from: "baton retry-processor dlq export, one line per message; --dead-letter file:PATH",
    shape: retryDeadLetterShape,
    goldens: ["retry_dead_letter"],
  },
];
