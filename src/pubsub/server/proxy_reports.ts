/** Sends PERIODIC messages, which tell every proxy that this server is alive and which topics it serves. */
import { DealerSocket } from "../../protocols/zeromq/dealer_socket.ts";
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import type { Clock } from "../../base/support/clock.ts";
import { encodePubsubMessage } from "../wire/encode_message.ts";
import { encodeTopicList } from "../wire/topic_list.ts";
import type { ProcessAnnouncement } from "../ownership/process_announcement.ts";
import { proxyReportEveryMs, proxyReportTopicsMax } from "./server_limits.ts";

export interface ReportsToProxiesOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly socket?: ZeroMqSocketOptions | undefined;
  readonly topics: () => Iterable<string>;
}

interface ProxyConnection {
  readonly endpoint: string;
  readonly dealer: DealerSocket;
}

const nothing = new Uint8Array(0);

export class ReportsToProxies implements AsyncDisposable {
  readonly #options: ReportsToProxiesOptions;
  readonly #proxies = new Map<string, ProxyConnection>();
  #cancelTimer: () => void;
  #isClosed = false;

  constructor(options: ReportsToProxiesOptions) {
    this.#options = options;
    this.#cancelTimer = this.#scheduleReport();
  }

  /** Sets the running proxies by id. A new proxy gets a report immediately. */
  setProxies(proxies: ReadonlyMap<string, ProcessAnnouncement>): void {
    if (this.#isClosed) return;
    for (const [id, { endpoint, dealer }] of this.#proxies) {
      if (proxies.get(id)?.endpoint === endpoint) continue;
      this.#proxies.delete(id);
      void dealer.close({ lingerMs: 0 });
    }
    for (const [id, { endpoint }] of proxies) {
      if (this.#proxies.has(id)) continue;
      // Queues at most one report. A second queued report would be useless, because each report replaces the previous
      // one.
      const dealer = new DealerSocket({ ...this.#options.socket, sendHighWater: 1 });
      try {
        dealer.connect(endpoint);
      } catch {
        continue; // the announced endpoint is invalid, so this proxy gets no reports
      }
      const connection = { endpoint, dealer };
      this.#proxies.set(id, connection);
      this.#sendReport([connection]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    await Promise.all([...this.#proxies.values()].map(({ dealer }) => dealer.close({ lingerMs: 0 })));
  }

  #scheduleReport(): () => void {
    return this.#options.clock.startTimer(proxyReportEveryMs, () => {
      this.#sendReport([...this.#proxies.values()]);
      this.#cancelTimer = this.#scheduleReport();
    });
  }

  #sendReport(connections: readonly ProxyConnection[]): void {
    if (connections.length === 0) return;
    const { server, topics } = this.#options;
    const body = encodeTopicList([...topics()].slice(0, proxyReportTopicsMax));
    const frames = encodePubsubMessage({ name: "PERIODIC", sender: server, headers: { version: 1 }, body });
    for (const { dealer } of connections) {
      dealer.receiveReady(); // discards the proxy's responses
      dealer.trySend([nothing, ...frames]);
    }
  }
}
