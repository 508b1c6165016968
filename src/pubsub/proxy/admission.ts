/** Counts requests in flight and refuses requests above a limit. Pure. */
import type { ProxyLimits } from "./proxy_limits.ts";
import type { ProxyClient } from "./proxy_request.ts";

export class RequestAdmission {
  readonly #limits: ProxyLimits;
  readonly #topics = new Map<string, number>();
  #requests = 0;
  #bytes = 0;

  constructor(limits: ProxyLimits) {
    this.#limits = limits;
  }

  /** Requests in flight. */
  get requests(): number {
    return this.#requests;
  }

  /** Bytes in the frames of these requests. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Admits a request. Returns null, or a sentence that says which limit is reached. */
  admit(client: ProxyClient, topic: string, bytes: number): string | null {
    const limits = this.#limits;
    const ofTopic = this.#topics.get(topic) ?? 0;
    const over = (what: string, limit: number) =>
      `Not now: ${what} has ${limit} requests in flight, which is the limit`;
    if (client.requests >= limits.requestsPerClient) return over("this connection", limits.requestsPerClient);
    if (ofTopic >= limits.requestsPerTopic) return over(`the topic ${JSON.stringify(topic)}`, limits.requestsPerTopic);
    if (this.#requests >= limits.requestsInAll) return over("this proxy", limits.requestsInAll);
    // A single message is always admitted: a limit below the largest body would refuse it forever.
    const isOver = (present: number, limit: number) => present > 0 && present + bytes > limit;
    if (isOver(client.bytes, limits.bytesPerClient)) {
      return `Not now: this connection has ${client.bytes} bytes in flight`;
    }
    if (isOver(this.#bytes, limits.bytesInAll)) return `Not now: this proxy has ${this.#bytes} bytes in flight`;
    client.requests++;
    client.bytes += bytes;
    this.#topics.set(topic, ofTopic + 1);
    this.#requests++;
    this.#bytes += bytes;
    return null;
  }

  /** Releases what `admit` counted. */
  release(client: ProxyClient, topic: string, bytes: number): void {
    client.requests--;
    client.bytes -= bytes;
    const ofTopic = (this.#topics.get(topic) ?? 1) - 1;
    if (ofTopic > 0) this.#topics.set(topic, ofTopic);
    else this.#topics.delete(topic);
    this.#requests--;
    this.#bytes -= bytes;
  }
}
