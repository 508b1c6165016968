/** Signals that baton receives. A signal without a listener keeps its default action. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import process from "node:process";

export interface SignalSource {
  /** SIGHUP was ignored when baton started, as nohup does. */
  readonly hangUpIgnored: boolean;
  /** Calls `listener` for each of these signals, which lose their default action. Returns the function that undoes it. */
  listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void;
}

/** The signals of this process, without those that it was started to ignore, as `nohup baton …` does. */
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

/** A bit mask of the signals that have a name, the lowest bit for signal 1; real-time signals have none. */
function ignoredSignals(): number {
  try {
    const mask = /^SigIgn:\s*[0-9a-f]*([0-9a-f]{8})$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
    return Number.parseInt(mask, 16);
  } catch {
    return 0; // no /proc: a caught signal is then forwarded, ignored or not
  }
}

export interface CommandSignal {
  readonly signal: NodeJS.Signals;
  readonly forwarded: boolean;
}

const sentOn: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT"];

/** The terminal sends these to every process of the foreground group, the command included. */
const fromTerminal: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGWINCH"];

/**
 * The signals that baton catches while a command runs, and whether it forwards them. SIGTSTP keeps its default action in the
 * foreground, where the shell waits for baton itself to stop. A command in a group of its own receives it unchanged; Linux stops
 * nothing in such an orphaned process group, unless the command catches the signal.
 */
export function commandSignals(ownGroup: boolean): CommandSignal[] {
  const terminal: readonly NodeJS.Signals[] = ownGroup ? [...fromTerminal, "SIGTSTP"] : fromTerminal;
  return [
    ...sentOn.map((signal) => ({ signal, forwarded: true })),
    ...terminal.map((signal) => ({ signal, forwarded: ownGroup })),
  ];
}
