/** Which paths a server accepts. Source: PathUtils.validatePath, DataTree.isSpecialPath. */
import { refuse } from "./operation_error.ts";

// deno-lint-ignore no-control-regex -- control characters are what it looks for
const forbidden = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]|\/\/|\/\.{1,2}(?:\/|$)/;
const special = new Set(["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"]);

/** Refuses with BADARGUMENTS what is no path of a node. */
export function checkPath(path: string): void {
  if (path === "/") return;
  if (path[0] !== "/" || path.endsWith("/") || forbidden.test(path)) refuse("BADARGUMENTS");
}

/** The path of the parent, "" for the root. Refuses with BADARGUMENTS only what cannot be cut: the real server looks for the parent before it looks at the name. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  if (slash === -1 || path.includes("\0")) refuse("BADARGUMENTS");
  return path.slice(0, slash);
}

/** The server's own nodes, which nobody deletes. */
export function isSpecialPath(path: string): boolean {
  return special.has(path);
}
