import { sourceHash } from "./source.mjs";

// stamp writes what the build was made of next to it, so that a test can tell
// without Node whether it is stale.
export function stamp() {
  return {
    name: "tapedeck-stamp",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "source.sha256", source: `${sourceHash()}\n` });
    },
  };
}
