/** Defines the schemas of values that many JSON objects contain. */
import * as z from "zod";

/**
 * The version of an object. If a field is added, the version stays; if a field is removed or changes its meaning, the
 * version increases.
 */
export const objectVersionShape = z.literal(1).describe(
  "version of this object: fields may be added to a version, but not removed",
);

export const instantShape = z.iso.datetime().describe("UTC, by the wall clock of the host that wrote it");

/** A 64-bit number as text, because numbers in JSON lose digits beyond 53 bits. */
export const longNumberTextShape = z.string().regex(/^\d+$/).describe("64-bit number as decimal text");

export const countShape = z.int().min(0);

export type DeepReadonly<T> = T extends (...args: never) => unknown ? T
  : { readonly [Key in keyof T]: DeepReadonly<T[Key]> };
