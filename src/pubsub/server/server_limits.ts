/** Limits of a server: how much it holds for others, and how long. */

/** Longest time that a get is held, in milliseconds; then its client asks again. */
export const heldGetMsMax = 60_000;
/** How long a request may wait for admission if it has no deadline, in milliseconds. */
export const requestAdmissionMs = 10_000;
/** Requests that wait for admission, of all topics together. */
export const pendingAdmissionsMax = 4096;
/** Topics that are handed off, and received, at the same time. */
export const topicHandoffsMax = 32;
export const incomingTransfersMax = 32;
/** MANAGE requests in progress. */
export const manageTopicRequestsMax = 32;
/** Pieces of a topic in flight before the receiver has confirmed the first of them. */
export const transferPiecesInFlight = 4;
/** A transfer is aborted if the other side is silent for this long, in milliseconds. */
export const transferIdleMs = 10_000;
/** How often reports are sent to proxies, in milliseconds. */
export const proxyReportEveryMs = 5000;
/** Topics named in one report; the tree has all of them. */
export const proxyReportTopicsMax = 10_000;
/** Responses queued for one peer: as many as requests can be in flight. */
export const responsesWaitingMax = 100_000;
export const responseBytesWaitingMax = 256 << 20;
