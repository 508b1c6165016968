/** Which signals baton catches while a command runs, and which of them it sends on. */

export interface CommandSignal {
  readonly signal: NodeJS.Signals;
  readonly forwarded: boolean;
}

const sentOn: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT"];

/** The terminal sends these to every process of the foreground group by itself, the command included. */
const fromTerminal: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGWINCH"];

/**
 * In the foreground SIGTSTP is left to its default: the shell waits for baton itself to stop. The command of another
 * group gets it as it is; Linux lets it stop nothing there unless the command catches it (an orphaned process group).
 */
export function commandSignals(ownGroup: boolean): CommandSignal[] {
  const terminal: readonly NodeJS.Signals[] = ownGroup ? [...fromTerminal, "SIGTSTP"] : fromTerminal;
  return [
    ...sentOn.map((signal) => ({ signal, forwarded: true })),
    ...terminal.map((signal) => ({ signal, forwarded: ownGroup })),
  ];
}
