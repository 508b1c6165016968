/** The errors of operations. */
import {
  type ZooKeeperErrorName,
  zooKeeperErrorNumbers,
} from "../../../protocols/zookeeper/jute/zookeeper_error_codes.ts";

/**
 * An operation that failed with a ZooKeeper error code. It is no Error: it is thrown so that a multi stops where it
 * must, and too frequent (every `exists` of a missing node) to pay for a stack.
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
