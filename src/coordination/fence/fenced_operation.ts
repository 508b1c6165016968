/** What a fenced write is to do, and what a server's refusal of it means. Pure. */
import type { Stat } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import type { ZooKeeperErrorName } from "../../wire/jute/zookeeper_error_codes.ts";

export type FencedOperation =
  /** `version` -1 is any. */
  | { readonly do: "set"; readonly path: string; readonly data: Uint8Array; readonly version: number }
  | {
    readonly do: "create";
    readonly path: string;
    readonly data: Uint8Array;
    /** Make what is missing above it, in the same transaction. */
    readonly parents: boolean;
    /** The server appends a number that is higher than all before. */
    readonly sequential: boolean;
  }
  | { readonly do: "delete"; readonly path: string; readonly version: number };

/** The nodes above a path, outermost first, without the root. */
export function ancestorsOf(path: string): string[] {
  const names = path.split("/").slice(1, -1);
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
}

export interface OperationRefusal {
  readonly reason: ZooKeeperErrorName | number;
  /** Of the node, as it was found after the refusal; "hidden" where its ACL does not let this client read it. */
  readonly stat?: Stat | null | "hidden";
  /** Nodes above it that are not there. */
  readonly missing?: readonly string[];
}

/** The node is not as the deed wants it: a negative answer, and nothing was done. */
export function refusedOperation(
  deed: FencedOperation,
  { reason, stat = null, missing = [] }: OperationRefusal,
): BatonError {
  const cannot = `Cannot ${deed.do} "${deed.path}"`;
  const [nearest] = missing;
  const no = (why: string) => new BatonError(reason === "NONODE" ? "NOT_FOUND" : "FALSE", `${cannot}: ${why}`);
  switch (reason) {
    case "NONODE":
      if (deed.do === "create") {
        return no(
          nearest === undefined
            ? "the node above it has just been deleted"
            : `there is no "${nearest}" to put it in; -p makes what is missing`,
        );
      }
      return no(deed.do === "set" ? "there is no such node; baton fence zk create makes it" : "there is no such node");
    case "NODEEXISTS":
      return no("it already exists");
    case "BADVERSION": {
      const wanted = deed.do === "create" ? "" : `, and version ${deed.version} is wanted`;
      if (stat === "hidden") return no(`it has another version${wanted}, which this client may not read`);
      return no(
        stat === null
          ? `it was of another version${wanted}, and is gone now`
          : `it has version ${stat.version}${wanted}`,
      );
    }
    case "NOTEMPTY": {
      if (stat === "hidden") return no("it has children, and only a node without any can go");
      const count = stat?.numChildren ?? 0;
      return no(
        count === 0
          ? "it had children"
          : `it has ${count === 1 ? "a child" : `${count} children`}, and only a node without any can go`,
      );
    }
    default:
      return no(`the server returned ${reason}`);
  }
}
