/** How the core says no. */
import { type ZooKeeperErrorName, zooKeeperErrorNumbers } from "../../wire/jute/zookeeper_error_codes.ts";

/**
 * A request that is answered with an error number. Not an Error: it is an answer like any other, thrown so that a multi
 * stops where it must, and frequent enough (every `exists` of a missing node) not to pay for a stack.
 */
export class OperationError {
  readonly reason: ZooKeeperErrorName;

  constructor(reason: ZooKeeperErrorName) {
    this.reason = reason;
  }

  get number(): number {
    return zooKeeperErrorNumbers[this.reason];
  }
}

export function refuse(reason: ZooKeeperErrorName): never {
  throw new OperationError(reason);
}
