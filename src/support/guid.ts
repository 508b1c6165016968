/** Names that are never used twice. */
import { randomBytes } from "node:crypto";

/** 128 random bits as 32 hexadecimal digits. */
export function newGuid(): string {
  return randomBytes(16).toString("hex");
}
