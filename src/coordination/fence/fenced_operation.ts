/** The operation of a fenced write, and the errors for a refused operation. Pure. */
import type { Stat } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import type { ZooKeeperErrorName } from "../../wire/jute/zookeeper_error_codes.ts";
import { folderOf } from "../lock/lock_path.ts";

export type FencedOperation =
  /** Version -1 means any version. */
  | { readonly do: "set"; readonly path: string; readonly data: Uint8Array; readonly version: number }
  | {
    readonly do: "create";
    readonly path: string;
    readonly data: Uint8Array;
    /** Create missing parents in the same transaction. */
    readonly parents: boolean;
    /** The server appends a number that is higher than all earlier ones. */
    readonly sequential: boolean;
  }
  | { readonly do: "delete"; readonly path: string; readonly version: number };

/** Folders below the root that only baton may write: other data there would look like a holder, a waiter or a state. */
export const reservedFolders = ["locks", "elections", "barriers", "gates", "pools", "fences"] as const;

/** The reserved folder that contains `path`; null if there is none. */
export function reservedFolderOf(path: string, root?: string): string | null {
  const folders = reservedFolders.map((name) => folderOf(name, root));
  return folders.find((folder) => path === folder || path.startsWith(`${folder}/`)) ?? null;
}

export interface OperationRefusal {
  readonly reason: ZooKeeperErrorName | number;
  /** The node after the refusal; "hidden" if its ACL denies read access. */
  readonly stat?: Stat | null | "hidden";
  /** Missing parents of the node. */
  readonly missing?: readonly string[];
}

/** The error for a node that does not meet the conditions of the operation. Nothing was changed. */
export function refusedOperationError(
  operation: FencedOperation,
  { reason, stat = null, missing = [] }: OperationRefusal,
): BatonError {
  const cannot = `Cannot ${operation.do} "${operation.path}"`;
  const [nearest] = missing;
  const no = (why: string) => new BatonError(reason === "NONODE" ? "NOT_FOUND" : "FALSE", `${cannot}: ${why}`);
  switch (reason) {
    case "NONODE":
      if (operation.do === "create") {
        return no(
          nearest === undefined
            ? "its parent has just been deleted"
            : `the parent "${nearest}" does not exist; -p creates it`,
        );
      }
      return no(
        operation.do === "set"
          ? "the node does not exist; create it with baton fence zk create"
          : "the node does not exist",
      );
    case "NODEEXISTS":
      return no("it already exists");
    case "BADVERSION": {
      const expected = operation.do === "create" ? "" : `, not version ${operation.version}`;
      if (stat === "hidden") return no(`it has another version${expected}, and this client has no read access to it`);
      return no(
        stat === null
          ? `it had another version${expected}, and has been deleted since`
          : `it has version ${stat.version}${expected}`,
      );
    }
    case "NOTEMPTY": {
      if (stat === "hidden") return no("it has children; delete them first");
      const count = stat?.numChildren ?? 0;
      return no(
        count === 0
          ? "it had children"
          : `it has ${count === 1 ? "a child; delete it" : `${count} children; delete them`} first`,
      );
    }
    default:
      return no(`the server returned ${reason}`);
  }
}
