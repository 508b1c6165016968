/** The error with which the keeper answers an operation that it cannot execute. */
import {
  type ZooKeeperErrorName,
  zooKeeperErrorNumbers,
} from "../../../protocols/zookeeper/jute/zookeeper_error_codes.ts";

/**
 * The ZooKeeper error code of a failed operation; throwing it ends the operation. The class is not a subclass of Error,
 * because each `exists` of a missing node throws it, and a stack trace would take too much time.
 */
export class KeeperOperationError {
  readonly reason: ZooKeeperErrorName;

  constructor(reason: ZooKeeperErrorName) {
    this.reason = reason;
  }

  get errorNumber(): number {
    return zooKeeperErrorNumbers[this.reason];
  }
}

export function refuseKeeperOperation(reason: ZooKeeperErrorName): never {
  throw new KeeperOperationError(reason);
}
