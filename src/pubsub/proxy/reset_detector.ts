/**
 * Detects that the coordination service has lost its data while this proxy ran (for example, its data directory was
 * emptied). Topics that existed before are not new: their servers create the nodes again before they announce
 * themselves. Until all these servers have done so, the proxy cannot tell which topics are new. Pure: it gets what was
 * read.
 */
import type { AnnouncedServers } from "../ownership/server_list.ts";

export class ResetDetector {
  /** Identifies the tree of nodes; null before the first read. */
  #tree: string | null = null;
  /** Servers that were announced at the last read. */
  #servers: readonly string[] = [];
  readonly #awaited = new Set<string>();

  /** Servers that have not announced themselves since the reset. */
  get awaited(): readonly string[] {
    return [...this.#awaited].sort();
  }

  /**
   * Compares each list of servers that is read with the one before. Returns true if the tree is another one, and
   * servers are missing.
   */
  observe({ treeId, servers }: Pick<AnnouncedServers, "treeId" | "servers">): boolean {
    const isOther = this.#tree !== null && this.#tree !== treeId;
    if (isOther) { for (const id of this.#servers) this.#awaited.add(id); }
    for (const id of servers.keys()) this.#awaited.delete(id);
    this.#tree = treeId;
    this.#servers = [...servers.keys()];
    return isOther && this.#awaited.size > 0;
  }
}
