import { backends, currentZooKeepers, describeBackend } from "../../support/backends.ts";
import { zooKeeperSuite } from "./zookeeper_suite.ts";
import { tierRows } from "../../support/tier.ts";

for (const backend of tierRows({ everyday: backends, nightly: currentZooKeepers })) {
  describeBackend(backend, () => zooKeeperSuite(backend));
}
