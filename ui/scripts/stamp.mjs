import { sourceHash } from "./source.mjs";

// stamp writes the hash of the sources next to the build, so that a test can detect
// a stale build without Node.
export function stamp() {
  return {
    name: "tapedeck-stamp",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "source.sha256", source: `${sourceHash()}\n` });
    },
  };
}
