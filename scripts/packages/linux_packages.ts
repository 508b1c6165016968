/**
 * Makes deb and rpm packages with nfpm (https://nfpm.goreleaser.com). nfpm/go.mod pins its version, nfpm/go.sum its
 * dependencies.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import type { SharedContents } from "./contents.ts";
import type { ReleasePlatform } from "./platforms.ts";
import { ReleaseError, type ReleaseProject } from "./project.ts";
import { isProgramInPath, runToolOrThrow } from "./run_tool.ts";
import { releaseCache } from "./runtime_executable.ts";
import { gzipReproducibly } from "./tar_archive.ts";

export type PackageFormat = "deb" | "rpm";

const debArchitectures = { x64: "amd64", arm64: "arm64" };
const rpmArchitectures = { x64: "x86_64", arm64: "aarch64" };

/** Returns the file name that the distributions' tools expect. */
export function linuxPackageFile({ version }: ReleaseProject, { cpu }: ReleasePlatform, format: PackageFormat): string {
  if (format === "deb") return `baton_${version}_${debArchitectures[cpu]}.deb`;
  return `baton-${version}-1.${rpmArchitectures[cpu]}.rpm`;
}

/** Returns whether nfpm is in the cache or can be built. */
export function canMakeLinuxPackages(root: string): boolean {
  return existsSync(nfpmPath(root)) || isProgramInPath("go");
}

function nfpmPath(root: string): string {
  const hash = createHash("sha256").update(readFileSync(join(root, "scripts/packages/nfpm/go.sum"))).digest("hex");
  return join(releaseCache(), `nfpm-${hash.slice(0, 16)}`);
}

/** Builds in progress by the path of their result, so that packages made at the same time share one build. */
const building = new Map<string, Promise<void>>();

/** Returns the path of nfpm. The first time, Go builds it from the pinned source. */
async function nfpm(root: string): Promise<string> {
  const path = nfpmPath(root);
  if (existsSync(path)) return path;
  const build = building.get(path) ?? buildNfpm(root, path).finally(() => building.delete(path));
  building.set(path, build);
  await build;
  return path;
}

async function buildNfpm(root: string, path: string): Promise<void> {
  if (!isProgramInPath("go")) {
    throw new ReleaseError(
      69,
      "deb and rpm packages need Go 1.24 or later, which builds nfpm; go was not found in PATH",
    );
  }
  mkdirSync(dirname(path), { recursive: true });
  const next = `${path}.${process.pid}`;
  await runToolOrThrow(
    ["go", "build", "-mod=readonly", "-trimpath", "-o", next, "github.com/goreleaser/nfpm/v2/cmd/nfpm"],
    {
      cwd: join(root, "scripts/packages/nfpm"),
      minutesMax: 20,
    },
  );
  renameSync(next, path);
}

interface Content {
  readonly dst: string;
  readonly content: Uint8Array;
  readonly mode: number;
  /** The package that contains it; both if not set. */
  readonly packager?: PackageFormat;
}

/** Returns a systemd unit adapted to a binary in /usr/bin. */
export function packagedUnit(text: string): string {
  return text.replaceAll("/usr/local/bin/baton", "/usr/bin/baton");
}

/** The level of gzip that Debian's policy demands of pages and changelogs. */
const debianLevel = 9;

/** Debian demands an address; mail to this one is not delivered. */
function maintainer({ author, homepage }: ReleaseProject): string {
  return `${author} <${new URL(homepage).pathname.split("/")[1]}@users.noreply.github.com>`;
}

function debianChangelog(project: ReleaseProject): Uint8Array {
  const date = new Date(project.epoch * 1000).toUTCString().replace("GMT", "+0000");
  return Buffer.from(
    `baton (${project.version}) unstable; urgency=medium\n\n  * The changes are in CHANGELOG.md.\n\n` +
      ` -- ${maintainer(project)}  ${date}\n`,
  );
}

/** Returns all files with the path where each is installed. */
async function installedFiles(project: ReleaseProject, binary: Uint8Array, shared: SharedContents): Promise<Content[]> {
  const file = (dst: string, content: Uint8Array): Content => ({ dst, content, mode: 0o644 });
  const name = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const doc = (path: string) => `/usr/share/doc/baton/${name(path)}`;
  const completion = (path: string) =>
    shared.completions.find((each) => name(each.path) === path)?.content ?? Buffer.of();
  const license = shared.texts.find(({ path }) => path === "LICENSE")?.content ?? Buffer.of();
  const zsh = completion("_baton");
  return [
    { dst: "/usr/bin/baton", content: binary, mode: 0o755 },
    ...shared.units.map(({ path, content }) =>
      file(`/usr/lib/systemd/system/${name(path)}`, Buffer.from(packagedUnit(Buffer.from(content).toString())))
    ),
    ...shared.pages.map(({ path, content }) => file(`/usr/share/doc/baton/${path}`, content)),
    file("/usr/lib/sysusers.d/baton.conf", readFileSync(join(project.root, "scripts/packages/linux/sysusers.conf"))),
    ...await Promise.all(
      shared.manPages.map(async ({ path, content }) =>
        file(`/usr/share/man/${path}.gz`, await gzipReproducibly(content, debianLevel))
      ),
    ),
    file("/usr/share/bash-completion/completions/baton", completion("baton.bash")),
    file("/usr/share/fish/vendor_completions.d/baton.fish", completion("baton.fish")),
    { ...file("/usr/share/zsh/vendor-completions/_baton", zsh), packager: "deb" },
    { ...file("/usr/share/zsh/site-functions/_baton", zsh), packager: "rpm" },
    ...shared.texts.filter(({ path }) => path !== "LICENSE").map(({ path, content }) => file(doc(path), content)),
    { ...file("/usr/share/doc/baton/copyright", license), packager: "deb" },
    {
      ...file(doc("changelog.Debian.gz"), await gzipReproducibly(debianChangelog(project), debianLevel)),
      packager: "deb",
    },
    {
      ...file("/usr/share/lintian/overrides/baton", readFileSync(join(project.root, "scripts/packages/linux/lintian"))),
      packager: "deb",
    },
    { ...file("/usr/share/licenses/baton/LICENSE", license), packager: "rpm" },
  ];
}

/** Writes the files and nfpm's configuration into `scratch`, and the packages into `outFolder`. */
export async function linuxPackages(
  project: ReleaseProject,
  { platform, binary, shared, scratch, outFolder }: {
    platform: ReleasePlatform;
    binary: Uint8Array;
    shared: SharedContents;
    scratch: string;
    outFolder: string;
  },
): Promise<void> {
  const program = await nfpm(project.root);
  const contents = await installedFiles(project, binary, shared);
  const staged = contents.map(({ dst, content, mode, packager }, index) => {
    const src = join(scratch, `content_${index}`);
    mkdirSync(scratch, { recursive: true });
    writeFileSync(src, content);
    utimesSync(src, project.epoch, project.epoch);
    return {
      src,
      dst,
      file_info: { mode, owner: "root", group: "root" },
      ...(packager === undefined ? {} : { packager }),
    };
  });
  const configuration = join(scratch, "nfpm.json"); // YAML contains JSON
  writeFileSync(configuration, JSON.stringify(packageDescription(project, platform, staged), null, 2));
  const env = { SOURCE_DATE_EPOCH: String(project.epoch) };
  await Promise.all((["deb", "rpm"] as const).map(async (format) => {
    const target = join(outFolder, linuxPackageFile(project, platform, format));
    const words = ["package", "--config", configuration, "--packager", format, "--target", target];
    await runToolOrThrow([program, ...words], { env, cwd: scratch });
  }));
}

const longDescription =
  "baton makes sure that a command runs on one host at a time, once for each scheduled time, and that it is dead " +
  "before another host may start it. It also delivers messages to scripts and retries calls that failed.";

function packageDescription(project: ReleaseProject, { cpu }: ReleasePlatform, contents: readonly object[]): object {
  const script = (name: string) => join(project.root, "scripts/packages/linux", `${name}.sh`);
  return {
    name: "baton",
    arch: debArchitectures[cpu],
    platform: "linux",
    version: project.version,
    version_schema: "semver",
    release: "1",
    section: "admin",
    priority: "optional",
    maintainer: maintainer(project),
    vendor: project.author,
    description: `${project.description}\n${longDescription}`,
    homepage: project.homepage,
    license: project.license,
    mtime: new Date(project.epoch * 1000).toISOString().replace(/\.\d+/, ""),
    contents,
    scripts: Object.fromEntries(
      readdirSync(join(project.root, "scripts/packages/linux")).filter((name) => name.endsWith(".sh"))
        .map((name) => [name.slice(0, -3), script(name.slice(0, -3))]),
    ),
    overrides: {
      // The oldest glibc that the Bun executable runs with.
      deb: { depends: ["libc6 (>= 2.17)"] },
      rpm: { depends: ["libc.so.6(GLIBC_2.17)(64bit)"] },
    },
    deb: { compression: "gzip" },
    rpm: { compression: "gzip", buildhost: "localhost", summary: project.description },
  };
}
