/** The connections of a proxy to servers, each made when it is first needed, and given up when its server is gone. */
import type { Announcement } from "../ownership/announcements.ts";
import type { ServerLink } from "./server_link.ts";

export class ServerLinks implements Iterable<ServerLink> {
  readonly #byEndpoint = new Map<string, ServerLink>();
  readonly #make: (id: string, endpoint: string) => ServerLink;

  constructor(make: (id: string, endpoint: string) => ServerLink) {
    this.#make = make;
  }

  get(id: string, endpoint: string): ServerLink {
    let link = this.#byEndpoint.get(endpoint);
    if (link === undefined) this.#byEndpoint.set(endpoint, link = this.#make(id, endpoint));
    return link;
  }

  /**
   * Gives up links to servers that are not there any more and owe no answer, and returns those whose waiting requests have
   * to go elsewhere. A server that has only lost its session may still answer what it has.
   */
  keepOnly(servers: ReadonlyMap<string, Announcement>): ServerLink[] {
    const there = new Set(Array.from(servers.values(), ({ endpoint }) => endpoint));
    const gone = [...this.#byEndpoint.values()].filter(({ endpoint }) => !there.has(endpoint));
    for (const link of gone) {
      if (!link.isIdle) continue;
      this.#byEndpoint.delete(link.endpoint);
      void link.close();
    }
    return gone.filter((link) => !link.isIdle);
  }

  [Symbol.iterator](): Iterator<ServerLink> {
    return this.#byEndpoint.values();
  }

  async close(): Promise<void> {
    const links = [...this.#byEndpoint.values()];
    this.#byEndpoint.clear();
    await Promise.all(links.map((link) => link.close()));
  }
}
