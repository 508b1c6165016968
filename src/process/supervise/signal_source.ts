/** Signals sent to baton, for whoever wants them at the moment. What nobody wants keeps its default action. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import process from "node:process";

export interface SignalSource {
  /** Started by nohup, or by somebody who meant the same. */
  readonly hangUpIgnored: boolean;
  /** Calls `listener` for each of these signals, which lose their default action. Returns what undoes it. */
  listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void;
}

/** The signals of this process, without those it was started to ignore: `nohup baton …` means it. */
export function processSignals(): SignalSource {
  const mask = ignoredSignals();
  const isIgnored = (signal: NodeJS.Signals) => (mask >>> (constants.signals[signal] - 1) & 1) === 1;
  return {
    hangUpIgnored: isIgnored("SIGHUP"),
    listen(signals, listener) {
      const wanted = signals.filter((signal) => !isIgnored(signal));
      const call = (signal: NodeJS.Signals) => listener(signal);
      for (const signal of wanted) process.on(signal, call);
      return () => {
        for (const signal of wanted) process.off(signal, call);
      };
    },
  };
}

/** A bit for each signal that has a name, 1 for the lowest; those of real time have none. */
function ignoredSignals(): number {
  try {
    const mask = /^SigIgn:\s*[0-9a-f]*([0-9a-f]{8})$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
    return Number.parseInt(mask, 16);
  } catch {
    return 0; // no /proc: a caught signal is then forwarded, ignored or not
  }
}
