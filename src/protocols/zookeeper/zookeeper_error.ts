/** The errors of ZooKeeper operations, with the names that the server uses. */
import { BatonError, type ErrorCode } from "../../base/errors.ts";
import { type ZooKeeperErrorName, zooKeeperErrorName } from "./jute/zookeeper_error_codes.ts";

interface ErrorMeaning {
  /** The BatonError code, for callers that do not handle the error by its name. */
  readonly code: ErrorCode;
  readonly text: string;
}

const meanings = {
  SYSTEMERROR: { code: "PROTOCOL", text: "the server reported a system error; see its log" },
  RUNTIMEINCONSISTENCY: { code: "PROTOCOL", text: "an earlier operation of the transaction failed" },
  DATAINCONSISTENCY: { code: "PROTOCOL", text: "the server's data is inconsistent" },
  CONNECTIONLOSS: { code: "OUTCOME_UNKNOWN", text: "the connection was lost before the response arrived" },
  MARSHALLINGERROR: { code: "PROTOCOL", text: "the server could not decode the request" },
  UNIMPLEMENTED: { code: "PROTOCOL", text: "the server does not have this operation" },
  OPERATIONTIMEOUT: { code: "UNREACHABLE", text: "no server could be reached in time" },
  BADARGUMENTS: { code: "BAD_DATA", text: "the arguments are not valid" },
  UNKNOWNSESSION: { code: "OUTCOME_UNKNOWN", text: "the server does not know this session" },
  NEWCONFIGNOQUORUM: { code: "PROTOCOL", text: "no quorum of the new configuration is connected" },
  RECONFIGINPROGRESS: { code: "PROTOCOL", text: "another reconfiguration is in progress" },
  APIERROR: { code: "PROTOCOL", text: "the server has an error in its interface" },
  NONODE: { code: "INTERNAL", text: "the node does not exist" },
  NOAUTH: { code: "REFUSED", text: "the node's ACL does not allow it" },
  BADVERSION: { code: "INTERNAL", text: "the node has another version" },
  NOCHILDRENFOREPHEMERALS: { code: "BAD_DATA", text: "an ephemeral node cannot have children" },
  NODEEXISTS: { code: "INTERNAL", text: "the node exists already" },
  NOTEMPTY: { code: "INTERNAL", text: "the node has children" },
  SESSIONEXPIRED: { code: "OUTCOME_UNKNOWN", text: "the session has ended" },
  INVALIDCALLBACK: { code: "PROTOCOL", text: "the callback is not valid" },
  INVALIDACL: { code: "BAD_DATA", text: "the ACL is not valid: it names an unknown scheme, or no identity" },
  AUTHFAILED: { code: "REFUSED", text: "the authentication was refused" },
  SESSIONMOVED: { code: "OUTCOME_UNKNOWN", text: "the session has moved to another server" },
  NOTREADONLY: { code: "PROTOCOL", text: "the server is read-only" },
  EPHEMERALONLOCALSESSION: { code: "PROTOCOL", text: "a local session cannot have ephemeral nodes" },
  NOWATCHER: { code: "INTERNAL", text: "there is no such watch" },
  REQUESTTIMEOUT: { code: "OUTCOME_UNKNOWN", text: "the server ran out of time" },
  RECONFIGDISABLED: { code: "PROTOCOL", text: "reconfiguration is disabled" },
  SESSIONCLOSEDREQUIRESASLAUTH: { code: "REFUSED", text: "the server demands SASL authentication" },
  QUOTAEXCEEDED: { code: "REFUSED", text: "a quota, or a limit of the keeper, is exceeded" },
  THROTTLEDOP: { code: "UNREACHABLE", text: "too many requests are waiting" },
} as const satisfies Record<ZooKeeperErrorName, ErrorMeaning>;

export interface ZooKeeperErrorDetails {
  readonly path?: string;
  readonly index?: number;
  /** True if the operation only reads. Such an operation has changed nothing, even if its response did not arrive. */
  readonly reads?: boolean;
  readonly cause?: unknown;
}

/**
 * The error of a failed operation. `reason` is KeeperException's name, or the number of an unknown error. `index` is
 * the position of the failed operation in a multi.
 */
export class ZooKeeperError extends BatonError {
  readonly reason: ZooKeeperErrorName | number;
  readonly path: string;
  readonly index?: number;

  constructor(reason: ZooKeeperErrorName | number, message: string, details: ZooKeeperErrorDetails = {}) {
    const code = typeof reason === "number" ? "PROTOCOL" : meanings[reason].code;
    const cause = details.cause === undefined ? undefined : { cause: details.cause };
    super(code === "OUTCOME_UNKNOWN" && details.reads === true ? "UNREACHABLE" : code, message, cause);
    this.name = "ZooKeeperError";
    this.reason = reason;
    this.path = details.path ?? "";
    if (details.index !== undefined) this.index = details.index;
  }
}

/** The description of an operation for messages: `{ action: "create", path: "/a" }`. */
export interface ZooKeeperOperationLabel {
  readonly action: string;
  readonly path: string;
  readonly reads?: boolean;
}

export function operationResponseError(label: ZooKeeperOperationLabel, err: number, index?: number): ZooKeeperError {
  const name = zooKeeperErrorName(err);
  const why = name === undefined
    ? `unknown error ${err}`
    : `${name}: ${name === "NOAUTH" ? missingPermission(label) : meanings[name].text}`;
  const place = index === undefined ? "" : ` (operation ${index + 1} of the transaction)`;
  return new ZooKeeperError(name ?? err, `Cannot ${label.action} "${label.path}"${place}: the server returned ${why}`, {
    ...label,
    ...(index === undefined ? {} : { index }),
  });
}

/**
 * The permission that ZooKeeper checks for each operation. To create or delete a node, a client needs the permission in
 * the parent's ACL. "look for" needs READ since 3.8.4 and 3.9.2.
 */
const permissions: Readonly<Record<string, string>> = {
  "create": "c (create)",
  "createContainer": "c (create)",
  "create the chroot's node": "c (create)",
  "delete": "d (delete)",
  "look for": "r (read)",
  "read": "r (read)",
  "list": "r (read)",
  "check": "r (read)",
  "read the ACL of": "r (read)",
  "write": "w (write)",
  "setData": "w (write)",
  "set the ACL of": "a (admin)",
};

function missingPermission({ action, path }: ZooKeeperOperationLabel): string {
  const permission = permissions[action];
  if (permission === undefined) return meanings.NOAUTH.text;
  const isOfParent = /^[cd] /.test(permission);
  const asked = isOfParent ? path.slice(0, path.lastIndexOf("/")) || "/" : path;
  return `the ACL of "${asked}" does not give this session permission ${permission}; ` +
    "set auth.file to credentials that have it";
}

/** Makes the error for an operation that the client has given up. */
export function givenUpOperationError(
  label: ZooKeeperOperationLabel,
  reason: ZooKeeperErrorName,
  { why = meanings[reason].text, cause }: { readonly why?: string; readonly cause?: unknown } = {},
): ZooKeeperError {
  return new ZooKeeperError(reason, `Cannot ${label.action} "${label.path}": ${why}`, { ...label, cause });
}

/** Returns true if the server does not know the operation, or does not know an operation in the transaction. */
export function isUnknownOperationError(thrown: unknown): boolean {
  return thrown instanceof ZooKeeperError &&
    (thrown.reason === "UNIMPLEMENTED" || thrown.reason === "MARSHALLINGERROR");
}

/** Returns true if a session has ended: it expired on the servers, or the client closed it. */
export function isSessionEndError(reason: unknown): boolean {
  return reason instanceof ZooKeeperError && reason.reason === "SESSIONEXPIRED";
}
