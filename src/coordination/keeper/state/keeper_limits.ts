/** The limits of what clients can make the keeper store or hold in memory. */
import { juteFrameBytesMaxDefault } from "../../../base/wire/length_frame.ts";

export const keeperLimitsDefault = {
  /**
   * The most connections at all listeners. Above this number, the keeper closes the oldest connection without a
   * session; if all have sessions, the new one.
   */
  connectionsMax: 10_000,
  /**
   * The most connections from one TCP address. Above this number, the keeper closes the oldest connection without a
   * session. If all connections have sessions, the keeper closes the next connection that opens a session.
   */
  connectionsPerAddressMax: 2_000,
  /** The longest request, in bytes. */
  frameBytesMax: juteFrameBytesMaxDefault,
  /**
   * The most requests of one connection whose replies wait for the disk. At this number, the keeper stops reading from
   * the connection.
   */
  outstandingRequestsMax: 1_000,
  /**
   * The most bytes of requests of one connection whose replies wait for the disk. At this number, the keeper stops
   * reading from the connection.
   */
  outstandingBytesMax: 4 << 20,
  /**
   * The bytes that were sent to one client and not read by it. Above this number, the keeper handles no further request
   * of the client.
   */
  unsentBytesMax: 1 << 20,
  /** The bytes that were sent to one client and not read by it. Above this number, the keeper closes the connection. */
  unsentBytesCloseMax: 64 << 20,
  /**
   * The unread bytes of all clients together. Above this number, the keeper closes the connections that have had unread
   * bytes for the longest time.
   */
  unsentBytesTotalMax: 128 << 20,
  /**
   * The bytes of unhandled requests of all clients together. Above this number, the keeper closes the connections with
   * the oldest unhandled requests.
   */
  readBufferBytesTotalMax: 64 << 20,
  /**
   * The bytes of data and names in the response to one multiRead. Above this number, the keeper closes the connection.
   */
  multiReadBytesMax: 8 << 20,
  /** The most operations of one multi or multiRead. */
  operationsPerMultiMax: 10_000,
  /** The most watches in one setWatches request. */
  watchesPerRequestMax: 25_000,
  watchesMax: 1_000_000,
  /** The most watches of one connection. */
  watchesPerConnectionMax: 200_000,
  nodesMax: 1_000_000,
  /** The most bytes of the paths, data and ACLs of all nodes. The nodes take about twice as much memory. */
  dataBytesMax: 512 << 20,
  /** The most characters in the path of a node or a watch. */
  pathCharsMax: 4_096,
  /** The most entries in one node's ACL. */
  aclEntriesMax: 1_000,
  /** The most identities of one connection. */
  identitiesMax: 100,
  /**
   * The most ephemeral nodes of one session. They are deleted in one transaction, during which no other client is
   * served.
   */
  ephemeralsPerSessionMax: 100_000,
  /**
   * The most sessions. At this number, the keeper ends sessions that have neither a connection nor ephemeral nodes; if
   * there are none, it opens no new session.
   */
  sessionsMax: 100_000,
};

export type KeeperLimits = Readonly<typeof keeperLimitsDefault>;

/** The default times of a keeper and of `baton keeper`, in milliseconds. */
export const keeperTimingDefaults = {
  tickTimeMs: 500,
  sessionTimeoutMinMs: 1_000,
  sessionTimeoutMaxMs: 60_000,
  containerCheckMs: 60_000,
};
