/** The parts of a server that its owned topics share: its identity, its store and its connections. */
import type { Clock } from "../../base/support/clock.ts";
import type { OwnedStore } from "../store/operations/owned_store.ts";
import type { ProcessAnnouncement } from "./announcements.ts";
import type { OwnershipLease } from "./ownership_lease.ts";
import type { TopicNodes } from "./topic_nodes.ts";
import type { ServerAddress, TopicTransferChannel } from "./transfer_channel.ts";

/** Values that all topics of a session share. */
export interface OwnershipContext {
  /** This server's id. */
  readonly id: string;
  readonly store: OwnedStore;
  readonly channel: TopicTransferChannel;
  readonly clock: Clock;
  /** Aborts when the session ends. */
  readonly signal: AbortSignal;
  readonly lease: OwnershipLease;
  /** The id of the store that this server shares with others; null if only this server uses its store. */
  readonly sharedStore: string | null;
  /** Returns the address of a server, or null if it is not running. */
  addressOf(id: string): Promise<(ServerAddress & Pick<ProcessAnnouncement, "store">) | null>;
  readonly nodes: TopicNodes;
  /** The most milliseconds that a handoff may take; then the owner takes the topic back. */
  readonly handoffMs: number;
  /** Reports a problem for the operator. */
  onProblem(problem: unknown): void;
}
