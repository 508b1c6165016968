/** Describes this build: the release, the compiled commit and its date, and the platform. */
import process from "node:process";
import description from "../../../package.json" with { type: "json" };

// scripts/compile.sh defines these constants. They do not exist when the source runs without being compiled.
declare const BATON_BUILD_COMMIT: string;
declare const BATON_BUILD_DATE: string;
declare const BATON_BUILD_PLATFORM: string;

export interface BuildFacts {
  readonly version: 1;
  readonly release: string;
  readonly commit: string | null;
  readonly date: string | null;
  readonly platform: string;
}

export function readBuildFacts(): BuildFacts {
  return {
    version: 1,
    release: description.version,
    commit: typeof BATON_BUILD_COMMIT === "string" && BATON_BUILD_COMMIT !== "" ? BATON_BUILD_COMMIT : null,
    date: typeof BATON_BUILD_DATE === "string" && BATON_BUILD_DATE !== "" ? BATON_BUILD_DATE : null,
    platform: typeof BATON_BUILD_PLATFORM === "string" && BATON_BUILD_PLATFORM !== ""
      ? BATON_BUILD_PLATFORM
      : `${process.platform}-${process.arch}`,
  };
}
