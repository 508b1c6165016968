/** Limits of a proxy for requests in flight. A request above a limit gets the response OVERLOADED immediately. */

export interface ProxyLimits {
  readonly requestsPerClient: number;
  readonly requestsPerTopic: number;
  readonly requestsInAll: number;
  /** The most bytes in the frames of requests in flight: of one connection, and in total. */
  readonly bytesPerClient: number;
  readonly bytesInAll: number;
  /**
   * The most requests in flight at one server, not counting gets that may wait there for a message. Further requests
   * wait in a fair queue. The smaller the limit, the less a client with few requests waits for a client with many.
   */
  readonly windowPerServer: number;
  /** The same limit in bytes: the proxy sends another request only while fewer bytes than this are in flight. */
  readonly windowBytesPerServer: number;
}

export const proxyLimitsDefault: ProxyLimits = {
  requestsPerClient: 1024,
  requestsPerTopic: 16_384,
  requestsInAll: 65_536,
  bytesPerClient: 192 << 20,
  bytesInAll: 512 << 20,
  windowPerServer: 1024,
  windowBytesPerServer: 16 << 20,
};

/** How long a request without `deadline-ms` is tried, in milliseconds, in addition to the time that a get may wait. */
export const proxyRequestTimeoutMsDefault = 5000;
export const proxyRequestTimeoutMsMax = 3_600_000;
