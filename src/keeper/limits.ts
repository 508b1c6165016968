/** Everything that can grow in a keeper, and how far. */
import { frameBytesMaxDefault } from "../wire/jute/frame.ts";

export const keeperLimitsDefault = {
  /** Connections at the same time, over all listeners; one more is closed at once. */
  connectionsMax: 10_000,
  /** Bytes of one request. */
  frameBytesMax: frameBytesMaxDefault,
  /** Requests of one connection whose replies wait for the disk; past it nothing more is read from that connection. */
  outstandingMax: 1_000,
  /** Bytes written to one connection and not yet taken by it; past it nothing more that it asks for is looked at. */
  unsentBytesMax: 4 << 20,
  /** Bytes written to one connection and not yet taken by it; past it the connection is closed. */
  unsentBytesEnd: 64 << 20,
  nodesMax: 1_000_000,
  watchesMax: 1_000_000,
  sessionsMax: 100_000,
};

export type KeeperLimits = Readonly<typeof keeperLimitsDefault>;
