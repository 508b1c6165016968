/** A line of shell: a put whose server is stopped when it has stored the first line, and is given a second one then. */

/** `put`: of the lines of stdin; `get`: waits for the first of them, and has had all before; `pid`: the server's. */
export function frozenPut({ put, get, pid }: {
  readonly put: string;
  readonly get: string;
  readonly pid: number | undefined;
}): string {
  return [
    "rm -f lines; mkfifo lines",
    `${put} <lines &`,
    "put=$!; exec 3>lines; echo first >&3",
    `${get} >had 2>&1`,
    `kill -STOP ${pid}; echo x >&3; exec 3>&-; wait $put`,
  ].join("\n");
}
