/** The keeper's limits of what clients can make it store or hold in memory. */
import { juteFrameBytesMaxDefault } from "../../../base/wire/length_frame.ts";

export const keeperLimitsDefault = {
  /**
   * Connections at all listeners. Above it, the keeper closes the oldest connection without a session, or the new one.
   */
  connectionsMax: 10_000,
  /**
   * Connections from one TCP address. Above it, the keeper closes the oldest connection without a session, or the new
   * one when it opens a session.
   */
  connectionsPerAddressMax: 2_000,
  /** Bytes of one request. */
  frameBytesMax: juteFrameBytesMaxDefault,
  /** Requests of one connection whose replies wait for the disk. Above it, the keeper stops reading the connection. */
  outstandingRequestsMax: 1_000,
  /** The bytes of these requests. Above it, the keeper stops reading the connection. */
  outstandingBytesMax: 4 << 20,
  /** Bytes sent to one client that it has not read. Above it, the keeper handles no further request of the client. */
  unsentBytesMax: 1 << 20,
  /** Bytes sent to one client that it has not read. Above it, the keeper closes the connection. */
  unsentBytesCloseMax: 64 << 20,
  /**
   * Unread bytes of all clients together. Above it, the keeper closes the connections that have had some for the
   * longest time.
   */
  unsentBytesTotalMax: 128 << 20,
  /**
   * Bytes of unhandled requests of all clients together. Above it, the keeper closes the connections with the oldest
   * ones.
   */
  readBufferBytesTotalMax: 64 << 20,
  /** Bytes of data and names in the response to one multiRead. Above it, the keeper closes the connection. */
  multiReadBytesMax: 8 << 20,
  /** Operations of one multi or multiRead. */
  operationsPerMultiMax: 10_000,
  /** Watches in one setWatches request. */
  watchesPerRequestMax: 25_000,
  watchesMax: 1_000_000,
  /** Watches of one connection. */
  watchesPerConnectionMax: 200_000,
  nodesMax: 1_000_000,
  /** Bytes of the paths, data and ACLs of all nodes, which take about twice as much memory. */
  dataBytesMax: 512 << 20,
  /** Characters of the path of a node or a watch. */
  pathCharsMax: 4_096,
  /** Entries of one node's ACL. */
  aclEntriesMax: 1_000,
  /** Identities of one connection. */
  identitiesMax: 100,
  /** Ephemeral nodes of one session. They are deleted in one transaction, during which no other client is served. */
  ephemeralsPerSessionMax: 100_000,
  /**
   * Sessions. Above it, the keeper ends sessions that have neither a connection nor ephemeral nodes, or opens no new
   * session.
   */
  sessionsMax: 100_000,
};

export type KeeperLimits = Readonly<typeof keeperLimitsDefault>;
