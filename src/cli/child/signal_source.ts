/** Signals sent to baton, for whoever wants them at the moment. What nobody wants keeps its default action. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import process from "node:process";

export interface SignalSource {
  /** Calls `listener` for each of these signals, which lose their default action. Returns what undoes it. */
  listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void;
}

/** The signals of this process, without those it was started to ignore: `nohup baton …` means it. */
export function processSignals(): SignalSource {
  const ignored = ignoredSignals();
  return {
    listen(signals, listener) {
      const wanted = signals.filter((signal) => !ignored.has(constants.signals[signal]));
      const call = (signal: NodeJS.Signals) => listener(signal);
      for (const signal of wanted) process.on(signal, call);
      return () => {
        for (const signal of wanted) process.off(signal, call);
      };
    },
  };
}

function ignoredSignals(): Set<number> {
  try {
    const mask = BigInt(`0x${/^SigIgn:\s*([0-9a-f]+)/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0"}`);
    return new Set(Array.from({ length: 64 }, (_, bit) => bit + 1).filter((n) => (mask >> BigInt(n - 1)) & 1n));
  } catch {
    return new Set(); // no /proc: a caught signal is then forwarded, ignored or not
  }
}
