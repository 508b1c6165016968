/** The error with which the keeper answers an operation that it cannot execute. */
import {
  type ZooKeeperErrorName,
  zooKeeperErrorNumbers,
} from "../../../protocols/zookeeper/jute/zookeeper_error_codes.ts";

/**
 * The ZooKeeper error code of a failed operation, thrown to leave the operation. It is not an Error, because it is too
 * frequent to pay for a stack trace: every `exists` of a missing node throws it.
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
