import { expect, test } from "bun:test";
import { decodeZmtpMetadata, encodeZmtpMetadata } from "../../../../../src/protocols/zeromq/zmtp/zmtp_metadata.ts";

const numbered = (count: number) => Array.from({ length: count }, (_, index) => [`p${index}`, "x"] as const);

test("properties come out as they went in, by their names in any case", () => {
  const metadata = decodeZmtpMetadata(
    encodeZmtpMetadata([["Socket-Type", "DEALER"], ["X-Color", new Uint8Array([1, 2])]]),
  );
  expect([...metadata.keys()]).toEqual(["socket-type", "x-color"]);
  expect(metadata.get("x-color")).toEqual(new Uint8Array([1, 2]));
});

test("there may be 256 of them and no more: each costs far more memory than the bytes that it comes in", () => {
  expect(decodeZmtpMetadata(encodeZmtpMetadata(numbered(256))).size).toBe(256);
  expect(() => decodeZmtpMetadata(encodeZmtpMetadata(numbered(257)))).toThrow(
    expect.objectContaining({ reason: "LIMIT", message: "The peer has more than 256 properties" }),
  );
});

test("the same twice is refused, and so is a name with anything but letters, digits and -_.+", () => {
  expect(() => decodeZmtpMetadata(encodeZmtpMetadata([["A", "x"], ["a", "x"]]))).toThrow("The property a occurs twice");
  expect(() => decodeZmtpMetadata(new Uint8Array([1, 32, 0, 0, 0, 0]))).toThrow('A property has the name " "');
});
