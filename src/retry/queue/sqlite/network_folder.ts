/**
 * Refuses stores on network file systems: file locks and the shared memory of the log work on one machine only, and two
 * machines that write to a store would destroy it.
 */
import { readFileSync, realpathSync, statfsSync } from "node:fs";
import { BatonError } from "../../../base/errors.ts";

/** Type numbers of statfs(2) and linux/magic.h. */
const networkTypes: Readonly<Record<number, string>> = {
  0x6969: "NFS",
  0xff534d42: "CIFS",
  0xfe534d42: "SMB2",
  0x517b: "SMB",
  0x5346414f: "AFS",
  0x6b414653: "AFS",
  0x73757245: "Coda",
  0x00c36400: "Ceph",
  0x0bd00bd0: "Lustre",
  0x47504653: "GPFS",
  0x7461636f: "OCFS2",
  0x01161970: "GFS2",
  0x01021997: "9P",
};
const fuseType = 0x65735546;

/** Network file systems in user space, by their names in /proc/self/mountinfo. */
const networkFuse = /^fuse\.(sshfs|glusterfs|s3fs|gcsfuse|ceph|juicefs|rclone|davfs|curlftpfs|hdfs|beegfs|moosefs|mfs)/;

/** Throws CONFIG when the system reports that the folder is on another machine. */
export function refuseNetworkFolder(folder: string, typeOf: (folder: string) => number = fileSystemType): void {
  const type = typeOf(folder) >>> 0;
  const name = networkTypes[type] ?? (type === fuseType ? networkFuseAt(folder) : null);
  if (name === null) return;
  throw new BatonError(
    "CONFIG",
    `The message store cannot be in ${folder}: it is on a network file system (${name}), but a store belongs to one machine; ` +
      "name a folder on a disk of this machine with --store",
  );
}

function fileSystemType(folder: string): number {
  return statfsSync(folder).type;
}

/** The type of the mount that contains the folder; null: no network file system. */
function networkFuseAt(folder: string): string | null {
  try {
    const path = realpathSync(folder);
    const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n").map((line) => {
      const [before = "", after = ""] = line.split(" - ");
      return { point: before.split(" ")[4] ?? "", type: after.split(" ")[0] ?? "" };
    });
    const above = mounts.filter(({ point }) => point === "/" || path === point || path.startsWith(`${point}/`));
    const nearest = above.reduce((one, other) => (other.point.length >= one.point.length ? other : one), {
      point: "",
      type: "",
    });
    return networkFuse.test(nearest.type) ? nearest.type : null;
  } catch {
    return null;
  }
}
