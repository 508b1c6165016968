/** A line of shell that baton runs beside the job: it reads nothing of what is the job's, and stdout is not its own. */

export function shellLine(line: string): readonly [string, ...string[]] {
  return ["/bin/sh", "-c", `exec </dev/null >&2\n${line}`];
}
