import { describe, expect, test } from "bun:test";
import { type EngineDriver, engineDrivers, rowPlaces } from "../engine_driver.ts";
import { bodies } from "../some_operations.ts";

describe.each(rowPlaces)("rows that are %s:", (place) => {
  const driver = engineDrivers(place);
  const messages = 50;

  /** A sealed topic's stream. */
  function sealed() {
    const from = driver();
    from.execute({ kind: "subscribe", client: "alice" });
    for (let counter = 1; counter <= messages; counter++) {
      from.execute({ kind: "put", counter, bodies: bodies(`body ${counter}`) });
    }
    from.transfer.seal("news", 1, "s2");
    const content = from.exported();
    from.close();
    return content;
  }

  function collect({ engine, rows }: EngineDriver): void {
    while (rows.hasGarbage) engine.writePending();
  }

  for (const [when, isCollected] of [["at once", true], ["later", false]] as const) {
    test(`a topic that arrives while the rest of an earlier try is dropped has all messages; deleted ${when}`, () => {
      const { pieces: [first = new Uint8Array(), ...others], hash } = sealed();
      const content = { incarnation: "b", baseOffset: 0, owner: "s1", epoch: 1 };
      const to = driver();
      to.transfer.drop("news", 2);
      to.transfer.importPiece(to.transfer.importBegin("news", content), first);
      // As when the disk was full: what is in memory is read anew, and what had come by then is dropped some seconds
      // later.
      const transfer = to.newTransfer(to.lastTransfer);
      const importId = transfer.importBegin("news", content);
      transfer.importPiece(importId, first);
      transfer.dropIncomplete();
      if (isCollected) collect(to);
      for (const piece of others) transfer.importPiece(importId, piece);
      transfer.importDone(importId, hash);
      collect(to);
      transfer.activate("news", 2, "staged");
      const [read] = to.execute({ kind: "get", epoch: 2, client: "alice", last: -1, max: 100 });
      expect(read?.messages?.length).toBe(messages);
      expect(to.query("SELECT DISTINCT topic FROM messages").length).toBe(1);
      to.close();
    });
  }
});
