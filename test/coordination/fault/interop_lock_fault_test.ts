/**
 * The gate's dose of faults around locks that baton shares with Curator's or kazoo's programs, on the binary under
 * test; `scripts/fault interop` runs the full one.
 */
import { afterAll } from "bun:test";
import { describeWithPeer } from "../../support/peers.ts";
import { interopWrapper } from "./interop/wrappers.ts";
import { describeShortDose } from "./lock/short_dose.ts";

const { wrapper, close } = await interopWrapper();
afterAll(close);
describeShortDose("a lock that others take too", wrapper, 7);

// Without them baton's own contenders stand in their places: said aloud.
describeWithPeer("curator", "Curator waits", () => {});
describeWithPeer("kazoo", "kazoo waits", () => {});
describeWithPeer("curator59", "Curator 5.9.0 waits", () => {});
describeWithPeer("goZookeeper", "go-zookeeper waits", () => {});
