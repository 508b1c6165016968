/** How much a server holds for others, and how long. */

/** A get is kept back for so long at most, in milliseconds; its client asks again. */
export const waitMsMax = 60_000;
/** A request that cannot be let in yet is kept for so long when it does not say how long somebody waits for it. */
export const admissionMs = 10_000;
/** Requests that wait to be let in, of all topics together. */
export const admissionsMax = 4096;
/** Topics on their way out, and in, at the same time. */
export const handoffsMax = 32;
export const incomingTransfersMax = 32;
/** Topics that are looked at for operators at the same time. */
export const manageRequestsMax = 32;
/** Pieces of a topic that are sent before the receiver has taken the first of them. */
export const piecesInFlight = 4;
/** A transfer of which the other side says nothing for so long is given up, in milliseconds. */
export const transferIdleMs = 10_000;
/** How often proxies are told what the server serves, in milliseconds. */
export const reportEveryMs = 5000;
/** Topics that one report names; all of them are in the tree. */
export const reportTopicsMax = 10_000;
/** Responses that wait for one peer to read them: as many as can be under way. */
export const responsesWaitingMax = 100_000;
export const responseBytesWaitingMax = 256 << 20;
