/** A keeper in numbers, for those who watch it. */
import { Histogram } from "../../support/histogram.ts";
import type { KeeperReport } from "./four_letter_words.ts";

/** In seconds: from a fast flush to a disk that is in trouble. */
const commitBounds = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];

export class CommitCounters {
  readonly commitSeconds = new Histogram(commitBounds);
  commitsFailed = 0;

  done(tookMs: number): void {
    this.commitSeconds.observe(tookMs / 1000);
  }
}

type Counted =
  & Pick<KeeperReport, "nodes" | "dataBytes" | "ephemerals" | "watches" | "received" | "writable" | "zxid">
  & { readonly connections: number; readonly sessions: number; readonly outstanding: number };

export interface KeeperStatistics extends Counted, Pick<CommitCounters, "commitSeconds" | "commitsFailed"> {
  /** Bytes of requests that are not whole or wait, of those connections that have much of it. */
  readonly heldBytes: number;
  /** Bytes of answers not taken yet, likewise. */
  readonly unsentBytes: number;
}

export function statisticsOf(report: KeeperReport): Counted {
  const { nodes, dataBytes, ephemerals, watches, received, sent, writable, zxid } = report;
  const counts = {
    connections: report.connections.length,
    sessions: report.sessionCount,
    outstanding: received - sent,
  };
  return { nodes, dataBytes, ephemerals, watches, received, writable, zxid, ...counts };
}
