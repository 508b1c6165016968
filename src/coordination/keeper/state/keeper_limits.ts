/** The keeper's limits: everything that clients can make it store or hold. */
import { frameBytesMaxDefault } from "../../../base/wire/length_frame.ts";

export const keeperLimitsDefault = {
  /** Connections over all listeners. Beyond it the oldest connection without a session is closed, or the new one. */
  connectionsMax: 10_000,
  /**
   * Connections from one TCP address. Beyond it the oldest connection without a session is closed, or the new one when
   * it opens a session.
   */
  connectionsPerAddressMax: 2_000,
  /** Bytes of one request. */
  frameBytesMax: frameBytesMaxDefault,
  /** Requests of one connection whose replies wait for the disk. Beyond it the connection is not read. */
  outstandingRequestsMax: 1_000,
  /** Bytes of these requests. Beyond it the connection is not read. */
  outstandingBytesMax: 4 << 20,
  /** Bytes sent to one connection that the client has not read. Beyond it no request of the connection is handled. */
  unsentBytesMax: 1 << 20,
  /** The same; beyond it the connection is closed. */
  unsentBytesCloseMax: 64 << 20,
  /** The same for all connections. Beyond it those are closed that have had unread bytes for the longest time. */
  unsentBytesTotalMax: 128 << 20,
  /** Bytes of incomplete and waiting requests of all connections. Beyond it connections with the oldest are closed. */
  readBufferBytesTotalMax: 64 << 20,
  /** Bytes of data and names in the response to one multiRead. Beyond it the connection is closed. */
  multiReadBytesMax: 8 << 20,
  /** Operations of one multi or multiRead. */
  operationsPerMultiMax: 10_000,
  /** Watches in one setWatches request. */
  watchesPerRequestMax: 25_000,
  watchesMax: 1_000_000,
  /** Watches of one connection. */
  watchesPerConnectionMax: 200_000,
  nodesMax: 1_000_000,
  /** Bytes of the paths, data and ACLs of all nodes. They take about twice as much memory. */
  dataBytesMax: 512 << 20,
  /** Characters of the path of a node or a watch. */
  pathCharsMax: 4_096,
  /** Entries of one node's ACL. */
  aclEntriesMax: 1_000,
  /** Identities of one connection. */
  identitiesMax: 100,
  /** Ephemeral nodes of one session. They are deleted in one transaction, during which no other client is served. */
  ephemeralsPerSessionMax: 100_000,
  /** Sessions. Beyond it sessions without a connection or ephemeral nodes are ended, or no session is opened. */
  sessionsMax: 100_000,
};

export type KeeperLimits = Readonly<typeof keeperLimitsDefault>;
