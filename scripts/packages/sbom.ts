/** The software bill of materials: CycloneDX 1.6 as JSON. What is in the binary, with version, license and checksum. */
import { createHash } from "node:crypto";
import { type BundledPackage, bundledPackages, bundledRuntime } from "./bundled_packages.ts";
import type { ReleaseProject } from "./project.ts";

export function billOfMaterials(project: ReleaseProject): string {
  const packages = [...bundledPackages(project.root), bundledRuntime(project.root)];
  const main = { name: `${project.scope}/baton`, version: project.version };
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(project.epoch * 1000).toISOString().replace(/\.\d+/, ""),
      component: {
        type: "application",
        "bom-ref": packageUrl(main),
        name: "baton",
        version: project.version,
        description: project.description,
        licenses: [{ license: { id: project.license } }],
        purl: packageUrl(main),
        externalReferences: [{ type: "website", url: project.homepage }],
      },
    },
    components: [...packages.map(component), javaScriptCore(project)],
    dependencies: [
      { ref: packageUrl(main), dependsOn: packages.map(packageUrl) },
      { ref: packageUrl(bundledRuntime(project.root)), dependsOn: ["javascriptcore"] },
    ],
  };
  // The serial number is derived from the content.
  return `${JSON.stringify({ ...document, serialNumber: numberOf(JSON.stringify(document)) }, null, 2)}\n`;
}

function component(each: BundledPackage): object {
  const [algorithm, digest = ""] = each.integrity.split("-");
  return {
    type: each.name === "bun" ? "platform" : "library",
    "bom-ref": packageUrl(each),
    name: each.name,
    version: each.version,
    licenses: /^[\w.-]+$/.test(each.license) ? [{ license: { id: each.license } }] : [{ expression: each.license }],
    purl: packageUrl(each),
    hashes: algorithm === "sha512" ? [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }] : [],
  };
}

/**
 * The largest library that Bun links statically, and the one whose license asks for a notice. Bun names no version of
 * it.
 */
function javaScriptCore({ root }: ReleaseProject): object {
  return {
    type: "library",
    "bom-ref": "javascriptcore",
    name: "JavaScriptCore",
    description: `As linked into Bun ${bundledRuntime(root).version}`,
    licenses: [{ license: { id: "LGPL-2.0-or-later" } }],
  };
}

/** https://github.com/package-url/purl-spec: the "@" of a scope is written as %40. */
function packageUrl({ name, version }: { name: string; version: string }): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** Returns a UUID of version 8, made from a checksum. */
function numberOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `a${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return `urn:uuid:${parts.join("-")}`;
}
