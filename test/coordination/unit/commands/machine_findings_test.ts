/** The findings about this machine: certificates that end, and keepers of several users. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { certificateFindings, judgeKeeperSockets } from "../../../../commands/coordination/machine_findings.ts";
import { CertificateAuthority } from "../../../support/certificate_authority.ts";

test("a certificate is reported from 14 days before its end on; one that cannot be read is not", async () => {
  const folder = mkdtempSync(join(tmpdir(), "machine-findings-"));
  try {
    const { ca } = await CertificateAuthority.start(folder, "authority"); // ends in 30 days
    const day = 24 * 3_600_000;
    const found = (days: number) =>
      certificateFindings([ca, ca, undefined, "/none.pem"], Date.now() + days * day).map(({ id, what }) =>
        `${id}: ${what}`
      );
    expect(found(0)).toEqual([]);
    expect(found(15)).toEqual([]);
    expect(found(17)).toEqual([expect.stringMatching(/^certificate-ends: it ends at 20\d\d-/)]);
    expect(found(31)).toEqual([expect.stringMatching(/^certificate-ends: it ended at 20\d\d-/)]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("keepers of other users are found by their sockets", () => {
  const own = "/homes/eve/.local/state/baton/keeper/0123/keeper.sock";
  const socket = (path: string) => `0000000000000000: 00000002 00000000 00010000 0001 01 12345 ${path}\n`;
  const head = "Num       RefCount Protocol Flags    Type St Inode Path\n";
  const ann = "/homes/ann/.local/state/baton/keeper/0123/keeper.sock";
  const bob = "/var/tmp/baton-1001/keeper/0123/keeper.sock";
  const others = ["/run/baton/keeper.sock", "/tmp/x/keeper/keeper.sock", "/run/dbus/system_bus_socket"].map(socket);
  const alone = [head, socket(own), socket(own), ...others, "0000: 00000003 00000000 00000000 0001 03 20\n"].join("");
  expect(judgeKeeperSockets(alone, own)).toEqual([]);
  expect(judgeKeeperSockets("", own)).toEqual([]);
  expect(judgeKeeperSockets(alone + socket(bob) + socket(ann), own)).toMatchObject([
    { id: "keepers-of-several-users", severity: "warning", what: expect.stringContaining(`: ${ann}, ${bob}; locks`) },
  ]);
  expect(judgeKeeperSockets(alone + socket(bob), "/srv/keeper/keeper.sock")).toEqual([]);
});
