/**
 * Whether the coordination service has lost its tree while this proxy ran, as one does whose data directory was emptied. Topics
 * that stood in it are no new ones: they are their servers', who make their nodes again before they announce themselves.
 * Until all that were there have done so, nobody can say which topic is new. Pure: it is told what was read.
 */
import type { AnnouncedServers } from "../ownership/server_list.ts";

export class ResetDetector {
  /** Tells the tree from any other; null: none was read yet. */
  #tree: string | null = null;
  /** Servers that were there last. */
  #servers: readonly string[] = [];
  readonly #awaited = new Set<string>();

  /** Servers that have not been back since the tree was lost. */
  get awaited(): readonly string[] {
    return [...this.#awaited].sort();
  }

  /** To be called with all that is read of the list of servers. True: this is another tree than the one before. */
  observe({ treeId, servers }: Pick<AnnouncedServers, "treeId" | "servers">): boolean {
    const isOther = this.#tree !== null && this.#tree !== treeId;
    if (isOther) { for (const id of this.#servers) this.#awaited.add(id); }
    for (const id of servers.keys()) this.#awaited.delete(id);
    this.#tree = treeId;
    this.#servers = [...servers.keys()];
    return isOther && this.#awaited.size > 0;
  }
}
