/** What a proxy knows of topics and servers: where to send what. Behind it is the coordination service; a test may put anything else there. */
import type { Announcement } from "../ownership/announcements.ts";
import type { Route, RouteOptions } from "../ownership/topic_router.ts";

export interface TopicDirectory {
  /** Servers that are there, by id, as of a moment ago. */
  readonly servers: ReadonlyMap<string, Announcement>;
  /** Whether the coordination service answers. */
  readonly isConnected: boolean;
  /** At once, if it is known. */
  routeNow(topic: string): Route | null;
  /** Looks it up, and gives a new topic to a server, if it is to be created. Rejects when nobody can be asked now. */
  route(topic: string, options: RouteOptions): Promise<Route>;
  /** A server that was asked does not have the topic; `hint` is who has, as far as it says so. */
  correctRoute(topic: string, asked: TopicOwner, hint: TopicOwner | null): void;
  /** Every topic there is. Rejects as `route` does. */
  topics(): Promise<readonly string[]>;
  /** Told when servers have come or gone. Returns what takes the listener off. */
  subscribe(listener: () => void): () => void;
}

export interface TopicOwner {
  readonly owner: string;
  readonly epoch: number;
}
