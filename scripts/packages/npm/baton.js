#!/usr/bin/env node
// Starts baton's binary, which npm installs with an optional package for this platform.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync, readSync } from "node:fs";
import { Buffer } from "node:buffer";
import { createRequire } from "node:module";
import { constants } from "node:os";
import process from "node:process";
import { isatty } from "node:tty";

const require = createRequire(import.meta.url);
const { name, version, optionalDependencies } = require("../package.json");
// EX_UNAVAILABLE of sysexits.h: a file that the program needs is not there.
const UNAVAILABLE = 69;

/** The platforms whose binary may run here, the best first. */
function candidates() {
  const platform = `${process.platform}-${process.arch}`;
  return process.platform === "linux" ? [platform, `${platform}-musl`] : [platform];
}

/** Where libc packages are not told apart, both are installed: then Node's own libc decides. */
function usesMusl() {
  if (!process.report) return false;
  process.report.excludeNetwork = true;
  const { header } = process.report.getReport();
  return header !== undefined && header.glibcVersionRuntime === undefined;
}

function findBinary() {
  const found = candidates().flatMap((platform) => {
    try {
      return [require.resolve(`${name}-${platform}/bin/baton`)];
    } catch {
      return [];
    }
  });
  return found.length > 1 && usesMusl() ? found[1] : found[0];
}

function missing() {
  const platforms = Object.keys(optionalDependencies).map((each) => each.slice(name.length + 1));
  const known = candidates().filter((platform) => platforms.includes(platform));
  if (known.length === 0) {
    return `baton: there is no binary for ${process.platform}-${process.arch}. Binaries: ${platforms.join(", ")}\n`;
  }
  const packages = known.map((platform) => `${name}-${platform}`).join(" or ");
  return `baton: the binary is missing: the package ${packages} is not installed. npm leaves optional packages out with ` +
    `--omit=optional, and a copied node_modules has those of another platform.\n` +
    `To install it: npm install --include=optional ${name}@${version}\n`;
}

/** Returns the version of this machine's musl if the binary would end with a segmentation fault; otherwise null. */
function tooOldMusl(binary) {
  const head = Buffer.alloc(4096); // names the loader
  const file = openSync(binary);
  readSync(file, head);
  closeSync(file);
  const loader = /\/[\w/.-]*\/ld-musl-\w+\.so\.1/.exec(head.toString("latin1"))?.[0];
  if (loader === undefined) return null;
  const { stderr } = spawnSync(loader, { encoding: "utf8" });
  const found = /^Version (\d+)\.(\d+)\.(\d+)/m.exec(stderr ?? "");
  if (found === null) return null;
  const [major, minor, patch] = found.slice(1).map(Number);
  const isOld = major * 1e6 + minor * 1e3 + patch < 1_002_004;
  return isOld ? found[0].slice("Version ".length) : null;
}

/** Node before 22.15 cannot replace itself by the binary: it stays, passes signals on, and ends as the binary ends. */
function runBelow(binary, args) {
  // The terminal sends SIGINT and SIGQUIT to both.
  const fromTerminal = isatty(0);
  for (const signal of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) {
    process.on(signal, () => {
      if (!fromTerminal || (signal !== "SIGINT" && signal !== "SIGQUIT")) child.kill(signal);
    });
  }
  // A handler runs in a later turn of the event loop: the binary is started before any of them, and no signal is missed.
  const child = spawn(binary, args, { stdio: "inherit" });
  child.on("error", (error) => {
    process.stderr.write(`baton: Cannot start ${binary}: ${error.message}\n`);
    process.exit(UNAVAILABLE);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    // Node ignores some signals; the exit code is then the one that a shell prints for them.
    process.exitCode = 128 + constants.signals[signal];
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const binary = findBinary();
const args = process.argv.slice(2);
if (binary === undefined) {
  process.stderr.write(missing());
  process.exitCode = UNAVAILABLE;
} else {
  const musl = tooOldMusl(binary);
  if (musl !== null) {
    process.stderr.write(`baton: musl ${musl} is too old: baton needs musl 1.2.4 or later (Alpine 3.18)\n`);
    process.exit(UNAVAILABLE);
  }
  if (typeof process.execve === "function") process.execve(binary, [binary, ...args], process.env);
  runBelow(binary, args);
}
