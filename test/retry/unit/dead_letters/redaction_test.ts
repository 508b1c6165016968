import { describe, expect, test } from "bun:test";
import { makeRedaction, redactHead, redactText } from "../../../../src/retry/dead_letters/redaction.ts";
import type { MessageHead } from "../../../../src/retry/queue/stored_message.ts";
import { failureCode } from "../../../support/failure_code.ts";

function http(path: string, headers: readonly (readonly [string, string])[]): MessageHead {
  return { kind: "http", method: "POST", path, headers };
}

describe("a message that leaves the store has [redacted] in the place of", () => {
  test("credentials in headers, whatever their case, and of each where there are several", () => {
    const headers = [
      ["AUTHORIZATION", "Basic dXNlcjpwYXNz"],
      ["proxy-Authorization", "Digest a=b,\r\n c=d"],
      ["Cookie", "a=1"],
      ["cookie", "b=2"],
      ["set-cookie", "s=3"],
      ["X-Api-Key", "k"],
      ["Authorization-Info", "kept"],
      ["content-type", "text/xml"],
    ] as const;
    const head = http("/", headers);
    const values = (extra: string[]) => {
      const redacted = redactHead(head, makeRedaction(extra, []));
      return redacted.kind === "http" ? redacted.headers.map(([, value]) => value) : [];
    };
    const secret = Array(5).fill("[redacted]");
    expect(values([])).toEqual([...secret, "k", "kept", "text/xml"]);
    expect(values(["x-API-key"])).toEqual([...secret, "[redacted]", "kept", "text/xml"]);
    expect(redactHead(head, null)).toBe(head);
    expect(head).toEqual(http("/", headers));
  });

  test("query parameters that are named, whatever their case and coding, each time they occur", () => {
    const cases: readonly [path: string, redacted: string][] = [
      ["/a", "/a"],
      ["/a?b=c", "/a?b=c"],
      ["/a?token=x&b=c", "/a?token=[redacted]&b=c"],
      ["/a?b=c&TOKEN=x=y&token=", "/a?b=c&TOKEN=[redacted]&token=[redacted]"],
      ["/a?t%6Fken=x;token=y#f", "/a?t%6Fken=[redacted];token=[redacted]#f"],
      ["/a?token", "/a?token"],
      ["/a?my+key=1&my%20key=2", "/a?my+key=[redacted]&my%20key=[redacted]"],
      ["/a?%zz=1&tokens=2&a?token=3", "/a?%zz=1&tokens=2&a?token=3"],
    ];
    for (const [path, expected] of cases) {
      const head = redactHead(http(path, []), makeRedaction([], ["Token", "my key"]));
      expect(head.kind === "http" && head.path).toBe(expected);
    }
  });

  test("user and password in any URL: in a header, in a command's words, in what went wrong", () => {
    const redaction = makeRedaction([], ["key"]);
    const referer = http("/", [["referer", "https://me:p@ss@host/x?key=1&b=2"], ["x", "mail me@host"]]);
    expect(redactHead(referer, redaction)).toMatchObject({
      headers: [["referer", "https://[redacted]@host/x?key=[redacted]&b=2"], ["x", "mail me@host"]],
    });
    const argv = ["curl", "--url=ftp://u:p@h/f", "http://h/a@b?key=1"];
    expect(redactHead({ kind: "command", argv, cwd: "/" }, redaction)).toEqual({
      kind: "command",
      argv: ["curl", "--url=ftp://[redacted]@h/f", "http://h/a@b?key=[redacted]"],
      cwd: "/",
    });
    expect(redactText("no answer (http://u@h/?key=1)", redaction)).toBe(
      "no answer (http://[redacted]@h/?key=[redacted]",
    );
    expect(redactText(null, redaction)).toBeNull();
  });
});

test("what cannot be a header's name is refused", async () => {
  expect(await failureCode(Promise.resolve().then(() => makeRedaction(["a b"], [])))).toBe("USAGE");
});
