/** Everything that can grow in a keeper, and how far. */
import { frameBytesMaxDefault } from "../../wire/jute/jute_frame.ts";

export const keeperLimitsDefault = {
  /** Connections at the same time, over all listeners; for one more the oldest without a session goes, or else itself. */
  connectionsMax: 10_000,
  /** Connections from one address over TCP; for one more the oldest without a session goes, or else the new one when it asks for one. */
  connectionsPerAddressMax: 2_000,
  /** Bytes of one request. */
  frameBytesMax: frameBytesMaxDefault,
  /** Requests of one connection whose replies wait for the disk; past it nothing more is read from that connection. */
  outstandingRequestsMax: 1_000,
  /** Bytes of these requests, likewise. */
  outstandingBytesMax: 4 << 20,
  /** Bytes written to one connection and not yet taken by it; past it nothing more that it asks for is looked at. */
  unsentBytesMax: 1 << 20,
  /** Bytes written to one connection and not yet taken by it; past it the connection is closed. */
  unsentBytesCloseMax: 64 << 20,
  /** The same of all connections; past it those are closed that have not taken all of it for longest. */
  unsentBytesTotalMax: 128 << 20,
  /** Bytes of requests of all connections that are not whole or wait for their turn; past it the oldest such are closed. */
  readBufferBytesTotalMax: 64 << 20,
  /** Bytes of data and names that one multiRead may ask for; past it the connection is closed. */
  multiReadBytesMax: 8 << 20,
  /** Operations of one multi or multiRead. */
  operationsPerMultiMax: 10_000,
  /** Watches that one request sets again. */
  watchesPerRequestMax: 25_000,
  watchesMax: 1_000_000,
  /** Watches of one connection. */
  watchesPerConnectionMax: 200_000,
  nodesMax: 1_000_000,
  /** Bytes of the paths, data and ACLs of all nodes: they are in memory, and that is about twice as much. */
  dataBytesMax: 512 << 20,
  /** Characters of a path that is created or watched. */
  pathCharsMax: 4_096,
  /** Entries of one node's ACL. */
  aclEntriesMax: 1_000,
  /** Identities of one connection. */
  identitiesMax: 100,
  /** Ephemeral nodes of one session: all of them go in one transaction, in which nobody else has a turn. */
  ephemeralsPerSessionMax: 100_000,
  /** Sessions; for one more some go that have no connection and no ephemerals, or else it is not opened. */
  sessionsMax: 100_000,
};

export type KeeperLimits = Readonly<typeof keeperLimitsDefault>;
