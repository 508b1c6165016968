/** Builds the Homebrew formula, which installs the archive of the machine's platform. */
import { archiveName } from "./archives.ts";
import { releasePlatforms } from "./platforms.ts";
import type { ReleaseProject } from "./project.ts";

const blocks = { darwin: "on_macos", linux: "on_linux", x64: "on_intel", arm64: "on_arm" };

/** Returns the formula. `checksumOf` returns the SHA-256 of an archive, or null if it was not built. */
export function homebrewFormula(project: ReleaseProject, checksumOf: (archive: string) => string | null): string {
  const { version, homepage, license } = project;
  const archives = releasePlatforms.filter(({ libc }) => libc !== "musl").flatMap((platform) => {
    const name = archiveName(project, platform);
    const checksum = checksumOf(name);
    return checksum === null ? [] : [{ platform, name, checksum }];
  });
  const sources = (["darwin", "linux"] as const).flatMap((os) => {
    const ofSystem = archives.filter(({ platform }) => platform.os === os);
    if (ofSystem.length === 0) return [];
    return [
      `  ${blocks[os]} do`,
      ...ofSystem.flatMap(({ platform, name, checksum }) => [
        `    ${blocks[platform.cpu]} do`,
        `      url "${homepage}/releases/download/v${version}/${name}"`,
        `      sha256 "${checksum}"`,
        "    end",
      ]),
      "  end",
      "",
    ];
  });
  return `# Made by scripts/release.
class Baton < Formula
  desc "${project.description}"
  homepage "${homepage}"
  version "${version}"
  license "${license}"

${sources.join("\n")}
  def install
    bin.install "baton"
    man1.install Dir["man1/*"]
    man5.install Dir["man5/*"]
    man7.install Dir["man7/*"]
    bash_completion.install "completions/baton.bash" => "baton"
    zsh_completion.install "completions/_baton"
    fish_completion.install "completions/baton.fish"
    doc.install "README.md", "CHANGELOG.md", "THIRD_PARTY_NOTICES.md"
  end

  test do
    system bin/"baton", "lock", "test", "--", "true"
  end
end
`;
}
