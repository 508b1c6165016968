import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { decodeZ85, encodeZ85 } from "../../../../src/base/wire/z85.ts";
import { property } from "../../../support/property.ts";
import { hex } from "../../../support/wire.ts";

const wrong = (text: string) => {
  const decoded = decodeZ85(text);
  return decoded instanceof Uint8Array ? "nothing" : decoded.wrong;
};

test("RFC 32's test case", () => {
  const bytes = new Uint8Array([0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b]);
  expect(encodeZ85(bytes)).toBe("HelloWorld");
  expect(decodeZ85("HelloWorld")).toEqual(bytes);
});

test("the key that libzmq's manual shows", () => {
  expect(decodeZ85("Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID")).toEqual(
    hex("bb88471d65e2659b30c55a5321cebb5aab2b70a398645c26dca2b2fcb43fc518"),
  );
});

property("every four bytes come back from five characters", fc.uint8Array({ maxLength: 64 }), (bytes) => {
  const whole = bytes.slice(0, bytes.length - bytes.length % 4);
  const text = encodeZ85(whole);
  expect(text.length).toBe(whole.length / 4 * 5);
  expect(decodeZ85(text)).toEqual(whole);
});

test("the ends of what 32 bits can say", () => {
  expect(encodeZ85(new Uint8Array(4))).toBe("00000");
  expect(encodeZ85(new Uint8Array(4).fill(255))).toBe("%nSc0");
  expect(decodeZ85("%nSc0")).toEqual(new Uint8Array(4).fill(255));
  expect(wrong("%nSc1")).toBe("its characters 1 to 5 are more than 32 bits");
  expect(wrong("00000#####")).toBe("its characters 6 to 10 are more than 32 bits");
});

test("what is no Z85 is said without repeating it", () => {
  expect(wrong("0000")).toBe("it has 4 characters, which is not a multiple of 5");
  expect(wrong("0000_")).toBe("its character 5 is none of Z85");
  expect(wrong("00 00")).toBe("its character 3 is none of Z85");
  expect(wrong("ö0000")).toBe("its character 1 is none of Z85");
  expect(() => encodeZ85(new Uint8Array(5))).toThrow("5 bytes are not a multiple of 4");
});
