/** Writes the messages about processes that outlive a command. Pure. */
import type { SupervisionEvent } from "./child_run.ts";
import { countWithNoun, printable } from "../../support/text.ts";

const listedProcessesMax = 5;

/**
 * Returns the message about processes that outlived a command; null for other events. `noun` says what started the
 * processes, such as `command`.
 */
export function leftoverProcessesMessage(event: SupervisionEvent, noun: string): string | null {
  if (event.kind !== "leftovers_stopped" && event.kind !== "leftovers_left") return null;
  const { kind, processes } = event;
  const listed = processes.slice(0, listedProcessesMax).map(({ pid, name }) =>
    name === "" ? `${pid}` : `${pid}, ${printable(name)}`
  );
  const more = processes.length - listed.length;
  const list = `(${listed.join("; ")}${more > 0 ? ` and ${more} more` : ""})`;
  const count = countWithNoun(processes.length, "process", "processes");
  if (kind === "leftovers_stopped") return `stopped ${count} that the ${noun} left running ${list}`;
  const verb = processes.length === 1 ? "continues" : "continue";
  return `the lock ends with the ${noun}; ${count} that it left running ${verb} without the lock ${list}`;
}

/** Returns the message about processes that SIGKILL does not end. `what` describes these processes. */
export function unstoppableProcessesMessage(what: string, noun: string): string {
  return `the ${noun} ${printable(what)}; the lock is kept until they have ended; baton break --force releases it now`;
}
