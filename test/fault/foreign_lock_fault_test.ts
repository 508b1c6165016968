/**
 * The gate's dose of faults around locks that baton shares with Curator's or kazoo's programs, on the binary under test;
 * `scripts/fault foreign` runs the full one.
 */
import { afterAll } from "bun:test";
import { keeper, zooKeeper } from "../support/backends.ts";
import { CuratorPrograms } from "../support/foreign_clients.ts";
import { describeWithPeer, hasPeer } from "../support/peers.ts";
import { besideCurator, besideKazoo, recipeWrapper } from "./foreign/wrappers.ts";
import { describeShortDose } from "./lock/short_dose.ts";

describeShortDose("a lock by Curator's recipe", recipeWrapper, 4);

describeWithPeer("kazoo", "beside kazoo", () => {
  describeShortDose("a lock of kazoo's", besideKazoo, 4, [keeper, zooKeeper]);
});

const programs = hasPeer("curator") ? await CuratorPrograms.compile("CuratorLockRun") : null;
afterAll(() => programs?.close());
describeWithPeer("curator", "beside Curator", () => {
  if (programs !== null) describeShortDose("a lock of Curator's", besideCurator(programs), 3, [keeper, zooKeeper]);
});
