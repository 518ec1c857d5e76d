import { expect, it } from "vitest";
import { decode, readDiagram, storedName } from "./file";

const bytes = (...parts: (string | number)[]) =>
  new Uint8Array(parts.flatMap((p) => (typeof p === "number" ? [p] : [...new TextEncoder().encode(p)]))).buffer;

it("reads a file in the encoding that it names, and sends it as UTF-8", () => {
  const latin = bytes("<?xml version='1.0' encoding='ISO-8859-1'?><a name='", 0xfc, "'/>");
  expect(decode(latin)).toBe("<?xml version='1.0' encoding='UTF-8'?><a name='ü'/>");
  const utf8 = '<?xml version="1.0" encoding="utf-8"?><a name="ü"/>';
  expect(decode(bytes(utf8))).toBe(utf8);
  expect(decode(bytes("<a/>"))).toBe("<a/>");
  const wide = "<?xml version='1.0' encoding='UTF-16'?><a name='ü'/>";
  const units = [0xfeff, ...[...wide].map((c) => c.charCodeAt(0))];
  for (const file of [units.flatMap((u) => [u & 255, u >> 8]), units.flatMap((u) => [u >> 8, u & 255])])
    expect(decode(bytes(...file))).toBe(wide.replace("UTF-16", "UTF-8"));
  expect(decode(bytes(0xef, 0xbb, 0xbf, "<a/>"))).toBe("<a/>");
});

it("leaves an encoding that the browser does not know to the server", () => {
  const odd = "<?xml version='1.0' encoding='klingon'?><a/>";
  expect(decode(bytes(odd))).toBe(odd);
});

it("does not read a file that is too large", async () => {
  const file = new File([new Uint8Array(8 * 1024 * 1024 + 1)], "my diagram.bpmn");
  await expect(readDiagram(file)).rejects.toThrow("“my diagram.bpmn” has 9 MiB; a diagram has at most 8");
  expect(await readDiagram(new File(["<a/>"], "y.bpmn"))).toEqual({ name: "y.bpmn", bpmn: "<a/>" });
});

it("proposes a name under which the server takes it", () => {
  expect(storedName("My triage (2).bpmn")).toBe("My_triage_2_");
  expect(storedName("a.bpmn20.xml")).toBe("a");
});
