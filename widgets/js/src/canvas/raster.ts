// The picture as pixels, and on paper.
import { h } from "../dom";

/** Pixels of the file for each pixel of the picture. */
const SCALE = 2;
/** Browsers draw no larger canvas. */
const LONGEST = 16_000;
const MOST_PIXELS = 120_000_000;

async function imageOf(svg: string): Promise<HTMLImageElement> {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = url;
    await image.decode();
    return image;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** A PNG of an SVG file, at twice its size as long as the browser draws that. */
export async function pngOf(svg: string): Promise<{ readonly file: Blob; readonly scale: number }> {
  const image = await imageOf(svg);
  const { naturalWidth: width, naturalHeight: height } = image;
  const scale = Math.min(SCALE, LONGEST / Math.max(width, height), Math.sqrt(MOST_PIXELS / (width * height)));
  const canvas = h("canvas", { width: Math.floor(width * scale), height: Math.floor(height * scale) });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  const file = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!file) throw new Error("the browser cannot draw a picture of this size");
  return { file, scale };
}

/**
 * Prints an SVG file alone on a page of its size, from which the browser makes a PDF: with its own fonts for all scripts,
 * lines as lines, and text that can be searched, which no library small enough for a notebook does.
 */
export function printPdf(svg: string, name: string): void {
  const drawing = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const [width, height] = [drawing.getAttribute("width"), drawing.getAttribute("height")];
  const frame = h("iframe", {
    class: "gl-print",
    title: "Picture to print",
    style: "position:fixed;width:0;height:0;border:0",
  });
  document.body.append(frame);
  const page = frame.contentDocument;
  const window = frame.contentWindow;
  if (!page || !window) throw new Error("the browser does not allow printing here");
  // Browsers propose the title of the page as the name of the file.
  page.title = name;
  const style = page.createElement("style");
  style.textContent = `@page{size:${width}px ${height}px;margin:0}html,body{margin:0}svg{display:block;print-color-adjust:exact}`;
  page.head.append(style);
  page.body.append(page.adoptNode(drawing));
  const title = document.title;
  document.title = name;
  window.addEventListener("afterprint", () => {
    document.title = title;
    frame.remove();
  });
  window.print();
}
