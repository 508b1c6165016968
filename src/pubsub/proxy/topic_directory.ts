/**
 * Topics and servers as a proxy knows them: where to send each request. The product uses the coordination service;
 * tests may use a fake.
 */
import type { Announcement } from "../ownership/announcements.ts";
import type { Route, RouteOptions } from "../ownership/topic_router.ts";

export interface TopicDirectory {
  /** Announced servers, by ID, as of the last read. */
  readonly servers: ReadonlyMap<string, Announcement>;
  /** True if the coordination service responds. */
  readonly isConnected: boolean;
  /** Returns the route if it is known without a request; otherwise null. */
  cachedRoute(topic: string): Route | null;
  /**
   * Looks up the route. If `creates` is set, a new topic is assigned to a server. Rejects when the coordination service
   * cannot be asked.
   */
  findRoute(topic: string, options: RouteOptions): Promise<Route>;
  /**
   * Corrects the route: the server that was asked does not own the topic. `hint` is the owner according to that server,
   * if it knows.
   */
  correctRoute(topic: string, asked: TopicOwner, hint: TopicOwner | null): void;
  /** Lists all topics. Rejects as `findRoute` does. */
  listTopics(): Promise<readonly string[]>;
  /** Calls `listener` when servers join or leave. Returns a function that removes the listener. */
  subscribe(listener: () => void): () => void;
}

export interface TopicOwner {
  readonly owner: string;
  readonly epoch: number;
}
