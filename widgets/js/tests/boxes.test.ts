import { expect, test } from "vitest";
import { boxLook } from "../src/scene/boxes";
import { node } from "./support";

test.each(["inverted residual block 14×14×64", "separable convolution cell 28×28×264"])(
  "the title of a repeat of %s is not cut",
  (label) => {
    const { lines } = boxLook(node("block/", { kind: "scope", label, repeat: 4, expandable: true }));
    expect(lines[0]?.text).toBe(`${label} ×4`);
  },
);
