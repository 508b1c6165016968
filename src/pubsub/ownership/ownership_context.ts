/** The parts of a server that all its owned topics use: its ID, its store and its connections. */
import type { Clock } from "../../base/support/clock.ts";
import type { OwnedStore } from "../store/operations/owned_store.ts";
import type { ProcessAnnouncement } from "./process_announcement.ts";
import type { OwnershipLease } from "./ownership_lease.ts";
import type { TopicNodes } from "./topic_nodes.ts";
import type { ServerAddress, TopicTransferChannel } from "./transfer_channel.ts";

export interface OwnershipContext {
  readonly id: string;
  readonly store: OwnedStore;
  readonly channel: TopicTransferChannel;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly lease: OwnershipLease;
  /** The ID of the store that this server shares with other servers; null if only this server uses its store. */
  readonly sharedStore: string | null;
  /** Returns the address of a server, or null if it is not running. */
  addressOf(id: string): Promise<(ServerAddress & Pick<ProcessAnnouncement, "store">) | null>;
  readonly nodes: TopicNodes;
  /** How long a handoff may take, in milliseconds. After that, the owner takes back the topic. */
  readonly handoffMs: number;
  onProblem(problem: unknown): void;
}
