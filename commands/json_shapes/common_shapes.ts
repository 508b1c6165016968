/** Values that stand in many of the objects. */
import * as z from "zod";

/** Fields may be added to a version; what is taken away, or means something else, makes another one. */
export const version = z.literal(1).describe("of this shape: fields may be added to it, nothing is taken away");

export const instant = z.iso.datetime().describe("by the wall clock of the host that wrote it, UTC");

/** 64 bits do not fit a number of JSON's. */
export const token = z.string().regex(/^\d+$/).describe("a decimal text: it has 64 bits");

export const count = z.int().min(0);
