/**
 * The processes that baton has started itself. A process that adopts orphans has to distinguish three kinds of children: baton's
 * helpers, such as the guard; commands, which the runtime reaps; and adopted orphans, which it reaps itself.
 */

interface OwnChild {
  readonly kind: "helper" | "command";
}

const children = new Map<number, OwnChild>();

/** Registers a child. Returns the function to call when it has ended and the runtime has reaped it. */
export function registerChild(pid: number, kind: OwnChild["kind"]): () => void {
  const child: OwnChild = { kind };
  children.set(pid, child);
  return () => {
    if (children.get(pid) === child) children.delete(pid); // the number may be a later child's
  };
}

/** Whether the process is a helper of baton, and so none of a command's processes. */
export function isOwnHelper(pid: number): boolean {
  return children.get(pid)?.kind === "helper";
}

/**
 * The environment variable of a keeper that was started on demand. It serves other clients too, and must survive a supervisor that
 * kills all descendants of a command. It starts no processes that could inherit the variable.
 */
export const keeperVariable = "BATON_KEEPER_PROCESS";

/** Whether this child is an adopted orphan, which this process has to reap. */
export function isAdopted(pid: number): boolean {
  return !children.has(pid);
}
