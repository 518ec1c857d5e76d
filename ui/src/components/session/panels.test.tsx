// @vitest-environment jsdom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { Files } from "./panels";

afterEach(cleanup);

const paths = (count: number) => Array.from({ length: count }, (_, i) => `src/file${i}.go`);

it("says how many modified files are not shown", () => {
  const { container, rerender } = render(<Files paths={paths(200)} leftOut={0} />);
  const rows = () => screen.getAllByRole("listitem");
  expect(rows()).toHaveLength(200);
  expect(container.textContent).not.toContain("Not shown");
  rerender(<Files paths={paths(1201)} leftOut={0} />);
  expect(rows()).toHaveLength(201);
  expect(rows().at(-1)?.textContent).toBe("Not shown: 1,001 more files");
  rerender(<Files paths={paths(201)} leftOut={1} />);
  expect(rows().at(-1)?.textContent).toBe("Not shown: 1 more file and 1 change to other files");
  rerender(<Files paths={[]} leftOut={2} />); // files with very long names
  expect(container.textContent).toBe("FilesNot shown: 2 changes to other files");
  rerender(<Files paths={[]} leftOut={0} />);
  expect(container.textContent).toBe("");
});
