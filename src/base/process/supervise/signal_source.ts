/**
 * Handles the signals that baton receives. baton forwards some signals to the command; others ask baton to stop. A
 * signal without a listener keeps its default action.
 */
import { constants } from "node:os";
import process from "node:process";
import { isSignalIgnoredAtStart } from "../spawn/shell_start.ts";

export interface SignalSource {
  /** True if SIGHUP was ignored when baton started, as under nohup. */
  readonly hangUpIgnored: boolean;
  /**
   * Calls `listener` when one of the signals arrives; the default action does not happen. Returns the function that
   * restores the default action.
   */
  listen(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): () => void;
}

/**
 * Returns the source of the signals of this process. Omits signals that were ignored when the process started, as under
 * nohup.
 */
export function ownSignalSource(): SignalSource {
  return {
    hangUpIgnored: isSignalIgnoredAtStart("SIGHUP"),
    listen: (signals, listener) => {
      const wanted = signals.filter((signal) => !isSignalIgnoredAtStart(signal));
      const call = (signal: NodeJS.Signals) => listener(signal);
      for (const signal of wanted) process.on(signal, call);
      return () => {
        for (const signal of wanted) process.off(signal, call);
      };
    },
  };
}

interface CommandSignal {
  readonly signal: NodeJS.Signals;
  readonly forwarded: boolean;
}

const sentOn: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT"];

/** Signals that the terminal sends to every process of the foreground group, including the command. */
const fromTerminal: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGWINCH"];

/**
 * Returns the signals that baton catches while a command runs, and whether baton forwards each of them. In the
 * foreground, SIGTSTP keeps its default action, because the shell waits for baton itself to stop. To a command in a
 * group of its own, baton forwards SIGTSTP. Linux does not stop such an orphaned process group, unless the command
 * catches the signal.
 */
export function signalsWhileCommandRuns(ownGroup: boolean): CommandSignal[] {
  const terminal: readonly NodeJS.Signals[] = ownGroup ? [...fromTerminal, "SIGTSTP"] : fromTerminal;
  return [
    ...sentOn.map((signal) => ({ signal, forwarded: true })),
    ...terminal.map((signal) => ({ signal, forwarded: ownGroup })),
  ];
}

export const stopSignals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/**
 * Thrown when a signal ends a call, so that all code closes what it has open. The main program then calls
 * `endProcessBySignal`: the parent process thus sees that a signal ended this process.
 */
export class StoppedBySignal extends Error {
  readonly signal: NodeJS.Signals;
  /**
   * True if the user typed the signal on a terminal in raw mode, where keys make no signals. The shell around baton
   * must then receive the signal too.
   */
  readonly isTyped: boolean;

  constructor(signal: NodeJS.Signals, { isTyped = false } = {}) {
    super(`stopped by ${signal}`);
    this.name = "StoppedBySignal";
    this.signal = signal;
    this.isTyped = isTyped;
  }
}

/**
 * Listens for a request to stop, as long as this object exists. `TwoStageStopListener` also distinguishes a second
 * request.
 */
export class StopRequestListener implements Disposable {
  readonly #controller = new AbortController();
  readonly #stopListening: () => void;
  /** Aborts with a StoppedBySignal at the first stop signal. */
  readonly signal = this.#controller.signal;
  readonly received = new Set<string>();

  constructor(source: SignalSource = ownSignalSource()) {
    this.#stopListening = source.listen(stopSignals, (name) => {
      this.received.add(name);
      this.#controller.abort(new StoppedBySignal(name));
    });
  }

  [Symbol.dispose](): void {
    this.#stopListening();
  }
}

/**
 * Ends this process by the default action of the signal, without a core dump. If `isTyped` is true, the whole process
 * group gets the signal, as from a terminal. Does not return.
 */
export async function endProcessBySignal(signal: NodeJS.Signals, { isTyped = false } = {}): Promise<never> {
  const code = 128 + constants.signals[signal];
  if (process.pid === 1) process.exit(code); // the kernel ignores signals that process 1 of a container sends to itself
  await (await import("../spawn/resource_limits.ts")).forbidCoreDump();
  // Removing the last listener restores the default action, even of a signal that the runtime ignores, such as SIGPIPE.
  process.on(signal, () => {});
  process.removeAllListeners(signal);
  process.kill(isTyped ? 0 : process.pid, signal);
  // The signal arrives now or a moment later, unless the process blocks the signal.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  process.exit(code);
}
